"""Controls of a finished run: what each kind changes, their runs over seeds, and the comparison.

run --derive--> arms (the loop itself, its control) x seeds --queue--> runs with `run.control`
runs with `run.control` of the run --curves--> means, spreads, who leads
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.orm import Session

from coloop.errors import ControlRefused
from coloop.explain.controls import (
    CONTROL_KINDS,
    MEANINGS,
    Arm,
    ArmLoop,
    Comparison,
    Control,
    ControlKind,
    Curve,
    arm_of,
    as_arm,
    beginning,
    controls_of,
    metric_in,
    roles_of,
    seeded,
)
from coloop.explain.controls.roles import Roles
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop_server import language
from coloop_server.database.tables import RunRow
from coloop_server.errors import Conflict, Invalid
from coloop_server.runs import repository, service
from coloop_server.runs.comparing import compare
from coloop_server.runs.outcomes import read_metric
from coloop_server.runs.schemas import (
    ControlArm,
    ControlChoice,
    ControlChoices,
    ControlVerdict,
    GroupRun,
    NewControl,
    NewRun,
    RunControls,
    RunReference,
)
from coloop_server.runs.supervisor import Supervisor
from coloop_server.settings import Settings

TAG = "control"
MAX_TAGS = 20
KEPT = 64


class Relation(NamedTuple):
    """What a run says of the run that it is compared with."""

    of: str
    kind: ControlKind
    learner: str | None
    seed: int


def choices_of(
    supervisor: Supervisor, settings: Settings, run_id: str, learner: str | None
) -> ControlChoices:
    """Every kind of control with what it changes, or why the run has none."""
    with supervisor.sessions() as session:
        text = service.text_of(session, run_id)
    spec = language.require_spec(text)
    roles = _roles(spec, learner)
    root = settings.roots.base_for(spec)
    return ControlChoices(
        learner=roles.main,
        learners=list(spec.graph.learners()),
        metric=roles.metric,
        choices=list(_choices(text, root, learner)),
    )


def _choices(text: str, root: Path, learner: str | None) -> Iterator[ControlChoice]:
    for kind, found in derived(text, root, learner):
        has = isinstance(found, ArmLoop)
        yield ControlChoice(
            kind=kind,
            title=MEANINGS[kind],
            has=has,
            says=found.says if isinstance(found, ArmLoop) else found,
            changes=compare(text, found.text) if isinstance(found, ArmLoop) else [],
        )


@lru_cache(maxsize=KEPT)
def derived(
    text: str, root: Path, learner: str | None
) -> tuple[tuple[ControlKind, ArmLoop | str], ...]:
    """By kind the control of a loop, or why there is none."""
    spec = language.require_spec(text)
    return tuple(
        (kind, as_arm(text, found) if isinstance(found, Control) else str(found))
        for kind, found in controls_of(spec, learner=learner, root=root)
    )


def start(supervisor: Supervisor, settings: Settings, run_id: str, new: NewControl) -> RunControls:
    """Queue the runs of a control, and of the whole loop, that are missing."""
    with supervisor.sessions() as session:
        source = repository.get_run(session, run_id)
        text = service.text_of(session, run_id)
        _require_finished(source)
        known = {
            (relation.kind, relation.seed)
            for relation, row in _related(session, run_id)
            if relation.learner == new.learner and _counts(row)
        }
    if new.kind not in CONTROL_KINDS:
        raise Invalid("control.refused", f"kind: one of {', '.join(CONTROL_KINDS)}")
    spec = language.require_spec(text)
    root = settings.roots.base_for(spec)
    control = dict(derived(text, root, new.learner))[new.kind]
    if not isinstance(control, ArmLoop):
        raise Invalid("control.refused", control)
    arms = [arm_of(text, "full", learner=new.learner), control] if new.full else [control]
    if control.metric is None:
        raise Invalid(
            "control.refused",
            "nothing measures the main learner; add an evaluation to the loop, or set `run.best`",
        )
    known.add(("full", spec.run.seed))
    for seed in range(spec.run.seed, spec.run.seed + new.seeds):
        for arm in arms:
            if (arm.kind, seed) not in known:
                _queue(supervisor, settings, source, arm, seed, new)
    return show(supervisor, run_id, new.learner)


def _queue(
    supervisor: Supervisor,
    settings: Settings,
    source: RunRow,
    arm: ArmLoop,
    seed: int,
    new: NewControl,
) -> None:
    asked = NewRun(
        yaml=seeded(arm, seed=seed, of=source.id, learner=new.learner),
        name=f"{source.name[:150]} ({arm.kind}, seed {seed})",
        tags=service.unique([*source.tags, TAG])[-MAX_TAGS:],
        loop_id=source.loop_id,
        force=new.force or source.forced,
        trust=new.trust,
        in_one_process=source.launcher == "process" and settings.ray_address is None,
    )
    service.create(supervisor, settings, asked)


def _require_finished(row: RunRow) -> None:
    if row.state != RunStateName.FINISHED:
        raise Conflict(
            "control.refused",
            f"the run is {row.state}; a control is compared with a finished run",
        )
    relation = relation_of(row.yaml)
    if relation is not None:
        raise Conflict(
            "control.refused",
            f"the run is itself a control ({relation.kind}) of {relation.of}; choose that run",
        )


def _counts(row: RunRow) -> bool:
    """Whether a run need not be started again."""
    state = RunStateName(row.state)
    return state == RunStateName.FINISHED or not state.is_final


@lru_cache(maxsize=1024)
def relation_of(text: str) -> Relation | None:
    spec = parse(text).spec
    if spec is None or spec.run.control is None:
        return None
    control = spec.run.control
    return Relation(control.of, control.kind, control.learner, spec.run.seed)


def _related(session: Session, run_id: str) -> list[tuple[Relation, RunRow]]:
    rows = repository.list_naming(session, run_id)
    found = ((relation_of(row.yaml), row) for row in rows)
    return [(one, row) for one, row in found if one is not None and one.of == run_id]


def references(session: Session, run_id: str) -> list[RunReference]:
    """The controls of a run, for its report."""
    return [
        RunReference(
            run=row.id, kind=relation.kind, seed=relation.seed, state=RunStateName(row.state)
        )
        for relation, row in _related(session, run_id)
        if relation.kind != "full"
    ]


def _roles(spec: LoopSpec, learner: str | None) -> Roles:
    try:
        return roles_of(spec, learner)
    except ControlRefused as refused:
        raise Invalid("control.refused", str(refused)) from None


def show(supervisor: Supervisor, run_id: str, learner: str | None) -> RunControls:
    """The arms of a run with their curves; means and spreads are of finished runs. No transaction
    is open while files are read."""
    with supervisor.sessions() as session:
        source = repository.get_run(session, run_id)
        text = service.text_of(session, run_id)
        related = _related(session, run_id)
    spec = language.require_spec(text)
    roles = _roles(spec, learner)
    rows: dict[ControlKind, list[tuple[int, RunRow]]] = {"full": [(spec.run.seed, source)]}
    for relation, row in related:
        if relation.learner == learner:
            rows.setdefault(relation.kind, []).append((relation.seed, row))
    arms, compared = [], []
    for kind in sorted(rows, key=lambda kind: ("full", *CONTROL_KINDS).index(kind)):
        runs = [
            read_group_run(supervisor, row, seed, *read_as(row.yaml, text, learner))
            for seed, row in rows[kind]
        ]
        runs.sort(key=lambda run: (run.seed, run.run))
        arm = Arm(kind=kind, curves=finished_curves(runs))
        compared.append(arm)
        arms.append(
            ControlArm(kind=kind, runs=runs, start=arm.start, end=arm.end, spread=arm.spread)
        )
    full, *others = compared
    return RunControls(
        run=run_id,
        learner=roles.main,
        metric=roles.metric,
        begins=beginning(roles, spec),
        arms=arms,
        comparisons=[_verdict(Comparison(full=full, control=arm)) for arm in others],
    )


def finished_curves(runs: Sequence[GroupRun]) -> tuple[Curve, ...]:
    """The curves of the finished runs with readings, from which means and spreads are taken."""
    return tuple(curve_in(run) for run in runs if run.state == RunStateName.FINISHED and run.values)


def curve_in(run: GroupRun) -> Curve:
    return Curve(
        seed=run.seed,
        run=run.run,
        steps=tuple(run.steps),
        values=tuple(run.values),
        begins_at=run.begins_at,
    )


def _verdict(found: Comparison) -> ControlVerdict:
    return ControlVerdict(kind=found.control.kind, difference=found.difference, leads=found.leads)


@lru_cache(maxsize=1024)
def read_as(text: str, base: str, learner: str | None) -> tuple[str | None, str | None]:
    """Metric and first phase of an arm: of the loop `text`, made from the loop `base`."""
    roles = roles_of(language.require_spec(base), learner)
    spec = parse(text).spec or roles.spec
    return metric_in(roles, spec), beginning(roles, spec)


def read_group_run(
    supervisor: Supervisor, row: RunRow, seed: int, metric: str | None, begins: str | None
) -> GroupRun:
    curve = _curve(supervisor, row.id, seed, metric, begins)
    return GroupRun(
        run=row.id,
        name=row.name,
        seed=seed,
        state=RunStateName(row.state),
        step=row.step,
        steps_total=row.steps_total,
        steps=list(curve.steps),
        values=list(curve.values),
        begins_at=curve.begins_at,
        start=curve.start,
        end=curve.end,
    )


def _curve(
    supervisor: Supervisor, run_id: str, seed: int, metric: str | None, begins: str | None
) -> Curve:
    readings = [] if metric is None else read_metric(supervisor, run_id, metric)
    watch = supervisor.open(run_id)
    places = watch.rare.upto(watch.log.last_seq)
    texts = watch.log.read_places([(place.start, place.size) for place in places])
    return Curve(
        seed=seed,
        run=run_id,
        steps=tuple(reading.step for reading in readings),
        values=tuple(reading.value for reading in readings),
        begins_at=_first_step(texts, begins),
    )


def _first_step(texts: Sequence[str], phase: str | None) -> int:
    """The step at which a phase first started; 0 if it has not."""
    events = (json.loads(text) for text in texts)
    steps = [
        int(event.get("step") or 0)
        for event in events
        if event["type"] == "phase" and event["state"] == "started" and event["phase"] == phase
    ]
    return min(steps, default=0)
