"""Requests and responses of the routes for fitting and placing."""

from typing import Any, Self

from pydantic import Field, model_validator

from coloop.plan.cost import Estimate
from coloop.plan.cost.ways import Touches
from coloop.spec.diagnostics import Change
from coloop.spec.training import Backend
from coloop_server.checks.schemas import LoopInput, PredictedTime
from coloop_server.schemas import Output

MAX_LOCKS = 500


class FitLoop(LoopInput):
    """The loop, and at most one of the two budgets; without one the loop's own counts."""

    budget_gib: float | None = Field(default=None, gt=0, le=1e6, allow_inf_nan=False)
    """GiB of each GPU that may be used."""
    budget_fraction: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    """Share of each GPU that may be used."""
    locks: list[str] | None = Field(default=None, max_length=MAX_LOCKS)
    """Paths of settings that stay as they are; null: those that the loop itself locks."""
    with_ways: bool = True
    """Whether to look for what would make it fit where nothing else does."""

    @model_validator(mode="after")
    def one_budget(self) -> Self:
        if self.budget_gib is not None and self.budget_fraction is not None:
            raise ValueError("at most one budget is expected: in GiB, or as a share")
        return self


class FittedValue(Output):
    path: str
    node: str | None
    """Whose setting it is; None: the loop's."""
    title: str
    old: Any
    """As the loop says; None: left open."""
    new: Any
    old_text: str
    """What runs before, to be shown: as said, else as chosen."""
    new_text: str
    reason: str
    seconds: float | None
    """What it adds to a step; None: counted together with the one above, or nothing fits."""
    is_written: bool
    """Whether the loop will say it; else the compiler chooses it anew and nothing is written."""
    is_locked: bool


class FitWay(Output):
    """One way to make a loop fit, each by itself; where none does, one that comes closer."""

    touches: Touches
    """What it asks of a person: a lock, the budget, other hardware, or to learn otherwise."""
    title: str
    reason: str
    unlocks: list[str]
    step_seconds: float | None
    """None: it does not fit yet."""
    over_bytes: int
    """By how much the worst GPU is still over with it; 0: it fits."""
    refusal: str | None
    """Why a run would not take what it leads to; None: it would."""
    edits: list[Change]
    """What makes it of the loop as it is."""


class FitResult(Output):
    fits: bool
    over_bytes: int
    """By how much the worst GPU is still over."""
    verdict: str
    """In a sentence; the least budget that fits where ways were looked for."""
    refusal: str | None
    """Why a run would not take the answer, whatever its memory; None: it would."""
    changes: list[FittedValue]
    edits: list[Change]
    """What makes the fitted loop of the loop as it is."""
    ways: list[FitWay]
    """The least first, where nothing that is free makes it fit."""
    yaml: str | None
    """The text with the changes, where a text was given."""
    spec: dict[str, Any] | None
    """The same as data."""
    budget_fraction: float
    """Share of each GPU that was asked for."""
    before: Estimate
    after: Estimate
    before_time: PredictedTime
    after_time: PredictedTime
    tried: int
    """Variants that were priced."""


class PlacedPool(Output):
    pool: str
    gpus: int
    first: int
    """Its first GPU, counted over all pools."""
    nodes: list[str]
    """Owners of the weights that are held there."""
    writers: list[str]
    """Nodes that write there."""


class Placed(Output):
    pools: list[PlacedPool] = Field(validation_alias="homes")
    step_seconds: float | None
    """None: it cannot run as it is, or a model is not known."""
    verbs: dict[str, float]
    """Seconds of a step by what is done."""
    fits: bool
    over_bytes: int
    text: str


class BackendChoice(Output):
    backend: Backend
    step_seconds: float | None
    """None where a run would not take it."""
    fits: bool
    problem: str | None
    """Why a run would not take it."""


class BackendOfLearner(Output):
    node: str
    backend: Backend
    is_said: bool
    """Whether the loop says it."""
    advised: Backend
    reason: str
    options: list[BackendChoice]


class PlaceResult(Output):
    yours: Placed
    suggested: Placed | None
    """None where nothing faster was found."""
    edits: list[Change]
    """What makes the suggestion of the loop as it is."""
    reason: str
    tried: int
    """Placements that were priced."""
    seconds: float
    """How long that took."""
    backends: list[BackendOfLearner]
