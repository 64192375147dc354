"""A model with a score head: the number of each text, or how far one side of a pair is ahead.

Reward models and classifiers among verifiers ask here. Of several classes the number is the chance
of the first; a pair's is the difference of both sides', through a sigmoid the chance that `chosen`
is the better one (Bradley-Terry).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.data.tables import Row, Score
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Call, Context
from coloop.runtime.roles.rows.graded import Graded
from coloop.runtime.roles.rows.texts import as_pair, as_read
from coloop.runtime.roles.verifiers.reading import activated
from coloop.spec.reading import Read
from coloop.workers.messages import TooLong

AS_IT_IS = Read()


class Classifier:
    """The model of one node."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._graded = Graded(node)

    def scores(
        self,
        rows: Sequence[Row],
        incoming: Sequence[Mapping[str, Score]],
        call: Call,
        read: Read | None,
    ) -> list[float | TooLong]:
        """A number for each row, or why the model cannot read it.

        Args:
            incoming: the scores that came in with each row, by scorer.
        """
        if not rows:
            return []
        own = read or AS_IT_IS
        if call.inputs.get("comparisons"):
            return self._leads(rows, incoming, call, own)
        said = self._said(
            [as_read(row) for row in self._graded.rows(rows, call, incoming)], call.context
        )
        return [
            one if isinstance(one, TooLong) else activated(self._number(one, own), own)
            for one in said
        ]

    def _leads(
        self,
        rows: Sequence[Row],
        incoming: Sequence[Mapping[str, Score]],
        call: Call,
        read: Read,
    ) -> list[float | TooLong]:
        pairs = [as_pair(row) for row in self._graded.pairs(rows, call, incoming)]
        said = self._said([side for p in pairs for side in (p.chosen, p.rejected)], call.context)
        found: list[float | TooLong] = []
        for chosen, rejected in zip(said[::2], said[1::2], strict=True):
            if isinstance(chosen, TooLong):
                found.append(chosen)
            elif isinstance(rejected, TooLong):
                found.append(rejected)
            else:
                lead = self._number(chosen, read) - self._number(rejected, read)
                found.append(activated(lead, read))
        return found

    def _said(self, texts: Sequence[TokenSequence], context: Context) -> list[Numbers | TooLong]:
        return context.hosts.score(context.groups[self._node], self._node, texts, 1.0, "scores")

    def _number(self, said: Numbers, read: Read) -> float:
        """What the head says; raises `DataError` where it has other classes than are named."""
        named = len(read.labels or ("",))
        if len(said) != named:
            raise DataError(
                f"{self._node}: its model says {len(said)} numbers of a text, one for each of its "
                f"classes, and `read.labels` names {len(read.labels or ()) or 'none'}; name the "
                "classes there in the model's order (the score is the chance of the first), or "
                "take a model with one number",
                self._node,
                "read.labels",
            )
        if read.labels is None:
            return float(said[0])
        wide = np.asarray(said, np.float64)
        chances = np.exp(wide - wide.max())
        return float(chances[0] / chances.sum())


def bounds_of(read: Read | None) -> tuple[float, float] | None:
    """Least and greatest score, where there are some."""
    if read is None or read.range is not None:
        return None if read is None else read.range
    is_chance = read.activation == "sigmoid" or read.labels is not None
    return (0.0, 1.0) if is_chance or read.threshold is not None else None
