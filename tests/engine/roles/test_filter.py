"""Filters keep rows by rules, in their own outputs and nowhere else."""

from collections.abc import Callable
from typing import Any

import pytest

Bench = Callable[..., Any]

EXACT = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}
LENGTH = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 6}}


def rows(*completions: str) -> list[dict[str, str]]:
    return [{"prompt": "p", "answer": "a", "completion": text} for text in completions]


def keep(*rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"kind": "filter", "keep": list(rules), **fields}


def test_a_row_stays_where_every_rule_keeps_it(bench: Bench, rows_of: Any, column: Any) -> None:
    node = keep(
        {"rule": "regex", "column": "completion", "pattern": "^[a-z]+$"},
        {"rule": "length", "column": "completion", "max": 2},
    )
    nodes = {"texts": rows_of(*rows("ab", "a1", "abc", "c")), "few": node}
    loop = bench(nodes, ["texts.rows -> few.rows"])

    assert column(loop.give("few.rows"), "completion") == ["ab", "c"]
    outcome = loop.outcomes["few.prepare"]
    assert outcome.detail["cut_by"] == {"regex": 1, "length": 1}
    assert outcome.metrics["kept"] == 0.5


def test_code_of_filters_templates_and_rewards_has_the_same_memory(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    most = "__import__('resource').getrlimit(9)[0] // 2**20"
    source = {"type": "python", "code": f"def reward(most, **c): return [m + {most} for m in most]"}
    nodes = {
        "texts": rows_of(*rows("a")),
        "few": keep({"rule": "python", "code": f"def keep(**c): return {most} == 1024"}),
        "told": {"kind": "template", "code": f"def write(**c): return {{'most': {most}}}"},
        "r": {"kind": "reward", "source": source},
    }
    edges = ["texts.rows -> few.rows", "few.rows -> told.rows", "told.rows -> r.rows"]
    loop = bench(nodes, edges)

    assert scores(loop.give("r.scores")) == [2048.0]


def writers(node: dict[str, Any], actor: Any, rows_of: Any, **more: Any) -> tuple[Any, Any]:
    """A writer whose scored rows pass a filter."""
    nodes = {
        "sums": rows_of({"prompt": "a", "answer": "aa"}, {"prompt": "b", "answer": "none"}),
        "actor": actor(),
        "exact": EXACT,
        "few": node,
        **more,
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> few.rollouts",
        "exact.scores -> few.scores",
    ]
    return nodes, edges


def test_scores_and_rollouts_are_cut_alike(
    bench: Bench, rows_of: Any, actor: Any, column: Any, scores: Any
) -> None:
    loop = bench(*writers(keep({"rule": "score", "min": 1.0}), actor, rows_of))

    assert column(loop.give("few.rollouts"), "completion") == ["aa"]
    table = loop.give("few.scores")
    assert column(table, "completion") == ["aa"]
    assert scores(table) == [1.0]
    assert len(loop.give("actor.rollouts").rows) == 4


def test_rows_go_on_with_what_their_scorer_says_of_them_and_with_their_own_text(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    """The scorer sees what a template makes of the text."""
    nodes = {
        "sums": rows_of({"prompt": "1+1=", "answer": "!"}),
        "actor": actor(),
        "shout": {"kind": "template", "columns": {"completion": "!", "loud": "yes"}},
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
        "few": keep({"rule": "score", "min": 0.5}),
        "told": {"kind": "template", "columns": {"said": "{{ exact }} {{ loud }}"}},
        "pool": {"kind": "buffer", "capacity": 9},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> shout.rows",
        "shout.rows -> exact.rows",
        "actor.rollouts -> few.rollouts",
        "exact.scores -> few.scores",
        "few.rollouts -> told.rows",
        "told.rows -> pool.rows",
    ]
    loop = bench(nodes, edges, {"steps": 1, "fill": ["pool"]})

    table = loop.give("told.rows")

    assert column(table, "said") == ["1.0 yes", "1.0 yes"]
    assert column(table, "completion") == ["1+1=a", "1+1=b"]


def test_it_tells_the_share_of_groups_that_keep_a_row(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*writers(keep({"rule": "score", "min": 1.0}), actor, rows_of))

    loop.give("few.rollouts")

    # of two problems with two texts each, one text of the first is right
    metrics = loop.outcomes["few.prepare"].metrics
    assert (metrics["kept"], metrics["groups_kept"]) == (0.25, 0.5)


def test_group_rules_keep_or_cut_whole_groups(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    loop = bench(*writers(keep({"rule": "nonzero_variance"}), actor, rows_of))

    assert column(loop.give("few.rollouts"), "completion") == ["aa", "ab"]


@pytest.mark.parametrize(
    ("by", "kept"), [("prompt", ["aa", "ab"]), ("role", ["aa", "ab", "ba", "bb"])]
)
def test_groups_may_be_wider(
    by: str, kept: list[str], bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    loop = bench(*writers(keep({"rule": "nonzero_variance", "by": by}), actor, rows_of))

    assert column(loop.give("few.rollouts"), "completion") == kept


def test_groups_may_be_named_after_a_template(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    nodes, edges = writers(keep({"rule": "nonzero_variance", "by": "ask"}), actor, rows_of)
    nodes["ask"] = {"kind": "template", "text": "{{ prompt }}"}
    loop = bench(nodes, ["sums.rows -> ask.rows", "ask.rows -> actor.prompts", *edges[1:]])

    assert column(loop.give("few.rollouts"), "completion") == ["aa", "ab"]


def test_a_rule_may_look_at_another_scorer(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    nodes, edges = writers(
        keep({"rule": "score", "of": "brief", "max": 0.5}), actor, rows_of, brief=LENGTH
    )
    edges += ["actor.rollouts -> brief.rollouts", "brief.scores -> few.by"]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: prompt * (2 + 3 * k)

    assert column(loop.give("few.rollouts"), "completion") == ["aaaaa", "bbbbb"]


def test_at_most_so_many_rows_of_a_group_stay(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    node = keep(per_group={"max": 1, "pick": "best"})
    loop = bench(*writers(node, actor, rows_of))

    assert column(loop.give("few.rollouts"), "completion") == ["aa", "ba"]


def test_a_probe_is_not_cut_to_a_number(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    node = keep({"rule": "regex", "column": "completion", "pattern": "b"}, per_group={"max": 1})
    loop = bench(*writers(node, actor, rows_of))

    table = loop.give("few.rollouts", is_probe=True)

    assert column(table, "completion") == ["ab", "ba", "bb"]


def test_rows_at_spare_fill_up_what_was_cut(bench: Bench, rows_of: Any, column: Any) -> None:
    nodes = {
        "texts": rows_of(*rows("a", "bb", "cc")),
        "more": rows_of(*rows("x", "y", "z")),
        "few": keep({"rule": "length", "column": "completion", "max": 1}),
    }
    edges = ["texts.rows -> few.rows", "more.rows -> few.spare"]

    assert column(bench(nodes, edges).give("few.rows"), "completion") == ["a", "x", "y"]
    nodes["few"]["up_to"] = 2
    assert column(bench(nodes, edges).give("few.rows"), "completion") == ["a", "x"]


def test_drawn_rows_keep_their_ids_and_say_how_often(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    node = keep(resample={"weight": "power", "rows": 6})
    loop = bench(*writers(node, actor, rows_of))

    table = loop.give("few.rollouts")

    assert column(table, "completion") == ["aa"]
    assert column(table, "drawn") == [6]


def test_a_filter_that_keeps_nothing_says_which_rule_cut(bench: Bench, rows_of: Any) -> None:
    node = keep({"rule": "length", "column": "completion", "min": 9})
    loop = bench({"texts": rows_of(*rows("a", "b")), "few": node}, ["texts.rows -> few.rows"])

    assert len(loop.give("few.rows")) == 0
    assert loop.alerts == [("filter.kept_nothing", "few kept none of 2 rows (length cut 2)")]


def test_python_rules_run_in_their_own_process(bench: Bench, rows_of: Any, column: Any) -> None:
    code = "def keep(completion, **columns):\n    return completion > 'a'\n"
    node = keep({"rule": "python", "code": code})
    loop = bench({"texts": rows_of(*rows("a", "b")), "few": node}, ["texts.rows -> few.rows"])

    assert column(loop.give("few.rows"), "completion") == ["b"]


def risen(rows_of: Any, actor: Any, **fields: Any) -> tuple[Any, Any]:
    """Prompts that a filter keeps by what was written for them: `a` is right half of the time."""
    nodes, edges = writers(keep({"rule": "score", **fields}), actor, rows_of)
    edges = [
        *edges[:2],
        "sums.rows -> few.rows",
        {"from": "exact.scores", "to": "few.scores", "aggregate": "mean"},
    ]
    return nodes, edges


def test_scores_that_rise_decide_about_the_rows_that_receive_them(
    bench: Bench, rows_of: Any, actor: Any, column: Any, scores: Any
) -> None:
    loop = bench(*risen(rows_of, actor, min=0.25, max=0.75))

    assert column(loop.give("few.rows"), "prompt") == ["a"]
    outcome = loop.outcomes["few.prepare"]
    assert (outcome.detail["rows"], outcome.detail["kept"]) == (2, 1)
    table = loop.give("few.scores")
    assert column(table, "prompt") == ["a"]
    assert scores(table) == [0.5]
    assert table.scorer == "exact"


def test_a_score_that_two_writers_share_decides_about_the_rows_of_one(
    bench: Bench, rows_of: Any, actor: Any, column: Any, scores: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p", "answer": "pa|pa"}),
        "tens": actor(),
        "units": actor(),
        "both": {
            "kind": "template",
            "columns": {"completion": "{{ tens.completion }}|{{ units.completion }}"},
        },
        "exact": EXACT,
        "few": keep({"rule": "score", "min": 1.0}),
    }
    edges = [
        "sums.rows -> tens.prompts",
        "sums.rows -> units.prompts",
        "tens.rollouts -> both.rows",
        "units.rollouts -> both.rows",
        "both.rows -> exact.rows",
        "tens.rollouts -> few.rollouts",
        {"from": "exact.scores", "to": "few.scores", "aggregate": "mean"},
    ]
    loop = bench(nodes, edges)

    table = loop.give("few.rollouts")

    assert column(table, "completion") == ["pa"]
    assert [row.id for row in table.rows] == ["tens:sums:0.0.0"]
    assert all(row.tokens is not None for row in table.rows)
    assert scores(loop.give("few.scores")) == [1.0]


def test_scores_of_ancestors_stand_at_the_rows_that_they_kept(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    nodes, edges = writers(keep({"rule": "score", "min": 1.0}), actor, rows_of)
    nodes["hard"] = {
        "kind": "reward",
        "source": {
            "type": "python",
            "code": "def reward(prompts, completions, **columns):\n"
            "    return [float(p == 'b') for p in prompts]\n",
        },
    }
    edges = [edges[0], edges[2], "sums.rows -> hard.rows", "hard.scores -> few.scores"]
    del nodes["exact"]
    loop = bench(nodes, edges)

    table = loop.give("few.scores")

    assert [row.id for row in table.rows] == ["actor:sums:0.1.0", "actor:sums:0.1.1"]
    assert scores(table) == [1.0, 1.0]


def test_rows_above_those_that_stay_stay_too(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    nodes, edges = writers(keep({"rule": "score", "min": 1.0}), actor, rows_of)
    loop = bench(nodes, [*edges, "sums.rows -> few.rows"])

    assert column(loop.give("few.rows"), "prompt") == ["a"]
    assert column(loop.give("few.rollouts"), "completion") == ["aa"]


def greedy(actor: Any) -> dict[str, Any]:
    """A writer of two completions and a greedy one for every prompt."""
    return {**actor(), "rollout": {"completions_per_prompt": 2, "greedy_extra": True}}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        # of `a` one of two is right, of `b` none
        ({"rule": "nonzero_variance"}, ["aa", "ab", "x"]),
        ({"rule": "accuracy_band", "min": 0.0, "max": 0.2}, ["ba", "bb", "x"]),
        ({"rule": "score", "min": 1.0}, ["aa", "x"]),
    ],
)
@pytest.mark.parametrize("right", ["('aa', 'x')", "('aa',)"], ids=["greedy right", "greedy wrong"])
def test_a_greedy_row_is_not_counted_in_its_group_and_goes_with_it(
    right: str,
    rule: dict[str, Any],
    kept: list[str],
    bench: Bench,
    rows_of: Any,
    actor: Any,
    column: Any,
) -> None:
    nodes, edges = writers(keep(rule), actor, rows_of)
    nodes |= {
        "actor": greedy(actor),
        "exact": {
            "kind": "reward",
            "source": {
                "type": "python",
                "code": "def reward(prompts, completions, **columns):\n"
                f"    return [float(c in {right}) for c in completions]\n",
            },
        },
    }
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: (
        "x" if loop.hosts.samplings[-1].temperature == 0 else f"{prompt}{'ab'[k]}"
    )

    assert column(loop.give("few.rollouts"), "completion") == kept


def test_a_greedy_row_takes_no_place_of_its_group(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    nodes, edges = writers(keep(per_group={"max": 1, "pick": "first"}), actor, rows_of)
    nodes["actor"] = greedy(actor)
    loop = bench(nodes, edges)

    assert column(loop.give("few.rollouts"), "greedy") == [False, True] * 2


def test_greedy_rows_stay_with_the_drawn_rows_of_their_group(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    node = keep(resample={"weight": "power", "rows": 6})
    nodes, edges = writers(node, actor, rows_of)
    nodes["actor"] = greedy(actor)
    loop = bench(nodes, edges)

    # of `a` one of two is right and alone is drawn, of `b` none
    table = loop.give("few.scores")

    assert column(table, "greedy") == [False, True]
    assert column(table, "prompt") == ["a", "a"]
    assert [row.columns.get("drawn") for row in table.rows] == [6, None]
