"""Sums that become the metrics of an update.

A mean is taken over everything the update saw: sums and counts are added over micro-batches and
divided once. Tensors are read at the end only, so that nothing waits for a device in between.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from coloop.recipes.protocol import LossOutput
from coloop.training.ranks import Ranks

Number = Tensor | float


class Meter:
    """Collects sums, counts and maxima by role and name."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], tuple[Number, Number]] = {}
        self._maxima: dict[tuple[str, str], Tensor] = {}

    def add(self, role: str, name: str, total: Number, count: Number) -> None:
        """One more part of a mean."""
        before_total, before_count = self._sums.get((role, name), (0.0, 0.0))
        self._sums[role, name] = (before_total + total, before_count + count)

    def add_maximum(self, role: str, name: str, value: Tensor) -> None:
        """One more candidate of a maximum."""
        before = self._maxima.get((role, name))
        self._maxima[role, name] = value if before is None else torch.maximum(before, value)

    def add_output(self, role: str, output: LossOutput) -> None:
        """What a recipe shows of one micro-batch."""
        for name, (total, count) in output.metrics.items():
            self.add(role, name, total, count)
        for name, value in output.maxima.items():
            self.add_maximum(role, name, value)

    def joined(self, ranks: Ranks) -> "Meter":
        """What all ranks collected, alike on each; itself where a rank is alone."""
        if ranks.size == 1:
            return self
        sums = {key: (float(total), float(count)) for key, (total, count) in self._sums.items()}
        maxima = {key: float(value) for key, value in self._maxima.items()}
        whole = Meter()
        for own_sums, own_maxima in ranks.gathered((sums, maxima)):
            for (role, name), (total, count) in own_sums.items():
                whole.add(role, name, total, count)
            for (role, name), value in own_maxima.items():
                whole.add_maximum(role, name, torch.tensor(value, dtype=torch.float64))
        return whole

    def read(self) -> dict[str, dict[str, float]]:
        """Metrics by role."""
        found: dict[str, dict[str, float]] = {}
        for (role, name), (total, count) in self._sums.items():
            divided = float(total) / float(count) if float(count) != 0.0 else 0.0
            found.setdefault(role, {})[name] = divided
        for (role, name), value in self._maxima.items():
            found.setdefault(role, {})[name] = float(value)
        return found

    def mean(self, role: str, name: str) -> float | None:
        """One mean so far, None where nothing was added."""
        known: Mapping[tuple[str, str], tuple[Number, Number]] = self._sums
        if (role, name) not in known:
            return None
        total, count = known[role, name]
        return float(total) / float(count) if float(count) != 0.0 else 0.0
