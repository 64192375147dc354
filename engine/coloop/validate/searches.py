"""Budgets of searches: that the first wish of a search fits into them, without which it finds
nothing in any step."""

from collections.abc import Iterator

from coloop.diagnostics import Diagnostic
from coloop.sizing.searches import branches
from coloop.spec.graph import PortRef
from coloop.spec.homes import rollout_of
from coloop.spec.nodes import SearchNode
from coloop.spec.paths import apply_overrides
from coloop.spec.search import Expand
from coloop.validate.facts import Facts, PhaseFacts, found


def budgets_hold_a_search(facts: Facts) -> Iterator[Diagnostic]:
    """In some phase a search may ask for its completions once: a wish is granted only where its
    longest completions fit."""
    for name, node in facts.nodes.items():
        here = PortRef(node=name, port="policy")
        policies = [edge.source.node for edge in facts.walk.edges if edge.target == here]
        if not isinstance(node, SearchNode) or not policies:
            continue
        read = (f"nodes.{name}.", f"nodes.{policies[0]}.rollout.")
        if any(path.startswith(read) for path in facts.moved_paths):
            continue
        by_phase = [
            dict(_too_little(_as_in(facts, phase), name, policies[0])) for phase in facts.phases
        ]
        for field, message in by_phase[0].items():
            if all(field in found_there for found_there in by_phase):
                yield message


def _as_in(facts: Facts, phase: PhaseFacts) -> Facts:
    """The loop with the values of a phase."""
    return Facts(apply_overrides(facts.spec, phase.overrides), None) if phase.overrides else facts


def _too_little(facts: Facts, name: str, policy: str) -> Iterator[tuple[str, Diagnostic]]:
    """Limits below what is wanted, each with what is to be said of it."""
    node = facts.nodes[name]
    assert isinstance(node, SearchNode)
    for field, least, why in _least(facts, name, node, policy):
        given = getattr(node.budget, field)
        if given is not None and given < least:
            yield (
                field,
                found(
                    "numbers.search_budget",
                    f"`{name}` finds nothing: {why}, and `budget.{field}` is {given}",
                    hint=f"raise `budget.{field}` to {least} or more",
                    node=name,
                    field=f"budget.{field}",
                ),
            )


def _least(
    facts: Facts, name: str, node: SearchNode, policy: str
) -> Iterator[tuple[str, int, str]]:
    """Limits, the least of each with which anything is found, and why."""
    rollout = rollout_of(facts.spec, policy)
    if rollout is None:
        return
    each = node.completions if isinstance(node.completions, int) else None
    if node.method == "monte_carlo" and each is not None:
        yield "searches_per_row", each, f"a step is completed {each} times"
    if node.method in ("monte_carlo", "binary_search") and facts.lineage.labels_texts(name):
        return
    first = {
        "monte_carlo": rollout.completions_per_prompt,
        "binary_search": each,
        "puct": branches(node.expand or Expand()),
        "and_or": branches(node.expand or Expand()),
    }[node.method]
    if first is None:
        return
    longest = rollout.max_new_tokens
    if node.method == "monte_carlo":
        yield "searches_per_row", first, f"{first} texts are written to a row"
    yield "tokens", first * longest, f"it begins with {first} texts of up to {longest} tokens"


RULES = (budgets_hold_a_search,)
