"""The archive in an object storage that speaks S3, as a disk of which each file is written once and whole.

What is appended gathers in a file of the local disk, which `sync` uploads as one object and removes: the local disk
is a buffer as large as a group. An object is there whole or not at all, so that a crash tears nothing; what was not
yet uploaded, nobody points to. Nothing is ever listed to go on. The one place that knows `obstore`, which comes with
the extra `s3`. Credentials, region and endpoint come from the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`
and so on, as the tools of AWS have them) and are written nowhere.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from crawlspace.archive.disk import AppendFile, Disk, RealDisk, Unreachable
from crawlspace.archive.repair import is_of
from crawlspace.errors import ArchiveAway, ConfigError, UsageError

if TYPE_CHECKING:
    from obstore.store import S3Store

AHEAD = 1 << 20
"""Bytes fetched at once where fewer are asked for: a request costs as much as the transfer of some hundred KB."""
PART = 8 << 20
RETRIES = 6
SIZES_KEPT = 10_000
RETRY_SECONDS = 60
MARK = "crawlspace"
"""An empty object, written at each start to see whether it can be."""
OUTGOING = "outgoing"
"""Directory of what is on its way, beside the files that a local archive would have."""


class ObjectDisk:
    """A prefix of a bucket; implements `disk.Disk`. Paths are taken by their last part."""

    grows = False

    def __init__(self, address: str, environment: Mapping[str, str], buffer: Disk | None = None) -> None:
        """`address` is `s3://bucket/prefix`. Raises `UsageError` without obstore, `ConfigError` for a bad address."""
        self._store = _store(address, environment)
        self._address = address.rstrip("/")
        self._buffer: Disk = buffer or RealDisk()
        self._ahead: tuple[str, int, bytes] = ("", 0, b"")
        self._sizes: dict[str, int] = {}

    def require(self) -> None:
        """Find out, before anything is fetched, whether objects can be written here.

        Raises `ConfigError` for a bucket that is not there and for credentials that do not fit, `ArchiveAway` when
        the storage does not answer.
        """
        import obstore
        from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

        try:
            with self._asked("bucket"):
                obstore.put(self._store, MARK, b"", use_multipart=False)
        except FileNotFoundError:
            raise ConfigError(
                f"archive.store: there is no bucket for {self._address}", hint="make it first"
            ) from None
        except Unreachable as error:
            if isinstance(error.__cause__, PermissionDeniedError | UnauthenticatedError):
                why = "its credentials are looked for in the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"
                raise ConfigError(f"archive.store: {error.strerror}", hint=why) from None
            raise ArchiveAway(str(error.strerror)) from error

    def make_directory(self, path: Path) -> None:
        """Where the buffer lies; objects need none."""
        self._buffer.make_directory(path / OUTGOING)

    def create(self, path: Path) -> AppendFile:
        """A file whose object appears with its first `sync`; nothing can be added then."""
        return _Outgoing(self, self._buffer, path.parent / OUTGOING / path.name)

    def names(self, directory: Path) -> list[str]:  # noqa: ARG002 -- all are of one prefix
        """Names of all objects, from the storage's own list: for indexes and checks, never to go on."""
        import obstore

        with self._asked(self._address):
            return [each["path"] for batch in obstore.list(self._store) for each in batch if "/" not in each["path"]]

    def size(self, path: Path) -> int:
        import obstore

        if path.name not in self._sizes:
            if len(self._sizes) >= SIZES_KEPT:
                self._sizes.clear()
            with self._asked(path.name):
                self._sizes[path.name] = obstore.head(self._store, path.name)["size"]
        return self._sizes[path.name]

    def read(self, path: Path, offset: int, length: int) -> bytes:
        if length <= 0:
            return b""
        name, start, data = self._ahead
        if name != path.name or not start <= offset or offset + length > start + len(data):
            start, data = offset, self._fetch(path.name, offset, max(length, AHEAD))
            self._ahead = (path.name, start, data)
        return data[offset - start : offset - start + length]

    def cut(self, path: Path, size: int) -> None:  # noqa: ARG002 -- as the port has it
        raise OSError(errno.EROFS, "an object cannot be cut")

    def remove(self, path: Path) -> None:
        """Remove the object; no matter if there is none."""
        import obstore

        with suppress(FileNotFoundError), self._asked(path.name):
            obstore.delete(self._store, path.name)

    def sync_directory(self, path: Path) -> None:
        """Names are durable with their objects."""

    def free(self, path: Path) -> int:
        """Of the buffer."""
        return self._buffer.free(path)

    def clear_buffer(self, directory: Path, worker: int | None = None) -> int:
        """Remove what a killed process, or one worker, had not uploaded; nobody points to it. How many files."""
        outgoing = directory / OUTGOING
        names = [name for name in self._buffer.names(outgoing) if is_of(worker, name)]
        for name in names:
            self._buffer.remove(outgoing / name)
        return len(names)

    def join(self, path: Path, parts: Sequence[Path]) -> None:
        """Make one object of others, put one behind the other; nothing of it is kept on the local disk."""
        import obstore

        writing = obstore.open_writer(self._store, path.name, buffer_size=PART, max_concurrency=2)
        with self._asked(path.name), writing as whole:
            for part in parts:
                for piece in obstore.get(self._store, part.name).stream(min_chunk_size=PART):
                    whole.write(piece)

    def upload(self, path: Path) -> None:
        """Make an object of a file of the buffer; the file goes."""
        import obstore

        try:
            with self._asked(path.name):
                obstore.put(self._store, path.name, path, chunk_size=PART, max_concurrency=2)
        except FileNotFoundError as error:
            # The bucket is gone: it may come back, and nothing is lost until then.
            raise Unreachable(errno.EIO, f"{self._address}: there is no such bucket") from error
        self._buffer.remove(path)

    def publish(self, path: Path, *, force: bool = False) -> None:
        """Make an object of a file, which stays; `FileExistsError` when there is one of its name, unless `force`."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        if not force:
            self.require_free(path.name)
        mode = "overwrite" if force or path.stat().st_size > PART else "create"
        try:
            with self._asked(path.name):
                obstore.put(self._store, path.name, path, mode=mode, chunk_size=PART, max_concurrency=2)  # type: ignore[arg-type]  # its words are literals
        except Unreachable as error:
            if isinstance(error.__cause__, AlreadyExistsError):
                raise FileExistsError(errno.EEXIST, f"{self._address} has {path.name} already") from None
            raise

    def require_free(self, name: str) -> None:
        """Raise `FileExistsError` when there is an object of this name."""
        with suppress(FileNotFoundError):
            self.size(Path(name))
            raise FileExistsError(errno.EEXIST, f"{self._address} has {name} already")

    def _fetch(self, name: str, offset: int, length: int) -> bytes:
        import obstore

        size = self.size(Path(name))
        if offset >= size:
            return b""
        with self._asked(name):
            return bytes(obstore.get_range(self._store, name, start=offset, end=min(offset + length, size)))

    @contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        from obstore.exceptions import BaseError, NotFoundError

        try:
            yield
        except (FileNotFoundError, NotFoundError):
            raise FileNotFoundError(errno.ENOENT, f"{self._address} has no {what}") from None
        except BaseError as error:
            raise Unreachable(errno.EIO, f"{self._address}: {_first_line(error)}") from error


class _Outgoing:
    """A file that is uploaded when it is synced."""

    def __init__(self, disk: ObjectDisk, buffer: Disk, path: Path) -> None:
        self._disk = disk
        self._path = path
        self._file = buffer.create(path)
        self._sent = False

    def write(self, data: bytes | memoryview) -> int:
        return self._file.write(data)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def sync(self) -> None:
        # What the system has not yet on its disk can be read all the same: only the object has to last.
        self._disk.upload(self._path)
        self._sent = True

    def close(self) -> None:
        self._file.close()
        if not self._sent:
            self._path.unlink(missing_ok=True)


def _store(address: str, environment: Mapping[str, str]) -> S3Store:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import S3Store
    except ImportError as error:
        raise UsageError(
            "an archive in object storage needs the extra `s3`", hint="pip install 'crawlspace[s3]'"
        ) from error
    endpoints = (environment.get(name, "") for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
    try:
        return S3Store.from_url(
            address,
            client_options={
                # Only whoever names such an endpoint gets it.
                "allow_http": any(each.startswith("http://") for each in endpoints),
                "timeout": timedelta(seconds=RETRY_SECONDS),
            },
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)},
        )
    except (BaseError, ValueError) as error:
        raise ConfigError(f"archive.store: {_first_line(error)}", hint="write it as s3://bucket/prefix") from None


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
