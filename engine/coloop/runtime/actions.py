"""What happens to weights and buffers besides learning: snapshots follow, copies start, optimizers
are reset, buffers are cleared; asked for by a phase's start, a group's `do` or a trigger."""

from collections.abc import Mapping, Sequence
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
    """Refreshes, copies, optimizer resets and buffer clears of a run."""

    groups: Mapping[str, str]
    """Weights group of each node that has weights."""
    weights: WorkerGroup
    roles: Mapping[str, Role]
    fields: Fields
    checkpoints: Checkpoints
    early: Sequence[str]
    """Copies whose weights something uses before the phase at which they start."""
    _copied: list[str] = field(default_factory=list, init=False)
    _refreshed_at: dict[str, int] = field(default_factory=dict, init=False)
    _followed: dict[str, int] = field(default_factory=dict, init=False)
    notes: list[tuple[str, str]] = field(default_factory=list, init=False)
    """(node, message) of what a person should know of the last actions."""

    def phase_starts(self, entry: Entry, updates: Mapping[str, int], context: Context) -> bool:
        """Do what refers to the start of this phase; true where a checkpoint is asked for.

        Args:
            updates: by learner, how many the phase will bring; missing where that is not known.
        """
        for role in self.roles.values():
            role.phase_starts(entry.plan, updates, context)
        self._start_copies(entry.plan, context.spec)
        for node, model in _snapshots(context.spec):
            at = as_tuple(model.refresh.at) if isinstance(model.refresh, RefreshAt) else ()
            if entry.plan.name in at:
                self._refresh(node, context.spec)
        asked = [self._do(actions, context.spec) for actions in entry.actions]
        return any(asked)

    def step_done(self, spec: LoopSpec) -> None:
        """Snapshots that follow every N updates of their source; copies that have not begun yet
        are their source."""
        for node in self.early:
            if node not in self._copied:
                self._be_source(node, spec)
        for node, model in _snapshots(spec):
            if not isinstance(model.refresh, RefreshEvery):
                continue
            source = self.groups[model.of]
            version = self.weights.version(source)
            if version - self._refreshed_at.get(node, 0) >= model.refresh.every:
                self._refresh(node, spec)
                self._refreshed_at[node] = version

    def obey(
        self, actions: TriggerActions, timeline: Timeline, spec: LoopSpec
    ) -> tuple[bool, bool]:
        """Carry out a trigger's actions; (the run must stop, a checkpoint is asked for)."""
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

    def _be_source(self, node: str, spec: LoopSpec) -> None:
        model = model_of(spec.nodes[node])
        assert isinstance(model, CopyModel)
        source = self.groups[model.of]
        version = self.weights.version(source)
        if version != self._followed.get(node, 0):
            self.weights.refresh(self.groups[node], source)
            self._followed[node] = version

    def _refresh(self, node: str, spec: LoopSpec, order: RefreshOrder | None = None) -> None:
        model = model_of(spec.nodes[node])
        assert isinstance(model, SnapshotModel | CopyModel)
        source = self.groups[model.of]
        ema = model.ema if isinstance(model, SnapshotModel) else 0.0
        folder = None
        if order is not None and order.from_ != "current":
            folder = self._folder_of(order, source, spec)
        self.weights.refresh(self.groups[node], source, ema=ema, folder=folder)

    def _folder_of(self, order: RefreshOrder, source: str, spec: LoopSpec) -> str | None:
        """Where the weights lie that are asked for; None where the present ones are all there is.

        Nothing has been read yet before the first evaluation, so the weights as they are stand for
        the best ones.
        """
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
            self.notes.append((order.node, message))
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
    """Under the name that other machines know: a run folder may only point to `run.storage`."""
    return str(folder.resolve())


def has_averages(spec: LoopSpec) -> bool:
    """Whether weights follow as a moving average: to follow twice is not to follow once."""
    return any(model.ema > 0 for _, model in _snapshots(spec))


def _snapshots(spec: LoopSpec) -> list[tuple[str, SnapshotModel]]:
    models = [(node, model_of(section)) for node, section in spec.nodes.items()]
    return [(node, model) for node, model in models if isinstance(model, SnapshotModel)]


def early_copies(spec: LoopSpec, plan: Plan, groups: Mapping[str, str]) -> list[str]:
    """Copies that start at a phase, and whose weights something uses before it."""
    found = []
    for node, section in spec.nodes.items():
        model = model_of(section)
        if not isinstance(model, CopyModel) or model.at is None:
            continue
        first = next((i for i, phase in enumerate(plan.phases) if phase.name == model.at), 0)
        stages = [stage for phase in plan.phases[:first] for stage in phase.stages]
        stages += [stage for probe in plan.probes for stage in probe.stages]
        if any(groups.get(stage.node) == groups[node] for stage in stages):
            found.append(node)
    return found
