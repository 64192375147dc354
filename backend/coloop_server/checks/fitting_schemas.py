"""Requests and responses of the routes for fitting and placing."""

from typing import Any, Self

from pydantic import Field, model_validator

from coloop.plan.cost import Estimate
from coloop.plan.cost.ways import Touches, Usual
from coloop.spec.diagnostics import Change
from coloop.spec.training import Backend
from coloop_server.checks.schemas import LoopInput, PredictedTime
from coloop_server.schemas import Output

MAX_LOCKS = 500


class FitLoop(LoopInput):
    """A loop, and at most one of the two memory budgets; without one, the loop's own budget
    holds."""

    budget_gib: float | None = Field(default=None, gt=0, le=1e6, allow_inf_nan=False)
    """Memory of each GPU that may be used, in GiB."""
    budget_fraction: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    """Share of each GPU's memory that may be used, 0 to 1."""
    locks: list[str] | None = Field(default=None, max_length=MAX_LOCKS)
    """Paths of settings that must not change; null: those that the loop itself locks."""
    with_ways: bool = True
    """Whether to look for further ways to make the loop fit if no allowed change does."""

    @model_validator(mode="after")
    def one_budget(self) -> Self:
        if self.budget_gib is not None and self.budget_fraction is not None:
            raise ValueError("at most one budget is expected: in GiB, or as a share")
        return self


class FittedValue(Output):
    """A setting that gets another value."""

    path: str
    node: str | None
    """Node of the setting; null for settings of the loop itself."""
    title: str
    """Title of the setting in forms."""
    old: Any
    """Value in the loop; null: left to the compiler."""
    new: Any
    """New value; null: left to the compiler."""
    old_text: str
    """The value used before, as text for display: the loop's, or else the compiler's."""
    new_text: str
    """The value used now, as text for display: the loop's, or else the compiler's."""
    reason: str
    seconds: float | None
    """Seconds that the change adds to a step; null if they are counted in the entry before, or if
    nothing fits."""
    is_written: bool
    """Whether `edits` writes the value into the loop; if not, the compiler chooses it."""
    is_locked: bool
    """Whether the setting is one of the locks."""


class FitWay(Output):
    """A way to make the loop fit, independent of the others. If none makes it fit, one that comes
    closer."""

    touches: Touches
    """What the user has to accept: an unlocked setting, another budget, other hardware, or a change
    of what is learned."""
    title: str
    reason: str
    unlocks: list[str]
    """Paths of settings that it unlocks."""
    step_seconds: float | None
    """Estimated seconds per step; null if not known."""
    peak_bytes: int | None
    """Estimated memory of the fullest GPU with it; null if not known."""
    over_bytes: int
    """Bytes by which the fullest GPU still exceeds the budget; 0 if it fits."""
    refusal: str | None
    """Why a run would refuse the resulting loop; null if it would not."""
    edits: list[Change]
    """Edits of the given loop that apply it."""


class RuledOut(Output):
    """One of the usual ways to make a loop fit, where it does not."""

    usual: Usual
    title: str
    reason: str


class FitResult(Output):
    fits: bool
    over_bytes: int
    """Bytes by which the fullest GPU still exceeds the budget; 0 if none does."""
    verdict: str
    """The result in words, with the smallest budget that fits if further ways were looked for."""
    refusal: str | None
    """Why a run would refuse the fitted loop, apart from memory; null if it would not."""
    changes: list[FittedValue]
    edits: list[Change]
    """Edits that turn the given loop into the fitted one."""
    ways: list[FitWay]
    """Further ways to make it fit, smallest change first; empty if it fits."""
    ruled_out: list[RuledOut]
    """The usual ways that are not among them, with the reason; empty if it fits."""
    yaml: str | None
    """The fitted loop as text; null if the loop was given as data."""
    spec: dict[str, Any] | None
    """The fitted loop as data; null if the loop was given as data."""
    budget_fraction: float
    """Share of each GPU's memory that may be used, 0 to 1."""
    before: Estimate
    """Estimate for the given loop."""
    after: Estimate
    """Estimate for the fitted loop."""
    before_time: PredictedTime
    after_time: PredictedTime
    tried: int
    """Number of variants that were estimated."""


class PlacedPool(Output):
    pool: str
    gpus: int
    first: int
    """Index of its first GPU, counted over all pools."""
    nodes: list[str]
    """Nodes that own the weights held in the pool."""
    writers: list[str]
    """Nodes that generate in the pool."""


class Placed(Output):
    """A placement of the loop on its GPUs."""

    pools: list[PlacedPool] = Field(validation_alias="homes")
    step_seconds: float | None
    """Estimated seconds per step; null if it cannot run, or if a model is not known."""
    verbs: dict[str, float]
    """Seconds of a step by kind of work: `generate`, `learn`, `sync`, ..."""
    fits: bool
    peak_bytes: int | None
    """Estimated memory of the fullest GPU; null if not known."""
    over_bytes: int
    """Bytes by which the fullest GPU exceeds the budget; 0 if none does."""
    text: str
    """The placement in words."""


class BackendChoice(Output):
    """A training backend, and what a run would make of it."""

    backend: Backend
    step_seconds: float | None
    """Estimated seconds per step; null if a run would refuse the backend."""
    fits: bool
    problem: str | None
    """Why a run would refuse it; null if it would not."""


class BackendOfLearner(Output):
    """The training backend of a learner, and a recommended one."""

    node: str
    backend: Backend
    is_said: bool
    """Whether the loop names `backend`; if not, the compiler chose it."""
    advised: Backend
    """Recommended backend."""
    reason: str
    options: list[BackendChoice]


class PlaceResult(Output):
    yours: Placed
    """The placement of the given loop."""
    suggested: Placed | None
    """A faster placement; null if none was found."""
    edits: list[Change]
    """Edits that turn the given loop into the suggested one."""
    reason: str
    """Why it is suggested, or why nothing is."""
    tried: int
    """Number of placements that were estimated."""
    seconds: float
    """Duration of the search, in seconds."""
    backends: list[BackendOfLearner]
