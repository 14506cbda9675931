"""The `crawlspace` command. One module a verb; verbs are imported when they are used, so that each starts quickly.

Exit codes: 0 finished, 1 unexpected error, 2 usage or configuration, 3 interrupted and resumable, 4 stopped by a
budget or limit, 5 disk full and resumable, 6 finished with more dead letters than allowed or with nothing else,
7 damage found.
"""

from __future__ import annotations

import atexit
import difflib
import importlib
import os
import signal
import sys
from typing import Any

import click

from crawlspace import __version__
from crawlspace.app.circles import seldom_looked_for
from crawlspace.cli.leaving import undisturbed
from crawlspace.errors import CrawlspaceError
from crawlspace.observe.printable import printable

VERBS = {
    "init": "crawlspace.cli.init",
    "crawl": "crawlspace.cli.crawl",
    "worker": "crawlspace.cli.worker",
    "inject": "crawlspace.cli.inject",
    "import": "crawlspace.cli.import_",
    "stats": "crawlspace.cli.stats",
    "hosts": "crawlspace.cli.hosts",
    "explain": "crawlspace.cli.explain",
    "normalize": "crawlspace.cli.normalize",
    "rekey": "crawlspace.cli.rekey",
    "rules": "crawlspace.cli.rules",
    "duplicates": "crawlspace.cli.duplicates",
    "robots": "crawlspace.cli.robots",
    "fetch": "crawlspace.cli.fetch",
    "parse": "crawlspace.cli.parse",
    "dlq": "crawlspace.cli.dlq",
    "host": "crawlspace.cli.host",
    "ignore": "crawlspace.cli.ignore",
    "prioritize": "crawlspace.cli.prioritize",
    "export": "crawlspace.cli.export",
    "index": "crawlspace.cli.index",
    "reparse": "crawlspace.cli.reparse",
    "sql": "crawlspace.cli.sql",
    "compact": "crawlspace.cli.compact",
    "check": "crawlspace.cli.check",
    "backup": "crawlspace.cli.backup",
    "config": "crawlspace.cli.config",
    "demo": "crawlspace.cli.demo",
}


class _ReaderGone(Exception):
    """Whoever read our output has gone. Of a broken pipe click would make an unexpected error."""


class Verbs(click.Group):
    """The verbs, in the order in which one meets them."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGone from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(VERBS[cmd_name]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], VERBS, n=1)
            if near:
                raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None
            raise


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="crawlspace", message="%(prog)s %(version)s")
def cli() -> None:
    """A polite web crawler that fetches every page once and loses nothing when killed.

    Start with: crawlspace crawl https://example.com/ -s contact=you@example.com
    """


def main() -> None:
    """Run the command line and exit with its code."""
    # Once all is told Python has its own things to put away: a signal that comes then must not change the exit code.
    atexit.register(undisturbed)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # A verb that is ended puts away what it began, as after Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with seldom_looked_for():
            code = cli.main(standalone_mode=False)
    except click.exceptions.Exit as leave:
        code = leave.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        code = 3
    except CrawlspaceError as error:
        _tell(error)
        code = error.exit_code
    except (_ReaderGone, BrokenPipeError):
        # The reader of our output has gone; what Python would still flush at exit goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    undisturbed()
    sys.exit(code or 0)


def _tell(error: CrawlspaceError) -> None:
    click.echo(f"crawlspace: {printable(error.message)}", err=True)
    if error.hint:
        click.echo(f"  {printable(error.hint)}", err=True)
