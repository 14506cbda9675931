"""TLS: how servers prove who they are, and where we prove who we are. One context for each kind of origin.

Certificates are checked, TLS 1.2 is the oldest version spoken. An exception holds for the origin that it names and
for no other, and so does a client certificate.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict
from collections.abc import Mapping
from importlib.util import find_spec

from crawlspace.errors import ConfigError
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.request import Origin, origin_from

UNVERIFIED = "the certificate was not checked"
_REMEMBERED = 4096
"""Origins that are known to want HTTP/1.1."""


class Contexts:
    """TLS contexts by origin; raises `ConfigError` for a file that cannot be used."""

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._unverified = frozenset(map(origin_from, settings.tls_unverified))
        self._certificates: Mapping[Origin, str] = {
            origin_from(text): file for text, file in settings.client_certificates.items()
        }
        self._made: dict[tuple[bool, str, bool], ssl.SSLContext] = {}
        self._plain: OrderedDict[Origin, None] = OrderedDict()
        """Origins that take HTTP/2 and then want HTTP/1.1."""
        if settings.http2 and find_spec("h2") is None:
            raise ConfigError("fetch.http2 needs the package h2", hint="pip install 'crawlspace[http2]'")
        if settings.ca_file:
            self._context(settings.tls_verify, "", False)
        for origin in self._certificates:
            self.of(origin)

    def of(self, origin: Origin) -> ssl.SSLContext:
        """The context for connections to this origin."""
        http2 = self._settings.http2 and origin not in self._plain
        return self._context(self.verifies(origin), self._certificates.get(origin, ""), http2)

    def decline_http2(self, origin: Origin) -> None:
        """Offer this origin HTTP/1.1 alone from now on."""
        self._plain[origin] = None
        if len(self._plain) > _REMEMBERED:
            self._plain.popitem(last=False)

    def verifies(self, origin: Origin) -> bool:
        """Whether the origin has to prove its name."""
        return self._settings.tls_verify and origin not in self._unverified

    def _context(self, verify: bool, certificate: str, http2: bool) -> ssl.SSLContext:
        """Made when first needed: reading the system's authorities takes longer than many a request."""
        context = self._made.get((verify, certificate, http2))
        if context is None:
            context = self._made[verify, certificate, http2] = _context(verify, self._settings.ca_file, http2)
            if certificate:
                _load_certificate(context, certificate)
        return context


def _context(verify: bool, ca_file: str, http2: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:  # ssl.SSLError is one, for a file that holds no certificate
            raise ConfigError(
                f"fetch.ca_file: {ca_file!r} cannot be used: {error.strerror or error}",
                hint="a file of certificates in PEM form",
            ) from error
    return context


def _load_certificate(context: ssl.SSLContext, file: str) -> None:
    def no_password() -> str:
        raise ConfigError(
            f"fetch.client_certificates: the key in {file!r} is locked", hint="write it without a password"
        )

    try:
        context.load_cert_chain(file, password=no_password)
    except OSError as error:
        raise ConfigError(
            f"fetch.client_certificates: {file!r} cannot be used: {error.strerror or error}",
            hint="a file with the certificate and its key in PEM form",
        ) from error
