"""What a loop is made for, and what a form or a palette offers for it: the table of modes.

A mode decides what is offered first and what a node begins as; it forbids nothing. Everything that
is not named here is offered in every mode. `purpose` says which mode a loop is of.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from coloop.spec.algorithms.registry import family_of
from coloop.spec.catalog_texts import KIND_TEXTS
from coloop.spec.ports import PORTS

ModeName = Literal["online", "offline", "reward_modeling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """What such a loop is for, and what it does without."""

    title: str
    help: str
    """One sentence."""
    kinds: tuple[str, ...]
    """Node kinds that are offered, in the order in which such a loop is drawn."""
    ports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Inputs of a kind that are not offered; an algorithm of a teaching one is not either."""
    outputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Outputs of a kind that are not offered: what somebody reads who is not offered either."""
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Paths of a kind's settings that are not offered."""
    algorithms: tuple[str, ...] = ()
    """Families of algorithms that are not offered though their port is."""
    begins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What a node of a kind begins with instead of that part of its kind's template; None: without
    it."""

    def hides_port(self, kind: str, port: str) -> bool:
        """Whether an input of a kind is not offered."""
        return port in self.ports.get(kind, ())

    def hides_algorithm(self, name: str) -> bool:
        """Whether an algorithm is not offered, whatever its port."""
        return family_of(name) in self.algorithms

    def hidden_fields(self, kind: str) -> tuple[str, ...]:
        """Paths of settings that are not offered: its own, and those of ports that are not."""
        own = self.fields.get(kind, ())
        if "algorithm" in own:
            return own
        teaching = (port for port in PORTS[kind].teaching if self.hides_port(kind, port))
        return (*own, *(f"algorithm.{port}" for port in teaching))


_OF_OWN_TEXTS = ("turns", "mask", "truncated", "greedy_extra", "on_sync")
"""Settings of a rollout that only count where its texts are learned from, or written while it
learns."""
_PREFERENCES = {
    "source": {"type": "task", "task": "preference", "split": "train"},
    "columns": {"target": "chosen"},
}
_TINY = {"type": "scratch", "architecture": "tiny-qwen3"}
_LEARNS = {"optimizer": {"name": "adamw", "lr": 3.0e-4}}


def _fit_of(port: str) -> dict[str, Any]:
    """How well held-out pairs are told apart at a teaching port."""
    return {"instead_of": None, "of": [port], "greedy": None, "metrics": ["loss", "pair_accuracy"]}


MODES: dict[ModeName, Mode] = {
    "online": Mode(
        title="Online",
        help="A policy writes, its texts are scored, and it learns from the scores.",
        kinds=(
            *("dataset", "buffer", "actor", "critic", "reference", "reward", "verifier"),
            *("template", "filter", "pairs", "tool", "search", "evaluate"),
        ),
        fields={"buffer": ("keep_iterations",)},
        algorithms=("kto", "orpo", "simpo", "spin"),
    ),
    "offline": Mode(
        title="Offline",
        help="A policy learns from texts that are there already: examples or preferences.",
        kinds=(
            *("dataset", "template", "pairs", "filter", "buffer"),
            *("actor", "reference", "reward", "verifier", "evaluate"),
        ),
        ports={
            "actor": ("rewards", "values", "tools"),
            "reward": ("pairs", "labels"),
            "verifier": ("labels", "rewards", "pairs", "prior", "reference", "tools"),
        },
        outputs={"actor": ("returns",)},
        fields={
            "actor": ("credit", *(f"rollout.{name}" for name in _OF_OWN_TEXTS)),
            "reward": ("algorithm", "training"),
            "verifier": ("credit", *(f"rollout.{name}" for name in _OF_OWN_TEXTS)),
            "filter": ("fill", "resample"),
        },
        begins={
            "dataset": _PREFERENCES,
            "actor": {
                "rollout": {"max_new_tokens": 16},
                "algorithm": {"pairs": {"name": "dpo"}},
            },
            "evaluate": _fit_of("actor.pairs"),
        },
    ),
    "reward_modeling": Mode(
        title="Reward modelling",
        help="A reward model or a verifier learns to judge: from preferences, labels or verdicts.",
        kinds=(
            *("dataset", "reward", "verifier", "pairs", "template", "filter", "actor"),
            *("reference", "buffer", "search", "tool", "evaluate"),
        ),
        ports={"actor": ("rewards", "pairs", "reference", "values")},
        outputs={"actor": ("returns",)},
        fields={"actor": ("credit",), "buffer": ("keep_iterations",)},
        begins={
            "dataset": _PREFERENCES,
            "reward": {
                "source": {"type": "model"},
                "model": _TINY,
                "algorithm": {"pairs": {"name": "bradley_terry"}},
                "training": _LEARNS,
            },
            "verifier": {
                "method": "discriminative",
                "model": _TINY,
                "algorithm": {"labels": {"name": "outcome"}},
                "training": _LEARNS,
            },
            "actor": {"algorithm": {"demonstrations": {"name": "sft"}}},
            "evaluate": _fit_of("reward.pairs"),
        },
    ),
}

assert set(MODES) == set(get_args(ModeName))


def begins_as(mode: Mode, kind: str) -> dict[str, Any]:
    """What a node of a kind begins with in a mode, besides its `kind`."""
    begins = {**KIND_TEXTS[kind].template, **mode.begins.get(kind, {})}
    return copy.deepcopy({key: value for key, value in begins.items() if value is not None})
