"""What a model says of the words that may stand at each trained token of a text."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from coloop.data.arrays import Ids, Numbers, are_equal, owned

Dtype = Literal["float32", "float16"]


@dataclass(frozen=True, kw_only=True)
class Words:
    """Which words a model is asked about."""

    k: int | None
    """Number of its most likely words; None: the whole vocabulary."""
    dtype: Dtype = "float32"


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution:
    """Log-probs of K words at each of M trained tokens."""

    log_probs: NDArray[Any]
    """(M, K) float32 or float16."""
    ids: NDArray[np.int32] | None = None
    """(M, K) words, the most likely first; None: the whole vocabulary in its order."""

    def __eq__(self, other: object) -> bool:
        return are_equal(self, other)

    @property
    def bytes(self) -> int:
        return self.log_probs.nbytes + (0 if self.ids is None else self.ids.nbytes)

    def top(self, k: int) -> "Distribution":
        """Its k most likely words; fewer if it has fewer."""
        if self.ids is not None:
            return Distribution(log_probs=self.log_probs[:, :k], ids=self.ids[:, :k])
        order = np.argsort(-self.log_probs, axis=1, kind="stable")[:, :k]
        log_probs = np.take_along_axis(self.log_probs, order, axis=1)
        return Distribution(log_probs=log_probs, ids=order.astype(np.int32))


@dataclass(frozen=True, kw_only=True, eq=False)
class Teacher:
    """What one teacher says of the M trained tokens of a text."""

    node: str
    weight: float
    """Among the teachers of the text; together 1."""
    log_probs: Numbers
    """(M,) of the trained tokens themselves."""
    words: Distribution | None = None

    def __eq__(self, other: object) -> bool:
        return are_equal(self, other)

    def owned(self) -> "Teacher":
        """A copy whose arrays are no views of a larger buffer."""
        words = self.words
        if words is not None:
            ids: Ids | None = None if words.ids is None else words.ids.copy()
            words = Distribution(log_probs=words.log_probs.copy(), ids=ids)
        return Teacher(
            node=self.node, weight=self.weight, log_probs=owned(self.log_probs), words=words
        )
