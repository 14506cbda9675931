"""Our own nginx: one process, free ports of the loopback interface, a log for each site.

It runs from a folder of its own and leaves the machine's configuration alone.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import accesslog
from bench.accesslog import AccessLog
from bench.sites import Site

_START_SECONDS = 10.0
_CONFIG = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  types {{
    text/html html htm;
    text/css css;
    text/javascript js;
    text/plain txt;
    image/png png;
    image/svg+xml svg;
  }}
  default_type application/octet-stream;
  client_body_temp_path {folder}/t1;
  proxy_temp_path {folder}/t2;
  fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4;
  scgi_temp_path {folder}/t5;
  log_format bench "{format}";
  sendfile on;
  tcp_nopush on;
  gzip off;
  keepalive_timeout 600;
  keepalive_requests 1000000;
  absolute_redirect off;
{servers}}}
"""
_SERVER = "  server {{ listen 127.0.0.1:{port}; root {root}; access_log {log} bench; }}\n"


class CannotServe(Exception):
    """nginx is missing or did not start; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Served:
    """A site within reach."""

    site: Site
    url: str
    log: AccessLog


class Server:
    """A running nginx."""

    def __init__(self, pid: int, served: Sequence[Served]) -> None:
        self._pid = pid
        self._served = {each.site.name: each for each in served}

    def __getitem__(self, name: str) -> Served:
        return self._served[name]

    def cpu(self) -> float:
        """CPU seconds used so far: the same work must cost the server the same, whoever asks for it."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def program() -> str:
    """Where nginx is; raises `CannotServe`."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise CannotServe("nginx is not installed; on Debian: apt-get install nginx-light")
    return found


@contextmanager
def serving(sites: Sequence[Site], folder: Path) -> Iterator[Server]:
    """Serve `sites` until the block ends; `folder` is made, and holds configuration and logs."""
    folder.mkdir(parents=True)
    ports = _free_ports(len(sites))
    served = []
    blocks = ""
    for site, port in zip(sites, ports, strict=True):
        log = folder / f"{site.name}.log"
        log.touch()
        blocks += _SERVER.format(port=port, root=site.folder, log=log)
        served.append(Served(site, f"http://127.0.0.1:{port}/", AccessLog(log)))
    config = folder / "nginx.conf"
    config.write_text(_CONFIG.format(folder=folder, format=accesslog.FORMAT, servers=blocks), encoding="utf-8")
    command = [program(), "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await_start(process, ports, folder)
        yield Server(process.pid, served)
    finally:
        process.terminate()
        process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _await_start(process: subprocess.Popen[bytes], ports: Sequence[int], folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    for port in ports:
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                said = (folder / "error.log").read_text(errors="replace") if (folder / "error.log").exists() else ""
                raise CannotServe(f"nginx did not start: {said.strip() or 'it says nothing'}")
            time.sleep(0.02)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
