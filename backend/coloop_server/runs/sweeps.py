"""Sweeps: runs of a loop with several values of some settings, over seeds, as one group.

loop --values x seeds--> runs with `run.sweep` in the queue
runs with `run.sweep` of one name --curves--> means, spreads, who leads --> stop the losers
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from coloop.errors import SpecProblem
from coloop.explain.experiment import about_metric
from coloop.explain.sweeps import Standing, Sweep, Trial, labels_of, stand, sweep_of, values_of
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop_server import language
from coloop_server.database.tables import RunRow
from coloop_server.errors import Conflict, NotFound
from coloop_server.runs import repository, service
from coloop_server.runs.controls import curve_in, finished_curves, read_group_run
from coloop_server.runs.outcomes import metric_of_text
from coloop_server.runs.schemas import (
    GroupRun,
    NewRun,
    NewSweep,
    RunSweep,
    SweepOutline,
    SweepVariant,
)
from coloop_server.runs.supervisor import Supervisor
from coloop_server.settings import Settings

TAG = "sweep"
MARK = "sweep:"
"""What the text of every loop of a sweep contains."""


@dataclass(frozen=True, slots=True)
class Member:
    """A run of a sweep."""

    row: RunRow
    spec: LoopSpec
    fields: tuple[str, ...]
    values: Mapping[str, Any]

    @property
    def key(self) -> str:
        return repr(sorted(self.values.items()))


def start(supervisor: Supervisor, settings: Settings, new: NewSweep) -> RunSweep:
    """Queue the runs of a sweep that are missing. None is queued if one of them cannot run."""
    sweep = _planned(new)
    for variant in sweep.variants:
        language.require_own_code(variant.text, settings, is_confirmed=new.trust)
        language.require_runnable(variant.text, force=new.force, roots=settings.roots)
    with supervisor.sessions() as session:
        known = {
            (member.key, member.spec.run.seed)
            for member in _members(repository.list_naming(session, sweep.of), sweep.of)
            if _counts(member.row)
        }
    for variant, seed in sweep.runs():
        text = sweep.text_of(variant, seed)
        spec = language.require_spec(text)
        key = repr(sorted(values_of(spec, sweep.fields).items()))
        if (key, seed) not in known:
            asked = NewRun(
                yaml=text,
                name=f"{(new.name or spec.name)[:100]} ({variant.label[:80]}, seed {seed})",
                tags=service.unique([*new.tags, TAG]),
                loop_id=new.loop_id,
                force=new.force,
                trust=new.trust,
                in_one_process=new.in_one_process,
            )
            service.create(supervisor, settings, asked)
    return show(supervisor, sweep.of)


def _planned(new: NewSweep) -> Sweep:
    language.require_spec(new.yaml)
    try:
        return sweep_of(new.yaml, new.tried, seeds=new.seeds)
    except SpecProblem as problem:
        raise language.invalid("a value does not fit", problem.diagnostics) from problem


def _counts(row: RunRow) -> bool:
    """Whether a run need not be started again."""
    state = RunStateName(row.state)
    return state == RunStateName.FINISHED or not state.is_final


def _members(rows: Iterable[RunRow], of: str | None = None) -> list[Member]:
    found = []
    for row in rows:
        spec = parse(row.yaml).spec
        sweep = None if spec is None else spec.run.sweep
        if spec is not None and sweep is not None and of in (None, sweep.of):
            found.append(Member(row, spec, sweep.fields, values_of(spec, sweep.fields)))
    return found


def list_sweeps(session: Session) -> list[SweepOutline]:
    """Those of the newest runs, the newest first."""
    by_name: dict[str, list[Member]] = {}
    for member in _members(repository.list_containing(session, MARK)):
        assert member.spec.run.sweep is not None
        by_name.setdefault(member.spec.run.sweep.of, []).append(member)
    return [
        SweepOutline(
            sweep=name,
            loop=members[0].spec.name,
            fields=list(members[0].fields),
            runs=len(members),
            going_on=sum(not RunStateName(one.row.state).is_final for one in members),
            created_at=members[0].row.created_at,
        )
        for name, members in by_name.items()
    ]


def show(supervisor: Supervisor, of: str) -> RunSweep:
    """A sweep with its curves. No transaction is open while files are read."""
    with supervisor.sessions() as session:
        members = _members(repository.list_naming(session, of), of)
        session.expunge_all()
    if not members:
        raise NotFound("sweep.not_found", f"there is no sweep {of!r}")
    first = members[0]
    metric = metric_of_text(first.row.yaml)
    title, better = about_metric(metric.partition(".")[2] if metric else "")
    groups: dict[str, list[Member]] = {}
    for member in members:
        groups.setdefault(member.key, []).append(member)
    values = [dict(group[0].values) for group in groups.values()]
    runs = [_runs(supervisor, group, metric) for group in groups.values()]
    standing = stand(_trials(values, runs), len(runs), better)
    places = {place: rank for rank, place in enumerate(standing.best, start=1)}
    labels = labels_of(first.fields, values)
    return RunSweep(
        sweep=of,
        loop=first.spec.name,
        metric=metric,
        title=title if metric else "",
        better=better,
        fields=list(first.fields),
        step=standing.step,
        variants=[
            _variant(values[place], labels[place], runs[place], standing, places.get(place))
            for place in range(len(values))
        ],
    )


def _runs(supervisor: Supervisor, members: Sequence[Member], metric: str | None) -> list[GroupRun]:
    runs = [
        read_group_run(supervisor, member.row, member.spec.run.seed, metric, None)
        for member in members
    ]
    return sorted(runs, key=lambda run: (run.seed, run.run))


def _trials(values: Sequence[Mapping[str, Any]], runs: Sequence[Sequence[GroupRun]]) -> list[Trial]:
    return [
        Trial(values=one, curves=tuple(curve_in(run) for run in group if run.values))
        for one, group in zip(values, runs, strict=True)
    ]


def _variant(
    values: dict[str, Any],
    label: str,
    runs: list[GroupRun],
    standing: Standing,
    rank: int | None,
) -> SweepVariant:
    finished = Trial(values=values, curves=finished_curves(runs))
    begun = Trial(values=values, curves=tuple(curve_in(run) for run in runs if run.values))
    return SweepVariant(
        values=values,
        label=label,
        runs=runs,
        start=finished.start,
        end=finished.end,
        spread=finished.spread,
        so_far=begun.at(standing.step),
        rank=rank,
    )


def stop_losers(supervisor: Supervisor, of: str, keep: int) -> RunSweep:
    """Stop all runs of the combinations that are behind the `keep` best. Those without a reading
    go on."""
    found = show(supervisor, of)
    trials = _trials(
        [variant.values for variant in found.variants],
        [variant.runs for variant in found.variants],
    )
    standing = stand(trials, keep, found.better)
    losing = [run for place in standing.losers for run in found.variants[place].runs]
    going_on = [run.run for run in losing if not run.state.is_final]
    if not going_on:
        raise Conflict(
            "sweep.no_losers",
            "no combination has a reading yet; wait for the first evaluation"
            if standing.step is None
            else f"no run of a combination behind the best {keep} is in progress or queued",
        )
    with supervisor.sessions.begin() as session:
        supervisor.wake_after(session)
        stopped = [run_id for run_id in going_on if _stop(session, run_id)]
    for run_id in stopped:
        supervisor.ask_stop(run_id, at_once=False)
    return show(supervisor, of)


def _stop(session: Session, run_id: str) -> bool:
    try:
        service.stop(session, run_id)
    except Conflict:  # it has just ended
        return False
    return True
