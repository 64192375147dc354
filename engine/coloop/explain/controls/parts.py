"""`no_tool` and `no_filter`: the same loop without the tools of the main learner, or with every row
that a filter would have cut."""

from collections.abc import Iterator

from coloop.errors import ControlRefused
from coloop.explain.controls.draft import Draft, source_of, target_of
from coloop.explain.controls.frozen import Edit
from coloop.explain.controls.roles import Roles, names
from coloop.explain.controls.scores import PASSING
from coloop.spec.nodes import FilterNode, ToolNode


def toolless_edits(roles: Roles) -> Iterator[Edit]:
    """
    Raises:
        ControlRefused: the main learner calls no tool, or its prompts come from one.
    """
    learners = (roles.main, *roles.peers)
    edges = [edge for name in learners for edge in roles.spec.graph.edges_into(name, "tools")]
    tools = {edge.source.node: roles.spec.nodes[edge.source.node] for edge in edges}
    if not tools:
        raise ControlRefused(f"`{roles.main}` calls no tool", roles.main)
    for name, node in tools.items():
        if isinstance(node, ToolNode) and node.type == "environment":
            raise ControlRefused(f"the environment `{name}` gives `{roles.main}` its prompts", name)

    def edit(draft: Draft) -> str:
        for edge in [edge for name in learners for edge in draft.edges_into(name, "tools")]:
            draft.edges.remove(edge)
        for name in learners:
            draft.nodes[name].get("rollout", {}).pop("turns", None)
        return f"{names(learners)} cannot call {names(tools)}"

    yield edit


def unfiltered_edits(roles: Roles) -> Iterator[Edit]:
    """
    Raises:
        ControlRefused: no filter decides what the main learner is taught by rewards or pairs.
    """
    filters = list(_filters(roles))
    if not filters:
        raise ControlRefused(f"no filter decides what `{roles.main}` is taught", roles.main)

    def edit(draft: Draft) -> str:
        for name in filters:
            _bypass(draft, name)
        return f"every row passes {names(filters)}"

    yield edit


def _filters(roles: Roles) -> Iterator[str]:
    graph = roles.spec.graph
    waiting = [
        edge.source.node
        for name in (roles.main, *roles.peers)
        for port in ("rewards", "pairs")
        for edge in graph.edges_into(name, port)
    ]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        if name in seen or roles.spec.kind_of(name) not in PASSING:
            continue
        seen.add(name)
        if isinstance(roles.spec.nodes[name], FilterNode):
            yield name
        waiting += [edge.source.node for edge in graph.edges_into(name)]


def _bypass(draft: Draft, name: str) -> None:
    """What left the filter comes from where the filter had it from."""
    given = {target_of(edge).port: edge["from"] for edge in draft.edges_into(name)}
    if "rollouts" in given:
        given.setdefault("rows", given["rollouts"])
    for edge in [edge for edge in draft.edges if source_of(edge).node == name]:
        port = source_of(edge).port
        if port not in given:
            raise ControlRefused(f"`{name}.{port}` has no input that it cuts", name)
        edge["from"] = given[port]
    ends = [(edge["from"], edge["to"]) for edge in draft.edges]
    draft.edges = [e for at, e in enumerate(draft.edges) if ends[at] not in ends[:at]]
    draft.drop([name])
