"""Runs a loop from its spec: folder, plan, cluster, session, and an orderly end in every case."""

import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from coloop.errors import (
    ColoopError,
    PlanRefused,
    StageStalled,
    StopRequested,
    StorageFull,
    UserCodeError,
    WorkerDied,
)
from coloop.plan.compile import compile_plan
from coloop.plan.run_check import check_runs
from coloop.plan.settings.processor import conditions_here
from coloop.plan.types import Plan
from coloop.runtime.assembly import build_session
from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.checkpoints.earlier_runs import earlier_weights, note_folders, with_folders
from coloop.runtime.checkpoints.pinned_settings import DECIDED_ANEW, PLAN_FILE, begun_in, keep_plan
from coloop.runtime.checkpoints.recovery import REPLACED, Recovery
from coloop.runtime.checkpoints.run_folder import (
    RunRequest,
    choose_folder,
    held_folder,
    keep_loop,
    transfer_roots,
)
from coloop.runtime.control import Control
from coloop.runtime.loop import run_loop
from coloop.runtime.reporting.event_reporter import Notices
from coloop.runtime.reporting.report import write_report
from coloop.runtime.run_files.checkpoint_folders import CHECKPOINTS
from coloop.runtime.run_files.event_file import DAMAGED, LOST, damaged_words
from coloop.runtime.run_files.events import (
    AlertEvent,
    DiagnosticEvent,
    RunError,
    RunStateEvent,
    RunStateName,
)
from coloop.runtime.run_files.recorder import Recorder
from coloop.runtime.run_files.run_log import LOG_FILE, log_into
from coloop.runtime.schedule.scheduler import Lanes
from coloop.runtime.session import Session
from coloop.spec.graph import LoopSpec
from coloop.tracking import TrackerSink, about_run, extra_command, is_installed
from coloop.tracking.registry import TrackerMissing
from coloop.tracking.sink import AWAY
from coloop.workers import collecting
from coloop.workers.cluster import Cluster
from coloop.workers.cluster.local import LocalCluster
from coloop.workers.settings import HostSettings
from coloop.workers.sync.folders import TransferFolders

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    state: RunStateName
    folder: Path
    error: RunError | None = None


def run(request: RunRequest) -> RunResult:
    """Run a loop to its end.

    Raises:
        PlanRefused: nothing was started, the loop cannot run.
        RunFolderExists, RunNotFound: nothing was started.
        RunBusy: another process writes into the folder; nothing was written.
        TrackerMissing: nothing was started.
        ModelUnavailable: nothing was started, an earlier run lacks the weights to begin with.
    """
    earlier = earlier_weights(request)
    request = replace(request, spec=with_folders(request.spec, earlier))
    conditions = replace(conditions_here(), threads=request.threads, begun=begun_in(request.resume))
    plan = compile_plan(request.spec, root=request.root, conditions=conditions)
    check_trackers(request.spec)
    refusals = check_runs(request.spec, plan)
    if refusals:
        raise PlanRefused(refusals[0].message, refusals)
    folder = choose_folder(request)
    with held_folder(request, folder):
        note_folders(folder, earlier)
        has_begun = (folder / PLAN_FILE).exists()
        plan, plan_notice = keep_plan(folder, plan)
        recorder, control = Recorder(folder, folder.name, request.sinks), Control(folder)
        try:
            if has_begun and not recorder.seq:
                recorder.record(AlertEvent(level="warning", code=DAMAGED, message=LOST))
            with control.signals(ends_process=request.ends_process):
                return _run(request, plan, recorder, control, plan_notice)
        finally:
            recorder.close()


def _run(
    request: RunRequest,
    plan: Plan,
    recorder: Recorder,
    control: Control,
    plan_notice: str | None,
) -> RunResult:
    folder = recorder.folder
    log = log_into(folder / LOG_FILE)
    notices = Notices()
    trackers = start_trackers(request, folder, partial(notices.put, None, AWAY))
    for tracker in trackers:
        recorder.add_sink(tracker)
    recorder.record(RunStateEvent(state=RunStateName.STARTING))
    for diagnostic in request.warnings:
        finding = diagnostic.model_dump(mode="json", exclude_none=True)
        recorder.record(DiagnosticEvent(diagnostic=finding, node=diagnostic.node))
    if plan_notice is not None:
        recorder.record(AlertEvent(level="info", code=DECIDED_ANEW, message=plan_notice))
    if recorder.damaged:
        message = damaged_words(recorder.damaged)
        recorder.record(AlertEvent(level="warning", code=DAMAGED, message=message))
    cluster: Cluster | None = None
    session: Session | None = None
    folders = TransferFolders(transfer_roots(request, folder))
    lanes = Lanes()
    error: RunError | None = None
    at_once: str | None = None
    state = RunStateName.FINISHED
    try:
        cluster = _cluster(request, plan, folder)
        cluster.start()
        recovery = Recovery(cluster, plan, request.spec, notices.put)
        attempt = request
        while True:
            try:
                session = build_session(
                    attempt, plan, cluster, lanes, recorder, control, folders, notices, recovery
                )
                keep_loop(folder, request.text)
                with collecting.less_often():
                    run_loop(session)
                break
            except (WorkerDied, StageStalled) as failure:
                _restart(failure, session, recovery, recorder)
                attempt = replace(request, resume=folder, checkpoint=None)
    except StopRequested:
        state = RunStateName.STOPPED
    except KeyboardInterrupt:
        state, at_once = RunStateName.STOPPED, AT_ONCE
    except BaseException as failure:
        state, error = RunStateName.FAILED, error_of(failure, session)
        logger.exception("the run failed")
        if session is not None and isinstance(failure, Exception):
            session.rescue(failure)
        if not isinstance(failure, Exception):
            raise
    finally:
        last = last_event(session, state, error, at_once)
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
                control.turn_deaf()
                try:
                    recorder.record(last)
                except StorageFull as full:
                    logger.warning("the event that the run %s was not written: %s", state, full)
                for _, _, message in notices:
                    logger.warning(message)
                for tracker in trackers:
                    tracker.close()
                logging.getLogger("coloop").removeHandler(log)
                log.close()
    return RunResult(state=state, folder=folder, error=error)


def check_trackers(spec: LoopSpec) -> None:
    """Raises `TrackerMissing` if the library of a tracker is not installed here."""
    for name in spec.run.report_to:
        if not is_installed(name):
            raise TrackerMissing(
                f"`run.report_to`: `{name}` is not installed: {extra_command(name)}, or remove it"
            )


def start_trackers(
    request: RunRequest, folder: Path, on_problem: Callable[[str], None]
) -> list[TrackerSink]:
    """A sink for each tracker of the loop."""
    run = request.spec.run
    if not run.report_to:
        return []
    about = about_run(folder, request.spec, request.text)
    return [
        TrackerSink(name, about, on_problem, with_checkpoints=run.report_checkpoints)
        for name in run.report_to
    ]


def _restart(
    failure: WorkerDied | StageStalled,
    session: Session | None,
    recovery: Recovery,
    recorder: Recorder,
) -> None:
    """Replace the processes that died. Later events belong to another attempt, so its steps count
    instead of those done before. Raises if the run ends instead."""
    steps = [checkpoint.step for checkpoint in list_checkpoints(recorder.folder / CHECKPOINTS)]
    recovery.begin_anew(failure, has_checkpoint=bool(steps))
    if session is not None:
        session.close()
    since = f"the checkpoint of step {steps[-1]}" if steps else "its beginning"
    message = f"{failure}; its processes were restarted, and the run resumes from {since}"
    recorder.attempt += 1
    recorder.record(RunStateEvent(state=RunStateName.STARTING))
    recorder.record(AlertEvent(level="warning", code=REPLACED, message=message))


def _leave_behind(
    session: Session, request: RunRequest, recorder: Recorder, state: RunStateName
) -> None:
    session.close()
    session.show_last_samples()
    try:
        recorder.report(write_report(recorder.folder, request.spec, session, state, request.root))
    except Exception as error:  # a missing report does not change how the run ended
        logger.warning("the report was not written: %r", error)
    session.event_reporter.show_last(state)


def _cluster(request: RunRequest, plan: Plan, folder: Path) -> Cluster:
    settings: Mapping[str, HostSettings] = {
        pool.name: HostSettings(
            spec=request.spec,
            weights=plan.weights,
            pool=pool.name,
            root=request.root.resolve(),
            seed=request.spec.run.seed,
            threads=pool.threads_per_worker,
            device="cuda" if pool.gpus else "cpu",
            log=(folder / LOG_FILE).resolve(),
        )
        for pool in plan.pools
    }
    if request.cluster == "local":
        return LocalCluster(plan, settings, request.deadlines)
    with collecting.not_while_loading():
        from coloop.workers.ray.ray_cluster import RayCluster

    return RayCluster(
        plan,
        settings,
        address=request.address,
        nodes=request.nodes,
        run_id=folder.name,
        deadlines=request.deadlines,
    )


AT_ONCE = "interrupted immediately; a resumed run starts from the last checkpoint"
"""Message of a run that was interrupted a second time before it had stopped."""


def last_event(
    session: Session | None, state: RunStateName, error: RunError | None, at_once: str | None
) -> RunStateEvent:
    """How the run ended; after a failure with node and step. `at_once`: message of an interrupted
    run."""
    if error is None:
        return RunStateEvent(
            state=state,
            step=session.timeline.step if session else None,
            message=at_once or (session.readings.best_words if session else None),
        )
    return RunStateEvent(
        state=state,
        error=error,
        message=error.message,
        node=error.node,
        step=session.event_reporter.step if session is not None else None,
    )


def error_of(failure: BaseException, session: Session | None) -> RunError:
    """For a failure in the user's code, the traceback of that code; the log has the engine's."""
    own = failure.traceback if isinstance(failure, UserCodeError) else None
    stage = session.stage_at_work if session is not None else None
    lines = [own] if own else traceback.format_exception(failure)
    return RunError(
        code=failure.code if isinstance(failure, ColoopError) else "run.failed",
        message=str(failure) or type(failure).__name__,
        node=getattr(failure, "node", None) or (stage.node if stage else None),
        stage=getattr(failure, "stage", None) or (stage.name if stage else None),
        hint=getattr(failure, "hint", None),
        traceback="".join(lines)[-8000:],
    )
