"""A graph of links as GraphML (graphdrawing.org), which Gephi, networkx, igraph and yEd open.

Edges are written as they come; nodes are sorted outside of memory and written once each behind the edges. A node's id
is made from its URL, so that nothing has to be remembered. What XML cannot hold (controls) becomes U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import BinaryIO, NamedTuple, Protocol
from xml.sax.saxutils import escape

from crawlspace.exports.columns import plain

_HEAD = b"""<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="url" for="node" attr.name="url" attr.type="string"/>
<key id="host" for="node" attr.name="host" attr.type="string"/>
<key id="relation" for="edge" attr.name="relation" attr.type="string"/>
<key id="nofollow" for="edge" attr.name="nofollow" attr.type="boolean"/>
<graph id="links" edgedefault="directed">
"""
_TAIL = b"</graph>\n</graphml>\n"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0, section 2.2, allows nowhere."""


class Node(NamedTuple):
    """A page, known by its canonical URL."""

    url: str
    host: str


class Edge(NamedTuple):
    """A link from a page to another."""

    source: Node
    target: Node
    relation: str
    nofollow: bool


class Sorter(Protocol):
    """Sorts lines outside of memory."""

    def add(self, line: bytes) -> None:
        """Take a line with its newline at the end."""
        ...

    def sorted(self) -> Iterator[bytes]:
        """All lines in order of their bytes."""
        ...


class AddEdge(Protocol):
    """Takes the edges of a graph."""

    def __call__(self, edge: Edge, /) -> None: ...


@contextmanager
def graphml(out: BinaryIO, nodes: Sorter) -> Iterator[AddEdge]:
    """Write a graph to `out`: gives the function that takes its edges; `nodes` is used up."""
    out.write(_HEAD)

    def add(edge: Edge) -> None:
        source, target = (_noted(node, nodes) for node in (edge.source, edge.target))
        told = f'<data key="relation">{text(edge.relation)}</data>'
        if edge.nofollow:
            told += '<data key="nofollow">true</data>'
        out.write(f'<edge source="{source}" target="{target}">{told}</edge>\n'.encode())

    yield add
    before = b""
    for line in nodes.sorted():
        if line != before:
            out.write(line)
            before = line
    out.write(_TAIL)


def text(value: str) -> str:
    """`value` as character data of XML, on one line."""
    return escape(_NOT_XML.sub("\ufffd", plain(value))).replace("\n", "&#10;").replace("\r", "&#13;")


def _noted(node: Node, nodes: Sorter) -> str:
    name = "n" + blake2b(node.url.encode("utf-8", "replace"), digest_size=12).hexdigest()
    data = f'<data key="url">{text(node.url)}</data><data key="host">{text(node.host)}</data>'
    nodes.add(f'<node id="{name}">{data}</node>\n'.encode())
    return name
