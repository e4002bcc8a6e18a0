"""Walks over the graph from one node, over several edges and with a limited number of rows."""

from collections.abc import Collection
from typing import Literal

from resolver.code_index.answers import Definition, WalkRow
from resolver.code_index.graph import Edge, EdgeKind, Graph

MOST_DEPTH = 5
MOST_ROWS = 200

Direction = Literal["upstream", "downstream"]


def explore(
    graph: Graph,
    start: str,
    direction: Direction,
    depth: int = 2,
    kinds: Collection[EdgeKind] = (),
    most: int = MOST_ROWS,
) -> tuple[tuple[WalkRow, ...], bool]:
    """Return the nodes that are reached from `start`, one row for each edge, and True if some were
    left out.

    The edges of a node are followed only the first time that it occurs. start: an id of the graph.
    kinds: the edges that are followed; empty for all.
    """
    rows: list[WalkRow] = []
    seen = {start}
    upstream = direction == "upstream"
    edges = graph.upstream if upstream else graph.downstream
    waiting = [(edge, 1) for edge in reversed(_followed(edges(start), kinds, most))]
    while waiting:
        if len(rows) >= most:
            return tuple(rows), True
        edge, level = waiting.pop()
        node = edge.start if upstream else edge.end
        again = node in seen
        seen.add(node)
        rows.append(WalkRow(level, edge.kind, definition(graph, node), edge.guessed, again))
        if not again and level < min(depth, MOST_DEPTH):
            waiting += [(e, level + 1) for e in reversed(_followed(edges(node), kinds, most))]
    return tuple(rows), False


def definition(graph: Graph, node: str) -> Definition:
    """Return the node as it is named in answers."""
    entity = graph.entities[node]
    return Definition(node, entity.kind, entity.path, entity.start, entity.end)


def _followed(edges: Collection[Edge], kinds: Collection[EdgeKind], most: int) -> list[Edge]:
    """Return the edges to follow: at most one more than can be shown."""
    followed = (edge for edge in edges if not kinds or edge.kind in kinds)
    return [edge for edge, _ in zip(followed, range(most + 1), strict=False)]
