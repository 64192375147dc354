"""Weights within one process: cast one by one as they are read, nothing written down.

A parcel refers to the weights of its source, which are read when it is opened: before these change
again, and once where they are gathered from ranks.
"""

from __future__ import annotations

import torch

from coloop.sync.buckets import bytes_of
from coloop.sync.protocol import Opened, Parcel, Weights


class LocalChannel:
    """Implements `WeightChannel`."""

    def send(
        self,
        weights: Weights,
        *,
        version: int,
        dtype: torch.dtype | None = None,
        size_bytes: int | None = None,
    ) -> Parcel:
        if size_bytes is None:
            weights = list(weights)
            size_bytes = sum(bytes_of(weight, dtype or weight.dtype) for _, weight in weights)
        place = [(weights, dtype)]
        return Parcel(channel="local", version=version, place=place, size_bytes=size_bytes)

    def receive(self, parcel: Parcel) -> Opened:
        for weights, dtype in parcel.place:
            for name, weight in weights:
                yield name, weight.detach().to(dtype or weight.dtype)

    def forget(self, parcel: Parcel) -> None:
        parcel.place.clear()
