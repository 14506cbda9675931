"""The toy web's certificate authority, made anew for each web with `trustme` and trusted by nobody else."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from crawlspace.errors import UsageError


def available() -> bool:
    """Whether certificates can be made."""
    return find_spec("trustme") is not None


def require() -> None:
    """Raise `UsageError` when they cannot."""
    if not available():
        raise UsageError(
            "the toy web needs the package trustme to serve https",
            hint="install crawlspace[testing], or make it with tls=False",
        )


def server_context(names: Iterable[str], ca_file: Path) -> ssl.SSLContext:
    """A server's TLS settings with one certificate for all these hosts; writes the authority's as PEM."""
    # Imported here: the package is an extra, and a web without TLS does not need it.
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(ca_file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context
