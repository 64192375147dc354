"""What open settings are decided on besides the loop itself: the machine, and what a run that is
gone on with began with."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from coloop.plan.settings.processor import Processor, processor_here
from coloop.spec.model import ComputeDtype

GPU_DRIVER = Path("/dev/nvidiactl")
"""There where a machine has an NVIDIA GPU and its driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a run began with and its results rest on: it holds on where the loop leaves it open,
    whatever the machine is now."""

    dtypes: tuple[tuple[str, ComputeDtype], ...]
    """By weights group, what it computes in."""
    workers: int | None = None
    """Processes of a loop that names no pools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """See the module."""

    processor: Processor
    threads: int | None = None
    """That were asked for, for all pools together."""
    begun: Begun | None = None
    lacks_vllm: bool = False
    """Whether the machine has GPUs and no vLLM. One without GPUs says nothing of the machine that a
    loop for GPUs would run on."""


def conditions_here() -> Conditions:
    """Of a run that begins on this machine."""
    lacks_vllm = GPU_DRIVER.exists() and find_spec("vllm") is None
    return Conditions(processor=processor_here(), lacks_vllm=lacks_vllm)
