"""How many logits are held at once, decided here once: update, scoring and engine compute by it,
plan and estimate say it."""

from typing import Literal

LOGITS_AT_ONCE: dict[Literal["cpu", "cuda"], int] = {"cpu": 1 << 24, "cuda": 1 << 28}
"""64 MiB in float32 on a CPU, where more of them lie further from the core; 1 GiB on a GPU, whose
products need tall matrices and whose kernels take some microseconds each to begin."""


def logits_at_once(*, on_cpu: bool) -> int:
    """Most logits held at once where no chunk is set."""
    return LOGITS_AT_ONCE["cpu" if on_cpu else "cuda"]


def loss_chunk(vocabulary: int, *, on_cpu: bool) -> int:
    """Tokens whose logits are held at once where the loop sets no `training.loss_chunk`."""
    return max(logits_at_once(on_cpu=on_cpu) // vocabulary, 1)
