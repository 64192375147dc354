"""The settings of updates and rollout engines, with a value for every open one."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from coloop.spec.lean import is_lean, record
from coloop.spec.rollout import Engine
from coloop.spec.training import Backend, Checkpointing, Offload, Training

DEGREES = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")
MEMORY_FIELDS = (
    *("gradient_checkpointing", "loss_chunk", "packing", "offload", "reshard_after_forward"),
)

SPLIT_FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma3_text")
"""Model types whose layers can be split over ranks: all layers are alike, and the logits are the
last states times the head."""

PLAIN_FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
"""Model types that keep packed texts apart, and on a CPU read a common prompt once."""

TOKENS_AT_ONCE = 16_384
"""Padded tokens of a micro-batch; larger passes are no faster."""
CPU_TOKENS_AT_ONCE = 4_096
"""On a CPU: as fast as four times as many, in half the memory."""
ROWS_AT_ONCE = 256
"""Sequences that an engine generates at once; more are no faster."""


Sleep = Literal["cache", "weights"]
"""What an engine releases while others work in its pool: its key-value cache, or also its weights,
which move to host memory."""


States = Literal["whole", "spread"]
"""Where weights, gradients and optimizer states are: complete in each process, or sharded."""


Channel = Literal["local", "files", "gloo", "nccl"]
"""How new weights reach an engine: within the process; through memory, a shared disk or the driver;
or from process to process, which then work together."""


class Planned(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=not is_lean(),
        defer_build=is_lean(),
    )


class Decision(Planned):
    """The value that the compiler chose for a setting that the loop leaves open."""

    path: str
    """Path of the setting, e.g. `nodes.actor.training.micro_batch`."""
    value: Any
    """The chosen value."""
    reason: str


class Note(Planned):
    """An assumption or gap of the estimate."""

    message: str
    node: str | None = None
    field: str | None = None
    """Field of the node, or a full path."""
    is_gap: bool = False
    """True if numbers are missing because of it, false for an assumption."""
    is_guess: bool = Field(default=False, exclude=True)
    """Whether numbers based on it may be far off."""
    found: str | None = Field(default=None, exclude=True)
    """The field's value, for an unknown model."""
    near: tuple[str, ...] = Field(default=(), exclude=True)
    """Similar names of known models, closest first."""


@record
class UpdateSettings:
    backend: Backend
    states: States = "spread"
    zero_stage: int | None = None
    """DeepSpeed only."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_parallel: int = 1
    expert_parallel: int = 1
    micro_batch: int | None = None
    """Rows at once if the loop sets them; else `tokens_at_once` divides a mini-batch."""
    tokens_at_once: int = TOKENS_AT_ONCE
    gradient_checkpointing: Checkpointing = False
    loss_chunk: int | None = None
    """Tokens whose logits are held at once; None: unknown vocabulary size."""
    offload: Offload = "none"
    """What moves to host memory while unused."""
    packing: bool = False
    """Whether sequences share rows instead of being padded."""
    reshard_after_forward: bool = True
    """FSDP2: whether a layer's gathered weights are freed after it."""

    def fill(self, training: Training) -> Training:
        """The section with its open values filled in."""
        decided = {
            name: getattr(self, name)
            for name in ("backend", "zero_stage", *DEGREES, *MEMORY_FIELDS)
        }
        is_open = {name: v for name, v in decided.items() if getattr(training, name) is None}
        return training.model_copy(update=is_open)


class EnginePlan(Planned):
    """A rollout engine with a copy of a group's weights."""

    pool: str
    engine: Engine
    writers: tuple[str, ...]
    """Nodes that generate with it."""
    max_num_seqs: int
    """Sequences generated at once."""
    tensor_parallel: int = 1
    gpu_memory_utilization: float | None = None
    """vLLM: its share of a GPU."""
    sleep: Sleep | None = None
    """What it releases while its pool learns or scores."""
    channel: Channel = "local"
    """How new weights reach it."""
