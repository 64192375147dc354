"""When what learns: phases, groups of phases, annealing, triggers."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Tag, model_validator

from coloop.spec.base import (
    Count,
    Flag,
    FullName,
    LearnName,
    MetricName,
    Name,
    NodeId,
    Number,
    OneOrMany,
    PlainOr,
    PlainValue,
    Section,
    Text,
    Whole,
    problem,
    setting,
)
from coloop.spec.lean import is_lean

Overrides = dict[Text, PlainValue]
"""Paths and the values they have for a while."""


class EpochsOf(Section, title="of one dataset"):
    """Passes over a named source."""

    of: NodeId = setting(widget="node")
    """The dataset or buffer whose passes are counted."""
    count: Whole = setting(ge=1)
    """How many passes."""


Epochs = PlainOr[Count, EpochsOf]
"""Passes over the one source, or `{of: node, count: n}`."""


class RefreshOrder(Section):
    """Refresh a snapshot or copy."""

    node: NodeId = setting(widget="node")
    """The node whose weights are replaced."""
    from_: Literal["current", "best", "last"] = setting("current", alias="from")
    """The source's current weights, its best ones, or those of the last checkpoint."""


class PhaseActions(Section):
    """What happens each time the phase starts."""

    refresh: OneOrMany[RefreshOrder] | None = setting(None)
    """Refresh snapshots or copies."""
    reset_optimizer: OneOrMany[NodeId] | None = setting(None, widget="node")
    """Reset the optimizers of these nodes."""
    clear: OneOrMany[NodeId] | None = setting(None, widget="node")
    """Empty these buffers."""
    checkpoint: Flag = setting(False)
    """Write a checkpoint."""


class TriggerActions(PhaseActions):
    """What a trigger does."""

    set: Overrides = setting(default_factory=dict, key_reference="path")
    """Values from then on; they take precedence over `anneal` and the phase's `set`."""
    next_phase: Flag = setting(False)
    """End the phase."""
    stop: Flag = setting(False)
    """End the run."""

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not any(getattr(self, name) for name in type(self).model_fields):
            raise problem("missing_field", "set an action", field="set")
        return self


class Phase(Section, title="phase"):
    """A number of steps in which the same ports are trained."""

    name: Name = setting()
    """Its name in plans, charts and paths."""
    steps: Whole | None = setting(None, ge=1)
    """Ends after this many steps."""
    epochs: Epochs | None = setting(None)
    """Ends after this many passes over its source."""
    until: OneOrMany[FullName] | None = setting(None, reference="node")
    """Ends when buffers are full: `pool.full`, or a list."""
    max_steps: Whole | None = setting(None, ge=1, level="advanced")
    """Maximum number of steps with `until` or `epochs`."""
    learn: tuple[LearnName, ...] = setting((), widget="port")
    """Teaching ports that are trained (`actor.rewards`), or nodes with all their ports."""
    fill: OneOrMany[NodeId] = setting((), level="advanced", widget="node")
    """Buffers that are filled."""
    set: Overrides = setting(default_factory=dict, level="advanced", key_reference="path")
    """Values that apply during the phase."""
    do: PhaseActions | None = setting(None, level="advanced")
    """What happens each time it starts."""
    note: str | None = setting(None, widget="text")
    """A note for readers."""

    @model_validator(mode="after")
    def _ends_one_way(self) -> Self:
        given = [name for name in ("steps", "epochs", "until") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(f"`{name}`" for name in given) or "none of them"
            raise problem(
                "conflict" if given else "missing_field",
                f"a phase needs exactly one of `steps`, `epochs`, `until`; found {found}",
                field=given[1] if given else "steps",
            )
        if self.max_steps is not None and self.steps is not None:
            raise problem("conflict", "does not go together with `steps`", field="max_steps")
        return self


class PhaseGroup(Section, title="group of phases"):
    """Phases that are repeated."""

    repeat: Whole = setting(1, ge=1)
    """How many times."""
    phases: "tuple[PhaseItem, ...]" = setting(min_length=1)
    """The phases of one round."""
    name: Name | None = setting(None)
    """Name of the group."""
    set: Overrides = setting(default_factory=dict, level="advanced", key_reference="path")
    """Values that apply during the group; a phase's own values take precedence."""
    do: PhaseActions | None = setting(None, level="advanced")
    """What happens at the start of each round."""
    note: str | None = setting(None, widget="text")
    """A note for readers."""


def _phase_shape(value: Any) -> str:
    if isinstance(value, PhaseGroup):
        return "<group>"
    grouped = isinstance(value, dict) and ("phases" in value or "repeat" in value)
    return "<group>" if grouped else "<phase>"


PhaseItem = Annotated[
    Annotated[Phase, Tag("<phase>")] | Annotated[PhaseGroup, Tag("<group>")],
    Discriminator(_phase_shape),
]
if not is_lean():
    PhaseGroup.model_rebuild()


class LearnRule(Section):
    """How often one learner is updated."""

    every: Whole = setting(1, ge=1, hot=True, unit="steps")
    """Steps between two updates."""
    after: Whole = setting(0, ge=0, hot=True, unit="steps")
    """Steps before the first update."""
    updates: Whole = setting(1, ge=1, hot=True)
    """How often the learn stage is repeated."""
    when: Literal["after_score", "before_score"] = setting("after_score", level="advanced")
    """Learn after or before its own scoring."""
    rows: Whole | None = setting(None, ge=1, hot=True, level="advanced", unit="rows")
    """Collect rows over several steps until there are this many; null: learn from the rows of each
    step."""


class Anneal(Section):
    """A value that changes over steps."""

    path: Text = setting(reference="path")
    """Path of the value."""
    from_: Number = setting(alias="from")
    """Initial value."""
    to: Number = setting()
    """Final value."""
    shape: Literal["linear", "cosine", "exponential", "step"] = setting("linear")
    """Shape of the change."""
    over: OneOrMany[Name] = setting((), widget="phase")
    """Phases during which it changes; empty: all."""
    steps: Whole | None = setting(None, ge=1)
    """Number of steps that the change takes; null: all steps of those phases."""
    complement: Text | None = setting(None, level="advanced", reference="path")
    """Another path that gets 1 - value."""
    cycle: Whole | None = setting(None, ge=1, level="advanced", unit="steps")
    """Restart after this many steps; null: never."""

    @model_validator(mode="after")
    def _can_move(self) -> Self:
        if self.shape == "exponential" and self.from_ * self.to <= 0:
            raise problem(
                "bad_value",
                "an exponential needs `from` and `to` of the same sign, not 0",
                field="shape",
            )
        return self


class When(Section):
    """A condition on a metric."""

    metric: MetricName = setting(choices="metrics", reference="metric")
    """`node.metric`, e.g. `probe.accuracy`."""
    above: Number | None = setting(None)
    """True if it is above this."""
    below: Number | None = setting(None)
    """True if it is below this."""
    falls_by: Number | None = setting(None, gt=0)
    """True if it is this far below its best reading."""
    rises_by: Number | None = setting(None, gt=0)
    """True if it is this far above its lowest reading."""
    for_: Whole = setting(1, ge=1, alias="for")
    """Number of consecutive readings that must be true."""

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        names = ("above", "below", "falls_by", "rises_by")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            raise problem(
                "conflict" if given else "missing_field",
                "set exactly one of `above`, `below`, `falls_by`, `rises_by`",
                field=given[1] if given else "above",
            )
        return self


class Trigger(Section):
    """Do something when a metric crosses a threshold: once, and again after the metric has been
    back."""

    when: When = setting()
    """The condition."""
    do: TriggerActions = setting()
    """What happens."""
    in_: OneOrMany[Name] = setting((), alias="in", widget="phase")
    """Only in these phases; empty: in all."""


class Schedule(Section):
    """What is trained when."""

    steps: Whole | None = setting(None, ge=1)
    """Without phases: steps of the run, in which every connected teaching port is trained."""
    epochs: Epochs | None = setting(None)
    """Without phases: passes over the source."""
    phases: tuple[PhaseItem, ...] = setting(())
    """The phases, in order."""
    fill: OneOrMany[NodeId] = setting((), level="advanced", widget="node")
    """Without phases: buffers that are filled."""
    max_staleness: Number = setting(0.0, ge=0, le=64, level="advanced")
    """How many versions of the weights a row may be behind; 0: synchronous. A fraction is the share
    of a step's rows that may be one version older than the whole number says."""
    stream: Flag = setting(False, level="expert")
    """Score complete groups while others are still being generated. Python rewards are then called
    once for each group; credit and learning wait for the whole table."""
    learn: dict[NodeId, LearnRule] = setting(
        default_factory=dict, level="advanced", key_reference="node"
    )
    """How often individual learners are updated."""
    order: tuple[NodeId, ...] = setting((), level="advanced", widget="node")
    """Order in which the roles of one weights group learn; empty: one joint update."""
    anneal: tuple[Anneal, ...] = setting((), level="advanced")
    """Values that change over steps."""
    triggers: tuple[Trigger, ...] = setting((), level="advanced")
    """What happens when a metric crosses a threshold."""

    @model_validator(mode="after")
    def _ends_one_way(self) -> Self:
        given = [name for name in ("steps", "epochs") if getattr(self, name) is not None]
        given = ["phases", *given] if self.phases else given
        if len(given) != 1:
            found = " and ".join(f"`{name}`" for name in given) or "none of them"
            raise problem(
                "conflict" if given else "missing_field",
                f"a schedule needs exactly one of `phases`, `steps`, `epochs`; found {found}",
                field=given[1] if given else "steps",
            )
        if self.phases and self.fill:
            raise problem("conflict", "if there are phases, set it in them", field="fill")
        return self

    def flat_phases(self) -> tuple[Phase, ...]:
        """Every phase once, groups expanded, in the order they are written."""
        return tuple(item for _, item in self.items() if isinstance(item, Phase))

    def items(self) -> Iterator[tuple[str, PhaseItem]]:
        """Phases and groups in the order they are written, each with its path."""
        return _items(self.phases, "schedule.phases")


def _items(items: tuple[Any, ...], path: str) -> Iterator[tuple[str, PhaseItem]]:
    for index, item in enumerate(items):
        yield f"{path}.{index}", item
        yield from _items(getattr(item, "phases", ()), f"{path}.{index}.phases")
