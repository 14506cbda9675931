"""Who needs to be told who we are: a crawl of public hosts does not start without a contact."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

from crawlspace.errors import ConfigError
from crawlspace.settings import Settings
from crawlspace.types import Address
from crawlspace.urls import host_name, is_address


def require_contact(settings: Settings, seeds: Iterable[Address]) -> None:
    """Raise `ConfigError` when a seed is on a public host and no contact is set.

    What hides behind a name is only known once it is resolved; the fetcher then refuses public addresses as long
    as there is no contact. This check says so before anything is fetched.
    """
    if settings.contact:
        return
    for seed in seeds:
        if _is_public(seed.host, settings.network.resolve):
            raise ConfigError(
                f"{host_name(seed.host)} is a public host, and this crawl has no contact",
                hint="sites must be able to reach you: -s contact=you@example.com, or contact in crawl.toml",
            )


def _is_public(host: str, table: Mapping[str, str]) -> bool:
    name = host_name(host)
    if is_address(name):
        return ipaddress.ip_address(name.strip("[]")).is_global
    if name == "localhost" or name.endswith((".localhost", ".test", ".internal")):
        return False
    return not any(key.partition(":")[0] in (name, f"*.{name.partition('.')[2]}") for key in table)
