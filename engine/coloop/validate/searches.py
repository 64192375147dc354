"""Budgets of searches: that the first wish of a search fits into them, without which it finds
nothing in any step."""

from collections.abc import Iterator

from coloop.plan.refusals import TREES
from coloop.spec.diagnostics import Diagnostic, error
from coloop.spec.graph import PortRef
from coloop.spec.groups import rollout_of
from coloop.spec.nodes import SearchNode
from coloop.spec.nodes.search import branches
from coloop.spec.search import Expand
from coloop.validate.facts import Facts, PhaseFacts
from coloop.validate.groups import completions


def budgets_hold_a_search(facts: Facts) -> Iterator[Diagnostic]:
    """In some phase a search may ask for its completions once: a wish is granted only where its
    longest completions fit."""
    for name, node in facts.nodes.items():
        here = PortRef(node=name, port="policy")
        policies = [edge.source.node for edge in facts.walk.edges if edge.target == here]
        if not isinstance(node, SearchNode) or not policies:
            continue
        if rollout_of(facts.spec, policies[0]) is None:
            continue
        read = (f"nodes.{name}.", f"nodes.{policies[0]}.rollout.")
        if any(path.startswith(read) for path in facts.moved_paths):
            continue
        by_phase = [_too_little(facts, phase, name, node, policies[0]) for phase in facts.phases]
        for field, (least, given, why) in by_phase[0].items():
            if all(field in found_there for found_there in by_phase):
                yield error(
                    "numbers.search_budget",
                    f"nodes.{name}.budget.{field}",
                    f"`{name}` cannot finish: {why}, but `budget.{field}` is {given}",
                    f"raise `budget.{field}` to {least} or more",
                )


def _too_little(
    facts: Facts, phase: PhaseFacts, name: str, node: SearchNode, policy: str
) -> dict[str, tuple[int, int, str]]:
    """By limit what is wanted of it at least in a phase, what it is, and why that is too little."""
    missed: dict[str, tuple[int, int, str]] = {}
    for field, least, why in _least(facts, phase, name, node, policy):
        own = getattr(node.budget, field)
        given = facts.whole_number(phase, f"nodes.{name}.budget.{field}", own)
        if given is not None and given < least:
            missed[field] = least, given, why
    return missed


def _least(
    facts: Facts, phase: PhaseFacts, name: str, node: SearchNode, policy: str
) -> Iterator[tuple[str, int, str]]:
    """Limits, the least of each with which anything is found, and why."""
    rollout = rollout_of(facts.spec, policy)
    assert rollout is not None
    each = facts.whole_number(phase, f"nodes.{name}.completions", node.completions)
    each = each if isinstance(each, int) else None
    if node.method == "monte_carlo" and each is not None:
        yield "searches_per_row", each, f"each step is completed {each} times"
    if node.method not in TREES and facts.lineage.labels_texts(name):
        return
    if node.method in TREES:
        expand = node.expand or Expand()
        samples = facts.whole_number(phase, f"nodes.{name}.expand.samples", expand.samples)
        first = branches(expand.model_copy(update={"samples": samples}))
    else:
        first = completions(facts, policy, phase) if node.method == "monte_carlo" else each
    if first is None:
        return
    path = f"nodes.{policy}.rollout.max_new_tokens"
    longest = facts.whole_number(phase, path, rollout.max_new_tokens)
    if node.method == "monte_carlo":
        yield "searches_per_row", first, f"it generates {first} texts per row"
    yield "tokens", first * longest, f"it starts with {first} texts of up to {longest} tokens"
