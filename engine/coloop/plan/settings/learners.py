"""What runs the updates of each group that learns, and where its model states lie.

On a CPU processes hold them whole where they fit: nothing is gathered, and gradients are summed
once a step. Elsewhere each process has a part.
"""

from dataclasses import dataclass

from coloop.plan.settings.architecture import count_parameters
from coloop.plan.settings.facts import resolve_architecture
from coloop.plan.settings.machine import PoolShare
from coloop.plan.settings.outline import Outline
from coloop.plan.settings.settings import States
from coloop.plan.settings.states import Precision, compute_states
from coloop.spec.adapters import standing_of
from coloop.spec.groups import training_of
from coloop.spec.heads import head_of_group
from coloop.spec.training import Backend

GIB = 2**30
FULL = Precision(compute_bytes=4, master_bytes=4, frozen_bytes=4, engine_bytes=4)
ROOM_FOR_STATES = 0.5
"""Of what a process may hold: engines and passes want the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learners:
    """By weights group that learns."""

    backends: dict[str, Backend]
    states: dict[str, States]

    @property
    def held(self) -> dict[str, Backend]:
        """How weights lie in a process: whole ones as those of a process by itself."""
        return {
            name: "single" if self.states[name] == "whole" else backend
            for name, backend in self.backends.items()
        }


def settle_learners(outline: Outline) -> Learners:
    """Backend and states of every group that learns."""
    learning = [name for name, group in outline.groups.items() if group.trainable]
    backends = {name: _backend(outline, name) for name in learning}
    states = {name: _states(outline, backends, name) for name in learning}
    return Learners(backends=backends, states=states)


def _backend(outline: Outline, owner: str) -> Backend:
    """What runs the updates of a group."""
    named = training_of(outline.spec, owner).backend
    if named is not None:
        return named
    pool = outline.home_of(owner)
    path = f"nodes.{owner}.training.backend"
    if pool.places > 1:
        kind = "GPUs" if pool.gpus else "processes"
        reason = f"the {pool.places} {kind} of its pool learn together"
        return outline.decide(path, "fsdp2", reason)
    return outline.decide(path, "single", "one process")


def _states(outline: Outline, backends: dict[str, Backend], owner: str) -> States:
    """Where the model states of a group that learns lie."""
    backend = backends[owner]
    if backend != "fsdp2":
        return "whole" if backend == "single" else "spread"
    training, pool = training_of(outline.spec, owner), outline.home_of(owner)
    size = _whole_bytes(outline, owner)
    value: States = "spread"
    if not outline.machine.is_cpu:
        reason = f"{pool.places} GPUs together have enough memory"
    elif (training.tensor_parallel or 1) > 1:
        reason = "processes that split layers hold a part of each"
    elif training.reshard_after_forward is not None:
        reason = "`reshard_after_forward` applies to gathered weights"
    elif size > _room(outline, backends, pool):
        reason = f"unsharded they would take {size / GIB:.1f} GiB in each process"
    else:
        value, reason = "whole", "nothing is gathered, and gradients are all-reduced once a step"
    return outline.decide(f"nodes.{owner}.states", value, reason)


def _whole_bytes(outline: Outline, owner: str) -> float:
    """Model states of a group, all of them in one process, in float32; 0: not known."""
    spec = outline.spec
    arch, _ = resolve_architecture(spec, owner, outline.root)
    if arch is None:
        return 0.0
    has_logits = head_of_group(spec, outline.groups[owner].members) == "words"
    count = count_parameters(arch, "language_model" if has_logits else "score")
    is_adapter = standing_of(spec, owner) is not None
    return compute_states(
        total=count.total,
        trainable=0 if is_adapter else count.total,
        scheme="replicas",
        shards=1,
        precision=FULL,
        optimizer=training_of(spec, owner).optimizer.name,
    ).total


def _room(outline: Outline, backends: dict[str, Backend], pool: PoolShare) -> float:
    """Memory of a process for one group that learns in it."""
    sharing = sum(outline.home_of(name) is pool for name in backends)
    return ROOM_FOR_STATES * outline.machine.usable_bytes(pool) / sharing
