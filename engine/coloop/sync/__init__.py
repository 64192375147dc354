"""How weights travel between homes, with proof that they arrived.

Knows models and what an engine takes; nothing of optimizers, rows or phases.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from coloop.sync.evidence import Counted, evidence_of_engine, evidence_of_model
from coloop.sync.files import FilesChannel
from coloop.sync.group import GroupChannel
from coloop.sync.local import LocalChannel
from coloop.sync.proof import Prover, check_bits
from coloop.sync.protocol import (
    Evidence,
    MeetingChannel,
    Parcel,
    Proof,
    WeightChannel,
    WeightReceiver,
)

MEETINGS: dict[str, Callable[..., MeetingChannel]] = {
    "gloo": partial(GroupChannel, "gloo"),
    "nccl": partial(GroupChannel, "nccl"),
}
"""Those whose ends are at work at the same time."""
CHANNELS: dict[str, Callable[..., WeightChannel]] = {
    "local": LocalChannel,
    "files": FilesChannel,
    **MEETINGS,
}
"""By the name that a parcel carries. `files` is shared memory where its folder is."""

__all__ = [
    "CHANNELS",
    "MEETINGS",
    "Counted",
    "Evidence",
    "FilesChannel",
    "GroupChannel",
    "LocalChannel",
    "MeetingChannel",
    "Parcel",
    "Proof",
    "Prover",
    "WeightChannel",
    "WeightReceiver",
    "check_bits",
    "evidence_of_engine",
    "evidence_of_model",
]
