"""The text of a page, and the digests that say when two pages say the same.

The text is what a reader could see (`pages.scanning` reads it, white space folded), with what changes on every visit
masked by the rules of `volatile`. `digest.body_digest` is of the bytes; the digests here are of what the page says,
so that a new nonce or clock does not make a new page of an old one. They are stored and never change their meaning:
other rules are another `TEXT_VERSION`.

What stands around a page's own words is told from its tree, which `pages.tree` builds and bounds in its cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from selectolax.lexbor import LexborHTMLParser

from crawlspace.content.volatile import mask, mask_links

TEXT_VERSION: Final = 2
"""Goes up when the same page would get another text or digest; digests of two versions are not compared."""
LEAST_TEXT: Final = 256
"""Characters of text below which a page's text says too little to call it a copy of another."""

_UNSEEN: Final = ["script", "style", "template"]
_AROUND: Final = ["title", "header", "footer", "nav", "aside", "form"]
_HARD_SPACE: Final = "\u00a0"


def tree_text(tree: LexborHTMLParser) -> str:
    """The text of what is left of a page's tree, white space folded, volatile parts masked.

    Scripts, styles and templates are taken out of it: who reads those, reads them before.
    """
    tree.strip_tags(_UNSEEN, recursive=True)
    return plain_text(tree.text(separator=" "))


def main_text(tree: LexborHTMLParser) -> str:
    """A page's own words, without what stands around them: title, head and foot, navigation, forms.

    All that is taken out of the tree: this is read last.
    """
    tree.strip_tags(_AROUND, recursive=True)
    return tree_text(tree)


def plain_text(text: str) -> str:
    """A document that is text already: white space folded, volatile parts masked."""
    return plain_utf8(text).decode()


def plain_utf8(text: str) -> bytes:
    """`plain_text` in UTF-8."""
    # Folding bytes takes two thirds of the time of folding text.
    words = text.replace(_HARD_SPACE, " ").encode("utf-8", "replace").split()
    return mask(b" ".join(words))


def text_digest(text: str | bytes) -> bytes:
    """SHA-256 (FIPS 180-4) of a text made by the functions above: 32 bytes."""
    return sha256(text if isinstance(text, bytes) else text.encode("utf-8", "replace")).digest()


def follow_digest(text: bytes, links: Iterable[str]) -> bytes:
    """SHA-256 of a text's digest and of its page's resolved links: equal where following links gives nothing new.

    Links count once and in no order, with session ids, tokens and cache busters masked. Pages whose text is shorter
    than `LEAST_TEXT` are not to be judged by it alone: script shells and galleries have other links behind it.
    """
    return sha256(text + "\n".join(mask_links(links)).encode()).digest()
