"""The batch of a learner, broken down: prompts, completions, micro-batches, updates.

Each count is the previous one multiplied or divided by a number of the plan.
"""

from collections.abc import Iterator
from math import ceil
from typing import Literal

from coloop.plan.settings.resolver import Resolved
from coloop.plan.settings.settings import Planned
from coloop.plan.types import Learner, PhasePlan, Plan, Update
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import rollout_of, training_of
from coloop.spec.paths import apply_overrides


class BatchCount(Planned):
    """One count in the breakdown of a batch, e.g. 8 prompts × 4 = 32 completions."""

    name: str
    """What is counted: `prompts`, `completions`, `rows`, `micro-batches`, `updates`."""
    count: float
    """Number in one step."""
    sign: Literal["", "×", "÷"]
    """Whether the previous count is multiplied or divided by `by` to get this one; empty for the
    first count."""
    by: float
    """Factor or divisor; 1 for the first count."""
    of: str
    """What `by` counts, e.g. `completions a prompt`; empty for the first count."""


class BatchBreakdown(Planned):
    """How the batch of a learner is made up in one phase."""

    node: str
    """The node that learns."""
    phase: str
    """Name of the phase."""
    counts: tuple[BatchCount, ...]
    """In order, from loaded prompts or rows to optimizer steps (`updates`)."""
    is_exact: bool
    """Whether the counts are certain before the run."""
    note: str
    """Why the counts are uncertain; empty if they are exact."""


def batch_breakdowns(plan: Plan, spec: LoopSpec, resolved: Resolved) -> tuple[BatchBreakdown, ...]:
    """A breakdown of every learner in every phase, where its rows are known."""
    return tuple(
        breakdown
        for phase in plan.phases
        for update in phase.updates
        for learner in update.learners
        if (breakdown := _breakdown(plan, phase, update, learner, spec, resolved)) is not None
    )


def _breakdown(
    plan: Plan,
    phase: PhasePlan,
    update: Update,
    learner: Learner,
    spec: LoopSpec,
    resolved: Resolved,
) -> BatchBreakdown | None:
    rows = learner.kept_until or learner.rows.most
    if not rows:
        return None
    spec = apply_overrides(spec, dict(phase.overrides)) if phase.overrides else spec
    training = training_of(spec, update.group)
    counts = [*_rows(phase, learner, spec, rows)]
    notes = [*_uncertain(learner)]
    passes = training.epochs * learner.updates
    if passes > 1:
        counts.append(_times(counts[-1], "rows", passes, "passes over them"))
    batches = max(rows / min(training.mini_batch or rows, rows), 1.0) * passes
    micro, note = _micro_batches(plan, update, resolved, rows * passes / batches)
    if micro is not None:
        whole = micro * batches
        by = counts[-1].count / whole
        counts.append(_by(counts[-1], "micro-batches", by, "rows at once"))
        counts.append(_by(counts[-1], "updates", micro, "micro-batches an update"))
        notes += [note] if note else []
    else:
        by = counts[-1].count / batches
        counts.append(_by(counts[-1], "updates", by, "rows an update"))
    return BatchBreakdown(
        node=learner.node,
        phase=phase.name,
        counts=tuple(counts),
        is_exact=not notes,
        note="; ".join(notes),
    )


def _rows(phase: PhasePlan, learner: Learner, spec: LoopSpec, rows: int) -> Iterator[BatchCount]:
    """The counts up to the rows that are learned."""
    stage = f"{learner.node}.generate"
    written = next((counted.rows for counted in phase.rows if counted.stage == stage), None)
    rollout = rollout_of(spec, learner.node)
    if written is None or rollout is None or not written.most:
        yield BatchCount(name="rows", count=rows, sign="", by=1, of="")
        return
    each = rollout.completions_per_prompt + int(rollout.greedy_extra)
    of = "completions a prompt" + (", one of them greedy" if rollout.greedy_extra else "")
    prompts = BatchCount(name="prompts", count=written.most / each, sign="", by=1, of="")
    completions = _times(prompts, "completions", each, of)
    yield prompts
    yield completions
    if rows > written.most:
        yield _times(completions, "rows", rows / written.most, "rows a completion")
    elif rows < written.most:
        yield _by(completions, "rows", written.most / rows, "completions a row that is learned")


def _times(before: BatchCount, name: str, by: float, of: str) -> BatchCount:
    return BatchCount(name=name, count=before.count * by, sign="×", by=by, of=of)


def _by(before: BatchCount, name: str, by: float, of: str) -> BatchCount:
    return BatchCount(name=name, count=before.count / by, sign="÷", by=by, of=of)


def _uncertain(learner: Learner) -> Iterator[str]:
    if learner.kept_until is not None:
        yield f"rows are kept over steps until there are {learner.kept_until}"
    elif learner.rows.least < (learner.rows.most or 0):
        yield (
            f"{learner.rows.text} rows come: how many depends on what models generate and filters "
            "drop"
        )
    if learner.every > 1:
        yield f"in every {learner.every} steps"


def _micro_batches(
    plan: Plan, update: Update, resolved: Resolved, rows: float
) -> tuple[float | None, str]:
    """Micro-batches per optimizer step over all processes of the pool, or None if unknown, and what
    is uncertain about them."""
    sized = resolved.memory.updates.get(update.group)
    settings = resolved.updates.get(update.group)
    if sized is None or settings is None:
        return None, ""
    ranks = max(sized.weights.shards, 1)
    at_once = sized.rows_at_once
    count = ceil(ceil(rows / ranks) / at_once) * min(ranks, ceil(rows))
    where = "" if ranks == 1 else f" on each of {ranks} places"
    if settings.micro_batch is not None:
        return float(count), ""
    tokens = settings.tokens_at_once
    note = f"micro-batches are filled up to {tokens:,} tokens{where}: fewer if texts are short"
    return float(count), note
