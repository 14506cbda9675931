"""`crawlspace fetch`: one URL as the crawler fetches it, robots.txt included. Nothing is stored."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from crawlspace.app.single import Answered, fetch_one
from crawlspace.cli.options import as_json, config_file, echo_json, overrides, run, settings_of
from crawlspace.observe.printable import printable
from crawlspace.observe.words import size


@click.command("fetch")
@click.argument("url")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False, writable=True), help="Write the body."
)
@click.option("--head", "head_only", is_flag=True, help="Print the response head instead of the body.")
@as_json
@config_file
@overrides
def command(
    url: str,
    output: Path | None,
    head_only: bool,
    json_lines: bool,
    config: Path | None,
    overrides: Sequence[str],
) -> None:
    """Fetch one URL, obeying its robots.txt, and print the body."""
    settings = settings_of(None, config, overrides)
    answered = run(lambda: fetch_one(url, settings))
    if json_lines:
        echo_json(_facts(answered))
    else:
        _report(answered, head_only=head_only)
    result = answered.result
    if result is None or result.error is not None or not result.status:
        sys.exit(1)
    if output is not None:
        output.write_bytes(result.body)
        click.echo(f"{size(len(result.body))} written to {output}", err=True)
    elif not (head_only or json_lines):
        _body(result.body)


def _report(answered: Answered, *, head_only: bool) -> None:
    result = answered.result
    if result is None:
        click.echo(f"not fetched: robots.txt says {printable(answered.robots)}", err=True)
        return
    if result.error is not None:
        click.echo(f"failed: {result.error}: {printable(result.detail)}", err=True)
    if result.status:
        click.echo(
            f"HTTP {result.status}, {size(result.wire_size)}, {result.elapsed_ms} ms, {result.address}", err=True
        )
    if head_only:
        for line in result.response_head.decode("latin-1").splitlines():
            click.echo(printable(line))


def _body(body: bytes) -> None:
    """Raw to a pipe, which wants bytes; made safe on a terminal, which would obey them."""
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
        return
    for line in body.decode("utf-8", "replace").splitlines():
        click.echo(printable(line))


def _facts(answered: Answered) -> dict[str, object]:
    result = answered.result
    if result is None:
        return {"url": answered.url, "robots": answered.robots, "error": "robots"}
    return {
        "url": result.url,
        "robots": answered.robots,
        "status": result.status or None,
        "error": result.error,
        "detail": result.detail,
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in result.headers.raw],
        "size": result.wire_size,
        "body_size": len(result.body),
        "truncated": result.truncated,
        "elapsed_ms": result.elapsed_ms,
        "address": result.address,
        "protocol": result.protocol or "http/1.1",
    }
