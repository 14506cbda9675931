"""The text of a page, and the digests that say when two pages say the same.

The text is what a reader could see: scripts, styles and templates are left out, white space is folded, and what
changes on every visit is masked by the rules of `volatile`. The archive's digest is of the bytes, `digest.body_digest`;
those here are of what the page says, so that a new nonce or clock does not make a new page of an old one. They are stored and
never change their meaning: a change of the rules is a change of `TEXT_VERSION`.

Only trees are read here. A tree is built by `pages.tree`, which bounds what hostile markup can cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from crawlspace.content.volatile import mask, mask_links

TEXT_VERSION: Final = 1
"""Goes up when the same page would get another text or digest; digests of two versions are not compared."""
LEAST_TEXT: Final = 256
"""Characters of text below which a page's text says too little to call it a copy of another."""

_UNSEEN: Final = ["script", "style", "template", "noembed"]
_HARD_SPACE: Final = "\u00a0".encode()
_RARE_SPACES: Final = ("\x1c\x1d\x1e\x1f\x85\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000")
_RARE_SPACE: Final = re.compile(f"[{_RARE_SPACES}]")


def page_text(tree: LexborHTMLParser) -> str:
    """The title and text of a page: white space folded, volatile parts masked.

    Scripts, styles and templates are taken out of the tree: who reads those, reads them before.
    """
    tree.strip_tags(_UNSEEN, recursive=True)
    root = tree.root
    return plain_text(root.text(separator=" ")) if root is not None else ""


def plain_text(text: str) -> str:
    """A document that is text already: white space folded, volatile parts masked."""
    plain = text.encode("utf-8", "replace")
    if _RARE_SPACE.search(plain):
        plain = " ".join(text.split()).encode("utf-8", "replace")
    # Folding bytes takes two thirds of the time of folding text.
    return mask(b" ".join(plain.replace(_HARD_SPACE, b" ").split())).decode()


def text_digest(text: str) -> bytes:
    """SHA-256 (FIPS 180-4) of a text made by `page_text` or `plain_text`: 32 bytes."""
    return sha256(text.encode("utf-8", "replace")).digest()


def page_digest(text: str, links: Iterable[str]) -> bytes | None:
    """SHA-256 of a text and of the resolved links of its page: 32 bytes; equal where following links gives nothing new.

    Links count once and in no order, with session ids, tokens and cache busters masked. None when the text has fewer
    than `LEAST_TEXT` characters: script shells and galleries have little text, and other links behind it.
    """
    if len(text) < LEAST_TEXT:
        return None
    hashed = sha256(text.encode("utf-8", "replace"))
    # No link holds a control character, and no folded text does: the two cannot be taken for each other.
    hashed.update(b"\n" + "\n".join(mask_links(links)).encode())
    return hashed.digest()
