"""Which nodes have a part in what a loop is for: learning, keeping rows, measuring."""

from typing import Any

from coloop.spec.base import as_tuple
from coloop.spec.nodes import EvaluateNode
from coloop.validate.facts import Facts


def used_nodes(facts: Facts) -> set[str]:
    """Nodes from which a goal can be reached, and nodes that others name.

    Goals are learners, evaluations, and buffers that a phase fills or that somebody reads.
    """
    goals = [name for name, node in facts.nodes.items() if _is_goal(facts, name, node)]
    used = _reach_up(facts, goals)
    while True:
        named = {other for name in used for other in _named_by(facts, name)} - used
        if not named:
            return used
        used |= _reach_up(facts, named)


def _is_goal(facts: Facts, name: str, node: object) -> bool:
    if isinstance(node, EvaluateNode) or name in facts.learners:
        return True
    return any(name in phase.fills for phase in facts.phases)


def _reach_up(facts: Facts, goals: set[str] | list[str]) -> set[str]:
    reached, waiting = set(goals), list(goals)
    while waiting:
        for edge in facts.walk.into(waiting.pop()):
            if edge.source.node not in reached:
                reached.add(edge.source.node)
                waiting.append(edge.source.node)
    return reached


def _named_by(facts: Facts, name: str) -> set[str]:
    """Nodes whose weights, rows or scores a node names in its fields."""
    node, model = facts.nodes[name], facts.model(name)
    names: set[Any] = {getattr(model, "of", None), getattr(model, "with_", None)}
    if isinstance(node, EvaluateNode):
        names.add(node.instead_of)
        names.update(port.partition(".")[0] for port in as_tuple(node.of))
    return {other for other in names if other in facts.nodes}
