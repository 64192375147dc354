"""Settings that are written but have no effect, given the rest of the loop: `run` refuses them by
name. There is one table for each way of deciding that. A setting is not reported if it only states
what happens anyway.

    whose field                 what decides whether it is read           table
    of a node                   what else the node says, its edges        `OF_NODES`
    of a search                 its method                                `OF_SEARCHES`
    `read` of a scorer          its way of judging                        `OF_WAYS`
    `rollout`, on a machine     the engine that generates                 `OF_ENGINES`
    `training`, on a machine    the backend that trains                   `OF_BACKENDS`
    of an algorithm             its advantage, loss, aggregation, ...     `spec.algorithm_reads`

A new field, kind, method, engine or backend that this concerns is added to one of them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from coloop.plan.refusals import LATER, NOT_YET, REMOVE, TREES, UNUSED, refusal
from coloop.spec.algorithm import LabelCrossEntropy, algorithm_paths
from coloop.spec.algorithm_reads import Unread, unread_fields
from coloop.spec.base import yaml_key
from coloop.spec.diagnostics import Diagnostic, Fix
from coloop.spec.graph import LoopSpec
from coloop.spec.lineage import Walk, compute_lineage
from coloop.spec.nodes import (
    BaseNode,
    EvaluateNode,
    PairsNode,
    RewardNode,
    SearchNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.reward import ChatSource, ModelSource


class Unused(NamedTuple):
    """Fields of a kind of node that nothing reads where `when` is true of the node."""

    kind: type[Any]
    fields: tuple[str, ...]
    when: Callable[[LoopSpec, str, Any], bool]
    what: str
    """Follows the field in the message; `{name}` is the node's name, `{node}` the node itself."""
    hint: str = REMOVE


def _crosses_nothing(spec: LoopSpec, name: str, node: BaseNode) -> bool:
    """Whether a node with `join: cross` gets its rows by one edge at most."""
    walk = Walk(spec)
    scored = [edge for edge in walk.score_edges(name) if edge.aggregate is None]
    return node.join == "cross" and len(walk.row_edges(name) or scored) < 2


def _selects_nothing(spec: LoopSpec, name: str, node: SearchNode) -> bool:
    """Whether a search labels each text separately, and so has no beginnings to select from."""
    if node.method in TREES:
        return False
    return node.method == "monte_carlo" or compute_lineage(spec)[0].labels_texts(name)


def _searches_by(method: str) -> Callable[[LoopSpec, str, Any], bool]:
    return lambda spec, name, node: bool(node.method == method)


_OF_OMEGA: Final = ("select.alpha", "select.beta", "select.length")
OF_SEARCHES: Final[Mapping[str, tuple[str, ...]]] = {
    "monte_carlo": ("expand", "step_reward", "give"),
    "binary_search": ("expand", "step_reward", "give"),
    "puct": ("completions", "step_reward", *_OF_OMEGA),
    "and_or": ("completions", "labels", "stop_at_zero", *_OF_OMEGA),
}
"""For each search method, the fields that it does not read."""

OF_NODES: Final[tuple[Unused, ...]] = (
    Unused(
        EvaluateNode,
        ("greedy", "samples", "temperature"),
        lambda spec, name, node: node.instead_of is None,
        "of an evaluation of the step's own rows (`instead_of` is not set)",
    ),
    Unused(
        EvaluateNode,
        ("temperature",),
        lambda spec, name, node: node.instead_of is not None and node.greedy,
        "of an evaluation with greedy decoding",
    ),
    Unused(
        RewardNode,
        ("on_error",),
        lambda spec, name, node: isinstance(node.source, ModelSource),
        "of a reward model: a text that it cannot score has no score",
    ),
    Unused(
        PairsNode,
        ("soft", "drop_ties"),
        lambda spec, name, node: (
            not any(spec.graph.edges_into(name, port) for port in ("scores", "preference"))
        ),
        "of pairs without `scores`",
    ),
    Unused(
        ToolNode,
        ("timeout_seconds",),
        lambda spec, name, node: node.type == "environment" and node.name is not None,
        "of an environment that coloop provides",
    ),
    Unused(
        ToolNode,
        ("call",),
        lambda spec, name, node: bool(spec.graph.edges_into(name, "tools")),
        "of a tool that wraps others (node `{name}`)",
        "remove it: it is called like the tools that it wraps",
    ),
    *(
        Unused(SearchNode, fields, _searches_by(method), "of a search by {node.method}")
        for method, fields in OF_SEARCHES.items()
    ),
    Unused(BaseNode, ("join",), _crosses_nothing, "(`cross`) of rows that arrive by one edge"),
    Unused(
        SearchNode, ("select",), _selects_nothing, "of a search that labels each text separately"
    ),
)

_NUMBERS: Final = frozenset({"threshold", "clamp", "range"})
_STEPS: Final = frozenset({"granularity", "step_separator", "reduce"})
_HEADS: Final = frozenset({"activation", "labels"})
_WORDS: Final = _STEPS | {"verdict", "step_verdicts", "on_no_match"}


_ANSWERS: Final = frozenset({"number", "scale", "values", "json_path", "rubric", "ask", "ranking"})


class Way(NamedTuple):
    """Which fields of `read` one way of judging uses."""

    who: str
    fields: frozenset[str]
    orders: bool = False
    """Whether it also uses `order` where it judges pairs."""
    weighs: bool = False
    """Whether it also uses `values` where `labels` are set."""


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
        _NUMBERS | _WORDS | _ANSWERS | {"numbers", "step_scale"},
        orders=True,
    ),
    "chat": Way("a reward by a chat model", _NUMBERS | _ANSWERS | {"verdict", "on_no_match"}),
}


class Idle(NamedTuple):
    """A field that not every engine or backend reads, and when it is accepted all the same."""

    fine: tuple[Any, ...] = ()
    """Values that only state what happens anyway."""
    read_by: tuple[str, ...] = ()


OF_ENGINES: Final[Mapping[str, Idle]] = {
    "script": Idle(fine=((),), read_by=("torch",)),
    # the torch engine sizes its cache by the rows that it generates at once
    "gpu_memory_utilization": Idle(read_by=("vllm",)),
    "tensor_parallel": Idle(fine=(1,), read_by=("vllm",)),
}
OF_BACKENDS: Final[Mapping[str, Idle]] = {
    "offload": Idle(fine=("none",)),
    "tensor_parallel": Idle(fine=(1,), read_by=("fsdp2",)),
    "pipeline_parallel": Idle(fine=(1,)),
    "context_parallel": Idle(fine=(1,)),
    "expert_parallel": Idle(fine=(1,)),
}

BY_VALUE = ("advantage", "loss", "aggregation", "deviation")
"""Fields that a message names together with their value: the loss `cispo`."""


def check_unused(spec: LoopSpec) -> Iterator[Diagnostic]:
    """Settings of the nodes of a loop that nothing reads on any machine."""
    for name, node in spec.nodes.items():
        for unused in (unused for unused in OF_NODES if isinstance(node, unused.kind)):
            fields = [field for field in unused.fields if _is_not_default(node, field)]
            if fields and unused.when(spec, name, node):
                what = unused.what.format(name=name, node=node)
                for field in fields:
                    yield _finding(f"nodes.{name}.{field}", f"`{field}` {what}", unused.hint)
        if isinstance(node, RewardNode | VerifierNode) and node.read is not None:
            yield from _of_read(spec, name, node)
        yield from _of_algorithms(spec, name)


def unused_by_engine(node: str, rollout: object, engine: str) -> Iterator[Diagnostic]:
    """Settings of a node's `rollout` that its engine does not read."""
    return _unused_by(
        f"nodes.{node}.rollout", rollout, OF_ENGINES, engine, f"the `{engine}` engine"
    )


def unused_by_backend(node: str, training: object, backend: str) -> Iterator[Diagnostic]:
    """Settings of a node's `training` that its backend does not read."""
    return _unused_by(f"nodes.{node}.training", training, OF_BACKENDS, backend, f"`{backend}`")


def _is_not_default(section: Any, field: str) -> bool:
    """Whether a field, possibly a nested one such as `select.alpha`, differs from its default."""
    first, _, rest = field.partition(".")
    value = getattr(section, first)
    if rest:
        return value is not None and _is_not_default(value, rest)
    return bool(value != type(section).model_fields[first].default)


def _way_of(node: RewardNode | VerifierNode) -> str:
    if isinstance(node, RewardNode):
        return "chat" if isinstance(node.source, ChatSource) else "reward"
    if node.method != "generative":
        return node.method
    if node.rollout is None:
        return "choosing"
    return "weighing" if node.read.score == "probability" else "writing"


def _of_read(spec: LoopSpec, name: str, node: RewardNode | VerifierNode) -> Iterator[Diagnostic]:
    read, way = node.read, OF_WAYS[_way_of(node)]
    assert read is not None
    is_taught_pairs = bool(spec.graph.edges_into(name, "pairs"))
    shows_pairs = is_taught_pairs or bool(spec.graph.edges_into(name, "comparisons"))
    also = {"order"} if shows_pairs and way.orders else set()
    also |= {"labels"} if is_taught_pairs else set()
    also |= {"values"} if read.labels is not None and way.weighs else set()
    also |= {"score"} if way is OF_WAYS["discriminative"] and read.labels is not None else set()
    if any(isinstance(entry, LabelCrossEntropy) for *_, entry in algorithm_paths(spec, name)):
        also |= {"labels", "values"}
    for field in sorted(read.model_fields_set - way.fields - also):
        if _is_not_default(read, field):
            without = " without `comparisons` or `pairs`" if field == "order" and way.orders else ""
            if field == "values" and way.weighs:
                without = " without `labels`"
            key = yaml_key(type(read), field)
            what = f"`read.{key}`, which {way.who}{without} does not use (node `{name}`)"
            yield _finding(f"nodes.{name}.read.{key}", what)


def _of_algorithms(spec: LoopSpec, name: str) -> Iterator[Diagnostic]:
    combine = getattr(getattr(spec.nodes[name], "credit", None), "combine", None)
    also_read = frozenset({"epsilon"} if combine == "normalize_then_sum" else ())
    for _, at, entry in algorithm_paths(spec, name):
        for unread in unread_fields(entry, also_read=also_read):
            yield _of_algorithm(f"{at}.{unread.field}", unread)


def _of_algorithm(at: str, unread: Unread) -> Diagnostic:
    by, instead = unread.reader.by, _written(unread.instead)
    chosen = f"the {by} `{instead}`" if by in BY_VALUE else f"`{by}: {instead}`"
    values = sorted(map(_written, unread.reader.values))
    others = " or ".join(f"`{by}: {value}`" for value in values) or f"a `{by}`"
    value = _written(unread.value)
    what = f"`{unread.field}: {value}` with {chosen}, which does not use it"
    way_out = REMOVE if unread.nothing is None else f"set it to {unread.nothing:g}"
    return _finding(at, what, f"{way_out}, or set {others}", instead=unread.nothing)


def _unused_by(
    at: str, section: object, table: Mapping[str, Idle], who: str, called: str
) -> Iterator[Diagnostic]:
    for field, idle in table.items():
        value = getattr(section, field, None)
        if who not in idle.read_by and value not in (None, *idle.fine):
            shown = "" if isinstance(value, tuple) else f": {value}"
            name = f"{at.rpartition('.')[2]}.{field}"
            what = f"`{name}{shown}` with {called}, which does not use it"
            yield _finding(f"{at}.{field}", what, LATER)


def _finding(at: str, what: str, hint: str = REMOVE, *, instead: float | None = None) -> Diagnostic:
    """`instead`: a value without effect, for fields whose removal would have an effect."""
    field = at.split(".", 2)[2]
    fix = Fix.remove(f"Remove `{field}`", at)
    if instead is not None:
        fix = Fix.set(f"Set `{field}` to {instead:g}", at, instead)
    return refusal(what, at, hint, fix, begins=NOT_YET if hint == LATER else UNUSED)


def _written(value: Any) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
