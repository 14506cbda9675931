"""One frozen, validated object made of the parts' own settings.

Order: defaults, then the file `crawl.toml`, then the environment (`CRAWLSPACE_HOST__DELAY=2`), then the command line
(`-s host.delay=2`). A key that nobody knows is an error with a suggestion; nothing is accepted silently.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import msgspec
import tomli_w
from msgspec import Meta, Struct, field, inspect

from crawlspace import __version__
from crawlspace.archive.warc import ArchiveSettings
from crawlspace.engine.crawl import BudgetSettings, ConcurrencySettings
from crawlspace.engine.fingerprints import ContentSettings
from crawlspace.errors import ConfigError
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.rendering.settings import BrowserSettings
from crawlspace.fetch.resolve import NetworkSettings
from crawlspace.fetch.routes import Route
from crawlspace.frontier.settings import FrontierSettings, StoreSettings
from crawlspace.observe.words import kinds_in_words
from crawlspace.pages.links import PageSettings
from crawlspace.pages.robots import RobotsSettings
from crawlspace.parsers.settings import ParserSettings
from crawlspace.policy.evidence import LearningSettings
from crawlspace.policy.groups import GroupBy, GroupSettings
from crawlspace.policy.pace import HostSettings
from crawlspace.policy.priority import PrioritySettings
from crawlspace.policy.recrawl import RecrawlSettings
from crawlspace.policy.rendering import RenderingSettings
from crawlspace.policy.retry import RetrySettings
from crawlspace.policy.routes import ROUTE_NAME, Routing, RoutingSettings
from crawlspace.policy.scope import ScopeSettings
from crawlspace.policy.traps import TrapSettings
from crawlspace.urls import IdentitySettings

ENV_PREFIX = "CRAWLSPACE_"
FILE = "crawl.toml"
PRODUCT = "crawlspace"
NONE = "none"
"""How a file, which knows no null, says that a setting has no value: no limit, or as the policy has it."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that can be set about a crawl."""

    contact: Annotated[
        str, Meta(description="Address or page at which a site owner reaches you; a crawl of public hosts needs it.")
    ] = ""
    user_agent: Annotated[str, Meta(description="What sites see; {version} and {contact} are filled in.")] = (
        "crawlspace/{version} (+{contact})"
    )
    routes: Annotated[
        dict[str, Route],
        Meta(description="Other ways to ask for pages, by name: tables with `kind` and the options of that kind."),
    ] = field(default_factory=dict)
    host: HostSettings = field(default_factory=HostSettings)
    group: GroupSettings = field(default_factory=GroupSettings)
    concurrency: ConcurrencySettings = field(default_factory=ConcurrencySettings)
    robots: RobotsSettings = field(default_factory=RobotsSettings)
    scope: ScopeSettings = field(default_factory=ScopeSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    priority: PrioritySettings = field(default_factory=PrioritySettings)
    retry: RetrySettings = field(default_factory=RetrySettings)
    routing: RoutingSettings = field(default_factory=RoutingSettings)
    recrawl: RecrawlSettings = field(default_factory=RecrawlSettings)
    rendering: RenderingSettings = field(default_factory=RenderingSettings)
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    discovery: PageSettings = field(default_factory=PageSettings)
    identity: IdentitySettings = field(default_factory=IdentitySettings)
    learning: LearningSettings = field(default_factory=LearningSettings)
    content: ContentSettings = field(default_factory=ContentSettings)
    traps: TrapSettings = field(default_factory=TrapSettings)
    parsers: ParserSettings = field(default_factory=ParserSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    store: StoreSettings = field(default_factory=StoreSettings)

    def frontier(self) -> FrontierSettings:
        """The frontier's settings: the store's own, with budgets and pace."""
        return FrontierSettings(
            **msgspec.structs.asdict(self.store),
            pages_per_host=self.budget.pages_per_host,
            pages_per_seed_host=self.budget.pages_per_seed_host,
            delay_ms=round(self.host.delay * 1000),
            near_distance=self.content.distance,
            traps=self.traps,
            group=self.group,
            hosts_per_domain=self.scope.hosts_per_domain,
            hosts_per_address=self.scope.hosts_per_address,
            revisits=self.recrawl.on,
            waits_for_visits=self.recrawl.on and self.recrawl.stay,
        )

    def lanes(self) -> Routing:
        """The rules for blocked pages with their routes; raises `ConfigError` for a rule that names none."""
        return Routing.of(self.routing, self.routes)

    def agent(self, text: str = "") -> str:
        """The User-Agent header, made of `text` where it is not the crawl's own."""
        contact = self.contact or "no contact given"
        return (text or self.user_agent).replace("{version}", __version__).replace("{contact}", contact)

    def product(self) -> str:
        """The product token that robots.txt groups are matched against (RFC 9309, section 2.2.1)."""
        return self.agent().split("/")[0].split(" ")[0] or PRODUCT


def load(
    file: Path | None,
    environment: Mapping[str, str],
    overrides: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> Settings:
    """Read the settings; raises `ConfigError` that says what is wrong, where, and what was probably meant.

    `overrides` are texts such as `host.delay=2`; `values` are dotted names with values of their own kind.
    """
    layers: list[tuple[str, dict[str, Any]]] = []
    if file is not None and file.exists():
        layers.append((str(file), _read_file(file)))
    layers.append(("environment", _from_environment(environment)))
    layers.append(("command line", _from_overrides(overrides)))
    layers.append(("arguments", nested(values or {})))
    merged: dict[str, Any] = {}
    for source, layer in layers:
        _refuse_unknown(layer, Settings, source)
        _merge(merged, layer)
    return convert(merged, " + ".join(source for source, layer in layers if layer) or "defaults")


def convert(values: Mapping[str, Any], source: str) -> Settings:
    """Validate nested values; raises `ConfigError`."""
    _check_routes(values.get("routes"), source)
    try:
        settings = msgspec.convert(_read_none(dict(values), Settings), Settings)
    except msgspec.ValidationError as error:
        raise _refused(error, Settings, "", source) from None
    largest = settings.fetch.max_wire + settings.fetch.max_head
    if settings.archive.max_record < largest:
        raise ConfigError(
            f"archive.max_record is {settings.archive.max_record}, fetch.max_wire and fetch.max_head allow {largest}",
            hint="what may be fetched must fit into the archive: raise archive.max_record",
        )
    settings.lanes()
    _check_groups(settings)
    if settings.archive.max_record < settings.browser.max_document:
        raise ConfigError(
            f"archive.max_record is {settings.archive.max_record}, browser.max_document allows "
            f"{settings.browser.max_document}",
            hint="what may be rendered must fit into the archive: lower browser.max_document",
        )
    return settings


def _check_groups(settings: Settings) -> None:
    """Raise `ConfigError` where hosts are to be grouped by addresses of which none will ever be known."""
    proxy = settings.network.proxy
    everything = proxy if isinstance(proxy, str) else proxy.get("*", "")
    if settings.group.by is GroupBy.ADDRESS and everything not in ("", "direct"):
        raise ConfigError(
            "group.by is address, and network.proxy leads to a proxy, behind which no address is known",
            hint="group hosts by domain, or by group.rules",
        )


def _check_routes(routes: Any, source: str) -> None:
    """Raise `ConfigError` that names the route, where one cannot be used: they have names that nobody else knows."""
    for name, route in routes.items() if isinstance(routes, Mapping) else ():
        if re.fullmatch(ROUTE_NAME, name) is None:
            raise ConfigError(f"{name!r} is no name of a route", hint="small letters, digits, - and _, 31 at most")
        try:
            msgspec.convert(route, Route)
        except msgspec.ValidationError as error:
            kind = _of_kind(Route, route)
            raise _refused(error, kind, f"routes.{name}", source) from None


def _of_kind(union: Any, values: Any) -> Any:
    """The type that a tagged table means; all of them where it says nothing that is known."""
    tag = values.get("kind") if isinstance(values, Mapping) else None
    return next((each for each in get_args(union) if each.__struct_config__.tag == tag), union)


def _refused(error: msgspec.ValidationError, kind: Any, prefix: str, source: str) -> ConfigError:
    """The error that says where a value is refused, and what could stand there."""
    text, _, path = str(error).partition(" - at `$")
    text = kinds_in_words(text)
    path = path.rstrip("`")
    hint = f"from {source}"
    named = _NAMED.match(text)
    choices = _choices(inspect.type_info(kind), path) if named else []
    if named and choices:
        near = difflib.get_close_matches(named[1], choices, n=1)
        hint = f"did you mean {near[0]}? {hint}" if near else f"one of {', '.join(choices)}; {hint}"
    place = (prefix + path).lstrip(".") or "settings"
    return ConfigError(f"{place}: {text[:1].lower()}{text[1:]}", hint=hint)


def _choices(kind: Any, path: str) -> list[str]:
    """The words that may stand at the path of an error; none where there are too many to tell."""
    kind = _bare(kind)
    for name in _STEP.findall(path):
        if isinstance(kind, inspect.StructType) and name:
            kind = next((each.type for each in kind.fields if each.encode_name == name), None)
        elif isinstance(kind, inspect.VarTupleType):
            kind = kind.item_type
        kind = _bare(kind)
    match kind:
        case inspect.StructType():
            return [each.encode_name for each in kind.fields]
        case inspect.EnumType():
            return [str(each.value) for each in kind.cls]
        case inspect.LiteralType():
            return list(map(str, kind.values))
        case inspect.UnionType():
            return [str(each.tag) for each in kind.types if isinstance(each, inspect.StructType)]
    return []


def _bare(kind: Any) -> Any:
    """A type without what describes it, and without None beside it."""
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        left = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        return _bare(left[0]) if len(left) == 1 else kind
    return kind


def as_toml(settings: Settings) -> str:
    """The settings in effect, as TOML; `load` reads it back to the same settings."""
    values = msgspec.to_builtins(settings)
    return tomli_w.dumps(_spelled({**values, "routes": _left_out(values["routes"])}))


_NAMED = re.compile(r"(?:Invalid (?:enum )?value|Object contains unknown field|.* field(?= `kind`)) ['`](.*)['`]$")
"""What is wrong with a name, so that it helps to tell the names there are."""
_STEP = re.compile(r"\.([a-z_]+)|\[")


class Described(NamedTuple):
    """One setting, for people."""

    section: str
    """Empty for those above all sections."""
    name: str
    default: str
    """As TOML."""
    meaning: str


def described() -> Iterator[Described]:
    """Every setting with its default and its meaning, in the order of the file."""
    defaults = msgspec.to_builtins(Settings())
    kinds = _fields(Settings)
    for name, kind in kinds:
        if not _is_section(kind):
            yield _described("", name, kind, defaults[name])
    for section, kind in kinds:
        if _is_section(kind):
            for name, inner in _fields(kind):
                yield _described(section, name, inner, defaults[section][name])


def template(chosen: Mapping[str, Any] | None = None) -> str:
    """A `crawl.toml` with every setting, its meaning and its default; only the chosen values are not commented out.

    `chosen` is nested as in the file.
    """
    lines = ["# Settings of this crawl. A line behind '#' shows a default: remove the '#' to change it.", ""]
    values = chosen or {}
    section = ""
    for setting in described():
        if setting.section != section:
            section = setting.section
            lines += ["", f"[{section}]"]
        value = (values.get(section, {}) if section else values).get(setting.name)
        lines += [f"## {setting.meaning}"] * bool(setting.meaning)
        lines.append(
            f"# {setting.name} = {setting.default}" if value is None else f"{setting.name} = {_as_value(value)}"
        )
    return "\n".join(lines) + "\n"


def chosen(overrides: Sequence[str]) -> dict[str, Any]:
    """The values that the command line sets, nested as in the file."""
    return _from_overrides(overrides)


def keys(kind: type[Struct] = Settings, prefix: str = "") -> Iterator[str]:
    """Every settable key, dotted."""
    for name, inner in _fields(kind):
        if _is_section(inner):
            yield from keys(inner, f"{prefix}{name}.")
        else:
            yield prefix + name


def _described(section: str, name: str, kind: Any, default: Any) -> Described:
    texts = [each.description for each in getattr(kind, "__metadata__", ()) if getattr(each, "description", None)]
    return Described(section, name, _as_value(NONE if default is None else default), texts[-1] if texts else "")


def _as_value(value: Any) -> str:
    """A value as TOML on one line, so that it stays under its section."""
    if isinstance(value, Mapping):
        pairs = (
            f"{tomli_w.dumps({key: 0}).rpartition(' = ')[0]} = {_as_value(inner)}" for key, inner in value.items()
        )
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_value, value))}]"
    return tomli_w.dumps({"value": _spelled(value)}).removeprefix("value = ").strip()


@cache
def _fields(kind: type[Struct]) -> list[tuple[str, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return [(each.encode_name, hints[each.name]) for each in msgspec.structs.fields(kind)]


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is no TOML: {error}") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in sorted(environment.items()):
        if name.startswith(ENV_PREFIX):
            _put(values, name[len(ENV_PREFIX) :].lower().split("__"), _value(text))
    return values


def _from_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for override in overrides:
        key, sign, text = override.partition("=")
        if not sign:
            raise ConfigError(
                f"'-s {override}' has no value", hint="write it as -s key=value, such as -s host.delay=2"
            )
        _put(values, key.strip().split("."), _value(text.strip()))
    return values


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names as nested sections."""
    sections: dict[str, Any] = {}
    for name, value in values.items():
        _put(sections, name.split("."), value)
    return sections


def _put(values: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        inner = values.setdefault(name, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{'.'.join(path)}: {name} is not a section")
        values = inner
    values[path[-1]] = value


def _value(text: str) -> Any:
    """A value as TOML has it; what is no TOML value is a string, so that nobody has to quote for two readers."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _refuse_unknown(values: Mapping[str, Any], kind: type[Struct], source: str, prefix: str = "") -> None:
    known = dict(_fields(kind))
    for name, value in values.items():
        dotted = prefix + name
        if name not in known:
            whole = f"{dotted}.{next(iter(value), '')}" if isinstance(value, Mapping) else dotted
            near = difflib.get_close_matches(whole, list(keys()), n=1, cutoff=0.6)
            hint = f"did you mean {near[0]}?" if near else "see `crawlspace config show`"
            raise ConfigError(f"unknown setting {dotted} in {source}", hint=hint)
        if _is_section(known[name]):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{dotted} in {source} is a section, not a value", hint=f"set {dotted}.<key>")
            _refuse_unknown(value, known[name], source, f"{dotted}.")


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value


def _spelled(value: Any) -> Any:
    """None as TOML can hold it: a word for a setting, nothing at all inside a list of tables."""
    if isinstance(value, Mapping):
        return {key: NONE if inner is None else _spelled(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_left_out(inner) for inner in value]
    return value


def _left_out(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _left_out(inner) for key, inner in value.items() if inner is not None}
    return value


def _read_none(values: dict[str, Any], kind: type[Struct]) -> dict[str, Any]:
    """The word for None read back, where None is a legal value."""
    known = dict(_fields(kind))
    read: dict[str, Any] = {}
    for name, value in values.items():
        inner = known[name]
        if _is_section(inner):
            read[name] = _read_none(value, inner)
        else:
            read[name] = None if value == NONE and _may_be_none(inner) else value
    return read


def _may_be_none(kind: Any) -> bool:
    return type(None) in get_args(get_args(kind)[0] if hasattr(kind, "__metadata__") else kind)
