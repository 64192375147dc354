"""Which stage reads which ports, and which stage fills which: the one table that everything else
follows.

What runs in a phase is the closure of this table from the phase's goals; the order is a topological
sort of the same table. No algorithm is named here. Handles (`policy`, `check`, `tool`) are not in
it: they let one node call another and bring no rows, so they make no stage of whom they call.
"""

from collections.abc import Mapping
from typing import Final

READS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "dataset": {"load": ()},
    "actor": {
        "generate": ("prompts",),
        "credit": ("rewards", "reference", "values"),
        "learn": ("demonstrations", "pairs", "reference"),
        "sync": (),
    },
    "critic": {"score": ("rollouts",), "learn": ("returns", "labels")},
    "reference": {"score": ("rollouts", "pairs")},
    "reward": {
        "score": ("rollouts", "rows", "scores", "comparisons"),
        "learn": ("pairs", "labels"),
    },
    "verifier": {
        "score": ("rollouts", "rows", "comparisons", "library", "scores", "prior"),
        "credit": ("rewards", "reference"),
        "learn": ("labels", "demonstrations", "pairs", "reference"),
        "sync": (),
    },
    "template": {"prepare": ("rows", "scores", "library")},
    "filter": {"prepare": ("rows", "rollouts", "pairs", "scores", "by", "spare")},
    "pairs": {"prepare": ("rollouts", "scores", "chosen", "rejected", "pairs", "preference")},
    "buffer": {"read": ("seed",), "write": ("rows", "rollouts", "pairs", "scores")},
    "tool": {},
    "search": {"generate": ("rows",)},
    "evaluate": {"evaluate": ("rows", "rollouts", "scores", "selectors", "labels", "pairs")},
}
"""By kind and verb, the ports that the stage reads."""

GIVES: Final[Mapping[str, Mapping[str, str]]] = {
    "dataset": {"rows": "load", "pairs": "load"},
    "actor": {"rollouts": "generate", "returns": "credit"},
    "critic": {"values": "score"},
    "reference": {"log_probs": "score"},
    "reward": {"scores": "score"},
    "verifier": {"scores": "score", "step_scores": "score", "rollouts": "score"},
    "template": {"rows": "prepare"},
    "filter": dict.fromkeys(("rows", "rollouts", "pairs", "scores"), "prepare"),
    "pairs": {"pairs": "prepare"},
    "buffer": dict.fromkeys(("rows", "rollouts", "pairs", "scores"), "read"),
    "tool": {},
    "search": {"rollouts": "generate", "scores": "generate", "step_scores": "generate"},
    "evaluate": {},
}
"""By kind and output port, the verb of the stage that fills it; a tool's rows are filled by the
stages in which it is called (`givers`)."""

WRITES: Final[Mapping[str, str]] = {"actor": "generate", "verifier": "score", "search": "generate"}
"""By kind, the verb of the stage in which it calls its handles."""

CREDITED: Final = frozenset({"rewards"})
"""Teaching ports whose numbers pass through the node's credit stage before it learns."""

SERVING: Final = frozenset({"reference", "values", "prior"})
"""Learn ports that teach nothing themselves and are read only where an algorithm asks for them."""

USES_WEIGHTS: Final = frozenset({"generate", "score"})
"""Verbs that use a group's weights without changing them."""

CONCAT_KINDS: Final = frozenset({"reference", "critic", "buffer"})
"""Kinds whose inputs are always taken one after another."""

CONCAT_PORTS: Final = frozenset({("actor", "prompts")})
"""Ports that take their edges one after another, whatever the node's join."""
