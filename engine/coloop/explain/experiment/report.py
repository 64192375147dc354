"""The report of a run as an experiment, built from its record, its loop and related runs.

result       each metric of each evaluation: first, best and last reading, with the standard
             error of a share of rows
seeds        mean and spread of the main metric over runs of the same loop with other seeds
controls     arms that leave a part out, and whether the loop leads them
time, cost   seconds by phase and stage; GPU-hours and their price
checkpoints  the best one and those that are kept
next         what follows from all this
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any, Literal

from coloop.errors import ControlRefused
from coloop.explain.controls import MEANINGS, Arm, Comparison, ControlKind, roles_of
from coloop.explain.experiment.record import Key, RaisedAlert, RunRecord
from coloop.spec import presets
from coloop.spec.graph import LoopSpec
from coloop.spec.metrics import described, metric_of

SAMPLES = 3
"""Good and bad samples that are shown."""
STAGES = 8
"""Stages that are listed; the others are one line."""
STILL_RISING = 0.1
"""TimeShare of the whole rise that the last quarter of the readings must have brought for a run to
count as still rising."""
SHARES = ("accuracy", "agreement", "precision", "recall", "kept", "pass@", "best_of", "majority")
"""Metrics that are shares of rows, whose standard error is that of a binomial share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    step: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """One metric of one evaluation over the run."""

    metric: str
    """`node.metric`."""
    title: str
    better: Literal["higher", "lower"]
    is_main: bool
    """Whether it is the metric by which runs of the loop are compared."""
    start: Reading
    best: Reading
    end: Reading
    rows: int | None
    """Rows of the evaluation; None if not known."""
    error: float | None
    """Standard error of the last reading from the number of rows; None if it is no share."""
    values: tuple[Reading, ...]
    """All readings, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedRun:
    """A finished run of the same loop."""

    run: str
    seed: int
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSpread:
    """The last reading of the main metric over runs that differ by their seed only."""

    runs: tuple[SeedRun, ...]
    mean: float
    spread: float | None
    """ScoredText standard deviation; None for one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlResult:
    kind: ControlKind
    title: str
    runs: int
    end: float | None
    spread: float | None
    difference: float | None
    """Mean last reading of the loop minus that of the control."""
    leads: bool | None
    """Whether the difference is larger than the spread of either; None with fewer than two seeds
    in one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShare:
    """Time of one phase or stage."""

    name: str
    seconds: float
    share: float
    """Of the time of the run for a phase, of the work of all stages for a stage."""
    steps: int | None = None
    is_evaluation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTime:
    started_at: str | None
    ended_at: str | None
    seconds: float
    """Time from start to end, without the queue and breaks between attempts."""
    attempts: int
    steps: int
    phases: tuple[TimeShare, ...]
    stages: tuple[TimeShare, ...]
    """Longest first. Stages of different pools run at the same time."""
    written_tokens: int
    """Tokens that models generated in steps."""
    learned_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    hardware: str
    gpus: int
    """0: the run used processors only."""
    hours: float
    """GPU-hours; with `gpus` 0, hours of the machine."""
    hourly_price: float | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCheckpoints:
    best: int | None
    """Step of the best checkpoint; None if none was marked."""
    best_values: Mapping[str, float]
    kept: tuple[int, ...]
    """Steps of complete checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredText:
    step: int
    node: str
    prompt: str
    completion: str
    target: str | None
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedValue:
    """What was predicted of the whole run's main phase, and what was measured."""

    what: str
    predicted: float
    measured: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """One thing to do next."""

    action: Literal["fix", "alert", "continue", "checkpoint", "control", "seeds"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    run: str
    loop: str
    description: str | None
    state: str
    error: str | None
    hint: str | None
    seed: int
    parent: str | None
    """Id of the run from whose checkpoint it started."""
    changes: tuple[str, ...]
    """Differences from the loop of the parent, and changes while it ran, in words."""
    control: str | None
    """The kind of control, if the run is one."""
    results: tuple[ProbeResult, ...]
    """The main metric first."""
    seeds: SeedSpread | None
    controls: tuple[ControlResult, ...]
    duration: RunTime
    spent: RunCost
    checkpoints: KeptCheckpoints
    alerts: tuple[RaisedAlert, ...]
    """Those that still hold first."""
    good: tuple[ScoredText, ...]
    bad: tuple[ScoredText, ...]
    predictions: tuple[PredictedValue, ...]
    bottleneck: str | None
    next: tuple[NextStep, ...]
    command: str
    """Shell command that runs the loop again, from the run folder."""

    @property
    def main(self) -> ProbeResult | None:
        return next((result for result in self.results if result.is_main), None)


def experiment_of(
    run: str,
    spec: LoopSpec,
    record: RunRecord,
    *,
    report: Mapping[str, Any],
    rows: Callable[[str], Sequence[Mapping[str, Any]]],
    kept: Sequence[int] = (),
    siblings: Sequence[SeedRun] = (),
    arms: Sequence[Arm] = (),
    parent: str | None = None,
    changes: Sequence[str] = (),
) -> Experiment:
    """The report of one run.

    Args:
        run: Id of the run.
        spec: The loop with which the run was started.
        record: What its events say.
        report: What `report.json` of the run holds; empty if there is none.
        rows: Reads the rows of a file of samples.
        kept: Steps of complete checkpoints.
        siblings: Finished runs of the same loop with other seeds.
        arms: The whole loop first, then its controls, with the curves of finished runs.
        parent: The run from whose checkpoint it started.
        changes: Differences from the parent's loop, in words.
    """
    results = results_of(spec, record)
    main = next((result for result in results if result.is_main), None)
    good, bad = _samples(rows, record)
    duration = _duration(spec, record)
    controls = tuple(_controls(arms))
    seeds = _seeds(run, spec, main, siblings)
    alerts = sorted(record.alerts.values(), key=lambda one: (one.cleared, one.level != "error"))
    measured = report.get("measured") or {}
    found = Experiment(
        run=run,
        loop=spec.name,
        description=spec.description,
        state=record.state,
        error=(record.error or {}).get("message"),
        hint=(record.error or {}).get("hint"),
        seed=spec.run.seed,
        parent=parent,
        changes=(*changes, *_edits(record)),
        control=None if spec.run.control is None else MEANINGS[spec.run.control.kind],
        results=results,
        seeds=seeds,
        controls=controls,
        duration=duration,
        spent=_spent(spec, record.seconds),
        checkpoints=_checkpoints(record, kept),
        alerts=tuple(alerts),
        good=good,
        bad=bad,
        predictions=tuple(_predictions(report)),
        bottleneck=measured.get("bottleneck"),
        next=(),
        command=f"coloop run {run}/spec.yaml",
    )
    return replace(found, next=tuple(_next(found)))


def main_metric(spec: LoopSpec) -> str | None:
    """`node.metric` by which runs of a loop are compared; None if nothing measures it."""
    try:
        return roles_of(spec).metric
    except ControlRefused:
        return spec.run.best


def results_of(spec: LoopSpec, record: RunRecord) -> tuple[ProbeResult, ...]:
    """Every metric of every evaluation, the main one first."""
    main = main_metric(spec)
    found = [
        _result(key, readings, record, is_main=".".join(key) == main)
        for key, readings in record.readings.items()
        if readings
    ]
    return tuple(sorted(found, key=lambda one: not one.is_main))


def _result(
    key: Key, readings: Mapping[int, float], record: RunRecord, *, is_main: bool
) -> ProbeResult:
    node, metric = key
    values = tuple(Reading(step=step, value=readings[step]) for step in sorted(readings))
    title, better = about_metric(metric)
    pick = min if better == "lower" else max
    rows = record.rows.get(node)
    end = values[-1]
    return ProbeResult(
        metric=f"{node}.{metric}",
        title=title,
        better=better,
        is_main=is_main,
        start=values[0],
        best=pick(values, key=lambda reading: reading.value),
        end=end,
        rows=rows,
        error=_standard_error(metric, end.value, rows),
        values=values,
    )


def about_metric(metric: str) -> tuple[str, Literal["higher", "lower"]]:
    """Title and direction of a metric of an evaluation, with or without its scorer's name."""
    scorer, _, name = metric.rpartition(".")
    about = metric_of(name) or described(metric)
    if about is None:
        return metric, "higher"
    title = f"{about.title} ({scorer})" if scorer else about.title
    return title, "lower" if about.better == "lower" else "higher"


def _standard_error(metric: str, value: float, rows: int | None) -> float | None:
    name = metric.rpartition(".")[2]
    if not rows or not 0.0 <= value <= 1.0 or not name.startswith(SHARES):
        return None
    return math.sqrt(value * (1.0 - value) / rows)


def _seeds(
    run: str, spec: LoopSpec, main: ProbeResult | None, siblings: Sequence[SeedRun]
) -> SeedSpread | None:
    if main is None:
        return None
    own = SeedRun(run=run, seed=spec.run.seed, end=main.end.value)
    runs = {own.seed: own, **{one.seed: one for one in siblings if one.seed != own.seed}}
    ends = [one.end for one in runs.values()]
    return SeedSpread(
        runs=tuple(runs[seed] for seed in sorted(runs)),
        mean=fmean(ends),
        spread=stdev(ends) if len(ends) > 1 else None,
    )


def _controls(arms: Sequence[Arm]) -> Iterator[ControlResult]:
    if not arms:
        return
    full, *others = arms
    for arm in others:
        compared = Comparison(full=full, control=arm)
        yield ControlResult(
            kind=arm.kind,
            title=MEANINGS[arm.kind],
            runs=len(arm.curves),
            end=arm.end,
            spread=arm.spread,
            difference=compared.difference,
            leads=compared.leads,
        )


def _duration(spec: LoopSpec, record: RunRecord) -> RunTime:
    whole = record.seconds or 1.0
    work = sum(stage.seconds for stage in record.stages.values()) or 1.0
    stages = sorted(record.stages.items(), key=lambda item: -item[1].seconds)
    shown = [
        TimeShare(
            name=name,
            seconds=stage.seconds,
            share=stage.seconds / work,
            is_evaluation=stage.is_evaluation,
        )
        for name, stage in stages
        if stage.seconds / work >= 0.001
    ]
    return RunTime(
        started_at=record.started_at,
        ended_at=record.ended_at,
        seconds=record.seconds,
        attempts=record.attempts,
        steps=record.step,
        phases=tuple(
            TimeShare(
                name=phase.name,
                seconds=phase.seconds,
                share=phase.seconds / whole,
                steps=phase.last_step - phase.first_step,
            )
            for phase in record.phases
        ),
        stages=tuple(shown[:STAGES]),
        written_tokens=_tokens(record, "generate"),
        learned_tokens=_tokens(record, "learn"),
    )


def _tokens(record: RunRecord, verb: str) -> int:
    return sum(
        stage.tokens for name, stage in record.stages.items() if name.rpartition(".")[2] == verb
    )


def _spent(spec: LoopSpec, seconds: float) -> RunCost:
    hardware = presets.hardware_of(spec.hardware)
    hours = seconds * max(hardware.gpus, 1) / 3600
    price = spec.hardware.price_per_gpu_hour if hardware.gpus else None
    return RunCost(
        hardware=hardware.name,
        gpus=hardware.gpus,
        hours=hours,
        hourly_price=price,
        cost=None if price is None else hours * price,
    )


def _checkpoints(record: RunRecord, kept: Sequence[int]) -> KeptCheckpoints:
    best = record.best or {}
    return KeptCheckpoints(
        best=best.get("step"),
        best_values={
            name: value
            for name, value in (best.get("metrics") or {}).items()
            if isinstance(value, int | float)
        },
        kept=tuple(sorted(kept)),
    )


def _edits(record: RunRecord) -> Iterator[str]:
    for step, changes in record.edits:
        for path, value in changes.items():
            yield f"{path}: set to {json.dumps(value, ensure_ascii=False)} at step {step or 0}"


def _samples(
    rows: Callable[[str], Sequence[Mapping[str, Any]]], record: RunRecord
) -> tuple[tuple[ScoredText, ...], tuple[ScoredText, ...]]:
    """Texts with the best and the worst scores of the last step with samples whose scores differ,
    one of each prompt."""
    for step, path in reversed(record.samples[-20:]):
        samples = [sample for row in rows(path) if (sample := _sample(step, row))]
        scores = {sample.score for sample in samples}
        if len(scores) > 1:
            ordered = sorted(samples, key=lambda sample: -sample.score)
            middle = (min(scores) + max(scores)) / 2
            good = _different([sample for sample in ordered if sample.score > middle])
            bad = _different([sample for sample in reversed(ordered) if sample.score <= middle])
            return good, bad
    return (), ()


def _different(samples: Sequence[ScoredText]) -> tuple[ScoredText, ...]:
    by_prompt = {(sample.node, sample.prompt): sample for sample in reversed(samples)}
    return tuple(reversed(by_prompt.values()))[:SAMPLES]


def _sample(step: int, row: Mapping[str, Any]) -> ScoredText | None:
    scores = [v for v in (row.get("scores") or {}).values() if isinstance(v, int | float)]
    score = row.get("reward") if isinstance(row.get("reward"), int | float) else None
    score = fmean(scores) if score is None and scores else score
    if score is None or not isinstance(row.get("completion"), str):
        return None
    return ScoredText(
        step=step,
        node=str(row.get("node") or ""),
        prompt=_text(row.get("prompt")),
        completion=row["completion"],
        target=None if row.get("target") is None else _text(row["target"]),
        score=float(score),
    )


def _text(value: Any) -> str:
    """A prompt as text; of a chat, the last message."""
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        return str(value[-1].get("content") or "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _predictions(report: Mapping[str, Any]) -> Iterator[PredictedValue]:
    predicted, measured = report.get("predicted") or {}, report.get("measured") or {}
    phase = report.get("phase")
    pairs = [
        (
            f"seconds per step of {phase}",
            predicted.get("step_seconds"),
            measured.get("step_seconds"),
        ),
        *(
            (f"memory of {name}, bytes", value, (measured.get("memory_bytes") or {}).get(name))
            for name, value in (predicted.get("memory_bytes") or {}).items()
        ),
    ]
    for what, before, after in pairs:
        if isinstance(before, int | float) and isinstance(after, int | float):
            yield PredictedValue(what=what, predicted=float(before), measured=float(after))


def _next(found: Experiment) -> Iterator[NextStep]:
    """What follows from the report, the most urgent first."""
    main = found.main
    if found.state == "failed":
        hint = f" {found.hint}" if found.hint else ""
        yield NextStep(action="fix", text=f"Mend what ended the run, and resume it.{hint}")
    for alert in found.alerts:
        if not alert.cleared and alert.hint:
            where = f"{alert.node}: " if alert.node else ""
            yield NextStep(action="alert", text=f"{where}{alert.hint}")
    if main is None:
        yield NextStep(
            action="fix",
            text="Add an evaluation with rows of its own: nothing measures this loop.",
        )
        return
    if main.best.step != main.end.step and _is_worse(main):
        yield NextStep(
            action="checkpoint",
            text=f"Use the checkpoint of step {main.best.step}: {main.metric} was "
            f"{main.best.value:.3f} there and {main.end.value:.3f} at the end.",
        )
    elif found.state == "finished" and is_still_rising(main):
        yield NextStep(
            action="continue",
            text=f"{main.metric} was still rising at the end: give the last phase more steps.",
        )
    if found.control is None and found.state == "finished":
        if not found.controls:
            yield NextStep(
                action="control",
                text="Run a control: nothing shows yet which part of the loop made the difference.",
            )
        elif found.seeds is not None and len(found.seeds.runs) < 3:
            yield NextStep(action="seeds", text="Run more seeds: fewer than three say little.")


def is_still_rising(result: ProbeResult) -> bool:
    """Whether the last quarter of the readings brought a good part of the whole gain."""
    values = [reading.value for reading in result.values]
    if len(values) < 8:
        return False
    sign = -1.0 if result.better == "lower" else 1.0
    earlier = fmean(values[len(values) // 2 : -len(values) // 4])
    late = fmean(values[-len(values) // 4 :])
    whole = sign * (result.end.value - result.start.value)
    return whole > 0 and sign * (late - earlier) > STILL_RISING * whole


def _is_worse(result: ProbeResult) -> bool:
    """Whether the last reading is behind the best one by more than two standard errors; of a metric
    without a known error, the last tenth of the run says nothing."""
    if result.error is None:
        return False
    return abs(result.best.value - result.end.value) > 2 * result.error
