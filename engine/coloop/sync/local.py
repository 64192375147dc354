"""Weights within one process: cast one by one as they are read, nothing written down.

A parcel refers to the weights of its source: it is opened before these change again.
"""

from __future__ import annotations

import torch

from coloop.sync.buckets import bytes_of
from coloop.sync.protocol import Opened, Parcel, Weights


class LocalChannel:
    """Implements `WeightChannel`."""

    def send(self, weights: Weights, *, version: int, dtype: torch.dtype | None = None) -> Parcel:
        held = [(name, weight.detach(), dtype or weight.dtype) for name, weight in weights]
        size = sum(bytes_of(weight, kind) for _, weight, kind in held)
        return Parcel(channel="local", version=version, place=held, size_bytes=size)

    def receive(self, parcel: Parcel) -> Opened:
        for name, weight, dtype in parcel.place:
            yield name, weight.to(dtype)

    def forget(self, parcel: Parcel) -> None:
        parcel.place.clear()
