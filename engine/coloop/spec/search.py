"""How a search grows trees or labels steps: the fields of the `search` kind."""

from typing import Literal, Self

from pydantic import model_validator

from coloop.spec.base import Count, Number, PlainOr, Section, Whole, problem, setting


class CompletionBand(Section):
    """How many completions below a pass rate."""

    below: Number = setting(gt=0, le=1)
    """Pass rates below this ..."""
    use: Whole = setting(ge=1)
    """... get this many completions."""


class CompletionsByRate(Section, title="by pass rate"):
    """More completions for harder problems."""

    by: Literal["pass_rate"]
    """By the pass rate of the whole problem."""
    bands: tuple[CompletionBand, ...] = setting(min_length=1)
    """Bands in ascending order."""


class RelativeProgress(Section, title="relative progress"):
    """A step is right if it keeps enough of the success probability."""

    relative_progress: Number = setting(gt=0, le=10)
    """Minimum ratio of the success probability after the step to that before it."""


class Select(Section):
    """Which branch is followed."""

    rule: Literal["puct", "omega", "greedy"] | None = setting(None)
    """How branches are compared; null: that of the method."""
    alpha: Number | None = setting(None, gt=0, le=1, level="expert")
    """OmegaPRM: factor on a prefix's value if its success probability is 0; 1: the probability has
    no effect; null: 0.5."""
    beta: Number | None = setting(None, gt=0, le=1, level="expert")
    """OmegaPRM: factor on a completion's value per `length` tokens; 1: the length has no effect;
    null: 0.9."""
    length: Whole | None = setting(None, ge=1, level="expert", unit="tokens")
    """OmegaPRM: number of tokens to which `beta` refers; null: 500."""
    c: Number | None = setting(None, ge=0, level="advanced", hot=True)
    """Weight of exploration; null: 0.125 for `omega`, 1.25 for `puct`."""


class Progressive(Section):
    """Let a node have c * visits^alpha branches."""

    c: Number = setting(1.0, gt=0)
    """Factor."""
    alpha: Number = setting(0.5, gt=0, le=1)
    """Exponent of the visits."""


class Expand(Section):
    """How branches are created."""

    samples: Whole = setting(4, ge=1, hot=True)
    """Steps or actions sampled at a node."""
    progressive: Progressive | None = setting(None, level="expert")
    """Add branches to a node as it is visited (progressive widening); null: all samples at once."""


class Budget(Section):
    """Hard limits of a search; at least one is required."""

    searches_per_row: Whole | None = setting(None, ge=1, hot=True)
    """Completions for one row; a binary search counts its searches, a tree its visits."""
    tokens: Whole | None = setting(None, ge=1, hot=True, unit="tokens")
    """Tokens generated in one step of the run; starts again in each pass of a filter's `fill`."""
    nodes: Whole | None = setting(None, ge=1, hot=True)
    """Nodes of one tree."""
    seconds: Number | None = setting(None, gt=0, hot=True, unit="seconds")
    """Time for one step of the run; starts again in each pass of a filter's `fill`. Results then
    depend on the machine; an alert reports this."""

    @model_validator(mode="after")
    def _has_limit(self) -> Self:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise problem("missing_field", "set at least one limit", field="tokens")
        return self


Completions = PlainOr[Count, CompletionsByRate]


StepLabels = PlainOr[Literal["soft", "hard"], RelativeProgress]
