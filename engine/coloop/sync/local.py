"""Weights to an engine in the same process: copied bucket by bucket, nothing written down."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import Tensor
from transformers import PreTrainedModel

from coloop.sync.buckets import BUCKET_BYTES, in_buckets
from coloop.sync.probe import Probe
from coloop.sync.protocol import Proof, WeightReceiver


class LocalChannel:
    """Implements `WeightChannel`."""

    def __init__(
        self, bucket_bytes: int = BUCKET_BYTES, *, autocast: torch.dtype | None = None
    ) -> None:
        """
        Args:
            autocast: the type that the source computes in where it is not that of its weights.
        """
        self._bucket_bytes = bucket_bytes
        self._probe = Probe(autocast)

    def push(self, source: PreTrainedModel, engine: WeightReceiver, *, version: int) -> Proof:
        """Copies all weights, then proves that they arrived."""
        started = time.monotonic()
        engine.load_weights(self._staged(source, engine), version)
        difference = self._probe.check(source, engine, version)
        return Proof(
            version=version,
            difference=difference,
            tolerance=self._probe.tolerance,
            moved=self._probe.moved,
            fingerprint=self._probe.fingerprint,
            size_bytes=sum(weight.nbytes for weight in source.parameters()),
            seconds=time.monotonic() - started,
        )

    def _staged(
        self, source: PreTrainedModel, engine: WeightReceiver
    ) -> Iterator[tuple[str, Tensor]]:
        for bucket in in_buckets(source.named_parameters(), self._bucket_bytes):
            for name, weight in bucket:
                yield name, weight.detach().to(engine.dtype)
