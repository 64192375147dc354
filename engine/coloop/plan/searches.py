"""What a search is told that it does not do, and whom it cannot ask; `runnable` refuses it by
name."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import turns_of
from coloop.spec.lineage import Lineage, compute_lineage
from coloop.spec.nodes import RewardNode, SearchNode, VerifierNode
from coloop.spec.ports import PORTS, is_of_use
from coloop.spec.search import CompletionsByRate, RelativeProgress

SEARCH_HANDLES: Final = frozenset(
    {("policy", "policy"), ("check", "outcome"), ("check", "value"), ("tool", "tools")}
)
"""(source port, target port) of the handles that a search calls."""
TREES: Final = ("puct", "and_or")
"""Methods that grow trees of beginnings or of states."""
RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "binary_search": ("omega", "greedy"),
    "puct": ("puct", "greedy"),
    "and_or": ("puct", "greedy"),
}
"""By method, the rules by which it selects."""
ROW_BY_ROW: Final = frozenset({"rule", "discriminative", "generative", "formal"})
"""Methods of verifiers that score each row for itself, without others."""


class Objection(NamedTuple):
    """Why a search is refused."""

    what: str
    node: str
    field: str
    hint: str


def objections(spec: LoopSpec) -> Iterator[Objection]:
    """Of all searches of a loop."""
    searches = {name: node for name, node in spec.nodes.items() if isinstance(node, SearchNode)}
    if not searches:
        return
    lineage = compute_lineage(spec)[0]
    for name, node in searches.items():
        yield from _fields(name, node)
        if node.method in TREES:
            yield from _tree(spec, name, node, lineage)
        else:
            yield from _texts(name, node, lineage)
        yield from _asked(spec, name, node)


def _fields(name: str, node: SearchNode) -> Iterator[Objection]:
    """Values that the method does not know."""
    rules, select = RULES.get(node.method, ()), node.select
    if select is not None and select.rule is not None and rules and select.rule not in rules:
        what = f"`select.rule: {select.rule}` of a search by {node.method}"
        hint = f"use {' or '.join(f'`{rule}`' for rule in rules)}, or leave it unset"
        yield Objection(what, name, "select.rule", hint)


def _texts(name: str, node: SearchNode, lineage: Lineage) -> Iterator[Objection]:
    """What does not fit how a method labels the steps of texts."""
    grows = not lineage.labels_texts(name)
    if node.method != "binary_search":
        return
    if isinstance(node.labels, RelativeProgress):
        what = (
            "`labels: {relative_progress: ...}` of a binary search, which evaluates only a few "
            "steps"
        )
        yield Objection(what, name, "labels", "use `soft` or `hard`, or `method: monte_carlo`")
    if isinstance(node.completions, CompletionsByRate) and grows:
        what = "`completions` by the pass rate of prompts without texts"
        yield Objection(what, name, "completions", "set a number, or connect rollouts")


def _tree(spec: LoopSpec, name: str, node: SearchNode, lineage: Lineage) -> Iterator[Objection]:
    """What does not fit how a method grows trees."""
    if lineage.brings_texts(name):
        what = f"rows that have a text, in a search by {node.method}"
        hint = "connect prompts, or use `monte_carlo` or `binary_search` to label texts"
        yield Objection(what, name, "rows", hint)
    if node.method != "puct":
        return
    if isinstance(node.labels, RelativeProgress):
        what = (
            "`labels: {relative_progress: ...}` of a tree, whose prompt has no success rate of its "
            "own"
        )
        yield Objection(what, name, "labels", "use `soft` or `hard`, or `method: monte_carlo`")
    if node.budget.searches_per_row is None:
        what = "a search by puct without `budget.searches_per_row`"
        hint = "set how many visits a tree gets: visits of finished texts cost no tokens"
        yield Objection(what, name, "budget.searches_per_row", hint)
    if node.give == "visited" and not spec.graph.edges_into(name, "value"):
        what = "`give: visited` of a search that samples whole texts"
        hint = "connect a check to `value`, so that it samples step by step, or remove `give`"
        yield Objection(what, name, "give", hint)


def _asked(spec: LoopSpec, name: str, node: SearchNode) -> Iterator[Objection]:
    """Nodes and ports at which it would ask."""
    edges = spec.graph.edges_into(name, "policy")
    if len(edges) > 1:
        yield Objection(
            "several policies for one search", name, "policy", ("give each its own search")
        )
    for edge in edges:
        policy = edge.source.node
        if spec.kind_of(policy) != "actor":
            what = f"a search with the policy of a {spec.kind_of(policy)} (`{policy}`)"
            yield Objection(what, name, "policy", "connect an actor")
        elif turns_of(spec, policy) is not None:
            what = f"multi-turn texts in a search (policy `{policy}`)"
            yield Objection(what, policy, "rollout.turns", "give the search a policy without tools")
    for port, rule in PORTS[node.kind].inputs.items():
        if not is_of_use(rule, node) and spec.graph.edges_into(name, port):
            what = f"the port `{port}` of a search by {node.method}"
            yield Objection(what, name, port, "remove the edge: this port is not used")
    yield from _scorers(spec, name)
    tools = spec.graph.edges_into(name, "tools")
    if len(tools) > 1:
        yield Objection("several environments for one search", name, "tools", "connect one")
    for edge in tools:
        tool = spec.nodes[edge.source.node]
        if getattr(tool, "type", None) != "environment":
            what = f"the tool `{edge.source.node}` in a search, which moves from state to state"
            yield Objection(what, name, "tools", "connect a tool of `type: environment`")


def _scorers(spec: LoopSpec, name: str) -> Iterator[Objection]:
    """Who says how good texts are, or what they promise."""
    for port in ("outcome", "value"):
        for edge in spec.graph.edges_into(name, port):
            check = edge.source.node
            if port == "value" and spec.kind_of(check) == "critic":
                continue
            if not _scores_alone(spec, check):
                what = f"`{check}` as the {port} of a search: it needs more than one row"
                hint = "connect a reward that scores single rows, a rule or a classifier"
                yield Objection(what, name, port, hint)


def _scores_alone(spec: LoopSpec, name: str) -> bool:
    """Whether a scorer needs nothing but the row that it is asked about."""
    node = spec.nodes[name]
    if node.join not in ("align", "concat", "cross") or spec.graph.edges_into(name, "scores"):
        return False
    if isinstance(node, VerifierNode):
        compares = spec.graph.edges_into(name, "comparisons") or spec.graph.edges_into(
            name, "library"
        )
        return node.method in ROW_BY_ROW and not compares
    return isinstance(node, RewardNode) and getattr(node.source, "name", "") not in SCORE_TO_SCORE
