"""Weights within one process: cast one by one as they are read, nothing written down.

A transfer refers to the weights of its source, which are read when it is opened: before these
change again, and once where they are gathered from ranks.
"""

from __future__ import annotations

import torch

from coloop.workers.sync.protocol import Opened, Weights, WeightTransfer, bytes_of


class LocalChannel:
    """Implements `WeightChannel`."""

    def send(
        self,
        weights: Weights,
        *,
        version: int,
        dtype: torch.dtype | None = None,
        size_bytes: int | None = None,
    ) -> WeightTransfer:
        if size_bytes is None:
            weights = list(weights)
            size_bytes = sum(bytes_of(weight, dtype or weight.dtype) for _, weight in weights)
        place = [(weights, dtype)]
        return WeightTransfer(channel="local", version=version, place=place, size_bytes=size_bytes)

    def receive(self, transfer: WeightTransfer) -> Opened:
        for weights, dtype in transfer.place:
            for name, weight in weights:
                yield name, weight.detach().to(dtype or weight.dtype)

    def forget(self, transfer: WeightTransfer) -> None:
        transfer.place.clear()
