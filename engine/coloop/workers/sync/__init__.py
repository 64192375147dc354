"""Transfer of weights between processes, with a check that they have arrived.

Knows models and rollout engines; nothing of optimizers, rows or phases.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from coloop.workers.sync.checksums import ChecksumVerifier, checksum_of_engine, checksum_of_model
from coloop.workers.sync.files import FilesChannel
from coloop.workers.sync.group import GroupChannel
from coloop.workers.sync.protocol import WeightChannel, WeightChecksum, WeightTransfer

MEETINGS: dict[str, Callable[..., GroupChannel]] = {
    "gloo": partial(GroupChannel, "gloo"),
    "nccl": partial(GroupChannel, "nccl"),
}
"""Channels whose ends must run at the same time."""
CHANNELS: dict[str, Callable[..., WeightChannel]] = {
    "files": FilesChannel,
    **MEETINGS,
}
"""By the `channel` of a transfer. `files` uses shared memory if its folder is there."""

__all__ = [
    "CHANNELS",
    "MEETINGS",
    "ChecksumVerifier",
    "FilesChannel",
    "GroupChannel",
    "WeightChannel",
    "WeightChecksum",
    "WeightTransfer",
    "checksum_of_engine",
    "checksum_of_model",
]
