"""The types of the catalog: the service describes them in its API, and the page's types are
generated from that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from typing_extensions import TypedDict

from coloop.spec.base import Choices, FormSection, Level, Reference, Widget
from coloop.spec.nodes.kind import ModeName, PortPhase


class Discriminator(TypedDict):
    propertyName: str
    mapping: NotRequired[dict[str, str]]


Discriminator.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]

JsonSchema = TypedDict(
    "JsonSchema",
    {
        "$schema": NotRequired[str],
        "$ref": NotRequired[str],
        "$defs": NotRequired["dict[str, JsonSchema]"],
        "type": NotRequired[str],
        "title": NotRequired[str],
        "description": NotRequired[str],
        "default": NotRequired[JsonValue],
        "const": NotRequired[JsonValue],
        "enum": NotRequired[list[JsonValue]],
        "anyOf": NotRequired["list[JsonSchema]"],
        "oneOf": NotRequired["list[JsonSchema]"],
        "discriminator": NotRequired[Discriminator],
        "properties": NotRequired["dict[str, JsonSchema]"],
        "required": NotRequired[list[str]],
        "additionalProperties": NotRequired["bool | JsonSchema"],
        "patternProperties": NotRequired["dict[str, JsonSchema]"],
        "propertyNames": NotRequired["JsonSchema"],
        "minProperties": NotRequired[int],
        "items": NotRequired["JsonSchema"],
        "prefixItems": NotRequired["list[JsonSchema]"],
        "minItems": NotRequired[int],
        "maxItems": NotRequired[int],
        "minLength": NotRequired[int],
        "maxLength": NotRequired[int],
        "pattern": NotRequired[str],
        "minimum": NotRequired[float],
        "maximum": NotRequired[float],
        "exclusiveMinimum": NotRequired[float],
        "exclusiveMaximum": NotRequired[float],
        "x-level": NotRequired[Level],
        "x-hot": NotRequired[bool],
        "x-hidden": NotRequired[bool],
        "x-solver": NotRequired[bool],
        "x-widget": NotRequired[Widget],
        "x-choices": NotRequired[Choices],
        "x-reference": NotRequired[Reference],
        "x-key-reference": NotRequired[Reference],
        "x-starter": NotRequired[str],
        "x-short": NotRequired[str],
        "x-section": NotRequired[FormSection],
        "x-unit": NotRequired[str],
        "x-when": NotRequired[dict[str, list[JsonValue]]],
        "x-read-when": NotRequired[dict[str, list[JsonValue]]],
        "x-needed": NotRequired[dict[str, list[JsonValue]]],
        "x-span": NotRequired[list[int]],
    },
)
"""JSON Schema as sections write it, with what forms need besides (`base.setting` says what)."""
JsonSchema.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]


class Part(BaseModel):
    """A part of the catalog."""

    model_config = ConfigDict(
        extra="forbid",
        use_attribute_docstrings=True,
        validate_by_name=True,
        serialize_by_alias=True,
    )


class GroupInfo(Part):
    """A section of the palette."""

    name: str
    title: str
    color: str
    """Name of the page's CSS variable."""


class FormSectionInfo(Part):
    """A part of a form that folds."""

    name: FormSection
    title: str
    opens: bool
    """Whether it begins open."""


class InputInfo(Part):
    """One input of a kind."""

    name: str
    type: str
    """Name of a port type."""
    max: int | None
    """Greatest number of edges; null: any."""
    phase: PortPhase
    """When it is read."""
    teaching: bool
    """Whether a phase's `learn` may name it."""
    required: bool | str
    """Whether it wants an edge, or the condition in words."""
    of: str | None
    """Whose rows it takes, in words; null: any."""
    when: dict[str, list[JsonValue]]
    """By the path of a setting, its values for which the port is of use; null: not set."""
    help: str


class OutputInfo(Part):
    """One output of a kind."""

    name: str
    type: str
    when: dict[str, list[JsonValue]]
    """By the path of a setting, its values for which the port is of use; null: not set."""
    help: str


class CardFieldInfo(Part):
    """A value that a node shows on its card."""

    label: str
    paths: list[str]
    """Where it may stand: the first of these that is set, else the first with a default."""


class LearningInfo(Part):
    """Where a kind that can be taught says how it learns."""

    algorithm: str
    """The setting; without it and without a teaching edge the node is no learner."""
    names: list[str]
    """Paths of the names of its algorithms; `*` is any key."""
    rate: str
    """Path of its learning rate."""


class KindInfo(Part):
    """A node kind."""

    kind: str
    title: str
    help: str
    group: str
    icon: str
    """Name of a lucide icon."""
    color: str
    """Name of the page's CSS variable; that of its group."""
    synonyms: list[str]
    """Other words for it, and what it can do: algorithms, built-in rewards, tasks."""
    summary: list[str]
    """Paths of the values that stand beside the kind, most important first; `*` is any key."""
    card_fields: list[CardFieldInfo]
    """Further values that stand on the card and are edited there."""
    learning: LearningInfo | None
    stages: list[str]
    inputs: list[InputInfo]
    outputs: list[OutputInfo]
    json_schema: JsonSchema = Field(alias="schema")
    template: dict[str, Any]
    """A node to start from."""
    runnable: bool
    """Whether this version runs it."""


class ModeOfKind(Part):
    """A node kind in loops of one mode: what is not offered of it, and what a node begins as."""

    ports: list[str]
    """Inputs that are not offered."""
    outputs: list[str]
    """Outputs that are not offered."""
    fields: list[str]
    """Paths of settings that are not offered."""
    algorithms: list[str]
    """Names of algorithms that are not offered."""
    template: dict[str, Any]
    """A node to start from."""


class ModeInfo(Part):
    """What a loop can be made for. It decides what is offered, and forbids nothing."""

    name: ModeName
    title: str
    help: str
    """One sentence."""
    kinds: list[str]
    """Node kinds that are offered, in the order in which such a loop is drawn."""
    of_kind: dict[str, ModeOfKind]


class PortTypeInfo(Part):
    """What flows along an edge, and how it is drawn."""

    color: str
    shape: str
    handle: bool
    """Whether one node calls the other through it; drawn dashed."""
    help: str
    accepts: list[str]
    """Types that an input of this type takes."""


class AlgorithmInfo(Part):
    """A name that `algorithm` may have at a teaching port."""

    name: str
    family: str
    """The algorithm whose framework preset it is, or itself."""
    framework: str | None
    title: str
    help: str
    formula: str
    defaults: dict[str, Any]
    """What its fields are where nothing is written."""
    runnable: bool


class RemedyInfo(Part):
    """One field that shortens a step where a run waits for itself."""

    when: Literal["pools_wait", "stage"]
    """`pools_wait`: several pools wait for each other, and rows may not be late; with it a step
    takes as long as the busiest. `stage`: one stage takes most of the step."""
    bound: str
    """What the run is held back by, in a word or two."""
    verbs: list[str]
    """Of the stages that it is for."""
    label: str
    reason: str
    path: str
    """`{node}` is the node of the stage."""
    change: Literal["becomes", "times", "less", "look"]
    """The value becomes `amount`, is taken so many times, or made so much less; `look`: it is only
    named."""
    amount: float | bool
    only: bool | None
    """The value that must stand there; null: any."""
    saves: float
    """Of the stage's time, where a value is set."""
    metric: str | None
    """What the node reports must reach `reach` times the value, or changing it does nothing."""
    reach: float


class ChartInfo(Part):
    """Metrics that stand on one chart."""

    name: str
    title: str
    metrics: list[str]
    """Of learners, and of probes whatever stands before the name."""
    ports: list[str]
    """Teaching ports for whose algorithms it is; none: for every loop."""


Better = Literal["higher", "lower", "steady", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number of a run."""

    title: str
    help: str
    expect: str
    better: Better = "none"
    unit: str | None = None


class RewardInfo(Part):
    """A built-in reward."""

    name: str
    help: str
    from_scores: bool
    """Whether it reads scores, not texts."""
    json_schema: JsonSchema = Field(alias="schema")


class TaskInfo(Part):
    """A built-in task."""

    name: str
    help: str
    json_schema: JsonSchema = Field(alias="schema")
    columns: list[str]
    parts: dict[str, list[str]]
    """Columns of its other tables."""


class PresetInfo(Part):
    """An architecture or hardware that a field may name."""

    name: str
    title: str
    description: str


class SectionSchemas(Part):
    """Schemas of what stands beside the nodes."""

    loop: JsonSchema
    """What the loop says of itself: its mode, its description."""
    edge: JsonSchema
    schedule: JsonSchema
    hardware: JsonSchema
    run: JsonSchema


class Catalog(Part):
    """Everything a form, a palette or a document needs to know of the language."""

    version: int
    levels: list[Level]
    groups: list[GroupInfo]
    form_sections: list[FormSectionInfo]
    """In the order in which a form has them."""
    kinds: dict[str, KindInfo]
    modes: list[ModeInfo]
    """In the order in which they are offered."""
    port_types: dict[str, PortTypeInfo]
    algorithms: dict[str, list[AlgorithmInfo]]
    """By teaching port."""
    rewards: list[RewardInfo]
    tasks: list[TaskInfo]
    metrics: dict[str, Metric]
    """What learners report."""
    probe_metrics: dict[str, Metric]
    """What probes report; `@k` stands for a number of samples."""
    chart_order: list[str]
    """Metrics that one looks at first, in that order; a name is that of a learner or a probe."""
    remedies: list[RemedyInfo]
    """What helps a run that its stages' waits hold back."""
    charts: list[ChartInfo]
    """Which metrics stand together on the charts that a run opens with, the first first."""
    json_schema: SectionSchemas = Field(alias="schema")
    codes: dict[str, str]
    """Codes of findings and what they mean."""
    unfinished: list[str]
    """Those of what is not there yet while a loop is drawn: next steps, and no faults."""
    architectures: list[PresetInfo]
    hardware: list[PresetInfo]
