"""Controls that replace scores: `shuffled`, `constant` and `random`.

    exact.scores -> band.scores                  exact.scores -> exact_shuffled.scores
    band.scores -> policy.rewards       =>       exact_shuffled.scores -> band.scores
    exact.scores -> probe.scores                 (as before: the probe reads what is true)

`shuffled` stands behind every scorer that decides what the main learner is taught: its rewards, and
what filters, buffers and pairs choose on the way. `constant` and `random` stand in front of its
rewards and leave the choice of rows alone; they replace what learned judges say, and all rewards
where there is none.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coloop.errors import ControlRefused
from coloop.explain.controls.draft import Draft, source_of, target_of
from coloop.explain.controls.frozen import Edit
from coloop.explain.controls.roles import Roles, names, told
from coloop.spec.graph import Edge
from coloop.spec.ports import PortType

PASSING = frozenset({"filter", "buffer", "pairs", "template"})
"""Kinds through which a score decides which rows are taught."""
SCORERS = frozenset({"reward", "verifier", "search", "environment"})
MOVED = ("aggregate", "take")
"""Options of an edge that say which score a learner's row gets."""


def shuffled_edits(roles: Roles) -> Iterator[Edit]:
    """Ways to hand the scores of the main learner and its peers to other rows.

    Raises:
        ControlRefused: no score decides what is taught.
    """
    learners = (roles.main, *roles.peers)
    edges = list(dict.fromkeys(e for name in learners for e in _deciding(roles, name)))
    pairs = roles.spec.graph.edges_into(roles.main, "pairs")
    if not edges and pairs:
        yield lambda draft: _swap(roles, draft, [edge.key for edge in pairs])
        return
    if not edges:
        ports = names(f"{roles.main}.{p}" for p in roles.spec.graph.teaching_ports(roles.main))
        raise ControlRefused(
            f"no score decides what reaches {ports}, so there is none to hand to other rows",
            roles.main,
        )
    scorers = names(dict.fromkeys(edge.source.node for edge in edges))
    said = f"the scores of {scorers} reach other rows of the step before {told(learners, 'learns')}"
    source = {"type": "builtin", "name": "other_rows"}
    yield from _inserted(edges, "shuffled", source, said)


def judged_edits(
    roles: Roles, suffix: str, source: Mapping[str, Any], words: str
) -> Iterator[Edit]:
    """Ways to replace the rewards of learned judges, or all rewards where there is none.

    Args:
        source: the reward that replaces each score.
        words: what takes the place of the scores, in a sentence.

    Raises:
        ControlRefused: the main learner has no rewards.
    """
    graph = roles.spec.graph
    learners = (roles.main, *roles.peers)
    edges = [edge for name in learners for edge in graph.edges_into(name, "rewards")]
    if not edges:
        raise ControlRefused(
            f"`{roles.main}` has no rewards: it is taught by "
            f"{names(graph.teaching_ports(roles.main))}",
            roles.main,
        )
    partners = set(roles.partners)
    judged = [edge for edge in edges if _is_judged(roles, edge, partners)]
    replaced = judged or edges
    scorers = names(dict.fromkeys(edge.source.node for edge in replaced))
    taught = names(dict.fromkeys(edge.target.node for edge in replaced))
    said = f"{words} instead of the scores of {scorers} as rewards of {taught}"
    yield from _inserted(replaced, suffix, source, said)


def _is_judged(roles: Roles, edge: Edge, partners: set[str]) -> bool:
    """Whether a partner's scores arrive through an edge, not only its texts."""
    stop = {roles.main}

    def reaches(node: str, seen: set[str]) -> bool:
        if node in partners:
            return roles.spec.kind_of(node) in SCORERS
        if node in stop or node in seen:
            return False
        seen.add(node)
        ports = ("scores", "by", "rollouts", "rows")
        into = [one for port in ports for one in roles.spec.graph.edges_into(node, port)]
        return any(reaches(one.source.node, seen) for one in into)

    return reaches(edge.source.node, set())


def _deciding(roles: Roles, learner: str) -> Iterator[Edge]:
    """The edges by which scores decide what a learner is taught, at the scorers."""
    graph = roles.spec.graph
    waiting = [
        edge
        for port in graph.teaching_ports(learner)
        for edge in graph.teaching_edges_into(learner, port)
    ]
    seen: set[str] = set()
    while waiting:
        edge = waiting.pop(0)
        source = edge.source
        kind = roles.spec.kind_of(source.node)
        port = graph.out_port(source)
        if kind in SCORERS and port is not None and port.type == PortType.SCORES:
            yield edge
        elif kind in PASSING and source.node not in seen:
            seen.add(source.node)
            waiting += graph.edges_into(source.node)


def _inserted(
    edges: Iterable[Edge], suffix: str, source: Mapping[str, Any], said: str
) -> Iterator[Edit]:
    """The same scores through a node that replaces them; first on the learner's own rows where an
    edge takes scores from rows below."""
    keys = [edge.key for edge in edges]
    for is_own in (True, False):

        def edit(draft: Draft, is_own: bool = is_own) -> str:
            _insert(draft, keys, suffix, source, is_own=is_own)
            return said

        yield edit


def _insert(
    draft: Draft, keys: Iterable[str], suffix: str, source: Mapping[str, Any], *, is_own: bool
) -> None:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    wanted = set(keys)
    for edge in draft.edges:
        if draft_key(edge) not in wanted:
            continue
        at_learner = is_own and draft.teaches(edge) and edge.get("aggregate") is not None
        moved = tuple((name, edge[name]) for name in MOVED if at_learner and name in edge)
        groups[edge["from"], moved, target_of(edge).node if moved else None].append(edge)
    for (sent, moved, learner), members in groups.items():
        scorer = source_of(members[0])
        stem = scorer.node if scorer.port == "scores" else f"{scorer.node}_{scorer.port}"
        name = draft.add_node(f"{stem}_{suffix}", {"kind": "reward", "source": dict(source)})
        if learner is not None:
            draft.add_edge(f"{learner}.rollouts", f"{name}.rollouts")
        draft.add_edge(sent, f"{name}.scores", **dict(moved))
        for edge in members:
            edge["from"] = f"{name}.scores"
            for option, _ in moved:
                del edge[option]
            _rename(draft, target_of(edge).node, scorer.node, name)


def _swap(roles: Roles, draft: Draft, keys: Iterable[str]) -> str:
    """Pairs of the main learner with a coin for which side is preferred; references score the pairs
    as they are taught."""
    code = "import random\n\n\ndef reward(prompts, completions, **columns):\n"
    code += "    return [random.random() for _ in completions]\n"
    coin = {"kind": "reward", "source": {"type": "python", "code": code}}
    wanted = set(keys)
    sources = {edge["from"]: edge for edge in draft.edges if draft_key(edge) in wanted}
    for source in sources:
        stem = source.partition(".")[0]
        drawn = draft.add_node(f"{stem}_coin", coin)
        swapped = draft.add_node(f"{stem}_swapped", {"kind": "pairs", "method": "relabel"})
        for edge in draft.edges:
            target = target_of(edge)
            serves = draft.nodes[target.node]["kind"] == "reference"
            if edge["from"] == source and (draft_key(edge) in wanted or serves):
                edge["from"] = f"{swapped}.pairs"
        draft.add_edge(source, f"{drawn}.comparisons")
        draft.add_edge(source, f"{swapped}.pairs")
        draft.add_edge(f"{drawn}.scores", f"{swapped}.preference")
    return f"a coin says which side of a pair `{roles.main}` takes for the preferred one"


def draft_key(edge: Mapping[str, Any]) -> str:
    """The id of an edge, or its ends, as `Edge.key` has it."""
    return str(edge.get("id") or f"{edge['from']}->{edge['to']}")


def _rename(draft: Draft, reader: str, old: str, new: str) -> None:
    """A filter or buffer that names the scorer names the node in between instead."""
    node = draft.nodes[reader]
    if node["kind"] == "filter":
        for rule in node.get("keep", ()):
            if rule.get("of") == old:
                rule["of"] = new
    if node["kind"] == "buffer" and (node.get("balance") or {}).get("by") == old:
        node["balance"]["by"] = new
