"""How long and how much a server may answer: the settings of the fetcher.

Every wait and every buffer of the fetcher is bounded by one of these. None can be switched off.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from crawlspace.fetch.request import origin_from
from crawlspace.fetch.secrets import check_variables
from crawlspace.fetch.types import TYPE_PATTERN

KIB = 1024
MIB = 1024 * KIB
LONGEST_SECONDS = 90

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class FetchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits of one request and of the connections that are kept."""

    timeout: Annotated[
        float,
        msgspec.Meta(
            # No request is made that could last beyond the lease of its host: with more, none ever would be.
            gt=0,
            le=LONGEST_SECONDS,
            description="Seconds from the start of a request to its last byte; a host is leased for 120 at a time.",
        ),
    ] = 30.0
    connect_timeout: Annotated[
        Seconds, msgspec.Meta(description="Seconds to find the address, connect and finish the TLS handshake.")
    ] = 10.0
    idle_timeout: Annotated[
        Seconds, msgspec.Meta(description="Seconds a server may stay silent within a request.")
    ] = 10.0
    min_rate: Annotated[
        int, msgspec.Meta(ge=0, description="Bytes a second that a server must send, measured over min_rate_after.")
    ] = 1024
    min_rate_after: Annotated[Seconds, msgspec.Meta(description="Seconds over which min_rate is measured.")] = 20.0
    max_body: Annotated[int, msgspec.Meta(ge=1, description="Bytes of a body after decoding; the rest is cut.")] = (
        10 * MIB
    )
    max_wire: Annotated[
        int, msgspec.Meta(ge=1, description="Bytes of a body on the wire, framing included; the rest is cut.")
    ] = 10 * MIB
    max_head: Annotated[int, msgspec.Meta(ge=256, description="Bytes of a status line with its headers.")] = 64 * KIB
    max_headers: Annotated[int, msgspec.Meta(ge=1, description="Header fields of a response.")] = 200
    max_line: Annotated[int, msgspec.Meta(ge=64, description="Bytes of the status line or of one header field.")] = (
        8 * KIB
    )
    max_ratio: Annotated[
        int, msgspec.Meta(ge=1, description="Decoded bytes for each byte on the wire, once 1 MiB is decoded.")
    ] = 100
    keep_alive: Annotated[Seconds, msgspec.Meta(description="Seconds an unused connection stays open.")] = 90.0
    connections_per_address: Annotated[
        int, msgspec.Meta(ge=1, le=1024, description="Open connections to one IP address.")
    ] = 8
    idle_connections: Annotated[
        int, msgspec.Meta(ge=0, le=100_000, description="Unused connections kept open in all.")
    ] = 512
    http2: Annotated[
        bool,
        msgspec.Meta(description="Speak HTTP/2 with servers that choose it over TLS; needs the extra http2."),
    ] = False
    tls_verify: Annotated[
        bool, msgspec.Meta(description="Check certificates and host names; turning this off trusts anybody.")
    ] = True
    tls_unverified: Annotated[
        list[str],
        msgspec.Meta(description="Origins, such as 'https://old.example', whose certificates are not checked."),
    ] = msgspec.field(default_factory=list)
    ca_file: Annotated[
        str, msgspec.Meta(description="File of further trusted certificates in PEM form; empty: the system's.")
    ] = ""
    client_certificates: Annotated[
        dict[str, str],
        msgspec.Meta(description="From an origin to the file with our certificate and its key for it, in PEM form."),
    ] = msgspec.field(default_factory=dict)
    auth: Annotated[
        dict[str, str],
        msgspec.Meta(description="From an origin to the environment variable that holds our user:password for it."),
    ] = msgspec.field(default_factory=dict)
    types: Annotated[
        list[Annotated[str, msgspec.Meta(pattern=TYPE_PATTERN, max_length=100)]],
        msgspec.Meta(
            description="Types of pages that are read and kept, such as text/* or application/pdf; of others the "
            "head alone is. None: all. Requisites and sitemaps are read whatever they are.",
            max_length=1000,
        ),
    ] = msgspec.field(default_factory=list)
    cookies: Annotated[
        bool, msgspec.Meta(description="Keep cookies while a crawl runs and send each back to where it came from.")
    ] = False

    def __post_init__(self) -> None:
        for text in (*self.tls_unverified, *self.client_certificates, *self.auth):
            origin_from(text)
        check_variables(self.auth, "fetch.auth")
