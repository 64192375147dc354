"""Training backends: an update of one weights group from what its teaching ports bring."""

from collections.abc import Callable

from coloop.workers.training.adapters import Adapter
from coloop.workers.training.deepspeed import DeepSpeedBackend
from coloop.workers.training.fsdp2 import Fsdp2Backend
from coloop.workers.training.protocol import (
    Hooks,
    TrainBackend,
    UpdateFailed,
    UpdateReport,
)
from coloop.workers.training.ranks import ALONE, Meeting, Ranks, join, leave, open_meeting
from coloop.workers.training.scorer import Scorer
from coloop.workers.training.single import SingleBackend
from coloop.workers.training.train_batch import Seen, TrainBatch

__all__ = [
    "ALONE",
    "BACKENDS",
    "Adapter",
    "DeepSpeedBackend",
    "Fsdp2Backend",
    "Hooks",
    "Meeting",
    "Ranks",
    "Scorer",
    "Seen",
    "SingleBackend",
    "TrainBackend",
    "TrainBatch",
    "UpdateFailed",
    "UpdateReport",
    "join",
    "leave",
    "open_meeting",
]

BACKENDS: dict[str, Callable[..., TrainBackend]] = {
    "single": SingleBackend,
    "fsdp2": Fsdp2Backend,
    "deepspeed": DeepSpeedBackend,
}
"""By the name that the `training` section gives."""
