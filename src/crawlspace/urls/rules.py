"""The rules of identity as named steps: each a small function from the parts of a URL to its parts.

A step says what it is called, in which version, why it may be taken and where that is written. Which steps are
taken, and how, is `Rules`: plain values. Steps run in the order of `STEPS`, after the parser of the URL Standard has
resolved and written the text. All steps together are a fixed point: a second pass changes nothing, whatever the
rules.

A step whose meaning changes gets a new version, so that the identifiers of policies change with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import msgspec

from crawlspace.urls import params, percent, sessions
from crawlspace.urls.trackers import tracks

TrailingSlash = Literal["keep", "strip", "add"]


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is folded on one host. The defaults are the conservative policy; `Choices` documents each field."""

    fold_scheme: bool = False
    fold_trailing_dot: bool = True
    fold_www: bool = False
    hash_routes: bool = False
    percent_encoding: bool = True
    lower_path: bool = False
    path_sessions: bool = True
    segment_sessions: bool = False
    path_params: tuple[str, ...] = ()
    id_segments: tuple[str, ...] = ()
    merge_slashes: bool = False
    view_segments: tuple[str, ...] = ()
    index_documents: tuple[str, ...] = ()
    trailing_slash: TrailingSlash = "keep"
    semicolons: bool = False
    drop_blank_params: bool = True
    strip_trackers: bool = True
    strip_sessions: bool = True
    strip: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    sort: bool = True
    drop_empty_query: bool = True
    fold_into: str = ""
    """For some hosts only: the name under which all their URLs are counted."""


class Parts(NamedTuple):
    """A URL in pieces, as the URL Standard writes it."""

    scheme: str
    name: str
    """Host name without port."""
    port: str
    """Empty when it is the scheme's own."""
    path: str
    query: str | None
    """None when there is no `?`; without it else."""
    fragment: str | None = None

    def text(self) -> str:
        """The URL in one piece."""
        tail = self.path
        if self.query is not None:
            tail = f"{tail}?{self.query}"
        if self.fragment is not None:
            tail = f"{tail}#{self.fragment}"
        return f"{self.scheme}://{authority(self.name, self.port)}{tail}"


def authority(name: str, port: str) -> str:
    return f"{name}:{port}" if port else name


def parts_of(href: str) -> Parts:
    """The parts of a URL that the parser has written, without user information."""
    rest, hash_mark, fragment = href.partition("#")
    rest, query_mark, query = rest.partition("?")
    scheme, _, rest = rest.partition("://")
    host, _, path = rest.partition("/")
    name, _, port = host.rpartition(":") if host[-1:] != "]" and ":" in host else (host, "", "")
    return Parts(scheme, name, port, f"/{path}", query if query_mark else None, fragment if hash_mark else None)


class Matcher:
    """Parameter names and prefixes (`utm_*`), as the settings write them."""

    __slots__ = ("_names", "_prefixes")

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._names = frozenset(pattern for pattern in patterns if not pattern.endswith("*"))
        self._prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))

    def __call__(self, name: str, _value: str = "") -> bool:
        return name in self._names or name.startswith(self._prefixes)


# -- scheme, host and fragment ------------------------------------------------------------------------------


def _drop_fragment(parts: Parts, rules: Rules) -> Parts:
    fragment = parts.fragment
    if fragment is None or (rules.hash_routes and fragment.startswith("!")):
        return parts
    return parts._replace(fragment=None)


def _fold_scheme(parts: Parts, rules: Rules) -> Parts:
    fold = rules.fold_scheme and parts.scheme == "http" and not parts.port
    return parts._replace(scheme="https") if fold else parts


def _fold_trailing_dot(parts: Parts, rules: Rules) -> Parts:
    name = parts.name
    # One dot is the root's; `a..` is no name that DNS knows, and stays as it is.
    fold = rules.fold_trailing_dot and name.endswith(".") and not name.endswith("..") and name != "."
    return parts._replace(name=name[:-1]) if fold else parts


def _fold_www(parts: Parts, rules: Rules) -> Parts:
    name = parts.name
    while rules.fold_www and name.startswith("www.") and "." in name[4:].strip("."):
        name = name[4:]
    return parts._replace(name=name)


def _fold_into(parts: Parts, rules: Rules) -> Parts:
    return parts._replace(name=rules.fold_into) if rules.fold_into else parts


# -- path ---------------------------------------------------------------------------------------------------


def _normalise_percent(parts: Parts, rules: Rules) -> Parts:
    if not rules.percent_encoding:
        return parts
    return parts._replace(
        path=percent.normal(parts.path),
        query=None if parts.query is None else percent.normal(parts.query),
        fragment=None if parts.fragment is None else percent.normal(parts.fragment),
    )


def _lower_path(parts: Parts, rules: Rules) -> Parts:
    return parts._replace(path=percent.lower(parts.path)) if rules.lower_path else parts


def _drop_path_sessions(parts: Parts, rules: Rules) -> Parts:
    if not rules.path_sessions:
        return parts
    query = parts.query
    return parts._replace(
        path=sessions.without_path_session(parts.path),
        query=query and sessions.without_path_session(query),
    )


def _drop_session_segments(parts: Parts, rules: Rules) -> Parts:
    return parts._replace(path=sessions.without_session_segments(parts.path)) if rules.segment_sessions else parts


def _drop_path_params(parts: Parts, rules: Rules) -> Parts:
    if not rules.path_params or ";" not in parts.path:
        return parts
    return parts._replace(path=sessions.without_path_params(parts.path, frozenset(rules.path_params)))


def _drop_id_segments(parts: Parts, rules: Rules) -> Parts:
    if not rules.id_segments:
        return parts
    return parts._replace(path=sessions.without_id_segments(parts.path, rules.id_segments))


def _merge_slashes(parts: Parts, rules: Rules) -> Parts:
    path = parts.path
    if not rules.merge_slashes or "//" not in path:
        return parts
    ends = "/" if path.endswith("/") else ""
    return parts._replace(path="".join(f"/{piece}" for piece in path.split("/") if piece) + ends or "/")


def _drop_view_segment(parts: Parts, rules: Rules) -> Parts:
    if not rules.view_segments:
        return parts
    pieces = parts.path.split("/")
    # What the steps behind this one take off the end may stand behind a view; a slash that is kept protects it.
    over = set() if rules.trailing_slash == "keep" else {*rules.index_documents, ""}
    place = end = len(pieces)
    while place > 2 and (pieces[place - 1] in rules.view_segments or pieces[place - 1] in over):
        place -= 1
        end = place if pieces[place] in rules.view_segments else end
    return parts if end == len(pieces) else parts._replace(path="/".join(pieces[:end]))


def _drop_index_document(parts: Parts, rules: Rules) -> Parts:
    pieces = parts.path.split("/")
    goes = {*rules.index_documents, ""} if rules.trailing_slash == "strip" else {*rules.index_documents}
    kept = len(pieces)
    # Where slashes at the end go too, `/i/i/` has more than one document to lose; elsewhere the slash protects it.
    while kept > 1 and pieces[kept - 1] in goes and (kept == len(pieces) or "" in goes):
        kept -= 1
    if not any(pieces[kept:]):
        return parts
    return parts._replace(path="/".join([*pieces[:kept], ""]))


def _settle_trailing_slash(parts: Parts, rules: Rules) -> Parts:
    path = parts.path
    if rules.trailing_slash == "strip":
        return parts._replace(path=path.rstrip("/") or "/")
    if rules.trailing_slash == "add" and not path.endswith("/") and "." not in path.rpartition("/")[2]:
        return parts._replace(path=f"{path}/")
    return parts


# -- query --------------------------------------------------------------------------------------------------


def _divide_at_semicolons(parts: Parts, rules: Rules) -> Parts:
    fold = rules.semicolons and parts.query
    return parts._replace(query=params.only_ampersands(parts.query or "")) if fold else parts


def _drop_blank_params(parts: Parts, rules: Rules) -> Parts:
    fold = rules.drop_blank_params and parts.query
    return parts._replace(query=params.without_blanks(parts.query or "")) if fold else parts


def _strip_trackers(parts: Parts, rules: Rules) -> Parts:
    if not rules.strip_trackers or not parts.query:
        return parts
    keep, path = Matcher(rules.keep), parts.path

    def goes(name: str, _value: str) -> bool:
        return tracks(name, path) and not keep(name)

    return parts._replace(query=params.without(parts.query, goes))


def _strip_sessions(parts: Parts, rules: Rules) -> Parts:
    if not rules.strip_sessions or not parts.query:
        return parts
    return parts._replace(query=params.without_sessions(parts.query, Matcher(rules.keep)))


def _strip_named(parts: Parts, rules: Rules) -> Parts:
    if not rules.strip or not parts.query:
        return parts
    strip, keep = Matcher(rules.strip), Matcher(rules.keep)
    return parts._replace(query=params.without(parts.query, lambda name, _value: strip(name) and not keep(name)))


def _sort(parts: Parts, rules: Rules) -> Parts:
    if not rules.sort or not parts.query:
        return parts
    return parts._replace(query="&".join(params.in_order(parts.query.split("&"))))


def _drop_empty_query(parts: Parts, rules: Rules) -> Parts:
    return parts._replace(query=None) if rules.drop_empty_query and parts.query == "" else parts


class Step(NamedTuple):
    """One named rule."""

    name: str
    version: int
    setting: str
    """The field of `Rules` that decides on it."""
    why: str
    source: str
    apply: Callable[[Parts, Rules], Parts]

    @property
    def identifier(self) -> str:
        return f"{self.name}/{self.version}"


HOST_STEPS: Final = (
    Step(
        "trailing-dot",
        1,
        "fold_trailing_dot",
        "a name with the root's dot and without it is one node of DNS",
        "RFC 1034, 3.1; RFC 3986, 3.2.2",
        _fold_trailing_dot,
    ),
    Step(
        "www",
        1,
        "fold_www",
        "by your rules, the name with and without www is one site",
        "common practice of web archives",
        _fold_www,
    ),
    Step(
        "mirror",
        1,
        "fold_into",
        "by your rules, this host repeats another one",
        "host rule",
        _fold_into,
    ),
)
"""What folds the host name: first, since the other steps follow the rules of the folded name."""

STEPS: Final = (
    Step(
        "scheme",
        1,
        "fold_scheme",
        "by your rules, http and https of one name are one site",
        "common practice of web archives",
        _fold_scheme,
    ),
    Step(
        "fragment",
        1,
        "hash_routes",
        "a fragment is never sent and names a place inside the page",
        "RFC 3986, 3.5; RFC 9110, 7.1",
        _drop_fragment,
    ),
    Step(
        "percent-encoding",
        1,
        "percent_encoding",
        "hexadecimal digits are written in upper case and unreserved characters are not encoded",
        "RFC 3986, 6.2.2.1 and 6.2.2.2",
        _normalise_percent,
    ),
    Step("path-case", 1, "lower_path", "by your rules, this host ignores case in paths", "host rule", _lower_path),
    Step(
        "path-session",
        1,
        "path_sessions",
        "a ;jsessionid with an id-like value tells visitors apart, not pages",
        "Jakarta Servlet 6.0, 7.1.3",
        _drop_path_sessions,
    ),
    Step(
        "session-segment",
        1,
        "segment_sessions",
        "by your rules, ASP.NET's session segments tell visitors apart, not pages",
        "ASP.NET, cookieless sessions",
        _drop_session_segments,
    ),
    Step(
        "path-params",
        1,
        "path_params",
        "by your rules, the path's parameter changes nothing",
        "RFC 3986, 3.3: segments may carry parameters; your rules",
        _drop_path_params,
    ),
    Step(
        "id-segment",
        1,
        "id_segments",
        "by your rules, a path segment of this form is a session id",
        "host rule; the value looks like an id",
        _drop_id_segments,
    ),
    Step(
        "merge-slashes",
        1,
        "merge_slashes",
        "by your rules, repeated slashes count as one",
        "default of nginx (merge_slashes) and Apache (MergeSlashes)",
        _merge_slashes,
    ),
    Step("view-segment", 1, "view_segments", "by your rules, a view is its page", "host rule", _drop_view_segment),
    Step(
        "index-document",
        1,
        "index_documents",
        "by your rules, a folder and its index document are one page",
        "Apache DirectoryIndex, nginx index",
        _drop_index_document,
    ),
    Step(
        "trailing-slash",
        1,
        "trailing_slash",
        "by your rules, paths with and without a slash at the end are one page",
        "common practice of web servers",
        _settle_trailing_slash,
    ),
    Step(
        "semicolons",
        1,
        "semicolons",
        "by your rules, semicolons divide parameters as ampersands do",
        "HTML 4.01, B.2.2",
        _divide_at_semicolons,
    ),
    Step(
        "blank-params",
        1,
        "drop_blank_params",
        "nothing between two ampersands is no parameter",
        "URL Standard, application/x-www-form-urlencoded parsing",
        _drop_blank_params,
    ),
    Step(
        "trackers",
        1,
        "strip_trackers",
        "the parameter says how a visitor came, not what is asked for",
        "three or more independent lists of trackers agree",
        _strip_trackers,
    ),
    Step(
        "session-params",
        1,
        "strip_sessions",
        "the parameter is a session id: it tells visitors apart, not pages",
        "PHP session.name, ASP, ColdFusion; the value looks like an id",
        _strip_sessions,
    ),
    Step("strip-params", 1, "strip", "by your rules, the parameter changes nothing", "your rules", _strip_named),
    Step(
        "sort-params",
        1,
        "sort",
        "the order of differently named parameters carries no meaning",
        "URL Standard, URLSearchParams; practice of crawlers and caches",
        _sort,
    ),
    Step(
        "empty-query",
        1,
        "drop_empty_query",
        "a ? with nothing after it asks for nothing more",
        "RFC 3986, 6.2.3; crawler-commons, url-normalize, Heritrix and Nutch agree",
        _drop_empty_query,
    ),
)
"""All other steps, in order."""

OPTIONAL: Final = frozenset({"mirror", "path-params", "id-segment", "view-segment"})
"""Steps that came later: a policy that asks for none of them is what it was before, and keeps its identifier."""
