"""Training backends: an update of one weights group from what its teaching ports bring."""

from coloop.training.protocol import (
    Hooks,
    TeachingLoad,
    TrainBackend,
    UpdateFailed,
    UpdateReport,
)
from coloop.training.single import SingleBackend

__all__ = [
    "Hooks",
    "SingleBackend",
    "TeachingLoad",
    "TrainBackend",
    "UpdateFailed",
    "UpdateReport",
]
