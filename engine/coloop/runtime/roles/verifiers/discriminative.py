"""A classifier: what its score head says of a text, of the text up to the end of each step, or up
to each token. The score of a text read by its steps is what `reduce` makes of theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.tables import Row, Score
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Call, Context, Outcome, Stateless
from coloop.runtime.roles.rows.fits import rows_of
from coloop.runtime.roles.rows.steps import step_ends
from coloop.runtime.roles.rows.texts import as_read
from coloop.runtime.roles.verifiers.classifier import Classifier, bounds_of
from coloop.runtime.roles.verifiers.judge import judged_rows, judgement, section_of
from coloop.runtime.roles.verifiers.reading import activated, reduced
from coloop.workers.messages import TooLong

Steps = dict[int, float]
"""By the token at which a step ends, its score."""


class DiscriminativeVerifier(Stateless):
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

    def state(self) -> dict[str, Any]:
        return self._fits.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._fits.load_state(state)


def _read_at(row: Row, places: Sequence[int]) -> TokenSequence:
    """The row's text, of which something is asked at these tokens of its completion."""
    text = as_read(row)
    mask = np.zeros(len(text.token_ids), np.bool_)
    mask[[text.prompt_length + place for place in places]] = True
    return replace(text, loss_mask=mask)
