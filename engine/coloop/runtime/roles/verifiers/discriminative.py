"""A classifier: what its score head says of a text, of the text up to the end of each step, or up
to each token. The score of a text read by its steps is what `reduce` makes of theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.data.tables import Row, Score
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.labels import Graded
from coloop.runtime.roles.rows.steps import step_ends
from coloop.runtime.roles.rows.texts import FittingRole, as_pair, as_read, rows_of
from coloop.runtime.roles.verifiers.judge import (
    activated,
    judged_rows,
    judgement,
    reduced,
    section_of,
)
from coloop.spec.reading import Read
from coloop.workers.messages import TooLong

Steps = dict[int, float]
"""By the token at which a step ends, its score."""


class DiscriminativeVerifier(FittingRole):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node
        self._fits = rows_of(node)
        self._classifier = Classifier(node)

    def run(self, call: Call) -> Outcome:
        rows, incoming = judged_rows(self._node, call)
        read = section_of(self._node, call.context).read
        if read.granularity == "sequence":
            said: list[Any] = [*self._classifier.scores(rows, incoming, call, read)]
            scores: list[Score] = said
            steps = None
        else:
            said = self._of_steps(rows, call.context)
            steps = [None if isinstance(one, TooLong) else one for one in said]
            scores = [None if one is None else reduced(one.values(), read) for one in steps]
        refused = [one for one in said if isinstance(one, TooLong)]
        metrics, alerts = self._fits.count(refused, len(rows), is_probe=call.is_probe)
        scores = [None if isinstance(one, TooLong) else one for one in scores]
        return judgement(
            self._node,
            call.context,
            rows,
            scores,
            steps,
            bounds=bounds_of(read),
            metrics=metrics,
            alerts=alerts,
        )

    def _of_steps(self, rows: Sequence[Row], context: Context) -> list[Steps | TooLong]:
        read = section_of(self._node, context).read
        places = self._places(rows, context)
        texts = [_read_at(row, places[row.id]) for row in rows]
        said = self._asked(texts, context, "steps")
        return [
            one
            if isinstance(one, TooLong)
            else {place: activated(float(one[place]), read) for place in places[row.id]}
            for row, one in zip(rows, said, strict=True)
        ]

    def _places(self, rows: Sequence[Row], context: Context) -> dict[str, list[int]]:
        """The tokens at which each row is read."""
        read = section_of(self._node, context).read
        for row in rows:
            if row.tokens is None:
                raise DataError(
                    f"{self._node}: row {row.id} was written by no model of this loop, so its "
                    f"{read.granularity}s have no tokens at which they could be read; give "
                    f"`{self._node}` rollouts, or set `read.granularity: sequence`",
                    self._node,
                    "read.granularity",
                )
        if read.granularity == "step":
            return step_ends(rows, self._node, context, read.step_separator)
        masks = {row.id: row.tokens.loss_mask for row in rows if row.tokens is not None}
        return {name: np.flatnonzero(mask).tolist() for name, mask in masks.items()}

    def _asked(self, texts: Sequence[TokenSequence], context: Context, reading: Any) -> list[Any]:
        if not texts:
            return []
        return context.hosts.score(context.groups[self._node], self._node, texts, 1.0, reading)


def _read_at(row: Row, places: Sequence[int]) -> TokenSequence:
    """The row's text, of which something is asked at these tokens of its completion."""
    text = as_read(row)
    mask = np.zeros(len(text.token_ids), np.bool_)
    mask[[text.prompt_length + place for place in places]] = True
    return replace(text, loss_mask=mask)


# A model with a score head: the number of each text, or how far one side of a pair is ahead.
#
# Reward models and classifiers among verifiers ask here. Of several classes the number is the
# chance of the first; a pair's is the difference of both sides', through a sigmoid the chance
# that `chosen` is the better one (Bradley-Terry).

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
