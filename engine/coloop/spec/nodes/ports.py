"""Ports: what flows along an edge, and what a node kind says of its inputs and outputs.

Inputs have a type, a greatest number of edges (`None`: any), the phase in which the port is read,
and may teach (a phase's `learn` may name them) or be required. A port of which only some settings
of its node make use says which (`when`). This module knows nothing of nodes or edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal


class PortType(StrEnum):
    """What flows along an edge."""

    ROWS = "Rows"
    ROLLOUTS = "Rollouts"
    PAIRS = "Pairs"
    SCORES = "Scores"
    LOG_PROBS = "LogProbs"
    VALUES = "Values"
    POLICY = "Policy"
    CHECK = "Check"
    TOOL = "Tool"


PortPhase = Literal["generate", "score", "learn"]
When = Mapping[str, tuple[str | None, ...]]
"""By the path of a setting, its values for which a port is of use; None: it is not set."""
HANDLES = frozenset({PortType.POLICY, PortType.CHECK, PortType.TOOL})
"""Types by which a node calls another inside its own loop; drawn dashed."""


def accepts(target: PortType, source: PortType) -> bool:
    """Whether a port of type `target` takes an edge from one of type `source`."""
    return source == target or (source == PortType.ROLLOUTS and target == PortType.ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class InPort:
    """One input of a kind."""

    type: PortType
    phase: PortPhase
    max: int | None = None
    teaching: bool = False
    required: bool | str = False
    """`True`, or the condition in words (then `required_where_used` lists the outputs)."""
    required_where_used: tuple[str, ...] = ()
    of: str | None = None
    when: When = field(default_factory=dict)
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutPort:
    """One output of a kind."""

    type: PortType
    when: When = field(default_factory=dict)
    help: str = ""


def is_of_use(port: InPort | OutPort, node: object) -> bool:
    """Whether a node makes anything of its port with the settings that it has."""
    for path, values in port.when.items():
        value: object = node
        for name in path.split("."):
            value = getattr(value, name, None)
        if value not in values:
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPorts:
    """The stages, inputs and outputs of one kind."""

    stages: tuple[str, ...]
    inputs: dict[str, InPort]
    outputs: dict[str, OutPort]

    @property
    def teaching(self) -> tuple[str, ...]:
        """The ports that a phase's `learn` may name."""
        return tuple(name for name, port in self.inputs.items() if port.teaching)
