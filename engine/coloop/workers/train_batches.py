"""What a learner is given, as its backend learns from it: rows encoded by the learner's tokenizer,
each with its recipe; rows that the model cannot read are left out and counted."""

from collections.abc import Sequence
from dataclasses import replace

from coloop.algorithms.batch import Pair, Unit
from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.several import rows_of_algorithm
from coloop.spec.algorithm import Sft, node_algorithms, resolve_algorithm
from coloop.spec.graph import LoopSpec
from coloop.spec.heads import scored_at
from coloop.workers.messages import PortBatch, TooLong
from coloop.workers.training import TrainBatch
from coloop.workers.weights import HeldWeights

REWARDS = "rewards"
"""The port of whose rows each algorithm has advantages of its own."""


class TrainBatches:
    """The batches of one request to learn."""

    def __init__(self, spec: LoopSpec, weights: HeldWeights) -> None:
        """
        Args:
            spec: with the values of the moment.
        """
        self._spec = spec
        self._weights = weights
        self.too_long: dict[str, tuple[TooLong, ...]] = {}
        """By role, of what was asked for so far."""

    def of(self, loads: Sequence[PortBatch]) -> list[TrainBatch]:
        """One batch for each algorithm of these."""
        return [one for load in loads for one in self._of(load)]

    def in_order(self, loads: Sequence[PortBatch], order: Sequence[str]) -> list[list[TrainBatch]]:
        """One joint part, or a part for each role in the given order, the others joined last."""
        if not order:
            return [self.of(loads)]
        parts = [[load for load in loads if load.node == node] for node in order]
        rest = [load for load in loads if load.node not in order]
        return [self.of(part) for part in (*parts, rest) if part]

    def _of(self, load: PortBatch) -> list[TrainBatch]:
        rollout = getattr(self._spec.nodes[load.node], "rollout", None)
        longest = rollout.max_new_tokens if rollout is not None else None
        encoder = self._weights.encoder(load.node)
        every = [encoder.encoded(item) for item in load.items]
        refused = self._weights.too_long([_length(row) for row in every])
        found = tuple(one for one in refused if one is not None)
        if found:
            self.too_long[load.node] = (*self.too_long.get(load.node, ()), *found)
        rows = [
            self._readable(row)
            for row, problem in zip(every, refused, strict=True)
            if problem is None
        ]
        loads = []
        entries = node_algorithms(self._spec, load.node)[load.port]
        for number, entry in enumerate(entries):
            settings = resolve_algorithm(entry, max_new_tokens=longest)
            own = rows
            if load.port == REWARDS and len(entries) > 1:
                own = [*rows_of_algorithm(rows, number)]  # type: ignore[arg-type]
            if isinstance(entry, Sft) and entry.mask:
                own = [encoder.without_tagged(row, entry.mask) for row in own]  # type: ignore[arg-type]
            loads.append(
                TrainBatch(
                    role=load.node,
                    port=load.port,
                    recipe=recipe_of(settings, scored_at(self._spec.nodes[load.node])),
                    settings=settings,
                    rows=own,  # type: ignore[arg-type]
                    weight=float(entry.weight),
                    temperature=[1.0 if isinstance(row, Pair) else row.temperature for row in own],
                    number=number,
                )
            )
        return loads

    def _readable(self, row: Unit) -> Unit:
        """The row without those of its further texts that the model cannot read."""
        if not isinstance(row, Pair) or not row.extra:
            return row
        refused = self._weights.too_long([len(one.token_ids) for one in row.extra])
        read = (one for one, why in zip(row.extra, refused, strict=True) if why is None)
        return replace(row, extra=tuple(read))


def _length(row: Unit) -> int:
    """Tokens of a row, of a pair those of its longer side."""
    if isinstance(row, Pair):
        return max(len(row.chosen.token_ids), len(row.rejected.token_ids))
    return len(row.token_ids)
