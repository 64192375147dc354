"""Words and looks of the catalog: titles, help, icons, groups, colours, starting nodes.

The catalog joins them with ports and schemas, and with what the records of algorithms say; a test
says when a kind or port type has no words here. Icons are names of lucide, colours are names of CSS
variables of the page.
"""

from __future__ import annotations

from dataclasses import dataclass

from coloop.spec.base import FormSection
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.kind import NodeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupText:
    """How a section of the palette presents itself."""

    title: str
    color: str


GROUPS: dict[str, GroupText] = {
    "data": GroupText(title="Data", color="--group-data"),
    "models": GroupText(title="Models", color="--group-models"),
    "scores": GroupText(title="Scores", color="--group-scores"),
    "shaping": GroupText(title="Shaping", color="--group-shaping"),
    "tools": GroupText(title="Tools and search", color="--group-tools"),
    "measuring": GroupText(title="Measuring", color="--group-measuring"),
}
"""Sections of the palette, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionText:
    """How a part of a form presents itself."""

    title: str
    opens: bool = False
    """Whether it begins open."""


FORM_SECTIONS: dict[FormSection, SectionText] = {
    "model": SectionText(title="Model"),
    "reading": SectionText(title="Reading"),
    "generation": SectionText(title="Generation", opens=True),
    "learning": SectionText(title="Learning", opens=True),
    "placement": SectionText(title="Placement"),
    "checkpoint": SectionText(title="Checkpoint"),
    "note": SectionText(title="Note"),
}
"""Parts of a form, in order."""


KIND_TEXTS: dict[str, NodeKind] = {
    kind: node.about
    for group in GROUPS
    for kind, node in NODE_CLASSES.items()
    if node.about.group == group
}
"""The kinds, in the order of the palette."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortText:
    """How a port type looks and what it is."""

    color: str
    shape: str
    help: str


PORT_TEXTS: dict[str, PortText] = {
    "Rows": PortText(
        color="--port-rows",
        shape="square",
        help="A table of rows with columns such as `prompt` and `answer`.",
    ),
    "Rollouts": PortText(
        color="--port-rollouts",
        shape="circle",
        help="Rows that a policy wrote, with tokens and log-probs; accepted wherever rows are.",
    ),
    "Pairs": PortText(
        color="--port-pairs", shape="pentagon", help="Rows with a chosen and a rejected side."
    ),
    "Scores": PortText(
        color="--port-scores",
        shape="diamond",
        help="One number a row, or numbers at its steps or tokens.",
    ),
    "LogProbs": PortText(
        color="--port-log-probs", shape="triangle", help="One log-prob for each token of a row."
    ),
    "Values": PortText(
        color="--port-values", shape="hexagon", help="One value for each token of a row."
    ),
    "Policy": PortText(
        color="--port-policy",
        shape="ring",
        help="A handle: the node at the other end calls this one to generate.",
    ),
    "Check": PortText(
        color="--port-check",
        shape="ring",
        help="A handle: the node at the other end requests scores from this one.",
    ),
    "Tool": PortText(
        color="--port-tool",
        shape="ring",
        help=("A handle: a tool that a policy may call while it generates."),
    ),
}
