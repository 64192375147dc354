"""What of the language the engine runs; the rest can be drawn, checked and planned, not run yet.

One table for the catalog, the compiler and the docs. `later(spec)` names each place of a loop that
keeps it from running.
"""

from __future__ import annotations

from dataclasses import dataclass

from coloop.spec.algorithm import family_of, node_algorithms, resolve_rewards_algorithm
from coloop.spec.algorithm_fields import PreferenceAlgorithm, RewardsAlgorithm
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import KINDS, ActorNode, RewardNode

RUNNABLE_KINDS = frozenset(
    {"dataset", "actor", "reference", "reward", "template", "filter", "pairs", "buffer", "evaluate"}
)
RUNNABLE_ALGORITHMS = frozenset(
    {"grpo", "dr_grpo", "rloo", "reinforce_pp_baseline", "reinforce", "sft", "dpo", "spin"}
)
RUNNABLE_REWARD_SOURCES = frozenset({"builtin", "python"})
RUNNABLE_MODELS = frozenset({"pretrained", "scratch", "run", "copy", "shared", "snapshot"})
RUNNABLE_ENGINES = frozenset({"torch"})
RUNNABLE_BACKENDS = frozenset({"single"})

assert frozenset(KINDS) >= RUNNABLE_KINDS


@dataclass(frozen=True, slots=True)
class Later:
    """One place of a loop that the engine does not run yet."""

    what: str
    """In words: `critics`, `rounds`."""
    node: str | None
    field: str | None


def is_runnable_algorithm(name: str) -> bool:
    """Whether recipes for this algorithm, or the family of this preset, are there."""
    return family_of(name) in RUNNABLE_ALGORITHMS


def later(spec: LoopSpec) -> tuple[Later, ...]:
    """Each place of a loop that the engine does not run yet, in the order of the document."""
    found: list[Later] = []
    for name, node in spec.nodes.items():
        if node.kind not in RUNNABLE_KINDS:
            found.append(Later(f"nodes of kind `{node.kind}`", name, "kind"))
            continue
        if isinstance(node, RewardNode) and node.source.type not in RUNNABLE_REWARD_SOURCES:
            found.append(Later(f"rewards of type `{node.source.type}`", name, "source.type"))
        if isinstance(node, ActorNode):
            found += _actor(name, node)
        found += _algorithms(spec, name)
    found += _edges(spec)
    found += _whole(spec)
    return tuple(found)


def _actor(name: str, node: ActorNode) -> list[Later]:
    found: list[Later] = []
    if node.rollout.engine is not None and node.rollout.engine not in RUNNABLE_ENGINES:
        found.append(Later(f"the engine `{node.rollout.engine}`", name, "rollout.engine"))
    if node.rollout.turns is not None:
        found.append(Later("turns with tools", name, "rollout.turns"))
    if node.rollout.images:
        found.append(Later("images", name, "rollout.images"))
    backend = node.training.backend if node.training is not None else None
    if backend is not None and backend not in RUNNABLE_BACKENDS:
        found.append(Later(f"the backend `{backend}`", name, "training.backend"))
    return found


def _algorithms(spec: LoopSpec, node: str) -> list[Later]:
    found: list[Later] = []
    for port, entries in node_algorithms(spec, node).items():
        if port not in spec.graph.teaching_ports(node):
            continue
        for entry in entries:
            field = f"algorithm.{port}.name"
            if not is_runnable_algorithm(entry.name):
                found.append(Later(f"the algorithm `{entry.name}`", node, field))
            elif isinstance(entry, RewardsAlgorithm):
                found += _rewards(entry, node, port)
            elif isinstance(entry, PreferenceAlgorithm) and entry.loss not in (None, "sigmoid"):
                found.append(Later(f"the loss `{entry.loss}`", node, f"algorithm.{port}.loss"))
    return found


def _rewards(entry: RewardsAlgorithm, node: str, port: str) -> list[Later]:
    found: list[Later] = []
    full = resolve_rewards_algorithm(entry)
    if full.advantage in ("gae", "greedy"):
        what = f"the advantage `{full.advantage}`"
        found.append(Later(what, node, f"algorithm.{port}.advantage"))
    if full.off_policy is not None:
        found.append(Later("rows that others wrote", node, f"algorithm.{port}.off_policy"))
    return found


def _edges(spec: LoopSpec) -> list[Later]:
    found: list[Later] = []
    for index, edge in enumerate(spec.edges):
        if edge.rounds is not None:
            found.append(Later("rounds", None, f"edges.{index}.rounds"))
        elif spec.graph.is_handle(edge):
            found.append(Later("handles", None, f"edges.{index}"))
    return found


def _whole(spec: LoopSpec) -> list[Later]:
    found: list[Later] = []
    if spec.schedule.max_staleness > 0:
        found.append(Later("staleness above 0", None, "schedule.max_staleness"))
    if spec.schedule.stream:
        found.append(Later("streaming", None, "schedule.stream"))
    if len(spec.hardware.pools) > 1:
        found.append(Later("more than one pool", None, "hardware.pools"))
    return found
