"""What a loop is made for, and what a form or a palette offers for it: the table of modes.

A mode decides what is offered first and what a node begins as; it forbids nothing. Everything that
is not named here is offered in every mode. `purpose` says which mode a loop is of.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from coloop.spec.algorithms.registry import family_of
from coloop.spec.catalog_texts import KIND_TEXTS
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.kind import InMode, ModeName
from coloop.spec.ports import PORTS

__all__ = ["MODES", "Mode", "ModeName", "begins_as"]

_AS_EVER = InMode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """What such a loop is for, and what it does without."""

    title: str
    help: str
    """One sentence."""
    kinds: tuple[str, ...]
    """Node kinds that are offered, in the order in which such a loop is drawn."""
    algorithms: tuple[str, ...] = ()
    """Families of algorithms that are not offered though their port is."""
    of_kind: Mapping[str, InMode] = field(default_factory=dict)
    """What is another for a kind."""

    def of(self, kind: str) -> InMode:
        """What is another for a kind in such loops."""
        return self.of_kind.get(kind, _AS_EVER)

    def hides_port(self, kind: str, port: str) -> bool:
        """Whether an input of a kind is not offered."""
        return port in self.of(kind).ports

    def hides_algorithm(self, name: str) -> bool:
        """Whether an algorithm is not offered, whatever its port."""
        return family_of(name) in self.algorithms

    def hidden_fields(self, kind: str) -> tuple[str, ...]:
        """Paths of settings that are not offered: its own, and those of ports that are not."""
        own = self.of(kind).fields
        if "algorithm" in own:
            return own
        teaching = (port for port in PORTS[kind].teaching if self.hides_port(kind, port))
        return (*own, *(f"algorithm.{port}" for port in teaching))


def _of_kinds(mode: ModeName) -> dict[str, InMode]:
    """What the kinds say of themselves for a mode."""
    return {
        kind: node.about.modes[mode]
        for kind, node in NODE_CLASSES.items()
        if mode in node.about.modes
    }


MODES: dict[ModeName, Mode] = {
    "online": Mode(
        title="Online",
        help="A policy generates texts, the texts are scored, and it learns from the scores.",
        kinds=(
            *("dataset", "buffer", "actor", "critic", "reference", "reward", "verifier"),
            *("template", "filter", "pairs", "tool", "search", "evaluate"),
        ),
        algorithms=("kto", "orpo", "simpo", "spin"),
        of_kind=_of_kinds("online"),
    ),
    "offline": Mode(
        title="Offline",
        help="A policy learns from texts that are there already: examples or preferences.",
        kinds=(
            *("dataset", "template", "pairs", "filter", "buffer"),
            *("actor", "reference", "reward", "verifier", "evaluate"),
        ),
        of_kind=_of_kinds("offline"),
    ),
    "reward_modeling": Mode(
        title="Reward modelling",
        help="A reward model or a verifier learns to judge: from preferences, labels or verdicts.",
        kinds=(
            *("dataset", "reward", "verifier", "pairs", "template", "filter", "actor"),
            *("reference", "buffer", "search", "tool", "evaluate"),
        ),
        of_kind=_of_kinds("reward_modeling"),
    ),
}

assert set(MODES) == set(get_args(ModeName))


def begins_as(mode: Mode, kind: str) -> dict[str, Any]:
    """What a node of a kind begins with in a mode, besides its `kind`."""
    begins = {**KIND_TEXTS[kind].template, **mode.of(kind).begins}
    return copy.deepcopy({key: value for key, value in begins.items() if value is not None})
