"""Training backends: an update of one weights group from what its teaching ports bring."""

from coloop.training.protocol import (
    Hooks,
    TeachingLoad,
    TrainBackend,
    UpdateFailed,
    UpdateReport,
)
from coloop.training.scorer import Scorer
from coloop.training.single import SingleBackend

__all__ = [
    "BACKENDS",
    "Hooks",
    "Scorer",
    "SingleBackend",
    "TeachingLoad",
    "TrainBackend",
    "UpdateFailed",
    "UpdateReport",
]

BACKENDS = {"single": SingleBackend}
"""By the name that the `training` section gives."""
