"""From a spec to a session and through it: folder, plan, cluster, roles, loop, and an orderly end
whatever happens. The only place that knows all parts."""

import logging
import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from coloop.cluster import Cluster, Deadlines
from coloop.cluster.local import LocalCluster
from coloop.diagnostics import Diagnostic
from coloop.errors import (
    ColoopError,
    PlanRefused,
    RunFolderExists,
    RunNotFound,
    StageStalled,
    StopRequested,
    StorageFull,
    UserCodeError,
    WorkerDied,
)
from coloop.events import AlertEvent, DiagnosticEvent, RunError, RunStateEvent, RunStateName
from coloop.hosts.deliveries import Deliveries
from coloop.hosts.host import HostSettings
from coloop.hosts.messages import Poll
from coloop.hosts.stub import ClusterHosts
from coloop.plan.compile import Compiler, compile_plan
from coloop.plan.runnable import check_runs
from coloop.plan.types import Plan, WeightsPlan
from coloop.roles import build_group_roles, build_roles
from coloop.roles.evaluate import EvaluateRole
from coloop.roles.protocol import Context, Role
from coloop.run_ids import new_run_id
from coloop.run_log import LOG_FILE, log_into
from coloop.runtime import collecting
from coloop.runtime.actions import Actions, early_copies
from coloop.runtime.calls import Calls
from coloop.runtime.checkpoint import Checkpoints, list_checkpoints
from coloop.runtime.control import Control
from coloop.runtime.fields import Fields
from coloop.runtime.lanes import Lanes, ThreadLanes
from coloop.runtime.loop import run_loop
from coloop.runtime.moments import Moments
from coloop.runtime.notices import Notices
from coloop.runtime.origin import ORIGIN_FILE, write_origin
from coloop.runtime.phase_stages import PhaseStages
from coloop.runtime.probes import Probes
from coloop.runtime.recorder import Recorder, Sink
from coloop.runtime.recovery import REPLACED, Recovery
from coloop.runtime.report import write_report
from coloop.runtime.samples import Samples
from coloop.runtime.scheduler import Scheduler, Watcher
from coloop.runtime.session import Parts, Session
from coloop.runtime.sources import RunSources
from coloop.runtime.storage import Storage, is_address
from coloop.runtime.timeline import Timeline, entries_of
from coloop.runtime.triggers import TriggerWatch
from coloop.runtime.window import Window
from coloop.sizing.machine import threads_for_pools
from coloop.spec.graph import LoopSpec
from coloop.spec.lineage import Lineages
from coloop.spec.model import CopyModel, RefreshEvery, SnapshotModel
from coloop.spec.nodes import model_of
from coloop.sync.folders import SHARED_MEMORY, TransferFolders

logger = logging.getLogger(__name__)

SPEC_FILE = "spec.yaml"
PLAN_FILE = "plan.json"
CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What to run, and where."""

    spec: LoopSpec
    text: str
    """The loop as it was given; kept in the run folder."""
    root: Path
    """Folder from which relative paths in the spec are read."""
    runs_dir: Path
    run_id: str | None = None
    resume: Path | None = None
    """The folder of a run to go on with."""
    cluster: Literal["local", "ray"] = "ray"
    address: str | None = None
    """Ray: connect to this cluster; None: one of our own for this run."""
    sinks: Sequence[Sink] = ()
    warnings: Sequence[Diagnostic] = ()
    threads: int | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run ended."""

    state: RunStateName
    folder: Path
    error: RunError | None = None


def run(request: RunRequest) -> RunResult:
    """Run a loop to its end.

    Raises:
        PlanRefused: nothing was started, the loop does not run yet.
        RunFolderExists, RunNotFound: nothing was started.
    """
    threads = request.threads or threads_for_pools(os.cpu_count() or 1)
    plan = compile_plan(request.spec, root=request.root, threads=threads)
    refusals = check_runs(request.spec, plan)
    if refusals:
        raise PlanRefused(refusals[0].message, refusals)
    folder = _folder(request, plan)
    recorder = Recorder(folder, folder.name, request.sinks)
    try:
        return _run(request, plan, folder, recorder)
    finally:
        recorder.close()


def _run(request: RunRequest, plan: Plan, folder: Path, recorder: Recorder) -> RunResult:
    log = log_into(folder / LOG_FILE)
    control = Control(folder)
    recorder.record(RunStateEvent(state=RunStateName.STARTING))
    for diagnostic in request.warnings:
        recorder.record(
            DiagnosticEvent(
                diagnostic=diagnostic.model_dump(mode="json", exclude_none=True),
                node=diagnostic.node,
            )
        )
    cluster: Cluster | None = None
    session: Session | None = None
    folders = TransferFolders(_transfer_roots(request, folder))
    lanes = ThreadLanes()
    error: RunError | None = None
    state = RunStateName.FINISHED
    try:
        with control.signals():
            cluster = _cluster(request, plan, folder)
            cluster.start()
            notices = Notices()
            recovery = Recovery(cluster, plan, request.spec, notices.put)
            asked = request
            while True:
                try:
                    session = build_session(
                        asked,
                        plan,
                        cluster,
                        lanes,
                        recorder,
                        control,
                        folder,
                        folders,
                        notices,
                        recovery,
                    )
                    with collecting.seldom():
                        run_loop(session)
                    break
                except (WorkerDied, StageStalled) as failure:
                    _begin_anew(failure, session, recovery, recorder)
                    asked = replace(request, resume=folder)
    except StopRequested:
        state = RunStateName.STOPPED
    except BaseException as failure:
        state, error = RunStateName.FAILED, _error_of(failure, session)
        logger.exception("the run failed")
        if session is not None and isinstance(failure, Exception):
            session.rescue(failure)
        if not isinstance(failure, Exception):
            raise
    finally:
        last = _last_word(session, state, error)
        try:
            if session is not None:
                _leave_behind(session, request, recorder, state)
        finally:
            try:
                if cluster is not None:
                    cluster.close()
                lanes.close()
                folders.close()
            finally:
                _say_last(recorder, last)
                logging.getLogger("coloop").removeHandler(log)
                log.close()
    return RunResult(state=state, folder=folder, error=error)


def _begin_anew(
    failure: WorkerDied | StageStalled,
    session: Session | None,
    recovery: Recovery,
    recorder: Recorder,
) -> None:
    """Processes that have died are replaced, and what is told from here on is told by a further
    attempt: its steps count where one was done before. Raises where the run ends instead."""
    steps = [one.step for one in list_checkpoints(recorder.folder / CHECKPOINTS)]
    recovery.begin_anew(failure, has_checkpoint=bool(steps))
    if session is not None:
        session.close()
    since = f"the checkpoint of step {steps[-1]}" if steps else "its beginning"
    message = f"{failure}; it has new processes, and the run goes on from {since}"
    recorder.attempt += 1
    recorder.record(RunStateEvent(state=RunStateName.STARTING))
    recorder.record(AlertEvent(level="warning", code=REPLACED, message=message))


def _say_last(recorder: Recorder, last: RunStateEvent) -> None:
    """That a run is over is said last: who hears it can read all the rest, and has the machine for
    the next run. Nothing of the rest can change how the run ended."""
    try:
        recorder.record(last)
    except StorageFull as failure:
        logger.warning("that the run %s could not be written down: %s", last.state.value, failure)


def _leave_behind(
    session: Session, request: RunRequest, recorder: Recorder, state: RunStateName
) -> None:
    """The report and the last gauges."""
    session.close()
    try:
        recorder.report(write_report(recorder.folder, request.spec, session, state, request.root))
    except Exception as error:  # the report observes the run: it never decides how the run ended
        logger.warning("the report was not written: %r", error)
    session.show_last(state)


def build_session(
    request: RunRequest,
    plan: Plan,
    cluster: Cluster,
    lanes: Lanes,
    recorder: Recorder,
    control: Control,
    folder: Path,
    folders: TransferFolders,
    notices: Notices,
    recovery: Recovery,
) -> Session:
    """Everything that the loop speaks of, in the state of the last checkpoint where one is
    resumed."""
    spec = request.spec
    lineages = Lineages(spec)
    entries = entries_of(spec, plan)
    fields = Fields(spec, entries)

    def tick(poll: Poll | None) -> bool:
        return session.tick(poll)

    pools = {group.name: group.pool for group in plan.weights}
    deliveries = Deliveries(plan, folders)
    weights = ClusterHosts(cluster, pools, deliveries, tick, notices.put, recovery)
    groups = {node: group.name for group in plan.weights for node in group.members}
    context = Context(
        spec=spec,
        lineage=lineages.at({}),
        groups=groups,
        hosts=weights,
        root=request.root,
        seed=spec.run.seed,
    )
    moments = Moments(context, lineages, fields)
    roles = build_roles(context)
    timeline = Timeline(entries, RunSources(roles, lambda: moments.now))
    group_roles = build_group_roles(context, plan)
    everyone: dict[str, Role] = {
        **roles,
        **{f"weights:{name}": role for name, role in group_roles.items()},
    }
    storage = _storage(request, folder)
    copies = storage if spec.run.storage and is_address(spec.run.storage) else None
    checkpoints = Checkpoints(folder / CHECKPOINTS, spec.run.keep, copies)

    def scheduler_of(watcher: Watcher) -> Scheduler:
        edges = {edge.key: edge for edge in spec.edges}
        calls = Calls(edges, roles, group_roles, watcher.delivered)
        window = Window(
            staleness=spec.schedule.max_staleness,
            groups=groups,
            changing=frozenset(one.name for one in plan.weights if _changes(spec, one)),
        )
        return Scheduler(calls, roles, lanes, watcher, window)

    probe_roles = {n: role for n, role in roles.items() if isinstance(role, EvaluateRole)}
    parts = Parts(
        plan=plan,
        moments=moments,
        roles=everyone,
        timeline=timeline,
        fields=fields,
        triggers=TriggerWatch(triggers=spec.schedule.triggers),
        phase_stages=PhaseStages(lambda: moments.now.spec.schedule.learn, Compiler(spec, lineages)),
        probes=Probes(plan, probe_roles),
        checkpoints=checkpoints,
        recorder=recorder,
        control=control,
        samples=Samples(folder, storage),
        notices=notices,
        step_done=recovery.step_done,
        scheduler_of=scheduler_of,
        actions=Actions(
            groups, weights, everyone, fields, checkpoints, early_copies(spec, plan, groups)
        ),
    )

    session = Session(parts)
    weights.check_ways()
    weights.check_folder((folder / CHECKPOINTS).resolve())
    weights.narrow_again()
    if request.resume is not None:
        checkpoints.bring_back()
        checkpoint = checkpoints.latest()
        for damage in checkpoints.damaged():
            session.left_out(damage)
        if checkpoint is not None:
            manifest = checkpoints.read(checkpoint)
            parts.actions.load(checkpoint.path)
            session.load_state(manifest)
    return session


def _changes(spec: LoopSpec, weights: WeightsPlan) -> bool:
    """Whether weights may change from one step of a phase to the next: they learn, or follow others
    then. What follows at the start of a phase does so while no step is on its way."""
    model = model_of(spec.nodes[weights.name])
    follows = isinstance(model, SnapshotModel) and isinstance(model.refresh, RefreshEvery)
    return weights.trains or follows or isinstance(model, CopyModel)


def _folder(request: RunRequest, plan: Plan) -> Path:
    if request.resume is not None:
        if not (request.resume / SPEC_FILE).exists():
            raise RunNotFound(f"{request.resume} is no run folder: it has no {SPEC_FILE}")
        _complete(request.resume, request, plan)
        return request.resume
    folder = request.runs_dir / (request.run_id or new_run_id(request.spec.name))
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise RunFolderExists(
            f"{folder} exists and is not empty; choose another run id, or go on with "
            f"`--resume {folder.name}`"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SPEC_FILE).write_text(request.text, encoding="utf-8")
    _complete(folder, request, plan)
    storage = _storage_place(request)
    if storage is not None and not is_address(storage):
        target = (Path(storage) / folder.name / CHECKPOINTS).resolve()
        target.mkdir(parents=True, exist_ok=True)
        (folder / CHECKPOINTS).symlink_to(target, target_is_directory=True)
    return folder


def _complete(folder: Path, request: RunRequest, plan: Plan) -> None:
    """What a run folder has besides its loop; the folder of a fork begins without it."""
    if not (folder / ORIGIN_FILE).exists():
        write_origin(folder, request.root)
    if not (folder / PLAN_FILE).exists():
        (folder / PLAN_FILE).write_text(plan.model_dump_json(indent=1), encoding="utf-8")


def _storage(request: RunRequest, folder: Path) -> Storage | None:
    place = _storage_place(request)
    return None if place is None else Storage(place, folder.name)


def _storage_place(request: RunRequest) -> str | None:
    """`run.storage`; a folder as a path from the root."""
    storage = request.spec.run.storage
    if storage is None or is_address(storage):
        return storage
    return str((request.root / os.path.expanduser(storage)).resolve())


def _transfer_roots(request: RunRequest, folder: Path) -> list[Path]:
    """Where weights may go from process to process: memory first, then what other machines see as
    well."""
    storage = _storage_place(request)
    shared = folder if storage is None or is_address(storage) else Path(storage)
    return [SHARED_MEMORY, shared.resolve()]


def _cluster(request: RunRequest, plan: Plan, folder: Path) -> Cluster:
    settings: Mapping[str, HostSettings] = {
        pool.name: HostSettings(
            spec=request.spec,
            weights=plan.weights,
            pool=pool.name,
            root=request.root.resolve(),
            seed=request.spec.run.seed,
            threads=pool.threads_per_worker or 1,
            device="cuda" if pool.gpus else "cpu",
            log=(folder / LOG_FILE).resolve(),
        )
        for pool in plan.pools
    }
    if request.cluster == "local":
        return LocalCluster(plan, settings, request.deadlines)
    from coloop.cluster.ray_cluster import RayCluster

    return RayCluster(
        plan, settings, address=request.address, run_id=folder.name, deadlines=request.deadlines
    )


def _last_word(
    session: Session | None, state: RunStateName, error: RunError | None
) -> RunStateEvent:
    """How the run ended; of a failure with the node and the step at which it was."""
    if error is None:
        return RunStateEvent(
            state=state,
            step=session.timeline.step if session else None,
            message=session.best_words if session else None,
        )
    return RunStateEvent(
        state=state,
        error=error,
        message=error.message,
        node=error.node,
        step=session.step_at_work if session is not None else None,
    )


def _error_of(failure: BaseException, session: Session | None) -> RunError:
    """Of a failure in the user's code the traceback is that of the user's code; the engine's own
    stands in the log."""
    own = failure.traceback if isinstance(failure, UserCodeError) else None
    stage = session.stage_at_work if session is not None else None
    lines = [own] if own else traceback.format_exception(failure)
    if isinstance(failure, KeyboardInterrupt):
        message = "interrupted at once; the last checkpoint is where it goes on"
        return RunError(
            code="run.interrupted", message=message, stage=stage.name if stage else None
        )
    return RunError(
        code=getattr(failure, "code", "run.failed")
        if isinstance(failure, ColoopError)
        else "run.failed",
        message=str(failure) or type(failure).__name__,
        node=getattr(failure, "node", None) or (stage.node if stage else None),
        stage=getattr(failure, "stage", None) or (stage.name if stage else None),
        hint=getattr(failure, "hint", None),
        traceback="".join(lines)[-8000:],
    )
