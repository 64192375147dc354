"""Words and looks of the catalog: the palette, forms, port types, what shortens a step, charts.

The texts are in `catalog.yaml`. The catalog joins them with ports and schemas, and with what kinds
and algorithms say of themselves.
"""

from pathlib import Path
from typing import Any, Final

from coloop.spec.base import load_yaml
from coloop.spec.catalog_types import ChartInfo, FormSectionInfo, GroupInfo, RemedyInfo
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.kind import NodeKind

CATALOG: Final[dict[str, Any]] = load_yaml(Path(__file__).with_name("catalog.yaml"))

GROUPS: dict[str, GroupInfo] = {
    name: GroupInfo(name=name, title=title, color=f"--group-{name}")
    for name, title in CATALOG["groups"].items()
}
"""Sections of the palette, in order."""
FORM_SECTIONS = tuple(FormSectionInfo(**section) for section in CATALOG["form_sections"])
"""Parts of a form, in order."""
KIND_TEXTS: dict[str, NodeKind] = {
    kind: node.about
    for group in GROUPS
    for kind, node in NODE_CLASSES.items()
    if node.about.group == group
}
"""The kinds, in the order of the palette."""
PORT_TEXTS: dict[str, dict[str, str]] = CATALOG["port_types"]
"""By port type: color, shape and help."""

_REMEDY = {"when": "stage", "verbs": [], "amount": 0, "only": None, "saves": 0.0, "metric": None}
REMEDIES = tuple(RemedyInfo(**{**_REMEDY, "reach": 0.0, **texts}) for texts in CATALOG["remedies"])
"""What shortens a step where a run waits for itself."""
CHARTS = tuple(ChartInfo(**{"ports": [], **texts}) for texts in CATALOG["charts"])
"""The charts that a run opens with."""
