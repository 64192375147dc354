"""What each port means for lineage: which inputs bring the rows that a node works on, which bring
scores; collected from the kinds.

An input that is neither among them nor a teaching port nor a handle plays no part in a join (a
library, a seed, documents, spare rows, the learner's reference).
"""

from collections.abc import Mapping
from typing import Final

from coloop.spec.nodes import NODE_CLASSES

SCORE_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    kind: node.about.scores for kind, node in NODE_CLASSES.items() if node.about.scores
}
"""Inputs that say something about rows. Without row inputs the scored rows are the node's rows."""

OWN_ROLLOUT_INPUTS: Final = "rewards"
"""The teaching port `of: own rollouts`: its receivers are the rows that the node wrote."""

ALWAYS_CONCAT: Final = frozenset(kind for kind, node in NODE_CLASSES.items() if node.about.concat)
"""Kinds whose inputs are put one after another, whatever `join` says."""

ROW_OUTPUTS: Final = ("rows", "rollouts", "pairs")
"""Outputs that give rows, in the order in which a node is meant by its name alone."""
