from collections.abc import Mapping

def scan(
    body: bytes, max_links: int, wants_text: bool, /
) -> tuple[
    list[tuple[str, bool] | tuple[str, Mapping[str, str], bool]], bool, str | None, str | None, bytes | None, bool
]: ...
