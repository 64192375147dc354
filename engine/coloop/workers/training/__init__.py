"""Training backends: an update of one weights group from what its teaching ports bring."""

from collections.abc import Callable

from coloop.workers.training.adapters import Adapter
from coloop.workers.training.deepspeed import DeepSpeedBackend
from coloop.workers.training.fsdp2 import Fsdp2Backend
from coloop.workers.training.learner import Learner
from coloop.workers.training.ranks import ALONE, Hooks, Ranks, leave
from coloop.workers.training.scorer import Scorer
from coloop.workers.training.single import SingleBackend
from coloop.workers.training.train_batch import TrainBatch

__all__ = [
    "ALONE",
    "BACKENDS",
    "Adapter",
    "Hooks",
    "Learner",
    "Ranks",
    "Scorer",
    "SingleBackend",
    "TrainBatch",
    "leave",
]

BACKENDS: dict[str, Callable[..., Learner]] = {
    "single": SingleBackend,
    "fsdp2": Fsdp2Backend,
    "deepspeed": DeepSpeedBackend,
}
"""By the name that the `training` section gives."""
