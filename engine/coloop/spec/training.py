"""How weights are updated: the `training` section, its optimizer, and `credit`.

`training` belongs to the node that owns a weights group; `credit` to each role that learns from
rewards.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from coloop.spec.base import Flag, Name, NodeId, Number, PlainOr, Section, Whole, setting
from coloop.spec.model import ComputeDtype

Backend = Literal["single", "fsdp2", "deepspeed", "megatron"]
RUNNABLE_BACKENDS = frozenset({"single", "fsdp2", "deepspeed"})
Implementation = Literal[
    "coloop",
    "trl",
    "fms",
    "torchtune",
    "ms-swift",
    "litgpt",
    "torchtitan",
    "prime-rl",
    "verl",
    "megatron",
    "llm-foundry",
    "tensorrt-llm",
]
"""Whose trainer an estimate describes; only `coloop` runs here."""
Offload = Literal["none", "optimizer", "all"]


def _is_no_number(value: object) -> object:
    """A 1 would pass for true."""
    return str(value) if type(value) in (int, float) else value


Checkpointing = Annotated[
    Literal[False, True, "selective", "offload"], BeforeValidator(_is_no_number)
]


class OtherMatrices(Section):
    """AdamW for the parameters that Muon does not update."""

    lr: Number = setting(gt=0, le=1, hot=True)
    """Learning rate of embeddings, heads, norms and biases."""
    betas: tuple[Number, Number] = setting((0.9, 0.95), level="advanced")
    """Decay of the running mean and of the running square."""
    weight_decay: Number = setting(0.0, ge=0, le=10, level="advanced", hot=True)
    """Weight decay."""


class Optimizer(Section):
    """How a gradient becomes a step."""

    name: Literal["adamw", "adamw8bit", "muon", "lion", "sgd", "rmsprop"] = setting(
        "adamw", title="Optimizer name"
    )
    """Which optimizer."""
    lr: Number = setting(1.0e-6, ge=0, le=10, hot=True, short="lr {}")
    """Learning rate after warm-up."""
    betas: tuple[Number, Number] | None = setting(None, level="advanced")
    """Decay rates; null: (0.9, 0.999) for AdamW, (0.95, 0.98) for Lion. One momentum: the first."""
    epsilon: Number = setting(1.0e-8, gt=0, le=1, level="expert")
    """Added to the root of the running square."""
    momentum: Number | None = setting(None, ge=0, lt=1, level="expert")
    """Momentum of sgd, rmsprop and muon; null: 0, 0 and 0.95."""
    weight_decay: Number = setting(0.0, ge=0, le=10, level="advanced", hot=True)
    """Weight decay, decoupled from the gradient."""
    schedule: Literal["constant", "linear", "cosine"] = setting("constant", level="advanced")
    """How the rate decays over a phase's entry."""
    warmup: Number = setting(0, ge=0, level="advanced")
    """Number of warm-up steps; a value below 1 is a share of the phase's steps."""
    min_lr: Number = setting(0.0, ge=0, level="advanced", hot=True)
    """Learning rate at the end of the decay."""
    adamw: OtherMatrices | None = setting(None, level="advanced", when={"name": ("muon",)})
    """Muon only: AdamW for all parameters that are not matrices."""


class Training(Section):
    """How a weights group is updated."""

    backend: Backend | None = setting(
        None, level="advanced", section="placement", short="{}", solver=True
    )
    """What runs the update. Null: decided by the compiler (`single` in one process)."""
    implementation: Implementation = setting("coloop", level="expert", section="placement")
    """Whose trainer the estimate describes: memory and speed of a job that another program runs.
    `run` accepts `coloop` only."""
    optimizer: Optimizer = setting(default_factory=Optimizer)
    """How a gradient becomes a step."""
    mini_batch: Whole | None = setting(None, ge=1, hot=True, unit="rows")
    """Rows that make one optimizer step; null: all rows of the step."""
    micro_batch: Whole | None = setting(None, ge=1, level="advanced", unit="rows", solver=True)
    """Rows processed at once; null: decided by the compiler."""
    epochs: Whole = setting(1, ge=1, le=1000, level="advanced", hot=True)
    """Passes over the step's rows."""
    gradient_clip: Number | None = setting(1.0, gt=0, level="advanced", hot=True)
    """Maximum gradient norm; null: no clipping."""
    gradient_checkpointing: Checkpointing | None = setting(None, level="advanced", solver=True)
    """Recompute activations instead of keeping them; null: decided by the compiler. `selective`:
    those of every second layer; `offload`: all, with the inputs of layers in host memory."""
    dropout: Flag | None = setting(None, level="advanced")
    """Apply the dropout of the model and of `lora.dropout`. Null: only while it learns from texts
    alone (`demonstrations`), because other losses compare log-probs with those computed without
    dropout."""
    dtype: ComputeDtype | None = setting(None, level="advanced")
    """Data type of the computation; fp8: matrix products. Null: bfloat16 on a GPU, and on a CPU
    that supports it if the model is large enough; otherwise float32."""
    master_weights: Flag | None = setting(None, level="expert")
    """Keep float32 copies for the optimizer; null: yes, if the weights are not float32."""
    loss_chunk: Whole | None = setting(None, ge=1, level="expert", unit="tokens", solver=True)
    """Tokens whose logits are held at once; null: decided by the compiler."""
    packing: Flag | None = setting(None, level="expert")
    """Let sequences share rows instead of padding them; null: decided by the compiler."""
    zero_stage: Literal[0, 1, 2, 3] | None = setting(
        None, level="expert", when={"backend": ("deepspeed",)}, section="placement", solver=True
    )
    """DeepSpeed: what is sharded; null: decided by the compiler."""
    offload: Offload | None = setting(None, level="expert", section="placement", solver=True)
    """What is kept in host memory; null: decided by the compiler."""
    tensor_parallel: Whole | None = setting(
        None,
        ge=1,
        level="expert",
        title="Tensor parallel, training",
        section="placement",
        solver=True,
    )
    """GPUs that share one layer; null: decided by the compiler."""
    pipeline_parallel: Whole | None = setting(
        None, ge=1, level="expert", when={"backend": ("megatron",)}, section="placement"
    )
    """Groups of layers on different GPUs; null: decided by the compiler."""
    context_parallel: Whole | None = setting(None, ge=1, level="expert", section="placement")
    """GPUs that share one sequence; null: decided by the compiler."""
    expert_parallel: Whole | None = setting(None, ge=1, level="expert", section="placement")
    """GPUs over which experts are spread; null: decided by the compiler."""
    reshard_after_forward: Flag | None = setting(
        None, level="expert", when={"backend": ("fsdp2",)}, section="placement", solver=True
    )
    """FSDP: free gathered weights after the forward pass; null: decided by the compiler."""


class RoundsCredit(Section):
    """Credit over rounds."""

    discount: Number = setting(1.0, ge=0, le=1, hot=True)
    """R = own + discount * mean of the next round's R below it; baselines are taken on R."""


class ClassWeights(Section):
    """Give rare classes more weight."""

    by: NodeId = setting(widget="scorer")
    """A scorer upstream of the learner's rewards whose score is the class of a row."""
    ema: Number = setting(0.8, ge=0, lt=1, level="advanced")
    """Share of the old class frequencies that is kept in each step (moving average)."""
    shape: Literal["inverse_sqrt", "inverse"] = setting("inverse_sqrt", level="advanced")
    """How the weight decreases with the frequency."""


class Balance(Section):
    """The same number of rows for each group."""

    per: Name = setting(choices="groupings", reference="node")
    """What is balanced: `role`, `round`, `prompt` or a node."""
    to: Whole = setting(ge=1, hot=True, unit="rows")
    """Rows per group: surplus rows are dropped, missing ones are filled by repetition."""
    by: Literal["random", "advantage"] = setting("random", level="advanced")
    """Which rows are kept."""


Combine = Literal["sum_then_normalize", "normalize_then_sum", "separate_advantages"]


class Credit(Section):
    """How scores become advantages."""

    combine: Combine | None = setting(None, level="advanced")
    """Several rewards: sum them before the baseline, normalize each first, or compute an advantage
    for each. Null: as the algorithm does (`gdpo` normalizes each first, others sum)."""
    group_by: tuple[Name, ...] | None = setting(
        None, level="advanced", choices="groupings", reference="node"
    )
    """What the rows of one group, or of one moving baseline, have in common: `prompt`, `role`,
    `round`, `source` (the dataset), `state` (the text that was read), node ids. Null: their prompt
    row; for a moving baseline `source` and `role`."""
    rounds: RoundsCredit | None = setting(None, level="advanced")
    """Credit over rounds; null: a row counts for its own round."""
    class_weights: ClassWeights | None = setting(None, level="advanced")
    """Give rare classes more weight; null: equal weights."""
    balance: Balance | None = setting(None, level="advanced")
    """The same number of rows for each group; null: unchanged."""
    missing: Literal["sum_of_available", "mean_of_available", "skip_row"] = setting(
        "sum_of_available", level="advanced"
    )
    """What to do with a row that a reward does not score: sum or mean of its other rewards, or skip
    it."""


class Gather(Section, title="gather"):
    """Join the descendants of a row into one row."""

    gather: NodeId | None = setting(None, widget="node")
    """The node whose rows gather their descendants; null: the parent."""


Join = PlainOr[Literal["align", "cross", "concat"], Gather]
"""How a node's inputs are joined into the rows it works on."""
