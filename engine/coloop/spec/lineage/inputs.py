"""What each port means for lineage: which inputs bring the rows that a node works on, which bring
scores.

Literal Python, held against the port table by a test: an input that is neither here nor a
teaching port nor a handle plays no part in a join (a library, a seed, documents, spare rows, the
learner's reference).
"""

from collections.abc import Mapping
from typing import Final

ROW_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "actor": ("prompts",),
    "critic": ("rollouts",),
    "reference": ("rollouts", "pairs"),
    "reward": ("rollouts", "rows", "comparisons"),
    "verifier": ("rollouts", "rows", "comparisons"),
    "template": ("rows",),
    "filter": ("rows", "rollouts", "pairs"),
    "pairs": ("rollouts",),
    "search": ("rows",),
    "evaluate": ("rollouts",),
}
"""Inputs whose rows the node works on. Where one of them has an edge, scores only reach those
rows."""

PAIRS_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "direct": ("chosen", "rejected"),
    "relabel": ("pairs",),
}
"""Row inputs of a `pairs` node whose method reads others than `rollouts`."""

SCORE_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "reward": ("scores",),
    "verifier": ("scores", "prior"),
    "template": ("scores",),
    "filter": ("scores", "by"),
    "pairs": ("scores", "preference"),
    "evaluate": ("scores", "selectors", "labels"),
}
"""Inputs that say something about rows. Without row inputs the scored rows are the node's rows."""

OWN_ROLLOUT_INPUTS: Final = "rewards"
"""The teaching port `of: own rollouts`: its receivers are the rows that the node wrote."""

ALWAYS_CONCAT: Final = frozenset({"actor", "critic", "reference", "buffer"})
"""Kinds whose inputs are put one after another, whatever `join` says."""

ROW_OUTPUTS: Final = ("rows", "rollouts", "pairs")
"""Outputs that give rows, in the order in which a node is meant by its name alone."""
