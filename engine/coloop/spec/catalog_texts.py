"""Words and looks of the catalog, which are in `catalog.yaml`: those that checks read as well."""

from pathlib import Path
from typing import Any, Final

from coloop.spec.base import load_yaml
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.kind import NodeKind

CATALOG: Final[dict[str, Any]] = load_yaml(Path(__file__).with_name("catalog.yaml"))

KIND_TEXTS: dict[str, NodeKind] = {
    kind: node.about
    for group in CATALOG["groups"]
    for kind, node in NODE_CLASSES.items()
    if node.about.group == group
}
"""The kinds, in the order of the palette."""
PORT_TEXTS: dict[str, dict[str, str]] = CATALOG["port_types"]
"""By port type: color, shape and help."""
