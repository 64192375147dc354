"""What happens to weights and buffers besides learning: snapshots follow, copies start, optimizers
are reset, buffers are cleared; asked for by a phase's start, a group's `do` or a trigger."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from coloop.errors import CheckpointError
from coloop.plan.types import PhasePlan, Plan
from coloop.roles.protocol import Context, Role
from coloop.runtime.checkpoint import Checkpoints
from coloop.runtime.fields import Fields
from coloop.runtime.timeline import Entry, Moment, Timeline
from coloop.spec.base import as_tuple
from coloop.spec.model import CopyModel, RefreshAt, RefreshEvery, SnapshotModel
from coloop.spec.nodes import model_of
from coloop.spec.schedule import PhaseActions, RefreshOrder, TriggerActions


class Weights(Protocol):
    """What actions ask of the hosts."""

    def refresh(
        self, group: str, source: str, *, ema: float = 0.0, folder: str | None = None
    ) -> None: ...

    def reset_optimizer(self, group: str) -> None: ...

    def version(self, group: str) -> int: ...

    def save(self, folder: str, earlier: str | None) -> Mapping[str, int]: ...

    def load(self, folder: str) -> None: ...


class Actions:
    """See the module."""

    def __init__(
        self,
        context: Context,
        weights: Weights,
        roles: Mapping[str, Role],
        fields: Fields,
        checkpoints: Checkpoints,
        plan: Plan,
    ) -> None:
        self._context = context
        self._weights = weights
        self._roles = roles
        self._fields = fields
        self._checkpoints = checkpoints
        self._copied: list[str] = []
        self._refreshed_at: dict[str, int] = {}
        self._early = _early_copies(context, plan)
        self._followed: dict[str, int] = {}
        self.notes: list[tuple[str, str]] = []
        """(node, message) of what a person should know of the last actions."""

    def phase_starts(self, entry: Entry, updates: Mapping[str, int]) -> bool:
        """Do what refers to the start of this phase; true where a checkpoint is asked for.

        Args:
            updates: by learner, how many the phase will bring; missing where that is not known.
        """
        for role in self._roles.values():
            starts = getattr(role, "phase_starts", None)
            if starts is not None:
                starts(entry.plan, updates)
        self._start_copies(entry.plan)
        self._follow_at(entry.plan)
        asked = [self._do(actions) for actions in entry.actions]
        return any(asked)

    def step_done(self, moment: Moment) -> None:
        """Snapshots that follow every N updates of their source; copies that have not begun yet
        are their source."""
        del moment
        for node in self._early:
            if node not in self._copied:
                self._be_source(node)
        for node, model in self._snapshots():
            if not isinstance(model.refresh, RefreshEvery):
                continue
            source = self._context.groups[model.of]
            version = self._weights.version(source)
            if version - self._refreshed_at.get(node, 0) >= model.refresh.every:
                self._refresh(node)
                self._refreshed_at[node] = version

    def obey(self, actions: TriggerActions, timeline: Timeline) -> tuple[bool, bool]:
        """Carry out a trigger's actions; (the run must stop, a checkpoint is asked for)."""
        wants_checkpoint = self._do(actions)
        if actions.set:
            self._fields.set_by_trigger(actions.set)
        if actions.next_phase:
            timeline.leave_after_this_step()
        return actions.stop, wants_checkpoint

    def save(self, folder: Path) -> Mapping[str, int]:
        whole = self._checkpoints.all()
        return self._weights.save(str(folder), str(whole[-1].path) if whole else None)

    def load(self, folder: Path) -> None:
        self._weights.load(str(folder))

    def _do(self, actions: PhaseActions) -> bool:
        for order in as_tuple(actions.refresh):
            self._refresh(order.node, order)
        for node in as_tuple(actions.reset_optimizer):
            self._weights.reset_optimizer(self._context.groups[node])
        for node in as_tuple(actions.clear):
            clear = getattr(self._roles[node], "clear", None)
            if clear is not None:
                clear()
        return actions.checkpoint

    def _snapshots(self) -> list[tuple[str, SnapshotModel]]:
        found = []
        for node, section in self._context.spec.nodes.items():
            model = model_of(section)
            if isinstance(model, SnapshotModel):
                found.append((node, model))
        return found

    @property
    def has_averages(self) -> bool:
        """Whether weights follow as a moving average: to follow twice is not to follow once."""
        return any(model.ema > 0 for _, model in self._snapshots())

    def _follow_at(self, phase: PhasePlan) -> None:
        for node, model in self._snapshots():
            if isinstance(model.refresh, RefreshAt) and phase.name in as_tuple(model.refresh.at):
                self._refresh(node)

    def _start_copies(self, phase: PhasePlan) -> None:
        for node, section in self._context.spec.nodes.items():
            model = model_of(section)
            if isinstance(model, CopyModel) and model.at == phase.name and node not in self._copied:
                self._weights.refresh(node, self._context.groups[model.of])
                self._copied.append(node)

    def _be_source(self, node: str) -> None:
        model = model_of(self._context.spec.nodes[node])
        assert isinstance(model, CopyModel)
        source = self._context.groups[model.of]
        version = self._weights.version(source)
        if version != self._followed.get(node, 0):
            self._weights.refresh(self._context.groups[node], source)
            self._followed[node] = version

    def _refresh(self, node: str, order: RefreshOrder | None = None) -> None:
        model = model_of(self._context.spec.nodes[node])
        assert isinstance(model, SnapshotModel | CopyModel)
        source = self._context.groups[model.of]
        ema = model.ema if isinstance(model, SnapshotModel) else 0.0
        folder = None
        if order is not None and order.from_ != "current":
            folder = self._folder_of(order, source)
        self._weights.refresh(self._context.groups[node], source, ema=ema, folder=folder)

    def _folder_of(self, order: RefreshOrder, source: str) -> str | None:
        """Where the weights lie that are asked for; None where the present ones are all there is.

        Nothing has been read yet before the first evaluation, so the weights as they are stand for
        the best ones.
        """
        wants_best = order.from_ == "best"
        if wants_best and self._context.spec.run.best is None:
            raise CheckpointError(
                f"refresh of {order.node} from best: nothing says what is best; name a metric in "
                "`run.best`"
            )
        checkpoint = self._checkpoints.best() if wants_best else self._checkpoints.latest()
        if checkpoint is None:
            message = (
                f"{order.node}: no checkpoint yet for `from: {order.from_}`; {source} as it is"
            )
            self.notes.append((order.node, message))
            return None
        return str(checkpoint.path / source)

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


def _early_copies(context: Context, plan: Plan) -> list[str]:
    """Copies that start at a phase, and whose weights something uses before it."""
    found = []
    for node, section in context.spec.nodes.items():
        model = model_of(section)
        if not isinstance(model, CopyModel) or model.at is None:
            continue
        first = next((i for i, phase in enumerate(plan.phases) if phase.name == model.at), 0)
        stages = [stage for phase in plan.phases[:first] for stage in phase.stages]
        stages += [stage for probe in plan.probes for stage in probe.stages]
        if any(context.groups.get(stage.node) == context.groups[node] for stage in stages):
            found.append(node)
    return found
