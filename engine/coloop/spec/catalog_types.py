"""The types of the catalog: the service describes them in its API, and the page's types are
generated from that."""

from typing import Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from typing_extensions import TypedDict

from coloop.spec.base import Choices, FormSection, Level, Reference, Widget
from coloop.spec.lean import is_lean
from coloop.spec.metrics import Metric
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
        use_attribute_docstrings=not is_lean(),
        defer_build=is_lean(),
        validate_by_name=True,
        serialize_by_alias=True,
    )


class GroupInfo(Part):
    """A group of node kinds in the editor's palette."""

    name: str
    title: str
    color: str
    """CSS variable of the page, e.g. `--group-data`."""


class FormSectionInfo(Part):
    """A collapsible section of a node's form."""

    name: FormSection
    title: str
    opens: bool
    """Whether the section is open at first."""


class InputInfo(Part):
    """An input port of a node kind."""

    name: str
    type: str
    """Name of its port type, e.g. `Rollouts`."""
    max: int | None
    """Most edges that may lead to it; null: any number."""
    phase: PortPhase
    """When a step reads it."""
    teaching: bool
    """Whether it is a teaching port, which the `learn` of a phase can name."""
    is_optional: bool
    """Of a teaching port: it teaches only where the node's algorithm has an entry for it."""
    required: bool | str
    """Whether it needs an edge. A text is the condition under which it does, e.g. `where its values
    are used`."""
    of: str | None
    """Restriction on the rows that it accepts, e.g. `own rollouts`; null: none."""
    when: dict[str, list[JsonValue]]
    """Condition under which the port has an effect: the allowed values of settings, by path (null:
    not set). Empty: always."""
    help: str


class OutputInfo(Part):
    """An output port of a node kind."""

    name: str
    type: str
    """Name of its port type, e.g. `Rollouts`."""
    when: dict[str, list[JsonValue]]
    """Condition under which the port has an effect: the allowed values of settings, by path (null:
    not set). Empty: always."""
    help: str


class CardFieldInfo(Part):
    """A setting that the card of a node shows."""

    label: str
    """Text beside the value."""
    paths: list[str]
    """Paths of the setting in the node. The first one that is set is shown; if none is, the first
    one that has a default. `*` stands for any key."""


class LearningInfo(Part):
    """Paths of the settings that say how nodes of a trainable kind learn."""

    algorithm: str
    """Path of the algorithm. A node without this setting and without an edge to a teaching port
    does not learn."""
    names: list[str]
    """Paths where names of algorithms can be; `*` stands for any key."""
    rate: str
    """Path of the learning rate."""
    alike: list[str]
    """Paths of settings that a new node takes from its neighbours, where they have them."""


class KindInfo(Part):
    """A node kind with its ports, settings and help."""

    kind: str
    title: str
    help: str
    group: str
    """Name of its group in the palette."""
    icon: str
    """Name of a Lucide icon, e.g. `database`."""
    color: str
    """CSS variable of the page: the color of its group."""
    synonyms: list[str]
    """Search words: other names, and its algorithms, built-in rewards and tasks."""
    summary: list[str]
    """Paths of the settings that the card shows beside the kind, most important first; `*` stands
    for any key."""
    card_fields: list[CardFieldInfo]
    """Further settings that the card shows and lets the user edit."""
    learning: LearningInfo | None
    """Null for kinds that have no trainable weights."""
    stages: list[str]
    """Stages that its nodes can have in a step, e.g. `generate` and `learn`."""
    inputs: list[InputInfo]
    outputs: list[OutputInfo]
    json_schema: JsonSchema = Field(alias="schema")
    """JSON Schema of its settings."""
    template: dict[str, Any]
    """Settings of a new node."""
    begins_with: dict[str, dict[str, dict[str, Any]]]
    """By path of a setting and by its value: settings that are set along with it, if they are not
    set yet."""
    runnable: bool
    """Whether this version can run it. Loops with other kinds can only be planned and estimated."""


class ModeOfKind(Part):
    """What an editor hides of a node kind in loops of one mode, and the settings of a new node."""

    ports: list[str]
    """Names of hidden inputs."""
    outputs: list[str]
    """Names of hidden outputs."""
    fields: list[str]
    """Paths of hidden settings."""
    algorithms: list[str]
    """Names of hidden algorithms."""
    template: dict[str, Any]
    """Settings of a new node."""


class ModeInfo(Part):
    """A purpose of loops, e.g. `online`. It decides what an editor offers, and forbids nothing."""

    name: ModeName
    title: str
    help: str
    """What the mode is for, in one sentence."""
    kinds: list[str]
    """Node kinds to offer, in the usual order of such a loop."""
    of_kind: dict[str, ModeOfKind]
    """What is hidden of each node kind, by its name."""


class PortTypeInfo(Part):
    """A type of data that flows along edges, and how its ports are drawn."""

    color: str
    """CSS variable of the page, e.g. `--port-rows`."""
    shape: str
    """Shape of its ports, e.g. `circle`."""
    handle: bool
    """Whether one node calls the other through such an edge. These edges are drawn dashed."""
    help: str
    accepts: list[str]
    """Output types that can be connected to an input of this type."""


class AlgorithmInfo(Part):
    """An algorithm that a teaching port can use."""

    name: str
    family: str
    """The algorithm that it is a framework's preset of; otherwise its own name."""
    framework: str | None
    """Framework whose defaults it has, e.g. `TRL`; null if it is no framework's preset."""
    title: str
    help: str
    formula: str
    """Its advantage and loss in one line of text."""
    defaults: dict[str, Any]
    """Default values of its settings."""
    runnable: bool
    """Whether this version can run it."""


class RemedyInfo(Part):
    """A change of one setting that can shorten the steps of a run."""

    when: Literal["pools_wait", "stage"]
    """When it applies. `pools_wait`: pools wait for each other; with the change a step takes as
    long as its busiest pool. `stage`: a stage with one of `verbs` takes most of the step."""
    bound: str
    """What limits the speed, e.g. `writing`."""
    verbs: list[str]
    """Verbs of the stages that it helps, e.g. `generate`; empty with `pools_wait`."""
    label: str
    """Title, e.g. `Generate shorter texts`."""
    reason: str
    """Why it helps and what it changes."""
    path: str
    """Path of the setting; `{node}` stands for the node of the slow stage."""
    change: Literal["becomes", "times", "less", "look"]
    """How the value changes. `becomes`: to `amount`; `times`: multiplied by `amount`; `less`:
    reduced by `amount`; `look`: no new value is suggested."""
    amount: float | bool
    """Operand of `change`; not used with `look`."""
    only: bool | None
    """It applies only if the setting has this value; null: any value."""
    saves: float
    """Share of the stage's time that `becomes` saves, 0 to 1."""
    metric: str | None
    """A metric of the node. Unless it is at least `reach` times the setting's value, the change has
    no effect. Null: no such condition."""
    reach: float
    """Factor for `metric`; 0 if there is none."""


class ChartInfo(Part):
    """Metrics that share one chart."""

    name: str
    title: str
    metrics: list[str]
    """Names of metrics. Those of probes match with any prefix before the name."""
    ports: list[str]
    """Teaching ports: the chart is shown if a node learns at one of them. Empty: for every loop."""


class RewardInfo(Part):
    """A built-in reward function."""

    name: str
    help: str
    from_scores: bool
    """Whether it transforms scores of another node instead of scoring texts."""
    json_schema: JsonSchema = Field(alias="schema")
    """JSON Schema of its settings."""


class TaskInfo(Part):
    """A built-in task that generates rows."""

    name: str
    help: str
    json_schema: JsonSchema = Field(alias="schema")
    """JSON Schema of its settings."""
    columns: list[str]
    """Columns of its main table."""
    parts: dict[str, list[str]]
    """Columns of its other tables, by their names."""


class PresetInfo(Part):
    """A preset of model architectures or hardware that a field can name."""

    name: str
    title: str
    description: str


class SectionSchemas(Part):
    """JSON Schemas of the parts of a loop other than nodes."""

    loop: JsonSchema
    """The loop's own fields: `mode` and `description`."""
    edge: JsonSchema
    schedule: JsonSchema
    hardware: JsonSchema
    run: JsonSchema


class Catalog(Part):
    """The loop language for editors: node kinds, ports, forms, algorithms and help."""

    version: int
    """Version of the loop language."""
    levels: list[Level]
    """Levels of settings in forms, simplest first."""
    groups: list[GroupInfo]
    """Groups of the palette, in order."""
    form_sections: list[FormSectionInfo]
    """Sections of a node's form, in order."""
    kinds: dict[str, KindInfo]
    """Node kinds by name."""
    modes: list[ModeInfo]
    """In the order in which an editor offers them."""
    port_types: dict[str, PortTypeInfo]
    """Port types by name."""
    algorithms: dict[str, list[AlgorithmInfo]]
    """Algorithms by teaching port."""
    rewards: list[RewardInfo]
    tasks: list[TaskInfo]
    metrics: dict[str, Metric]
    """Metrics of learners, by name."""
    probe_metrics: dict[str, Metric]
    """Metrics of probes (`evaluate` nodes), by name; `@k` stands for a number of samples."""
    chart_order: list[str]
    """Names of the metrics of learners and probes that say most about a run, most important
    first."""
    remedies: list[RemedyInfo]
    """Changes that can shorten the steps of a run."""
    charts: list[ChartInfo]
    """Charts that the page of a run shows at first, in order."""
    json_schema: SectionSchemas = Field(alias="schema")
    """JSON Schemas of the parts of a loop other than nodes."""
    codes: dict[str, str]
    """What each code of a finding means."""
    unfinished: list[str]
    """Codes of findings that only say what a draft still lacks. They can be shown as next steps."""
    architectures: list[PresetInfo]
    """Presets of model architectures."""
    hardware: list[PresetInfo]
    """Presets of hardware."""
