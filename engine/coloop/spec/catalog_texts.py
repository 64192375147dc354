"""Words and looks of the catalog: the palette, forms, port types, what shortens a step, charts.

The catalog joins them with ports and schemas, and with what kinds and algorithms say of themselves.
Icons are names of lucide, colours are names of CSS variables of the page.
"""

from pathlib import Path

from coloop.spec.catalog_types import ChartInfo, FormSectionInfo, GroupInfo, RemedyInfo
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.kind import NodeKind
from coloop.spec.text.reader import data_of

GROUPS: dict[str, GroupInfo] = {
    name: GroupInfo(name=name, title=title, color=f"--group-{name}")
    for name, title in (
        ("data", "Data"),
        ("models", "Models"),
        ("scores", "Scores"),
        ("shaping", "Shaping"),
        ("tools", "Tools and search"),
        ("measuring", "Measuring"),
    )
}
"""Sections of the palette, in order."""

FORM_SECTIONS: tuple[FormSectionInfo, ...] = (
    FormSectionInfo(name="model", title="Model", opens=False),
    FormSectionInfo(name="reading", title="Reading", opens=False),
    FormSectionInfo(name="generation", title="Generation", opens=True),
    FormSectionInfo(name="learning", title="Learning", opens=True),
    FormSectionInfo(name="placement", title="Placement", opens=False),
    FormSectionInfo(name="checkpoint", title="Checkpoint", opens=False),
    FormSectionInfo(name="note", title="Note", opens=False),
)
"""Parts of a form, in order."""

KIND_TEXTS: dict[str, NodeKind] = {
    kind: node.about
    for group in GROUPS
    for kind, node in NODE_CLASSES.items()
    if node.about.group == group
}
"""The kinds, in the order of the palette."""

PORT_TEXTS: dict[str, tuple[str, str, str]] = {
    "Rows": (
        "--port-rows",
        "square",
        "A table of rows with columns such as `prompt` and `answer`.",
    ),
    "Rollouts": (
        "--port-rollouts",
        "circle",
        "Rows that a policy wrote, with tokens and log-probs; accepted wherever rows are.",
    ),
    "Pairs": ("--port-pairs", "pentagon", "Rows with a chosen and a rejected side."),
    "Scores": ("--port-scores", "diamond", "One number a row, or numbers at its steps or tokens."),
    "LogProbs": ("--port-log-probs", "triangle", "One log-prob for each token of a row."),
    "Values": ("--port-values", "hexagon", "One value for each token of a row."),
    "Policy": (
        "--port-policy",
        "ring",
        "A handle: the node at the other end calls this one to generate.",
    ),
    "Check": (
        "--port-check",
        "ring",
        "A handle: the node at the other end requests scores from this one.",
    ),
    "Tool": ("--port-tool", "ring", "A handle: a tool that a policy may call while it generates."),
}
"""By port type: color, shape and help."""

_DATA = data_of(Path(__file__).with_name("catalog.yaml").read_text("utf-8"))
_REMEDY = {"when": "stage", "verbs": [], "amount": 0, "only": None, "saves": 0.0, "metric": None}

REMEDIES = tuple(RemedyInfo(**{**_REMEDY, "reach": 0.0, **texts}) for texts in _DATA["remedies"])
"""What shortens a step where a run waits for itself."""
CHARTS = tuple(ChartInfo(**{"ports": [], **texts}) for texts in _DATA["charts"])
"""The charts that a run opens with."""
