"""Learning rates: warm-up, then constant, linear or cosine, over the updates of one phase's entry.

Does not know optimizers. The rate is one for all optimizer steps of an update.
"""

import math

from coloop.spec.training import Optimizer


def learning_rate(optimizer: Optimizer, *, done: int, total: int | None) -> float:
    """The rate of update number `done` (from 0) of a phase's `total`.

    Warm-up rises in equal parts from above 0 to `lr`, which the first update after it gets; then
    the rate decays to `min_lr`, which the update after the last would get.
    """
    warmup = warmup_updates(optimizer, total)
    if done < warmup:
        return optimizer.lr * (done + 1) / (warmup + 1)
    if optimizer.schedule == "constant":
        return optimizer.lr
    if total is None:
        raise ValueError(
            f"schedule {optimizer.schedule!r} decays over a phase, "
            "but this phase does not say how many steps it has"
        )
    share = min((done - warmup) / max(total - warmup, 1), 1.0)
    if optimizer.schedule == "cosine":
        share = (1 - math.cos(math.pi * share)) / 2
    return optimizer.lr + (optimizer.min_lr - optimizer.lr) * share


def warmup_updates(optimizer: Optimizer, total: int | None) -> int:
    """Updates of rising rate; a share below 1 is of the phase's updates."""
    if optimizer.warmup >= 1 or optimizer.warmup == 0:
        return int(optimizer.warmup)
    if total is None:
        raise ValueError(
            f"warmup {optimizer.warmup} is a share of a phase that does not say its steps"
        )
    return math.ceil(optimizer.warmup * total)
