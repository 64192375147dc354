"""Changes of weights and buffers other than learning: snapshots, copies, optimizer resets, cleared
buffers. A phase's start, `do` or a trigger asks for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coloop.data.files.marks import Mark
from coloop.errors import CheckpointError
from coloop.plan.types import PhasePlan, Plan
from coloop.runtime.checkpoints.checkpoint import Checkpoints
from coloop.runtime.phases.fields import Fields
from coloop.runtime.phases.timeline import Entry, Timeline
from coloop.runtime.roles.protocol import Context, Role
from coloop.spec.base import as_tuple
from coloop.spec.graph import LoopSpec
from coloop.spec.model import CopyModel, RefreshAt, RefreshEvery, SnapshotModel
from coloop.spec.nodes import model_of
from coloop.spec.schedule import PhaseActions, RefreshOrder, TriggerActions
from coloop.workers.worker_group import WorkerGroup


@dataclass(eq=False)
class Actions:
    groups: Mapping[str, str]
    """Weights group of each node that has weights."""
    weights: WorkerGroup
    roles: Mapping[str, Role]
    fields: Fields
    checkpoints: Checkpoints
    early: Sequence[str]
    """Copies whose weights are used before the phase at which they start."""
    notice: Callable[[str, str], None]
    """Called with (node, message)."""
    _copied: list[str] = field(default_factory=list, init=False)
    _refreshed_at: dict[str, int] = field(default_factory=dict, init=False)
    _followed: dict[str, int] = field(default_factory=dict, init=False)

    def phase_starts(self, entry: Entry, updates: Mapping[str, int], context: Context) -> bool:
        """Do what refers to the start of this phase; returns whether a checkpoint is requested.
        `updates`: number of updates in the phase by learner, if known."""
        for role in self.roles.values():
            role.phase_starts(entry.plan, updates, context)
        self._start_copies(entry.plan, context.spec)
        for node, model in _snapshots(context.spec):
            at = as_tuple(model.refresh.at) if isinstance(model.refresh, RefreshAt) else ()
            if entry.plan.name in at:
                self._refresh(node, context.spec)
        wants_checkpoint = [self._do(actions, context.spec) for actions in entry.actions]
        return any(wants_checkpoint)

    def step_done(self, spec: LoopSpec) -> None:
        """Refresh snapshots that follow every N updates, and copies that have not started yet."""
        for node in self.early:
            if node not in self._copied:
                self._follow(node, spec, self._followed, every=1)
        for node, model in _snapshots(spec):
            if isinstance(model.refresh, RefreshEvery):
                self._follow(node, spec, self._refreshed_at, model.refresh.every)

    def obey(
        self, actions: TriggerActions, timeline: Timeline, spec: LoopSpec
    ) -> tuple[bool, bool]:
        """Carry out a trigger's actions; returns (stop the run, write a checkpoint)."""
        wants_checkpoint = self._do(actions, spec)
        if actions.set:
            self.fields.set_by_trigger(actions.set)
        if actions.next_phase:
            timeline.leave_after_this_step()
        return actions.stop, wants_checkpoint

    def save(self, folder: Path) -> Mapping[str, Mark]:
        whole = self.checkpoints.all()
        earlier = _seen_by_all(whole[-1].path) if whole else None
        return self.weights.save(_seen_by_all(folder), earlier)

    def load(self, folder: Path) -> None:
        self.weights.load(_seen_by_all(folder))

    def _do(self, actions: PhaseActions, spec: LoopSpec) -> bool:
        for order in as_tuple(actions.refresh):
            self._refresh(order.node, spec, order)
        for node in as_tuple(actions.reset_optimizer):
            self.weights.reset_optimizer(self.groups[node])
        for node in as_tuple(actions.clear):
            clear = getattr(self.roles[node], "clear", None)
            if clear is not None:
                clear()
        return actions.checkpoint

    def _start_copies(self, phase: PhasePlan, spec: LoopSpec) -> None:
        for node, section in spec.nodes.items():
            model = model_of(section)
            if isinstance(model, CopyModel) and model.at == phase.name and node not in self._copied:
                self.weights.refresh(node, self.groups[model.of])
                self._copied.append(node)

    def _follow(self, node: str, spec: LoopSpec, versions: dict[str, int], every: int) -> None:
        """Refresh a node if its source had so many updates since the version noted for the node."""
        version = self.weights.version(self.groups[_model(node, spec).of])
        if version - versions.get(node, 0) >= every:
            self._refresh(node, spec)
            versions[node] = version

    def _refresh(self, node: str, spec: LoopSpec, order: RefreshOrder | None = None) -> None:
        model = _model(node, spec)
        source = self.groups[model.of]
        ema = model.ema if isinstance(model, SnapshotModel) else 0.0
        folder = None
        if order is not None and order.from_ != "current":
            folder = self._folder_of(order, source, spec)
        self.weights.refresh(self.groups[node], source, ema=ema, folder=folder)

    def _folder_of(self, order: RefreshOrder, source: str, spec: LoopSpec) -> str | None:
        """The folder of the requested weights; None: without a checkpoint, the current weights."""
        wants_best = order.from_ == "best"
        if wants_best and spec.run.best is None:
            raise CheckpointError(
                f"refresh of {order.node} from best: no metric defines the best checkpoint; set "
                "`run.best`"
            )
        checkpoint = self.checkpoints.best() if wants_best else self.checkpoints.latest()
        if checkpoint is None:
            message = (
                f"{order.node}: no checkpoint yet for `from: {order.from_}`; using the current "
                f"{source}"
            )
            self.notice(order.node, message)
            return None
        return _seen_by_all(checkpoint.path / source)

    def state(self) -> dict[str, Any]:
        return {
            "copied": self._copied,
            "refreshed_at": self._refreshed_at,
            "followed": self._followed,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._copied = list(state["copied"])
        self._refreshed_at = dict(state["refreshed_at"])
        self._followed = dict(state["followed"])


def _seen_by_all(folder: Path) -> str:
    """A path for other machines: checkpoints of a run folder may be a link to `run.storage`."""
    return str(folder.resolve())


def has_averages(spec: LoopSpec) -> bool:
    """Whether a snapshot is a moving average, so that refreshing it twice differs from once."""
    return any(model.ema > 0 for _, model in _snapshots(spec))


def _model(node: str, spec: LoopSpec) -> SnapshotModel | CopyModel:
    model = model_of(spec.nodes[node])
    assert isinstance(model, SnapshotModel | CopyModel)
    return model


def _snapshots(spec: LoopSpec) -> list[tuple[str, SnapshotModel]]:
    models = [(node, model_of(section)) for node, section in spec.nodes.items()]
    return [(node, model) for node, model in models if isinstance(model, SnapshotModel)]


def early_copies(spec: LoopSpec, plan: Plan, groups: Mapping[str, str]) -> list[str]:
    """Copies that start at a phase, and whose weights are used before it."""
    early = []
    for node, section in spec.nodes.items():
        model = model_of(section)
        if not isinstance(model, CopyModel) or model.at is None:
            continue
        first = next((i for i, phase in enumerate(plan.phases) if phase.name == model.at), 0)
        stages = [stage for phase in plan.phases[:first] for stage in phase.stages]
        stages += [stage for probe in plan.probes for stage in probe.stages]
        if any(groups.get(stage.node) == groups[node] for stage in stages):
            early.append(node)
    return early
