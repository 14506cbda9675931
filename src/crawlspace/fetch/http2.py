"""Our side of an HTTP/2 connection (RFC 9113), without a socket; the grammar of frames and fields is h2's.

One request is under way at a time, as on all our connections: a host gets no more. What the server says is put into
the words of HTTP/1.1 and read by the same reader, so that every cap, coding and verdict is the same; the archive
keeps those words, with the protocol named beside them.

A server can make work without giving anything: frames are counted one by one, and too many for the content end the
connection. Pushes are refused, the list of fields is bounded before it is unpacked, windows are bounded by `WINDOW`.
This is the only module that imports h2, and is imported only where `fetch.http2` is on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings

from crawlspace.exchange import FetchError
from crawlspace.fetch.limits import MIB, FetchSettings
from crawlspace.fetch.response import ResponseReader

WINDOW = MIB
"""Bytes that a server may send before we have read them."""
MAX_FRAMES = 1000
"""Frames beyond one for each hundred bytes of the answer that a server may send between two requests of ours."""
BYTES_PER_FRAME = 100

_OWN_WINDOW = 65_535
"""What a connection has from the start (RFC 9113, section 6.9.2)."""
_FRAME_HEAD = 9
_STATUS = re.compile(rb"[1-9][0-9]{2}")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE = re.compile(rb"[\t -~\x80-\xff]*")
_PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}


class Talk:
    """What is said on one connection. Bytes to be sent are had from `to_send` after every call."""

    def __init__(self, limits: FetchSettings) -> None:
        self.usable = True
        """Another request may follow."""
        self.declined = False
        """The server wants HTTP/1.1 for this request (RFC 9113, section 7)."""
        self._connection = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self._connection.local_settings = Settings(
            client=True,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: limits.max_head,
            },
        )
        self._connection.decoder.max_header_list_size = limits.max_head
        self._connection.initiate_connection()
        self._connection.increment_flow_control_window(WINDOW - _OWN_WINDOW)
        self._reader: ResponseReader | None = None
        self._stream = 0
        self._open = False
        """The server has not ended the stream."""
        self._body = b""
        """What of the request is still to be sent."""
        self._frames = 0
        self._left = 0
        """Bytes of the frame that are still to come."""
        self._begun = b""
        """The beginning of a frame's head."""

    def to_send(self) -> bytes:
        """What has to be sent now, if anything."""
        return self._connection.data_to_send()

    def ask(self, request: bytes, reader: ResponseReader) -> None:
        """Send a request, composed for HTTP/1.1; its answer goes to `reader`."""
        head, _, self._body = request.partition(b"\r\n\r\n")
        line, *lines = head.split(b"\r\n")
        method, target, _ = line.split(b" ", 2)
        said = [(name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines)]
        authority = next(value for name, value in said if name == b"host")
        start = [(b":method", method), (b":authority", authority), (b":scheme", b"https"), (b":path", target)]
        fields = [*start, *(field for field in said if field[0] != b"host")]
        self._reader, self._open, self._frames = reader, True, 0
        try:
            self._stream = self._connection.get_next_available_stream_id()
            self._connection.send_headers(self._stream, fields, end_stream=not self._body)
            self._go_on()
        except H2Error as error:
            self._break(FetchError.RESET, f"HTTP/2: no request can be sent: {error}")

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the connection. Once the reader is done, `end` is due."""
        for piece in self._pieces(data):
            received = self._reader.received if self._reader is not None else 0
            if self._frames > MAX_FRAMES + received // BYTES_PER_FRAME:
                self._break(FetchError.PROTOCOL, "HTTP/2: more frames than content")
                return
            try:
                for event in self._connection.receive_data(piece):
                    self._take(event)
            except H2Error as error:
                self._break(FetchError.PROTOCOL, f"HTTP/2: {error}")
                return

    def end(self) -> bool:
        """The answer was read or given up; True when the connection may carry another request."""
        reader, self._reader = self._reader, None
        self._body = b""
        if reader is None or reader.error is not None or reader.truncated is not None:
            self.usable = False
        elif self._open and self.usable:  # all was said, but for the end of the stream
            self._open = False
            self._connection.reset_stream(self._stream, ErrorCodes.CANCEL)
        return self.usable

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """Pieces that end where a frame does, or with the data; frames are counted on the way."""
        data, self._begun = self._begun + data, b""
        at = 0
        while at < len(data):
            if not self._left:
                if len(data) - at < _FRAME_HEAD:
                    self._begun = data[at:]
                    return
                size = int.from_bytes(data[at : at + 3], "big")
                if size > self._connection.max_inbound_frame_size:  # h2 would wait for all of it first
                    self._break(FetchError.PROTOCOL, "HTTP/2: a frame longer than any may be")
                    return
                self._left = _FRAME_HEAD + size
                self._frames += 1
            piece = data[at : at + self._left]
            at += len(piece)
            self._left -= len(piece)
            yield piece

    def _take(self, event: events.Event) -> None:
        if isinstance(event, events.DataReceived):
            self._connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
            self._read(event.stream_id, event.data or b"")
        elif isinstance(event, events.ResponseReceived | events.InformationalResponseReceived):
            self._read_head(event)
        elif isinstance(event, events.StreamEnded) and event.stream_id == self._stream:
            self._open = False
            if self._reader is not None:
                self._reader.lost(clean=True)
        elif isinstance(event, events.StreamReset) and event.stream_id == self._stream:
            self._open = False
            self.declined = event.error_code == ErrorCodes.HTTP_1_1_REQUIRED
            self._break(FetchError.RESET, f"HTTP/2: the server reset the stream, {_code(event.error_code)}")
        elif isinstance(event, events.ConnectionTerminated):
            self.usable = False
            if (event.last_stream_id or 0) < self._stream:
                self._break(FetchError.RESET, f"HTTP/2: the server ends the connection, {_code(event.error_code)}")
        elif isinstance(event, events.WindowUpdated | events.RemoteSettingsChanged) and self._body:
            self._go_on()

    def _read_head(self, event: events.ResponseReceived | events.InformationalResponseReceived) -> None:
        head = _in_words(event.headers or ())
        if head:
            self._read(event.stream_id, head)
        else:
            self._break(FetchError.PROTOCOL, "HTTP/2: a field that no header may hold")

    def _read(self, stream: int | None, data: bytes) -> None:
        reader = self._reader
        if reader is not None and stream == self._stream and data and not reader.done:
            reader.feed(data)

    def _go_on(self) -> None:
        """Send as much of the body as the server's windows allow."""
        connection, stream = self._connection, self._stream
        while self._body and self._open:
            size = min(connection.local_flow_control_window(stream), connection.max_outbound_frame_size)
            if size <= 0:
                return
            piece, self._body = self._body[:size], self._body[size:]
            connection.send_data(stream, piece, end_stream=not self._body)

    def _break(self, error: FetchError, detail: str) -> None:
        self.usable = False
        if self._reader is not None:
            self._reader.broken(error, detail)


def _in_words(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A head as HTTP/1.1 would have it; empty for one that cannot be written down."""
    lines = []
    status = b""
    for name, value in fields:
        if name == b":status" and _STATUS.fullmatch(value):
            status = value
        elif _NAME.fullmatch(name) and _VALUE.fullmatch(value):
            lines.append(b"%s: %s\r\n" % (name, value))
        else:
            return b""
    if not status:
        return b""
    return b"HTTP/1.1 %s %s\r\n%s\r\n" % (status, _PHRASES.get(int(status), b""), b"".join(lines))


def _code(code: ErrorCodes | int | None) -> str:
    return code.name if isinstance(code, ErrorCodes) else f"code {code}"
