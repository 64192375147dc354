"""Where a node's weights come from: the `model` section.

One class for each `type`. Which nodes share weights and who trains is told by `groups.py`; this
module only says what can be written.
"""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from coloop.spec.base import (
    Flag,
    Name,
    NodeId,
    Number,
    OneOrMany,
    PlainValue,
    Section,
    Text,
    Whole,
    setting,
)

Dtype = Literal["float32", "bfloat16", "float16"]
"""In which types weights are held."""
ComputeDtype = Literal["float32", "bfloat16", "float16", "fp8"]
"""In which types matrices are multiplied; what is beside products in fp8 is bfloat16."""


class Lora(Section, title="LoRA"):
    """A low-rank adapter on frozen weights."""

    rank: Whole = setting(16, ge=1, le=1024, short="LoRA {}")
    """Rank of the two small matrices."""
    alpha: Number = setting(32.0, gt=0, level="advanced")
    """Scale: the adapter's output is multiplied by alpha / rank."""
    targets: tuple[Text, ...] = setting((), level="advanced")
    """Module names that get an adapter; empty: every linear layer of the blocks."""
    dropout: Number = setting(0.0, ge=0, lt=1, level="advanced")
    """Dropout before the adapter."""


class PretrainedModel(Section):
    """Weights from a local folder or the Hugging Face Hub."""

    type: Literal["pretrained"]
    """Weights from a local folder or the Hugging Face Hub."""
    path: Text = setting(widget="path", short="{}")
    """A folder in Hugging Face format, the name of one that `coloop models` lists, or a hub id."""
    lora: Lora | None = setting(None, level="advanced")
    """Train an adapter instead of all weights."""
    dtype: Dtype | None = setting(None, level="advanced", short="{}")
    """Data type of the weights in memory; null: decided by the compiler from their use."""
    quantization: Literal["nf4", "int8", "fp8", "mxfp4"] | None = setting(None, level="expert")
    """Store frozen base weights in fewer bits."""
    revision: Text | None = setting(None, level="expert")
    """Branch, tag or commit of a hub id."""
    trust_remote_code: Flag = setting(False, level="expert")
    """Run Python code from the model folder. Off by default, for safety."""
    chat_template: Text | None = setting(None, level="expert", widget="text")
    """Jinja of a chat template, instead of the tokenizer's own; `{% generation %}` in it marks what
    is trained on."""
    chat_template_kwargs: dict[str, PlainValue] = setting({}, level="expert", widget="text")
    """Additional variables for the chat template, e.g. `enable_thinking: false`."""


class ScratchModel(Section):
    """A new model with random weights."""

    type: Literal["scratch"]
    """A new model with random weights."""
    architecture: Name = setting(widget="select", choices="architectures", short="{}")
    """An architecture of presets/models, e.g. `tiny-qwen3`."""
    initial_range: Number | None = setting(None, gt=0, le=1, level="advanced")
    """Standard deviation of the random weights; null: the architecture's own."""
    lora: Lora | None = setting(None, level="expert")
    """Train an adapter on the random weights, as a rehearsal does for a model that has one."""
    dtype: Dtype | None = setting(None, level="advanced", short="{}")
    """Data type of the weights in memory; null: decided by the compiler from their use."""


class RunModel(Section):
    """Weights of an earlier run."""

    type: Literal["run"]
    """Weights of an earlier run."""
    run: Name = setting(short="of run {}")
    """A run's id, or a loop's name for its newest finished run."""
    node: NodeId = setting()
    """The node of that run whose weights are used; a missing head is newly initialized."""
    at: Literal["last", "best"] = setting("last", level="advanced")
    """Its last checkpoint, or the best by the run's `best` metric."""
    lora: Lora | None = setting(None, level="advanced")
    """Train an adapter instead of all weights."""
    dtype: Dtype | None = setting(None, level="advanced", short="{}")
    """Data type of the weights in memory; null: as saved."""


class CopyModel(Section):
    """Its own weights, initialized from another node's."""

    type: Literal["copy"]
    """Its own weights, initialized from another node's."""
    of: NodeId = setting(widget="node", short="copy of {}")
    """The node whose weights it starts from; a head that the source lacks is newly initialized."""
    at: Name | None = setting(None, level="advanced", widget="phase")
    """The phase at whose first start the copy is made; null: when the run starts."""
    lora: Lora | None = setting(None, level="advanced")
    """Train an adapter instead of all weights."""
    dtype: Dtype | None = setting(None, level="advanced", short="{}")
    """Data type of the weights in memory; null: that of the source."""


class SharedModel(Section):
    """The same weights in another role."""

    type: Literal["shared"]
    """The same weights in another role."""
    with_: NodeId = setting(alias="with", widget="node", short="shared with {}")
    """The node that owns the weights, the optimizer and the checkpoint of the group."""
    lora: Lora | None = setting(None, level="advanced")
    """An adapter of its own on the same frozen base."""


class RefreshEvery(Section, title="every N updates"):
    """Refresh from the source every N updates."""

    every: Whole = setting(ge=1, hot=True)
    """Updates of the source's weights group between two refreshes."""


class RefreshAt(Section, title="when phases start"):
    """Refresh from the source when phases start."""

    at: OneOrMany[Name] = setting(widget="phase")
    """Each time this phase (or one of these) starts."""


def _refresh_shape(value: object) -> str:
    if isinstance(value, RefreshEvery) or (isinstance(value, dict) and "every" in value):
        return "<every>"
    return "<word>" if isinstance(value, str) else "<at>"


Refresh = Annotated[
    Annotated[Literal["never"], Tag("<word>")]
    | Annotated[RefreshEvery, Tag("<every>")]
    | Annotated[RefreshAt, Tag("<at>")],
    Discriminator(_refresh_shape),
]
"""`never`, `{every: N}` or `{at: phase}`."""


class SnapshotModel(Section):
    """Earlier weights of another node; never trained."""

    type: Literal["snapshot"]
    """Earlier weights of another node; never trained."""
    of: NodeId = setting(widget="node", short="snapshot of {}")
    """The node whose earlier weights it holds."""
    refresh: Refresh = setting("never")
    """`never`: as when the run started; `{every: N}`: every N updates; `{at: phase}`: when the
    phase starts."""
    ema: Number = setting(0.0, ge=0, lt=1, level="advanced", hot=True)
    """Share of the old weights kept at a refresh: new = a * old + (1 - a) * current. For an
    adapter, each of its two matrices is averaged, not their product."""


Model = Annotated[
    PretrainedModel | ScratchModel | RunModel | CopyModel | SharedModel | SnapshotModel,
    Field(discriminator="type"),
]
