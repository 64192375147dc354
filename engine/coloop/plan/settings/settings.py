"""The settings with which weights learn and write, no value of them left open."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from coloop.spec.rollout import Engine
from coloop.spec.training import Backend, Checkpointing, Offload, Training

DEGREES = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")
MEMORY_FIELDS = (
    *("gradient_checkpointing", "loss_chunk", "packing", "offload", "reshard_after_forward"),
)

SPLIT_FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma3_text")
"""Model types whose layers ranks can share: all layers are alike, and their last states times the
head are the logits."""

PLAIN_FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
"""Model types whose layers keep texts apart that lie end to end, and on a CPU read once what
several begin with."""

TOKENS_AT_ONCE = 16_384
"""Padded tokens of a micro-batch: more in one pass make nothing faster."""
CPU_TOKENS_AT_ONCE = 4_096
"""On a CPU: as fast as four times as many, in half of the memory."""
ROWS_AT_ONCE = 256
"""Sequences that an engine writes at once: more make nothing faster."""


Sleep = Literal["cache", "weights"]
"""What an engine gives back while others work in its pool: the cache of keys and values, or its
weights as well, which then wait in the memory of the host."""


States = Literal["whole", "spread"]
"""Where weights, gradients and an optimizer's running means lie: all of them in each process, or a
part in each."""


Channel = Literal["local", "files", "gloo", "nccl"]
"""How new weights reach an engine: within its process; through memory or a disk that both ends see,
or carried by the driver; or from process to process, which are then at work together."""


class Planned(BaseModel):
    """A part of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Decision(Planned):
    """A value that the loop leaves to the compiler."""

    path: str
    """Where it would be written."""
    value: Any
    """What is counted with."""
    reason: str


class Note(Planned):
    """Something that the estimate does not know or had to assume."""

    message: str
    node: str | None = None
    field: str | None = None
    """Which field of the node it is about, or a full path."""
    is_gap: bool = False
    """True where numbers are missing for it, false for an assumption."""
    is_guess: bool = Field(default=False, exclude=True)
    """Whether numbers rest on it that may be far off."""
    found: str | None = Field(default=None, exclude=True)
    """What the field says, of a model that is not known."""
    near: tuple[str, ...] = Field(default=(), exclude=True)
    """Known models whose names look like it, the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateSettings:
    backend: Backend
    states: States = "spread"
    """How they lie over the processes of a pool."""
    zero_stage: int | None = None
    """DeepSpeed: what is sharded."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_parallel: int = 1
    expert_parallel: int = 1
    micro_batch: int | None = None
    """Rows at once, where the loop says so; else `tokens_at_once` divides a mini-batch."""
    tokens_at_once: int = TOKENS_AT_ONCE
    """Most padded tokens at once."""
    gradient_checkpointing: Checkpointing = False
    loss_chunk: int | None = None
    """Tokens whose logits are held at once; None: their vocabulary is not known here."""
    offload: Offload = "none"
    """What rests in the host's memory while it is not used."""
    packing: bool = False
    """Whether sequences share rows instead of being padded."""
    reshard_after_forward: bool = True
    """FSDP2: whether gathered weights of a layer are freed after it."""

    def fill(self, training: Training) -> Training:
        """A section without its open values: what it says, else what was decided."""
        decided = {
            name: getattr(self, name)
            for name in ("backend", "zero_stage", *DEGREES, *MEMORY_FIELDS)
        }
        is_open = {name: v for name, v in decided.items() if getattr(training, name) is None}
        return training.model_copy(update=is_open)


class EnginePlan(Planned):
    """The home of a rollout engine with a copy of a group's weights."""

    pool: str
    engine: Engine
    writers: tuple[str, ...]
    """Roles that write with it."""
    max_num_seqs: int
    """Sequences that it writes at once."""
    tensor_parallel: int = 1
    gpu_memory_utilization: float | None = None
    """vLLM: its share of a GPU."""
    sleep: Sleep | None = None
    """What it gives back while its pool learns or scores; None: nothing."""
    channel: Channel = "local"
    """How new weights reach it."""
