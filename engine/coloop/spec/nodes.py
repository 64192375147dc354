"""The thirteen node kinds: what can be written under `nodes.<id>`.

`Node` is their union, told apart by `kind`. Ports and edges are not here: a node does not know
what it is connected to.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import Field, model_validator

from coloop.spec.algorithm import (
    ActorAlgorithm,
    CriticAlgorithm,
    RewardAlgorithm,
    VerifierAlgorithm,
)
from coloop.spec.base import (
    Flag,
    Name,
    NodeId,
    Number,
    OneOrMany,
    PlainValue,
    PortName,
    Section,
    Text,
    Whole,
    problem,
    setting,
)
from coloop.spec.data import BufferBalance, BufferClear, RowTokens, Source
from coloop.spec.model import Model
from coloop.spec.reading import Message, PromptTemplate, Read
from coloop.spec.reward import OnError, RewardSource
from coloop.spec.rollout import Rollout
from coloop.spec.search import Budget, Completions, Expand, Select, StepLabels
from coloop.spec.shaping import (
    WRITE_SIGNATURE,
    Fill,
    Parse,
    PerGroup,
    Resample,
    Rule,
    SideColumns,
    Soft,
)
from coloop.spec.tools import ENVIRONMENT_SIGNATURE, Pack, ToolType
from coloop.spec.training import Credit, Join, Training

_WITH_MODEL = ("generative", "implicit_prm", "discriminative")


class BaseNode(Section):
    """What every node has."""

    note: str | None = setting(None, widget="text", section="note")
    """Text for people; it means nothing to the run."""
    pool: Name | None = setting(
        None,
        level="advanced",
        widget="select",
        choices="pools",
        section="placement",
        short="pool {}",
    )
    """Pool of processes or GPUs it runs in; null: `main`."""
    join: Join = setting("align", level="advanced")
    """How its inputs are joined into the rows it works on."""


class DatasetNode(BaseNode):
    """Rows from a task, a file, the hub or the loop itself."""

    kind: Literal["dataset"]
    """Rows from outside."""
    source: Source = setting()
    """Where the rows come from."""
    columns: dict[Text, Text] = setting(
        default_factory=dict, widget="select", choices="task_columns"
    )
    """Name in the loop (`prompt`, `target`, `answer`, `chosen`, ...): name in the source."""
    rows_per_step: Whole | None = setting(None, ge=1, hot=True, unit="rows")
    """Rows of one step; null: all of them."""
    tokens: RowTokens | None = setting(None, level="advanced")
    """Lengths that the estimate takes where it cannot read the rows; null: it assumes some."""
    shuffle: Flag = setting(True)
    """A new order in every pass."""
    unfold: Text | None = setting(None, level="advanced", widget="column")
    """A list column whose entries become children of their row."""
    join: Literal["align"] = setting("align", level="expert", hidden=True)
    """A dataset has no inputs."""


class ActorNode(BaseNode):
    """A policy that writes: generator, proposer, solver, debater, assistant."""

    kind: Literal["actor"]
    """A policy that writes."""
    model: Model = setting(section="model")
    """Where its weights come from."""
    rollout: Rollout = setting(default_factory=Rollout, section="generation")
    """How it writes."""
    algorithm: ActorAlgorithm | None = setting(None, section="learning")
    """How it learns, for each teaching port in use; null: it is frozen."""
    credit: Credit = setting(default_factory=Credit, level="advanced", section="learning")
    """How scores become advantages."""
    training: Training | None = setting(None, section="learning")
    """How its weights are updated; null: the defaults, where it owns weights that learn."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Prompts of several nodes stand one after another."""


class CriticNode(BaseNode):
    """Values of tokens, for advantages with a learned baseline."""

    kind: Literal["critic"]
    """Values of tokens."""
    model: Model = setting(section="model")
    """Where its weights come from; its head is one number."""
    algorithm: CriticAlgorithm | None = setting(None, section="learning")
    """How it learns; null: it is frozen."""
    training: Training | None = setting(None, section="learning")
    """How its weights are updated; null: the defaults, where it owns weights that learn."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Inputs stand one after another."""


class ReferenceNode(BaseNode):
    """Log-probs by frozen or following weights."""

    kind: Literal["reference"]
    """Log-probs by frozen or following weights."""
    model: Model = setting(section="model")
    """Where its weights come from; it never trains."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Inputs stand one after another."""


class RewardNode(BaseNode):
    """Numbers for rows."""

    kind: Literal["reward"]
    """Numbers for rows."""
    source: RewardSource = setting()
    """Where the numbers come from."""
    on_error: OnError = setting("stop", level="advanced")
    """What a failure does: `stop`, `skip_row` or `{score: x}`."""
    per: Literal["row"] | None = setting(None, level="advanced")
    """With `join: gather`: a number for each row gathered; null: one for the gathered row."""
    model: Model | None = setting(
        None,
        when={"source.type": ("model",)},
        needed={"source.type": ("model",)},
        section="model",
    )
    """Where the weights of a model reward come from."""
    template: PromptTemplate | None = setting(
        None, level="advanced", when={"source.type": ("model",)}, section="reading"
    )
    """What a model reward reads; null: prompt and completion."""
    read: Read | None = setting(
        None, level="advanced", when={"source.type": ("model",)}, section="reading"
    )
    """How its number becomes a score; null: as it is."""
    algorithm: RewardAlgorithm | None = setting(
        None, when={"source.type": ("model",)}, section="learning"
    )
    """How a model reward learns; null: it is frozen."""
    training: Training | None = setting(None, when={"source.type": ("model",)}, section="learning")
    """How its weights are updated; null: the defaults, where it owns weights that learn."""


class VerifierNode(BaseNode):
    """Judges, whole or step by step."""

    kind: Literal["verifier"]
    """Judges, whole or step by step."""
    method: Literal["rule", "generative", "implicit_prm", "discriminative", "vote", "formal"] = (
        setting()
    )
    """The task's checker, a written verdict, log ratios, a head, a majority, a proof checker."""
    per: Literal["row"] | None = setting(None, level="advanced")
    """With `join: gather`: a score for each row gathered; null: one for the gathered row."""
    model: Model | None = setting(
        None, when={"method": _WITH_MODEL}, needed={"method": _WITH_MODEL}, section="model"
    )
    """Where its weights come from."""
    rollout: Rollout | None = setting(None, when={"method": ("generative",)}, section="generation")
    """How a generative verifier writes; null: it writes nothing, label probabilities are read."""
    algorithm: VerifierAlgorithm | None = setting(
        None, when={"method": _WITH_MODEL}, section="learning"
    )
    """How it learns, for each teaching port in use; null: it is frozen."""
    credit: Credit = setting(
        default_factory=Credit,
        level="advanced",
        when={"method": ("generative",)},
        section="learning",
    )
    """How scores of its verdicts become advantages."""
    training: Training | None = setting(None, when={"method": _WITH_MODEL}, section="learning")
    """How its weights are updated; null: the defaults, where it owns weights that learn."""
    template: PromptTemplate | None = setting(
        None,
        when={"method": _WITH_MODEL},
        needed={"method": ("generative",)},
        section="reading",
    )
    """What it reads."""
    read: Read = setting(default_factory=Read, section="reading")
    """How its answer becomes a score."""
    checker: Name | None = setting(
        None, when={"method": ("formal",)}, needed={"method": ("formal",)}
    )
    """Which proof checker, e.g. `proof`."""
    by: OneOrMany[Name] | None = setting(
        None,
        level="advanced",
        when={"method": ("vote",)},
        choices="groupings",
        reference="node",
    )
    """What the voters share, as `credit.group_by`; null: their prompt row."""
    answer: Text | None = setting(None, when={"method": ("vote",)}, widget="regex")
    """Regular expression with one group: what is counted; null: the whole completion."""


class TemplateNode(BaseNode):
    """What some wrote becomes what the next reads."""

    kind: Literal["template"]
    """What some wrote becomes what the next reads."""
    parse: dict[Text, Parse] = setting(default_factory=dict)
    """New columns read from the text before it: regex, `{json: path}` or `{tag: name}`."""
    default: dict[Text, PlainValue] = setting(default_factory=dict, level="advanced")
    """What a column is where nothing was found."""
    text: Text | None = setting(None, widget="text", reference="template")
    """The new prompt, in Jinja."""
    messages: tuple[Message, ...] | None = setting(None, level="advanced")
    """A chat as prompt instead of one text."""
    target: str | None = setting(None, widget="text", reference="template")
    """What is to be imitated, in Jinja."""
    columns: dict[Text, str] = setting(default_factory=dict, level="advanced", reference="template")
    """More columns, each in Jinja."""
    drop: tuple[Text, ...] = setting((), level="advanced", widget="column")
    """Columns that end here."""
    each: Text | None = setting(None, level="advanced", widget="column")
    """A list column: one row for each element."""
    code: Text | None = setting(None, level="advanced", widget="code", starter=WRITE_SIGNATURE)
    """Python instead of text: `def write(**columns) -> dict | None`, run in a limited process."""

    @model_validator(mode="after")
    def _writes_one_way(self) -> Self:
        if self.text is not None and self.messages is not None:
            raise problem("conflict", "wants `text` or `messages`, not both", field="messages")
        if self.code is not None:
            for name in ("text", "messages", "target"):
                if getattr(self, name) is not None:
                    raise problem("conflict", "does not go together with `code`", field=name)
        return self


class FilterNode(BaseNode):
    """Keep rows by rules."""

    kind: Literal["filter"]
    """Keep rows by rules."""
    keep: tuple[Rule, ...] = setting(())
    """Rules that a row must pass, all of them; they look at the table as it came in."""
    per_group: PerGroup | None = setting(None)
    """At most so many rows of each group; null: all."""
    fill: Fill | None = setting(None, level="advanced")
    """Run the stages before it again until it has enough; null: once."""
    resample: Resample | None = setting(None, level="advanced")
    """Draw the rows again with replacement; null: no."""
    up_to: Whole | None = setting(None, ge=1, level="advanced", unit="rows")
    """With `spare`: fill up to this many rows; null: as many as came in."""


_COMPARED: Final = {"method": ("best_worst", "all", "margin", "relabel")}
"""Methods by which pairs come of scores."""


class PairsNode(BaseNode):
    """Chosen against rejected."""

    kind: Literal["pairs"]
    """Chosen against rejected."""
    method: Literal["best_worst", "all", "margin", "direct", "relabel"] = setting("best_worst")
    """Best against worst, every two, every two that differ enough, two inputs, or new labels."""
    margin: Number | None = setting(
        None, ge=0, when={"method": ("margin",)}, needed={"method": ("margin",)}, hot=True
    )
    """Least difference of scores."""
    drop_ties: Flag = setting(True, when=_COMPARED)
    """Leave out pairs of equal score."""
    soft: Soft = setting(False, level="advanced", when=_COMPARED)
    """Keep the preference as a probability instead of swapping sides."""
    columns: SideColumns = setting(default_factory=SideColumns, level="advanced")
    """Which text each side brings."""


class BufferNode(BaseNode):
    """Rows that outlive a step: replay, pool, iteration."""

    kind: Literal["buffer"]
    """Rows that outlive a step."""
    capacity: Whole = setting(ge=1, unit="rows")
    """Most rows (of each iteration, where several are kept)."""
    rows_per_step: Whole | None = setting(None, ge=1, hot=True, unit="rows")
    """Rows drawn a step; null: all."""
    sample: Literal["newest", "uniform", "oldest", "weighted"] = setting("newest")
    """Which rows are drawn."""
    weight: Text | None = setting(
        None, widget="column", when={"sample": ("weighted",)}, needed={"sample": ("weighted",)}
    )
    """Column with the weight of a row."""
    unique: Text | None = setting(None, level="advanced", widget="column")
    """A row whose value of this column is known is not taken."""
    key: Text | None = setting(None, level="advanced", widget="column")
    """A row whose value of this column is known replaces the old one."""
    balance: BufferBalance | None = setting(None, level="advanced")
    """As many rows of each class; null: as drawn."""
    clear: BufferClear | None = setting(None, level="advanced")
    """Empty it from time to time; null: never."""
    keep_iterations: Whole | None = setting(None, ge=1, level="advanced")
    """Iterations that are held; each phase that fills it opens a new one. Null: no iterations."""
    join: Literal["concat"] = setting("concat", level="expert", hidden=True)
    """Inputs stand one after another."""

    @model_validator(mode="after")
    def _one_identity(self) -> Self:
        if self.unique is not None and self.key is not None:
            raise problem("conflict", "does not go together with `unique`", field="key")
        return self

    @model_validator(mode="after")
    def _one_order(self) -> Self:
        """Rows of a class are drawn alike."""
        if self.balance is not None and self.sample in ("oldest", "weighted"):
            raise problem(
                "conflict",
                f"does not go together with `sample: {self.sample}`: of each class any rows are "
                "drawn",
                field="balance",
            )
        return self


class ToolNode(BaseNode):
    """What a policy may call while it writes."""

    kind: Literal["tool"]
    """What a policy may call while it writes."""
    type: ToolType = setting()
    """Run code, compute, look up documents, act in an environment, or ask a policy."""
    call: Text | None = setting(None, widget="regex")
    """Regular expression of a call; its named groups are the arguments, and `.` matches line ends
    as well. Null: the type's own, `<search>...</search>`, `<code>...</code>`,
    `<calculate>...</calculate>`, `<ask>...</ask>`; an environment reads all of a turn."""
    result: Text | None = setting(None, widget="text", reference="template")
    """What is written back, in Jinja; the answer is `value`. Null: the answer as it is."""
    timeout_seconds: Number = setting(
        10.0,
        gt=0,
        le=3600,
        level="advanced",
        unit="seconds",
        when={"type": ("python", "environment")},
    )
    """Longest time of a call."""
    output_bytes: Whole = setting(10_000, ge=1, level="advanced", unit="bytes")
    """Most bytes of an answer; the rest is cut."""
    top_k: Whole = setting(3, ge=1, when={"type": ("search",)})
    """Documents that a search gives."""
    column: Text | None = setting(None, widget="column", when={"type": ("search",)})
    """Column of the documents that is searched; null: `text`."""
    name: Name | None = setting(None, title="Environment name", when={"type": ("environment",)})
    """An environment that coloop brings, e.g. `proof`."""
    code: Text | None = setting(
        None, widget="code", when={"type": ("environment",)}, starter=ENVIRONMENT_SIGNATURE
    )
    """Source of a class `Environment` with `reset(row)` and `step(text)`."""
    file: Text | None = setting(
        None, widget="path", level="advanced", when={"type": ("environment",)}
    )
    """A file with that class instead."""
    template: PromptTemplate | None = setting(
        None, when={"type": ("model",)}, needed={"type": ("model",)}
    )
    """What the policy of a model tool reads: `value` and the call's groups."""
    pack: Pack | None = setting(None, level="advanced", when={"type": ("model",)})
    """Pack long answers of wrapped tools; null: as they are."""
    join: Literal["align"] = setting("align", level="expert", hidden=True)
    """A tool works on its caller's rows."""

    @model_validator(mode="after")
    def _has_one_environment(self) -> Self:
        given = [name for name in ("name", "code", "file") if getattr(self, name) is not None]
        if self.type == "environment" and len(given) != 1:
            raise problem("conflict", "wants `name`, `code` or `file`, one of them", field="name")
        return self


class SearchNode(BaseNode):
    """Drives policies to grow trees or label steps."""

    kind: Literal["search"]
    """Drives policies to grow trees or label steps."""
    method: Literal["monte_carlo", "binary_search", "puct", "and_or"] = setting()
    """Completions of every step, binary search for the first error, or a tree."""
    completions: Completions = setting(8, hot=True)
    """Completions that estimate a step's chance of success."""
    step_separator: Text = setting("\n", level="advanced")
    """What ends a step."""
    stop_at_zero: Flag = setting(False, level="advanced")
    """After a step without a chance label no more steps."""
    labels: StepLabels = setting("soft", level="advanced")
    """Chances as labels, or right and wrong, or by relative progress."""
    select: Select | None = setting(None, level="advanced")
    """Which branch is followed; null: the method's own rule."""
    expand: Expand | None = setting(None, level="advanced")
    """How branches are made; null: the method's own."""
    step_reward: Number = setting(0.0, level="advanced")
    """Reward of each action, e.g. -1 to prefer short proofs."""
    and_return: Literal["min"] = setting("min", level="expert")
    """Return of a node all of whose children are needed."""
    give: Literal["proofs", "visited"] = setting("proofs", level="advanced")
    """Rows of finished texts or proofs, or of every beginning or state that was visited."""
    budget: Budget = setting()
    """Hard limits."""


class EvaluateNode(BaseNode):
    """Metrics, on held-out rows or on the step's own."""

    kind: Literal["evaluate"]
    """Metrics, on held-out rows or on the step's own."""
    instead_of: NodeId | None = setting(None, widget="node")
    """Run the stages after this node once more, on the rows at `rows`. Null: the step's tables."""
    of: tuple[PortName, ...] = setting((), level="advanced", widget="port")
    """Teaching ports (`node.port`) whose loss and accuracy are reported, without learning."""
    every: Whole = setting(20, ge=1, hot=True, unit="steps")
    """Steps between two readings; also at step 0 and at the end."""
    greedy: Flag = setting(False)
    """The first writers write greedily."""
    samples: Whole | None = setting(None, ge=1, hot=True)
    """Completions that the first writers write; null: as their rollout says."""
    temperature: Number | None = setting(None, ge=0, le=10, level="advanced", hot=True)
    """Randomness of the first writers; null: as their rollout says."""
    right_at: Number = setting(1.0, level="advanced")
    """A score from here on counts as right."""
    metrics: tuple[Text, ...] = setting(("score",), min_length=1, widget="metrics")
    """What is measured, e.g. `accuracy`, `pass@8`."""


Node = Annotated[
    DatasetNode
    | ActorNode
    | CriticNode
    | ReferenceNode
    | RewardNode
    | VerifierNode
    | TemplateNode
    | FilterNode
    | PairsNode
    | BufferNode
    | ToolNode
    | SearchNode
    | EvaluateNode,
    Field(discriminator="kind"),
]

NODE_CLASSES: dict[str, type[BaseNode]] = {
    get_args(cls.model_fields["kind"].annotation)[0]: cls for cls in get_args(get_args(Node)[0])
}
KINDS: tuple[str, ...] = tuple(NODE_CLASSES)


def model_of(node: BaseNode) -> Any:
    """The `model` section of a node, or nothing."""
    return getattr(node, "model", None)
