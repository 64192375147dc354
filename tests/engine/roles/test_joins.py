"""Joins of two to four inputs at all depths: what meets in a run is what the rule says, what the
plan counts, and the same in whatever order the edges are drawn."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

Bench = Callable[..., Any]
Depths = tuple[int, ...]

FANS = {"align": (2, 3, 2), "cross": (2, 2)}
"""Completions at each depth."""
PROBLEMS = 2


def shapes(deepest: int) -> Iterator[Depths]:
    """Two to four inputs, at every mix of depths."""
    for inputs in (2, 3, 4):
        yield from itertools.combinations_with_replacement(range(1, deepest + 1), inputs)


def loop_of(rows_of: Any, actor: Any, depths: Sequence[int], join: str) -> tuple[Any, list[str]]:
    """Chains of writers below one dataset, joined in one template."""
    nodes: dict[str, Any] = {
        "sums": rows_of(*({"prompt": str(i)} for i in range(PROBLEMS))),
        "ask": {"kind": "template", "text": "?", "join": join},
    }
    edges, ends = [], []
    for number, depth in enumerate(depths):
        above = "sums.rows"
        for level in range(depth):
            name = f"w{number}_{level}"
            rollout = {"completions_per_prompt": FANS[join][level], "max_new_tokens": 2}
            nodes[name] = {**actor(), "rollout": rollout}
            edges.append(f"{above} -> {name}.prompts")
            above = f"{name}.rollouts"
        ends.append(f"{above} -> ask.rows")
    return nodes, [*edges, *ends]


def learning(nodes: dict[str, Any], edges: list[str]) -> tuple[Any, list[str]]:
    """The same with a learner below, so that there is a step to plan."""
    learner = {**nodes["w0_0"], "algorithm": {"name": "reinforce"}}
    mark = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}}
    more = ["ask.rows -> judge.prompts", "judge.rollouts -> mark.rollouts"]
    return {**nodes, "judge": learner, "mark": mark}, [
        *edges,
        *more,
        "mark.scores -> judge.rewards",
    ]


def expected(depths: Depths, join: str) -> int:
    """The rule, word by word: places of all ways down, each two of which must meet."""
    ways = [
        list(itertools.product(*(range(fan) for fan in FANS[join][:depth]))) for depth in depths
    ]
    if join == "cross":
        return PROBLEMS * len(list(itertools.product(*ways)))

    def meet(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return one == other if len(one) == len(other) else one[0] == other[0]

    found = 0
    for first in ways[0]:
        others = [[way for way in table if meet(first, way)] for table in ways[1:]]
        found += sum(
            all(meet(a, b) for a, b in itertools.combinations(met, 2))
            for met in itertools.product(*others)
        )
    return PROBLEMS * found


@pytest.mark.sample(12)
@pytest.mark.parametrize("depths", list(shapes(3)), ids=str)
def test_rows_of_all_depths_meet_as_the_rule_and_the_plan_say(
    depths: Depths, bench: Bench, rows_of: Any, actor: Any
) -> None:
    check("align", depths, bench, rows_of, actor)


@pytest.mark.parametrize("depths", list(shapes(2)), ids=str)
def test_rows_of_all_depths_are_crossed_as_the_rule_and_the_plan_say(
    depths: Depths, bench: Bench, rows_of: Any, actor: Any
) -> None:
    check("cross", depths, bench, rows_of, actor)


def check(join: str, depths: Depths, bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = learning(*loop_of(rows_of, actor, depths, join))

    loop = bench(nodes, edges)
    asked = loop.give("ask.rows").rows
    turned = bench(nodes, edges[::-1]).give("ask.rows").rows

    assert len(asked) == expected(depths, join)
    assert [row.id for row in asked] == [row.id for row in turned]
    [counted] = [one for one in loop.plan.phases[0].rows if one.stage == "ask.prepare"]
    assert (counted.rows.most, counted.rows.least) == (len(asked), len(asked))
