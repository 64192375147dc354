"""Chosen against rejected, by every method; a pair's parents are its two sides."""

from collections.abc import Callable
from typing import Any

from coloop.data.tables import Table

Bench = Callable[..., Any]

LENGTH = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 8}}


def sides(table: Table) -> list[tuple[str, str]]:
    return [(row.columns["chosen"], row.columns["rejected"]) for row in table.rows]


def compared(method: str, rows_of: Any, actor: Any, **fields: Any) -> tuple[Any, Any]:
    """A writer of three texts of different length for one prompt, compared by their length."""
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": {**actor(), "rollout": {"completions_per_prompt": 3}},
        "brief": LENGTH,
        "best": {"kind": "pairs", "method": method, **fields},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> brief.rollouts",
        "actor.rollouts -> best.rollouts",
        "brief.scores -> best.scores",
    ]
    return nodes, edges


def longer(prompt: str, k: int) -> str:
    return "abc"[k] * (1, 5, 3)[k]


def test_best_against_worst_of_a_group(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*compared("best_worst", rows_of, actor))
    loop.hosts.write = longer

    table = loop.give("best.pairs")

    assert sides(table) == [("a", "bbbbb")]
    [pair] = table.rows
    assert pair.parents == ("actor:sums:0.0.0", "actor:sums:0.0.1")
    assert pair.columns["margin"] == 0.5
    assert pair.columns["prompt"] == "p"
    assert pair.columns["chosen_tokens"].token_ids.tolist() == [ord("a")]
    assert pair.columns["rejected_tokens"].token_ids.tolist() == [ord("b")] * 5


def test_every_two_of_a_group(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*compared("all", rows_of, actor))
    loop.hosts.write = longer

    assert sides(loop.give("best.pairs")) == [("a", "bbbbb"), ("a", "ccc"), ("ccc", "bbbbb")]


def test_every_two_that_differ_enough(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*compared("margin", rows_of, actor, margin=0.3))
    loop.hosts.write = longer

    assert sides(loop.give("best.pairs")) == [("a", "bbbbb")]


def test_without_scores_the_earlier_sibling_is_chosen(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = compared("all", rows_of, actor)
    loop = bench({k: v for k, v in nodes.items() if k != "brief"}, [edges[0], edges[2]])

    assert sides(loop.give("best.pairs")) == [("pa", "pb"), ("pa", "pc"), ("pb", "pc")]


def test_ties_and_equal_texts_are_left_out_and_counted(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*compared("all", rows_of, actor))
    loop.hosts.write = lambda prompt, k: ("xx", "yy", "yy")[k]
    assert sides(loop.give("best.pairs")) == []
    assert loop.outcomes["best.prepare"].detail == {"ties": 3, "equal_texts": 0}

    kept = bench(*compared("all", rows_of, actor, drop_ties=False))
    kept.hosts.write = loop.hosts.write
    assert sides(kept.give("best.pairs")) == [("xx", "yy"), ("xx", "yy")]
    assert kept.outcomes["best.prepare"].detail == {"ties": 0, "equal_texts": 1}


def test_greedy_rows_stand_in_no_pair(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = compared("all", rows_of, actor)
    nodes["sums"] = rows_of({"prompt": "p"}, {"prompt": "q"})
    nodes["actor"]["rollout"] = {"completions_per_prompt": 2, "greedy_extra": True}
    loop = bench({k: v for k, v in nodes.items() if k != "brief"}, [edges[0], edges[2]])

    parents = [row.parents for row in loop.give("best.pairs").rows]

    assert parents == [
        ("actor:sums:0.0.0", "actor:sums:0.0.1"),
        ("actor:sums:0.1.0", "actor:sums:0.1.1"),
    ]


def test_preferences_may_stay_soft(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*compared("best_worst", rows_of, actor, soft={"scale": 2.0}))
    loop.hosts.write = longer

    [pair] = loop.give("best.pairs").rows

    assert abs(pair.columns["probability"] - 0.7310585786) < 1e-9  # sigmoid(2 * 0.5)


def test_two_inputs_are_joined_by_lineage(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes = {
        "gold": rows_of({"prompt": "p", "target": "gold"}, {"prompt": "q", "target": "qa"}),
        "actor": {**actor(), "rollout": {"completions_per_prompt": 1}},
        "own": {
            "kind": "pairs",
            "method": "direct",
            "columns": {"chosen": "target", "rejected": "completion"},
        },
    }
    edges = [
        "gold.rows -> actor.prompts",
        "gold.rows -> own.chosen",
        "actor.rollouts -> own.rejected",
    ]
    loop = bench(nodes, edges)

    table = loop.give("own.pairs")

    assert sides(table) == [("gold", "pa")]  # "qa" against "qa" teaches nothing
    [pair] = table.rows
    assert pair.parents == ("gold:0.0", "actor:gold:0.0.0")
    assert "chosen_tokens" not in pair.columns
    assert pair.columns["rejected_tokens"].token_ids.tolist() == [ord("p"), ord("a")]
    assert loop.outcomes["own.prepare"].detail == {"equal_texts": 1}


JUDGE = """
def reward(prompts, completions, mark, **columns):
    return mark
"""
PAIRS = [
    {"prompt": "p", "chosen": "a", "rejected": "b", "mark": 0.9},
    {"prompt": "q", "chosen": "c", "rejected": "d", "mark": 0.2},
    {"prompt": "r", "chosen": "e", "rejected": "f", "mark": 0.5},
    {"prompt": "s", "chosen": "g", "rejected": "h", "mark": None},
]


def relabelled(bench: Bench, rows_of: Any, **fields: Any) -> Any:
    nodes = {
        "given": rows_of(*PAIRS),
        "judge": {"kind": "reward", "source": {"type": "python", "code": JUDGE}},
        "again": {"kind": "pairs", "method": "relabel", **fields},
    }
    edges = [
        "given.rows -> judge.rows",
        "given.pairs -> again.pairs",
        "judge.scores -> again.preference",
    ]
    return bench(nodes, edges)


def test_a_preference_below_the_middle_swaps_the_sides(bench: Bench, rows_of: Any) -> None:
    table = relabelled(bench, rows_of).give("again.pairs")

    assert sides(table) == [("a", "b"), ("d", "c")]


def test_a_soft_preference_becomes_a_probability(bench: Bench, rows_of: Any) -> None:
    table = relabelled(bench, rows_of, soft=True).give("again.pairs")

    assert sides(table) == [("a", "b"), ("c", "d"), ("e", "f")]
    assert [row.columns["probability"] for row in table.rows] == [0.9, 0.2, 0.5]
