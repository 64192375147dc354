"""Weights groups: nodes that share weights, named after the one that the others name in `with`.

A node with an adapter of its own has weights of its own (`adapters.py`). References to nodes that
do not exist and circles of `with` end at the last node that exists (the validator reports them).
"""

from __future__ import annotations

from collections.abc import Iterable

from coloop.spec.graph import LoopSpec
from coloop.spec.lean import record
from coloop.spec.model import CopyModel, PretrainedModel, SharedModel, SnapshotModel
from coloop.spec.nodes import BaseNode, model_of
from coloop.spec.rollout import Rollout, Turns
from coloop.spec.services import ChatService
from coloop.spec.table_sizes import REASONING
from coloop.spec.training import Training


@record
class WeightsGroup:
    """Nodes on one set of weights."""

    name: str
    """The node that owns the weights."""
    members: tuple[str, ...]
    """All its nodes, the owner first, then in the order they are written."""
    source: str
    """`model.type` of the owner: where the weights come from."""
    trainable: bool
    """Whether a teaching port of a member is connected and the weights may learn."""


def owner_of(spec: LoopSpec, node: str) -> str | None:
    """The node that owns a node's weights; None without weights."""
    seen: set[str] = set()
    while node in spec.nodes and node not in seen:
        seen.add(node)
        model = model_of(spec.nodes[node])
        if model is None:
            return None
        if not isinstance(model, SharedModel) or model.with_ not in spec.nodes:
            return node
        if model.lora is not None:
            return node
        node = model.with_
    return min(seen) if seen else None


def weights_groups(spec: LoopSpec) -> dict[str, WeightsGroup]:
    """Every group by its name, in the order that owners are written."""
    members: dict[str, list[str]] = {}
    for node in spec.nodes:
        owner = owner_of(spec, node)
        if owner is not None:
            members.setdefault(owner, []).append(node)
    ordered = [node for node in spec.nodes if node in members]
    return {name: _group(spec, name, members[name]) for name in ordered}


def _group(spec: LoopSpec, owner: str, members: list[str]) -> WeightsGroup:
    model = model_of(spec.nodes[owner])
    taught = any(spec.graph.teaching_ports(node) for node in members)
    return WeightsGroup(
        name=owner,
        members=(owner, *(node for node in members if node != owner)),
        source=model.type,
        trainable=taught and model.type != "snapshot",
    )


def group_of(spec: LoopSpec, node: str) -> WeightsGroup | None:
    """The group of a node; None without weights."""
    owner = owner_of(spec, node)
    return None if owner is None else weights_groups(spec)[owner]


def training_of(spec: LoopSpec, node: str) -> Training:
    """How the weights of a node are updated: its own section, its owner's, that of the node whose
    weights its adapter builds on, or the defaults."""
    seen: set[str] = set()
    at: str | None = node
    while at is not None and at not in seen:
        seen.add(at)
        own = getattr(spec.nodes[at], "training", None)
        if own is not None:
            return own  # type: ignore[no-any-return]
        model = model_of(spec.nodes[at])
        with_ = model.with_ if isinstance(model, SharedModel) else None
        at = with_ if with_ in spec.nodes else None
    return Training()


def updates_by_member(spec: LoopSpec, members: Iterable[str]) -> dict[str, int]:
    """By group member, its own `updates`, where set."""
    rules = {node: spec.schedule.learn[node] for node in members if node in spec.schedule.learn}
    return {n: rule.updates for n, rule in rules.items() if "updates" in rule.model_fields_set}


def updates_of(spec: LoopSpec, members: Iterable[str]) -> int:
    """How often the joint learn stage of these members is repeated."""
    return max(updates_by_member(spec, members).values(), default=1)


# Where weights are held and where members of their group write: pools, from the spec alone.

DEFAULT_POOL = "main"


def pool_of(spec: LoopSpec, node: str) -> str:
    owner = owner_of(spec, node) or node
    named = spec.nodes[owner].pool
    if named is not None:
        return named
    return next(iter(spec.hardware.pools), DEFAULT_POOL)


def writing_pools(spec: LoopSpec, group: WeightsGroup) -> dict[str, tuple[str, ...]]:
    """By pool in which members of a group generate, those members."""
    pools: dict[str, tuple[str, ...]] = {}
    for member in group.members:
        rollout = rollout_of(spec, member)
        if rollout is not None:
            pool = rollout.pool or spec.nodes[member].pool or pool_of(spec, member)
            pools[pool] = (*pools.get(pool, ()), member)
    return pools


def holding_pool(spec: LoopSpec, group: WeightsGroup) -> str:
    """The pool of a group's weights: where they train or score, else where they generate."""
    pools = writing_pools(spec, group)
    only_write = all(rollout_of(spec, member) is not None for member in group.members)
    if not group.trainable and only_write and len(pools) == 1:
        return next(iter(pools))
    return pool_of(spec, group.name)


GENERATED = frozenset({"rollouts", "policy", "scores", "step_scores", "check", "returns"})
"""Outputs for which a node with a `rollout` generates."""


def is_generation_read(spec: LoopSpec, node: str) -> bool:
    """Whether anything reads what a node with a `rollout` generates."""
    edges = spec.graph.edges_out_of(node)
    is_read = any(edge.source.port in GENERATED for edge in edges)
    return is_read or "rewards" in spec.graph.teaching_ports(node)


def rollout_of(spec: LoopSpec, node: str) -> Rollout | None:
    rollout: Rollout | None = getattr(spec.nodes[node], "rollout", None)
    return rollout


def source_of(spec: LoopSpec, node: str) -> str:
    """The node that names a node's weights, through `with` and `of`; the last one that exists."""
    seen: set[str] = set()
    while node not in seen:
        seen.add(node)
        match model_of(spec.nodes[node]):
            case SharedModel() as shared if shared.with_ in spec.nodes:
                node = shared.with_
            case CopyModel() | SnapshotModel() as derived if derived.of in spec.nodes:
                node = derived.of
    return node


def reasons(spec: LoopSpec, node: str) -> bool:
    """Whether a node generates with a model that, by its name, reasons before it answers."""
    model = model_of(spec.nodes[source_of(spec, node)])
    if not isinstance(model, PretrainedModel):
        return False
    is_told = model.chat_template_kwargs.get("enable_thinking") is False
    return not is_told and REASONING.search(model.path) is not None


def chat_service(node: BaseNode) -> ChatService | None:
    """The chat model by URL that a judge or a reward asks; None: it asks none."""
    source = getattr(node, "source", None)
    if isinstance(source, ChatService):
        return source
    return getattr(getattr(node, "rollout", None), "chat", None)


ANSWER_TOKENS = 256.0
"""Assumed maximum length of a tool's answer."""
SUM_TOKENS = 16.0
"""Assumed maximum length of a calculator's answer."""


def turns_of(spec: LoopSpec, node: str) -> Turns | None:
    """The `turns` of a generating node; None if nothing answers it."""
    rollout = rollout_of(spec, node)
    if rollout is None:
        return None
    has_tools = bool(spec.graph.edges_into(node, "tools"))
    return rollout.turns or (Turns() if has_tools else None)


def observed_tokens(spec: LoopSpec, node: str) -> float:
    """Maximum tokens that tools add to one text of a generating node."""
    turns = turns_of(spec, node)
    if turns is None:
        return 0.0
    if turns.observation_tokens is not None:
        return float(turns.answers * turns.observation_tokens)
    tools = [edge.source.node for edge in spec.graph.edges_into(node, "tools")]
    are_sums = all(getattr(spec.nodes.get(tool), "type", None) == "calculator" for tool in tools)
    return turns.answers * (SUM_TOKENS if are_sums else ANSWER_TOKENS)
