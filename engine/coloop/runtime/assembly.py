"""Builds a session: workers, roles, timeline, scheduler and checkpoints."""

from collections.abc import Mapping, Sequence
from functools import partial

from coloop.plan.compile import Compiler
from coloop.plan.overlap import overlap_of
from coloop.plan.types import Plan
from coloop.plan.unrolled import Unrolled
from coloop.runtime.actions import Actions, early_copies
from coloop.runtime.checkpoints.checkpoint import Checkpoints
from coloop.runtime.checkpoints.checkpoint_manager import CheckpointManager
from coloop.runtime.checkpoints.recovery import Recovery
from coloop.runtime.checkpoints.run_folder import RunRequest, storage_place
from coloop.runtime.checkpoints.storage import Storage, is_address
from coloop.runtime.control import Control
from coloop.runtime.evaluations import Evaluations, Probes
from coloop.runtime.health.checks import truths_of
from coloop.runtime.phases.fields import Fields, Moments
from coloop.runtime.phases.phase_stages import PhaseStages
from coloop.runtime.phases.timeline import Entry, Timeline, entries_of
from coloop.runtime.reporting.event_reporter import EventReporter, Notices
from coloop.runtime.reporting.pace import Pace
from coloop.runtime.reporting.readings import Readings, TriggerWatch
from coloop.runtime.reporting.samples import Samples
from coloop.runtime.roles import build_group_roles, build_roles
from coloop.runtime.roles.buffer import BufferRole
from coloop.runtime.roles.credit.distilled import check_teachers
from coloop.runtime.roles.dataset import DatasetRole
from coloop.runtime.roles.evaluate import EvaluateRole
from coloop.runtime.roles.protocol import Context, Role
from coloop.runtime.run_files.checkpoint_folders import CHECKPOINTS
from coloop.runtime.run_files.recorder import Recorder
from coloop.runtime.schedule.arrivals import Arrivals
from coloop.runtime.schedule.calls import Calls
from coloop.runtime.schedule.scheduler import Lanes, Scheduler
from coloop.runtime.schedule.window import Window
from coloop.runtime.session import Session
from coloop.spec.graph import LoopSpec
from coloop.spec.lineage import Lineages
from coloop.workers.cluster import Cluster
from coloop.workers.messages import Poll
from coloop.workers.sync.folders import TransferFolders
from coloop.workers.weight_sync import WeightSync
from coloop.workers.worker_group import WorkerGroup


def build_session(
    request: RunRequest,
    plan: Plan,
    cluster: Cluster,
    lanes: Lanes,
    recorder: Recorder,
    control: Control,
    folders: TransferFolders,
    notices: Notices,
    recovery: Recovery,
) -> Session:
    """A session at the beginning of a run, or in the state of the checkpoint to resume from."""
    spec, folder = request.spec, recorder.folder
    lineages = Lineages(spec)
    entries = entries_of(spec, plan)
    fields = Fields(spec, entries)

    def tick(poll: Poll | None) -> bool:
        return session.tick(poll)

    pools = {group.name: group.pool for group in plan.weights}
    weights = WorkerGroup(cluster, pools, WeightSync(plan, folders), tick, notices.put, recovery)
    groups = {node: group.name for group in plan.weights for node in group.members}
    context = Context(
        spec=spec,
        lineage=lineages.at({}),
        groups=groups,
        hosts=weights,
        root=request.root,
        seed=spec.run.seed,
        folder=folder,
    )
    moments = Moments(context, lineages, fields)
    roles = build_roles(context)
    timeline = _timeline(entries, roles, moments)
    group_roles = build_group_roles(context, plan)
    everyone: dict[str, Role] = {
        **roles,
        **{f"weights:{name}": role for name, role in group_roles.items()},
    }
    address = storage_place(request)
    storage = None if address is None else Storage(address, folder.name)
    copies = storage if address is not None and is_address(address) else None
    checkpoints = Checkpoints(folder / CHECKPOINTS, spec.run.keep, copies)

    probes = Probes(plan, {n: role for n, role in roles.items() if isinstance(role, EvaluateRole)})
    teaching = [edge.key for edge in spec.graph.teaching_edges()]
    event_reporter = EventReporter(
        recorder,
        timeline,
        Pace({edge.key: edge.target.node for edge in spec.edges}, teaching),
        lambda done, total: probes.ahead(done, total, moments.now),
    )
    checkpoints.on_lost_copy = partial(event_reporter.alert, "warning", "checkpoint.not_copied")
    actions = Actions(
        groups,
        weights,
        everyone,
        fields,
        checkpoints,
        early_copies(spec, plan, groups),
        lambda node, message: event_reporter.alert("info", "snapshot.from_current", message, node),
    )
    checkpoint_manager = CheckpointManager(
        checkpoints, actions.save, recorder, lambda: session.state()
    )
    readings = Readings(
        TriggerWatch(triggers=spec.schedule.triggers),
        lambda: moments.now.spec.run.best,
        checkpoint_manager.note_best,
        truths_of(spec),
    )
    session = Session(
        plan=plan,
        timeline=timeline,
        moments=moments,
        fields=fields,
        phase_stages=PhaseStages(
            lambda: moments.now.spec.schedule.learn, Compiler(Unrolled(spec, lineages))
        ),
        actions=actions,
        evaluations=Evaluations(
            probes, timeline, moments, event_reporter, readings, checkpoint_manager.note_change
        ),
        readings=readings,
        arrivals=Arrivals(spec.edges),
        samples=Samples(folder, storage),
        control=control,
        checkpoint_manager=checkpoint_manager,
        event_reporter=event_reporter,
        notices=notices,
        roles=everyone,
        step_done=recovery.step_done,
    )
    edges = {edge.key: edge for edge in spec.edges}
    calls = Calls(edges, roles, group_roles, event_reporter.pace.delivered)
    session.scheduler = Scheduler(calls, lanes, session, _window(spec, plan, groups))
    weights.check_ways()
    check_teachers(context)
    weights.check_folder((folder / CHECKPOINTS).resolve())
    weights.narrow_again()
    if request.resume is not None:
        session.resume(folder, request.checkpoint, is_fork=recorder.attempt == 1)
    return session


def _timeline(entries: Sequence[Entry], roles: Mapping[str, Role], moments: Moments) -> Timeline:
    """A timeline that asks datasets and buffers for epochs, and buffers whether they are full."""

    def steps_for_epochs(node: str, epochs: float) -> int:
        role = roles[node]
        assert isinstance(role, DatasetRole | BufferRole)
        return role.steps_for_epochs(epochs, moments.now)

    def is_full(buffer: str) -> bool:
        role = roles[buffer]
        assert isinstance(role, BufferRole)
        return role.is_full(moments.now)

    return Timeline(entries, steps_for_epochs, is_full)


def _window(spec: LoopSpec, plan: Plan, groups: Mapping[str, str]) -> Window:
    learning = (weights.name for weights in plan.weights if weights.trains)
    overlap = overlap_of(spec, groups, learning)
    return Window(
        staleness=overlap.staleness,
        groups=overlap.groups,
        changing=overlap.changing,
        scorers=overlap.scorers,
    )
