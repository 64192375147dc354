"""An implicit reward model: the reward of each token is β (log π − log prior).

The last token has no reward, since the outcome's reward is there. The score of the whole text is
the sum over all its tokens, whose σ is trained on the outcome (PRIME, arXiv 2502.01456); with
`reduce`, it is combined from the scores of tokens or steps.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coloop.data.arrays import Numbers
from coloop.data.tables import Row, Score
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.roles.rows.inputs import scored_rows
from coloop.runtime.roles.rows.scored import step_ends
from coloop.runtime.roles.rows.texts import FittingRole, log_probs_of
from coloop.runtime.roles.verifiers.judge import activated, judgement, reduced
from coloop.spec.nodes import VerifierNode
from coloop.spec.reading import Read
from coloop.workers.messages import TooLong

WITHOUT_PRIOR = "rows/without_prior"


class ImplicitVerifier(FittingRole[VerifierNode]):
    def __init__(self, node: str, context: Context) -> None:
        super().__init__(node, context)
        self._batches = 0
        self._scale = 0.0
        """Running mean of the greatest reward to go of `_batches` batches."""

    def run(self, call: Call) -> Outcome:
        rows, _ = scored_rows(self._node, call)
        prior: dict[str, Any] = {}
        for table in call.tables("prior"):
            prior.update(table.log_probs or {})
        known = [row for row in rows if row.id in prior]
        said = log_probs_of(self._node, known, call.context)
        metrics, alerts = self._fits.count(said.values(), is_probe=call.is_probe)
        read = self._section(call.context).read
        rewards = {
            name: read.beta * np.subtract(own, prior[name], dtype=np.float64)
            for name, own in said.items()
            if not isinstance(own, TooLong)
        }
        parts = self._parts(rows, rewards, read, call)
        whole = [_whole(rewards.get(row.id), parts.get(row.id), read) for row in rows]
        if len(known) < len(rows):
            metrics[WITHOUT_PRIOR] = float(len(rows) - len(known))
        steps: list[Score] = [parts.get(row.id) for row in rows]
        return judgement(
            self._node, call.context, rows, whole, steps, metrics=metrics, alerts=alerts
        )

    def _parts(
        self, rows: Sequence[Row], rewards: Mapping[str, Numbers], read: Read, call: Call
    ) -> dict[str, dict[int, float]]:
        """By row id, normalised rewards by token, or by the tokens that end the steps."""
        there = [row for row in rows if row.id in rewards]
        by_token = {row.id: _at_tokens(row, rewards[row.id]) for row in there}
        if read.granularity == "step":
            ends = step_ends(there, self._node, call.context, read.step_separator)
            by_token = {
                name: _at_steps(own, ends[name]) if name in ends else own
                for name, own in by_token.items()
            }
        scale = self._scale_of(by_token.values(), read, is_probe=call.is_probe)
        return {
            name: {place: one / scale for place, one in own.items()}
            for name, own in by_token.items()
        }

    def _scale_of(self, rows: Any, read: Read, *, is_probe: bool) -> float:
        """The divisor of rewards; 1 if all are 0."""
        if read.normalise == "none":
            return 1.0
        greatest = max((_greatest_to_go(own) for own in rows), default=0.0)
        if read.normalise == "running":
            batches = self._batches + 1
            scale = self._scale + (greatest - self._scale) / batches
            if not is_probe:
                self._batches, self._scale = batches, scale
            greatest = scale
        return greatest or 1.0

    def remember(self) -> Any:
        return self._batches, self._scale

    def recall(self, memory: Any) -> None:
        self._batches, self._scale = memory

    def state(self) -> dict[str, Any]:
        return {**super().state(), "batches": self._batches, "scale": self._scale}

    def load_state(self, state: Mapping[str, Any]) -> None:
        super().load_state(state)
        self._batches, self._scale = state["batches"], state["scale"]


def _at_tokens(row: Row, rewards: Numbers) -> dict[int, float]:
    """Rewards of the trained tokens, without the last."""
    trained = (
        np.arange(len(rewards)) if row.tokens is None else np.flatnonzero(row.tokens.loss_mask)
    )
    return {int(token): float(rewards[token]) for token in trained[:-1]}


def _at_steps(rewards: Mapping[int, float], ends: Sequence[int]) -> dict[int, float]:
    """The sum of each step at its end; that of the last step before the last trained token."""
    sums: dict[int, float] = {}
    last = max(rewards, default=-1)
    for token, reward in rewards.items():
        end = min(next((end for end in ends if end >= token), last), last)
        sums[end] = sums.get(end, 0.0) + reward
    return sums


def _greatest_to_go(rewards: Mapping[int, float]) -> float:
    """max_t |Σ_{s ≥ t} r_s|"""
    ahead = np.cumsum([rewards[token] for token in sorted(rewards, reverse=True)])
    return float(np.abs(ahead).max()) if len(ahead) else 0.0


def _whole(rewards: Numbers | None, parts: Mapping[int, float] | None, read: Read) -> float | None:
    if rewards is None:
        return None
    if read.reduce is not None:
        of_parts = reduced([own for _, own in sorted((parts or {}).items())], read)
        return None if of_parts is None else activated(of_parts, read)
    return activated(float(rewards.sum()), read)
