"""Sums that become the metrics of an update: sums and counts are added over micro-batches and
divided once; tensors are read at the end, so nothing waits for a device."""

from collections.abc import Iterable

import torch
from torch import Tensor

from coloop.algorithms.recipes.protocol import LossOutput

Number = Tensor | float
_Key = tuple[str, str]
WordLogProbs = tuple[dict[_Key, tuple[float, float]], dict[_Key, float], dict[_Key, list[float]]]
"""Sums with their counts, maxima and moments, by role and name."""

NO_VARIANCE = 1e-12  # a variance below this share of the mean square is rounding


class Meter:
    def __init__(self) -> None:
        self._sums: dict[_Key, tuple[Number, Number]] = {}
        self._maxima: dict[_Key, Tensor] = {}
        self._explained: dict[_Key, Tensor] = {}
        """Count; sum and sum of squares of the truth, then of what is left of it. (5,) float64."""

    def add(self, role: str, name: str, total: Number, count: Number) -> None:
        before_total, before_count = self._sums.get((role, name), (0.0, 0.0))
        self._sums[role, name] = (before_total + total, before_count + count)

    def add_maximum(self, role: str, name: str, value: Tensor) -> None:
        before = self._maxima.get((role, name))
        self._maxima[role, name] = value if before is None else torch.maximum(before, value)

    def add_explained(self, role: str, name: str, truth: Tensor, prediction: Tensor) -> None:
        """One more part (N,) of a truth, and what was said of it."""
        truth = truth.double()
        left = truth - prediction.double()
        both = torch.stack([truth, left])  # (2, N)
        sums = torch.stack([both.sum(1), both.square().sum(1)], dim=1).flatten()
        self._add_moments((role, name), torch.cat([sums.new_tensor([truth.numel()]), sums]))

    def _add_moments(self, key: _Key, moments: Tensor) -> None:
        before = self._explained.get(key)
        self._explained[key] = moments if before is None else before + moments

    def add_output(self, role: str, output: LossOutput) -> None:
        for name, (total, count) in output.metrics.items():
            self.add(role, name, total, count)
        for name, value in output.maxima.items():
            self.add_maximum(role, name, value)
        for name, (truth, prediction) in output.explained.items():
            self.add_explained(role, name, truth, prediction)

    def told(self) -> WordLogProbs:
        """What was collected so far, in numbers that can be sent."""
        sums = {key: (float(total), float(count)) for key, (total, count) in self._sums.items()}
        maxima = {key: float(value) for key, value in self._maxima.items()}
        return sums, maxima, {key: value.tolist() for key, value in self._explained.items()}

    @classmethod
    def whole(cls, parts: Iterable[WordLogProbs]) -> "Meter":
        """What several collected, as if one had."""
        whole = cls()
        for own_sums, own_maxima, own_moments in parts:
            for (role, name), (total, count) in own_sums.items():
                whole.add(role, name, total, count)
            for (role, name), value in own_maxima.items():
                whole.add_maximum(role, name, torch.tensor(value, dtype=torch.float64))
            for key, moments in own_moments.items():
                whole._add_moments(key, torch.tensor(moments, dtype=torch.float64))
        return whole

    def read(self) -> dict[str, dict[str, float]]:
        metrics: dict[str, dict[str, float]] = {}
        for (role, name), (total, count) in self._sums.items():
            metrics.setdefault(role, {})[name] = _divided(total, count)
        for (role, name), value in self._maxima.items():
            metrics.setdefault(role, {})[name] = float(value)
        for (role, name), moments in self._explained.items():
            metrics.setdefault(role, {})[name] = _share_explained(*moments.tolist())
        return metrics

    def mean(self, role: str, name: str) -> float | None:
        known = self._sums.get((role, name))
        return None if known is None else _divided(*known)


def _divided(total: Number, count: Number) -> float:
    return float(total) / float(count) if float(count) != 0.0 else 0.0


def _share_explained(count: float, truth: float, truths: float, left: float, lefts: float) -> float:
    if count < 2:
        return 0.0
    variance = truths / count - (truth / count) ** 2
    if variance <= NO_VARIANCE * truths / count:
        return 0.0
    return 1.0 - max(lefts / count - (left / count) ** 2, 0.0) / variance
