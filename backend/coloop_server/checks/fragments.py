"""A piece of a loop as text: nodes that were copied, from a tab or from any file.

The text may be a whole loop, its `nodes` and `edges`, or a few nodes by themselves, as they stand
below `nodes:`. It is only read; whether it makes sense where it is put is for the check to say.
"""

from typing import Any

from coloop.spec.io import parse
from coloop_server.checks.schemas import Fragment


def read_fragment(text: str) -> Fragment:
    """The nodes of a text with the edges among them; no nodes where it is none of a loop."""
    parsed = parse(text)
    document = parsed.document
    if document is None:
        return Fragment(nodes={}, edges=[], layout={}, diagnostics=list(parsed.diagnostics))
    edges, layout = document.get("edges"), document.get("layout")
    return Fragment(
        nodes=_nodes(document),
        edges=[edge for edge in edges if isinstance(edge, (str, dict))]
        if "nodes" in document and isinstance(edges, list)
        else [],
        layout=layout if isinstance(layout, dict) else {},
        diagnostics=[],
    )


def _nodes(document: dict[str, Any]) -> dict[str, Any]:
    found = document.get("nodes") if "nodes" in document else document
    if not isinstance(found, dict):
        return {}
    return {name: node for name, node in found.items() if isinstance(node, dict) and "kind" in node}
