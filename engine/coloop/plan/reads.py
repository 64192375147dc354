"""Where fields of nodes are read: the tables by which `unread` refuses those that nobody does.

    whose field                 what decides whether it is read           table
    of a node                   what else the node says, its edges        `OF_NODES`
    of a search                 its method                                `OF_SEARCHES`
    `read` of a scorer          its way of judging                        `OF_WAYS`
    `rollout`, on a machine     the engine that writes                    `OF_ENGINES`
    `training`, on a machine    the backend that trains                   `OF_BACKENDS`
    of an algorithm             its advantage, loss, aggregation, ...     `spec.algorithm_reads`

A new field, kind, method, engine or backend has its line in one of them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from coloop.plan.searches import TREES
from coloop.spec.graph import LoopSpec
from coloop.spec.lineage import Walk, compute_lineage
from coloop.spec.nodes import (
    BaseNode,
    EvaluateNode,
    PairsNode,
    RewardNode,
    SearchNode,
    ToolNode,
)
from coloop.spec.reward import ModelSource

LEAVE_OUT: Final = "remove it"


class Passed(NamedTuple):
    """Fields of a kind of node by which everybody passes, where the node is as `when` says."""

    kind: type[Any]
    fields: tuple[str, ...]
    when: Callable[[LoopSpec, str, Any], bool]
    what: str
    """Behind the field, in a message; `{name}` and `{node}` stand for the node."""
    hint: str = LEAVE_OUT


def _searches_by(method: str) -> Callable[[LoopSpec, str, Any], bool]:
    return lambda spec, name, node: node.method == method


def _has_no_edge_at(*ports: str) -> Callable[[LoopSpec, str, Any], bool]:
    return lambda spec, name, node: not any(spec.graph.edges_into(name, port) for port in ports)


def _crosses_nothing(spec: LoopSpec, name: str, node: BaseNode) -> bool:
    """Whether rows that are to be crossed come in by one edge at most."""
    walk = Walk(spec)
    scored = [edge for edge in walk.score_edges(name) if edge.aggregate is None]
    return node.join == "cross" and len(walk.row_edges(name) or scored) < 2


def _selects_nothing(spec: LoopSpec, name: str, node: SearchNode) -> bool:
    """Whether a search labels each text for itself, and so has no beginnings to select from."""
    if node.method in TREES:
        return False
    return node.method == "monte_carlo" or compute_lineage(spec)[0].labels_texts(name)


_OF_OMEGA: Final = ("select.alpha", "select.beta", "select.length")
OF_SEARCHES: Final[Mapping[str, tuple[str, ...]]] = {
    "monte_carlo": ("expand", "step_reward", "give"),
    "binary_search": ("expand", "step_reward", "give"),
    "puct": ("completions", "step_reward", *_OF_OMEGA),
    "and_or": ("completions", "labels", "stop_at_zero", *_OF_OMEGA),
}
"""By method of search, the fields that it does not read."""

OF_NODES: Final[tuple[Passed, ...]] = (
    Passed(
        EvaluateNode,
        ("greedy", "samples", "temperature"),
        lambda spec, name, node: node.instead_of is None,
        "of an evaluation of the step's own rows (`instead_of` is not set)",
    ),
    Passed(
        EvaluateNode,
        ("temperature",),
        lambda spec, name, node: node.instead_of is not None and node.greedy,
        "of an evaluation with greedy decoding",
    ),
    Passed(
        RewardNode,
        ("on_error",),
        lambda spec, name, node: isinstance(node.source, ModelSource),
        "of a reward model: a text that it cannot score has no score",
    ),
    Passed(
        PairsNode,
        ("soft", "drop_ties"),
        _has_no_edge_at("scores", "preference"),
        "of pairs without `scores`",
    ),
    Passed(
        ToolNode,
        ("timeout_seconds",),
        lambda spec, name, node: node.type == "environment" and node.name is not None,
        "of an environment that coloop provides",
    ),
    Passed(
        ToolNode,
        ("call",),
        lambda spec, name, node: bool(spec.graph.edges_into(name, "tools")),
        "of a tool that wraps others (node `{name}`)",
        "remove it: it is called like the tools that it wraps",
    ),
    *(
        Passed(SearchNode, fields, _searches_by(method), "of a search by {node.method}")
        for method, fields in OF_SEARCHES.items()
    ),
    Passed(BaseNode, ("join",), _crosses_nothing, "(`cross`) of rows that arrive by one edge"),
    Passed(
        SearchNode, ("select",), _selects_nothing, "of a search that labels each text separately"
    ),
)

_NUMBERS: Final = frozenset({"threshold", "clamp", "range"})
_STEPS: Final = frozenset({"granularity", "step_separator", "reduce"})
_HEADS: Final = frozenset({"activation", "labels"})
_WORDS: Final = _STEPS | {"verdict", "step_verdicts", "on_no_match"}


class Way(NamedTuple):
    """What a way of judging reads of `read`."""

    who: str
    fields: frozenset[str]
    orders: bool = False
    """Whether it shows the two sides of a pair in an order."""
    weighs: bool = False
    """Whether labels, where it has some, are worth `values`."""


OF_WAYS: Final[Mapping[str, Way]] = {
    "rule": Way("a verifier of method rule", _NUMBERS | _STEPS),
    "vote": Way("a verifier of method vote", _NUMBERS),
    "formal": Way("a verifier of method formal", _NUMBERS),
    "implicit_prm": Way(
        "a verifier of method implicit_prm",
        _NUMBERS | _STEPS | {"beta", "normalise", "activation"},
    ),
    "discriminative": Way(
        "a verifier of method discriminative", _NUMBERS | _STEPS | _HEADS, orders=True, weighs=True
    ),
    "reward": Way("a reward model", _NUMBERS | _HEADS, weighs=True),
    "choosing": Way(
        "a judge that chooses among labels (without `rollout`)",
        _NUMBERS | {"labels", "score"},
        orders=True,
    ),
    "weighing": Way(
        "a judge whose labels are weighted (`score: probability`)",
        _NUMBERS | _WORDS | {"labels", "score"},
        orders=True,
    ),
    "writing": Way(
        "a judge whose text is parsed (`score: text`)",
        _NUMBERS | _WORDS | {"number", "numbers", "scale", "values", "step_scale"},
        orders=True,
    ),
}


class Idle(NamedTuple):
    """A field by which those at work on a machine pass."""

    fine: tuple[Any, ...] = ()
    """Values that say what happens anyway."""
    read_by: tuple[str, ...] = ()
    """Who does read it."""


OF_ENGINES: Final[Mapping[str, Idle]] = {
    "script": Idle(fine=((),), read_by=("torch",)),
    # the cache of the torch engine is as large as the rows at once want it
    "gpu_memory_utilization": Idle(read_by=("vllm",)),
    "tensor_parallel": Idle(fine=(1,)),
}
OF_BACKENDS: Final[Mapping[str, Idle]] = {
    "offload": Idle(fine=("none",)),
    "tensor_parallel": Idle(fine=(1,), read_by=("fsdp2",)),
    "pipeline_parallel": Idle(fine=(1,)),
    "context_parallel": Idle(fine=(1,)),
    "expert_parallel": Idle(fine=(1,)),
}
