"""Puts a session together: hosts, roles, timeline, scheduler, checkpoints, in the state of the last
checkpoint where a run goes on."""

from collections.abc import Callable, Mapping
from pathlib import Path

from coloop.plan.closure import READS
from coloop.plan.compile import Compiler
from coloop.plan.types import Plan, WeightsPlan
from coloop.plan.unrolled import Unrolled
from coloop.runtime.actions import Actions, early_copies
from coloop.runtime.checkpoints.checkpoint import Checkpoints
from coloop.runtime.checkpoints.checkpoint_manager import CheckpointManager, pick_up
from coloop.runtime.checkpoints.pinned_settings import edits_since
from coloop.runtime.checkpoints.recovery import Recovery
from coloop.runtime.checkpoints.run_folder import CHECKPOINTS, RunRequest, storage_of
from coloop.runtime.checkpoints.storage import is_address
from coloop.runtime.control import Control
from coloop.runtime.evaluations import Evaluations, Probes
from coloop.runtime.health.checks import truths_of
from coloop.runtime.phases.fields import Fields, Moments
from coloop.runtime.phases.phase_stages import PhaseStages
from coloop.runtime.phases.timeline import Timeline, entries_of
from coloop.runtime.reporting.event_reporter import EventReporter, Notices
from coloop.runtime.reporting.readings import Readings, TriggerWatch
from coloop.runtime.reporting.samples import Samples
from coloop.runtime.roles import build_group_roles, build_roles
from coloop.runtime.roles.buffer import BufferRole
from coloop.runtime.roles.dataset import DatasetRole
from coloop.runtime.roles.evaluate import EvaluateRole
from coloop.runtime.roles.protocol import Context, Role
from coloop.runtime.run_files.events import AlertEvent
from coloop.runtime.run_files.recorder import Recorder
from coloop.runtime.schedule.arrivals import Arrivals
from coloop.runtime.schedule.calls import Calls
from coloop.runtime.schedule.scheduler import Lanes, Scheduler
from coloop.runtime.schedule.window import Window
from coloop.runtime.session import Session
from coloop.runtime.steps import Steps
from coloop.spec.graph import LoopSpec
from coloop.spec.lineage import Lineages
from coloop.spec.model import CopyModel, RefreshEvery, SnapshotModel
from coloop.spec.nodes import model_of
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
    weight_sync = WeightSync(plan, folders)
    weights = WorkerGroup(cluster, pools, weight_sync, tick, notices.put, recovery)
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
    storage = storage_of(request, folder)
    copies = storage if spec.run.storage and is_address(spec.run.storage) else None
    checkpoints = Checkpoints(folder / CHECKPOINTS, spec.run.keep, copies)

    probes = Probes(plan, {n: role for n, role in roles.items() if isinstance(role, EvaluateRole)})
    compiler = Compiler(Unrolled(spec, lineages))
    phase_stages = PhaseStages(lambda: moments.now.spec.schedule.learn, compiler)
    actions = Actions(
        groups, weights, everyone, fields, checkpoints, early_copies(spec, plan, groups)
    )
    event_reporter = EventReporter(
        recorder,
        timeline,
        spec.edges,
        lambda done, total: probes.ahead(done, total, moments.now),
        spec.graph.teaching_edges(),
    )
    checkpoint_manager = CheckpointManager(checkpoints, actions, recorder, lambda: session.state())
    readings = Readings(
        TriggerWatch(triggers=spec.schedule.triggers),
        lambda: moments.now.spec.run.best,
        checkpoint_manager.note_best,
        truths_of(spec),
    )
    evaluations = Evaluations(
        probes, timeline, moments, event_reporter, readings, checkpoint_manager.note_change
    )
    arrivals = Arrivals(spec.edges)
    steps = Steps(
        timeline=timeline,
        moments=moments,
        fields=fields,
        phase_stages=phase_stages,
        actions=actions,
        evaluations=evaluations,
        readings=readings,
        arrivals=arrivals,
        samples=Samples(folder, storage),
        control=control,
        checkpoint_manager=checkpoint_manager,
        event_reporter=event_reporter,
        notices=notices,
        roles=everyone,
        step_done=recovery.step_done,
    )
    calls = Calls(
        {edge.key: edge for edge in spec.edges},
        roles,
        group_roles,
        event_reporter.pace.delivered,
    )
    session = Session(
        plan=plan,
        moments=moments,
        roles=everyone,
        timeline=timeline,
        fields=fields,
        phase_stages=phase_stages,
        probes=probes,
        checkpoints=checkpoints,
        control=control,
        actions=actions,
        event_reporter=event_reporter,
        checkpoint_manager=checkpoint_manager,
        readings=readings,
        arrivals=arrivals,
        evaluations=evaluations,
        steps=steps,
        scheduler=Scheduler(calls, lanes, steps, _window(spec, plan, groups)),
    )
    weights.check_ways()
    weights.check_folder((folder / CHECKPOINTS).resolve())
    weights.narrow_again()
    if request.resume is not None:
        checkpoint = pick_up(checkpoints, folder, request.checkpoint, session.left_out)
        if checkpoint is not None:
            manifest = checkpoints.read(checkpoint)
            actions.load(checkpoint.path)
            session.load_state(manifest)
            if manifest["spec_hash"] != plan.spec_hash:
                recorder.record(_other_loop(checkpoint.step, is_fork=recorder.attempt == 1))
        edits = edits_since(folder, checkpoint.step if checkpoint is not None else 0)
        (session.make_again if request.checkpoint is None else session.leave_edits)(edits)
    return session


def _other_loop(step: int, *, is_fork: bool) -> AlertEvent:
    """A fork is made to change the loop; in the folder of a run it may be a damaged file."""
    return AlertEvent(
        level="info" if is_fork else "warning",
        code="run.other_loop",
        message=(
            f"the loop has changed since the checkpoint of step {step}; the run resumes from there "
            "with the current loop"
        ),
        step=step,
    )


def _window(spec: LoopSpec, plan: Plan, groups: Mapping[str, str]) -> Window:
    changing = frozenset(weights.name for weights in plan.weights if _changes(spec, weights))
    return Window(
        staleness=spec.schedule.max_staleness,
        groups=groups,
        changing=changing,
        scorers=frozenset(
            node
            for node, group in groups.items()
            if group in changing and "score" in READS[spec.nodes[node].kind]
        ),
    )


def _changes(spec: LoopSpec, weights: WeightsPlan) -> bool:
    """Whether weights may change from one step of a phase to the next: they learn, or follow others
    then. What follows at the start of a phase does so while no step is on its way."""
    model = model_of(spec.nodes[weights.name])
    follows = isinstance(model, SnapshotModel) and isinstance(model.refresh, RefreshEvery)
    return weights.trains or follows or isinstance(model, CopyModel)


# What the timeline asks of datasets and buffers: how long a pass is, and whether a buffer is
# full.


class RunSources:
    """Answers from the roles of a run."""

    def __init__(self, roles: Mapping[str, Role], now: Callable[[], Context]) -> None:
        """
        Args:
            now: the loop with the values of the moment at which it is asked.
        """
        self._roles = roles
        self._now = now

    def steps_for_epochs(self, node: str, epochs: float) -> int:
        role = self._roles[node]
        assert isinstance(role, DatasetRole | BufferRole)
        return role.steps_for_epochs(epochs, self._now())

    def is_full(self, buffer: str) -> bool:
        role = self._roles[buffer]
        assert isinstance(role, BufferRole)
        return role.is_full(self._now())
