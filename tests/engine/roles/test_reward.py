"""Numbers for rows: built-in, of Python, of other scores; `None` and "not delivered" apart."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.data.rewards import judging
from coloop.errors import DataError, UserCodeError

Bench = Callable[..., Any]

EXACT = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}
ROWS = [
    {"prompt": "1+1=", "answer": "2", "completion": "2"},
    {"prompt": "1+2=", "answer": "3", "completion": "5"},
]


def python(body: str, **fields: Any) -> dict[str, Any]:
    code = f"def reward(prompts, completions, **columns):\n    return {body}\n"
    return {"kind": "reward", "source": {"type": "python", "code": code}, **fields}


def builtin(name: str, **options: Any) -> dict[str, Any]:
    return {"kind": "reward", "source": {"type": "builtin", "name": name, **options}}


def test_scores_come_with_the_rows_and_stand_in_them(
    bench: Bench, rows_of: Any, column: Any, scores: Any
) -> None:
    loop = bench({"sums": rows_of(*ROWS), "exact": EXACT}, ["sums.rows -> exact.rows"])

    table = loop.give("exact.scores")

    assert scores(table) == column(table, "exact") == [1.0, 0.0]
    assert table.scorer == "exact"
    assert loop.outcomes["exact.score"].metrics == {"score/mean": 0.5, "score/none": 0.0}


def test_the_users_code_sees_columns_by_name(bench: Bench, rows_of: Any, scores: Any) -> None:
    code = "[len(p) + len(c) + int(a) for p, c, a in zip(prompts, completions, columns['answer'])]"
    loop = bench({"sums": rows_of(*ROWS), "mine": python(code)}, ["sums.rows -> mine.rows"])

    assert scores(loop.give("mine.scores")) == [7.0, 8.0]


def test_none_means_does_not_apply(bench: Bench, rows_of: Any, scores: Any) -> None:
    node = python("[None, 2]")
    loop = bench({"sums": rows_of(*ROWS), "mine": node}, ["sums.rows -> mine.rows"])

    assert scores(loop.give("mine.scores")) == [None, 2.0]
    assert loop.outcomes["mine.score"].metrics == {"score/mean": 2.0, "score/none": 0.5}


STEPPED_EDGES = ["sums.rows -> actor.prompts", "actor.rollouts -> each.rollouts"]


def stepped(bench: Bench, rows_of: Any, actor: Any, each: dict[str, Any], **columns: Any) -> Any:
    """A loop whose writer writes two lines, five tokens."""
    nodes = {"sums": rows_of({"prompt": "p", **columns}), "actor": actor(), "each": each}
    loop = bench(nodes, STEPPED_EDGES)
    loop.hosts.write = lambda prompt, k: "ab\ncd"
    return loop


@pytest.mark.parametrize(
    ("each", "columns"),
    [
        (python("[[0.5, -1] for _ in completions]"), {}),
        (builtin("column", column="marks"), {"marks": [0.5, -1]}),
    ],
)
def test_a_list_is_a_number_for_each_step_and_lands_where_the_step_ends(
    each: Any, columns: Any, bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    loop = stepped(bench, rows_of, actor, each, **columns)

    assert scores(loop.give("each.scores")) == [{2: 0.5, 4: -1.0}] * 2


def test_a_step_without_a_number_has_no_score(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    loop = stepped(bench, rows_of, actor, python("[[None, 1.0] for _ in completions]"))

    assert scores(loop.give("each.scores")) == [{4: 1.0}] * 2


def test_steps_that_end_in_one_token_or_behind_the_trained_ones_add_up(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    loop = stepped(bench, rows_of, actor, python("[[1.0, 2.0, 4.0] for _ in completions]"))
    loop.hosts.step_ends = lambda group, node, ids, separator: [[1, 1, 4] for _ in ids]

    assert scores(loop.give("each.scores")) == [{1: 3.0, 4: 4.0}] * 2


def test_rows_without_tokens_keep_the_numbers_of_their_steps(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    node = python("[[0.5, None, 2] for _ in completions]")
    loop = bench({"sums": rows_of(*ROWS), "mine": node}, ["sums.rows -> mine.rows"])

    assert scores(loop.give("mine.scores")) == [{0: 0.5, 2: 2.0}] * 2


@pytest.mark.parametrize(
    ("each", "columns", "error"),
    [
        (python("[[1, 2, 3] for _ in completions]"), {}, UserCodeError),
        (builtin("column", column="marks"), {"marks": [1, 2, 3]}, DataError),
    ],
)
def test_a_list_of_another_length_than_the_steps_stops_and_is_told(
    each: Any, columns: Any, error: Any, bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = stepped(bench, rows_of, actor, each, **columns)

    with pytest.raises(error, match=r"each, row 0 .*3 numbers for a completion of 2 steps") as one:
        loop.give("each.scores")

    assert one.value.node == "each"


@pytest.mark.parametrize(("on_error", "expected"), [("skip_row", None), ({"score": -1.0}, -1.0)])
@pytest.mark.parametrize("kind", ["python", "column"])
def test_a_row_whose_list_does_not_fit_follows_the_nodes_policy(
    kind: str,
    on_error: Any,
    expected: Any,
    bench: Bench,
    rows_of: Any,
    actor: Any,
    scores: Any,
) -> None:
    code = "[[1.0] if k else [1.0, 2.0] for k, _ in enumerate(completions)]"
    sources = {"python": python(code), "column": builtin("column", column="marks")}
    each = {**sources[kind], "on_error": on_error}
    loop = stepped(bench, rows_of, actor, each, marks=[1.0])

    found = scores(loop.give("each.scores"))

    fits = {"python": [{2: 1.0, 4: 2.0}], "column": [expected]}
    assert found == [*fits[kind], expected]
    [(code, message)] = loop.alerts
    assert code == "reward.rows_failed"
    assert "of 2 rows failed; the first: each, row" in message
    assert "a list of 1 numbers for a completion of 2 steps" in message


def test_scores_of_scores(bench: Bench, rows_of: Any, scores: Any) -> None:
    nodes = {
        "sums": rows_of(*ROWS),
        "exact": EXACT,
        "other": builtin("one_minus"),
        "both": builtin("weighted", weights={"exact": 3.0, "other": 1.0}),
    }
    edges = [
        "sums.rows -> exact.rows",
        "exact.scores -> other.scores",
        "exact.scores -> both.scores",
        "other.scores -> both.scores",
    ]
    loop = bench(nodes, edges)

    assert scores(loop.give("other.scores")) == [0.0, 1.0]
    assert scores(loop.give("both.scores")) == [3.0, 1.0]


def test_other_rows_are_drawn_by_seed_node_and_step(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    rows = [{"prompt": str(n), "answer": str(n), "completion": str(n % 3)} for n in range(24)]
    nodes = {"sums": rows_of(*rows), "exact": EXACT, "moved": builtin("other_rows")}
    edges = ["sums.rows -> exact.rows", "exact.scores -> moved.scores"]
    true = scores(bench(nodes, edges).give("exact.scores"))

    moved, again = (scores(bench(nodes, edges).give("moved.scores")) for _ in range(2))

    assert moved == again
    assert moved != true
    assert sorted(moved) == sorted(true)


def test_python_reads_other_scores_under_their_node(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    nodes = {
        "sums": rows_of(*ROWS),
        "exact": EXACT,
        "mine": python("[10 * e for e in columns['exact']]"),
    }
    edges = ["sums.rows -> exact.rows", "sums.rows -> mine.rows", "exact.scores -> mine.scores"]

    assert scores(bench(nodes, edges).give("mine.scores")) == [10.0, 0.0]


def test_a_row_that_an_input_did_not_deliver_is_not_scored(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    nodes = {
        "sums": rows_of(*ROWS),
        "few": {"kind": "filter", "keep": [{"rule": "length", "column": "answer", "max": 9}]},
        "exact": EXACT,
        "right": {"kind": "filter", "keep": [{"rule": "score", "min": 1.0}]},
        "mine": python("[7.0 for _ in completions]"),
    }
    edges = [
        "sums.rows -> exact.rows",
        "sums.rows -> right.rows",
        "exact.scores -> right.scores",
        "sums.rows -> mine.rows",
        "right.scores -> mine.scores",
    ]
    nodes.pop("few")

    table = bench(nodes, edges).give("mine.scores")

    assert [row.columns["answer"] for row in table.rows] == ["2"]


def test_one_scorer_for_two_writers_scores_each_with_its_own(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p", "answer": "pa"}),
        "one": actor(),
        "two": actor(),
        "exact": {**EXACT, "join": "concat"},
    }
    edges = [
        "sums.rows -> one.prompts",
        "sums.rows -> two.prompts",
        "one.rollouts -> exact.rollouts",
        "two.rollouts -> exact.rollouts",
    ]

    table = bench(nodes, edges).give("exact.scores")

    assert [row.writer for row in table.rows] == ["one", "one", "two", "two"]
    assert column(table, "exact") == [1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("on_error", "expected"), [("skip_row", [None, 3.0]), ({"score": -1.0}, [-1.0, 3.0])]
)
def test_rows_that_fail_follow_the_nodes_policy(
    on_error: Any, expected: list[Any], bench: Bench, rows_of: Any, scores: Any
) -> None:
    code = "[3.0 if '2=' in p else 1 / 0 for p in prompts]"
    node = python(code, on_error=on_error)
    loop = bench({"sums": rows_of(*ROWS), "mine": node}, ["sums.rows -> mine.rows"])

    assert scores(loop.give("mine.scores")) == expected
    [(code, message)] = loop.alerts
    assert code == "reward.rows_failed"
    assert message.startswith("1 of 2 rows failed; the first: mine, row 0: ZeroDivisionError")


@pytest.mark.parametrize(
    ("on_error", "expected"), [("skip_row", [None, 3.0]), ({"score": -1.0}, [-1.0, 3.0])]
)
def test_rows_that_a_builtin_reward_cannot_score_follow_the_policy_too(
    on_error: Any, expected: list[Any], bench: Bench, rows_of: Any, scores: Any
) -> None:
    source = {"type": "builtin", "name": "column", "column": "grade"}
    node = {"kind": "reward", "source": source, "on_error": on_error}
    rows = [{"prompt": "a", "grade": "good"}, {"prompt": "b", "grade": 3}]
    edges = ["sums.rows -> mine.rows"]
    loop = bench({"sums": rows_of(*rows), "mine": node}, edges)

    assert scores(loop.give("mine.scores")) == expected
    [(code, message)] = loop.alerts
    assert code == "reward.rows_failed"
    assert message.startswith(
        "1 of 2 rows failed; the first: mine, row 0: column `grade` must be a number"
    )
    with pytest.raises(DataError, match="mine, row 0: column `grade` must be a number"):
        bench({"sums": rows_of(*rows), "mine": {**node, "on_error": "stop"}}, edges).give(
            "mine.scores"
        )


@pytest.mark.slow
def test_an_answer_that_its_library_cannot_decide_is_told_and_ends_no_run(
    bench: Bench, rows_of: Any, scores: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "CPU_SECONDS", 0.3)
    node = {"kind": "reward", "source": {"type": "builtin", "name": "math_equal"}}
    said = [r"\boxed{x+9^{9^{9^{9}}}}", r"\boxed{1+x}"]
    rows = [{"prompt": "p", "answer": "x+1", "completion": text} for text in said]
    loop = bench({"sums": rows_of(*rows), "mine": node}, ["sums.rows -> mine.rows"])

    assert scores(loop.give("mine.scores")) == [0.0, 1.0]
    [(code, message)] = loop.alerts
    assert code == "reward.rows_failed"
    assert "math-verify did not decide" in message


def test_by_default_a_row_that_fails_stops(bench: Bench, rows_of: Any) -> None:
    node = python("[1 / 0 for p in prompts]")
    loop = bench({"sums": rows_of(*ROWS), "mine": node}, ["sums.rows -> mine.rows"])

    with pytest.raises(UserCodeError) as failed:
        loop.give("mine.scores")

    assert (failed.value.node, failed.value.row) == ("mine", 0)


def test_code_may_come_from_a_file_beside_the_loop(
    bench: Bench, rows_of: Any, scores: Any, tmp_path: Any
) -> None:
    (tmp_path / "judge.py").write_text(
        "def reward(prompts, completions, **columns):\n    return [4.0] * len(prompts)\n"
    )
    node = {"kind": "reward", "source": {"type": "python", "file": "judge.py"}}
    edges = ["sums.rows -> mine.rows"]

    assert (
        scores(bench({"sums": rows_of(*ROWS), "mine": node}, edges).give("mine.scores"))
        == [4.0] * 2
    )

    node["source"]["file"] = "missing.py"
    with pytest.raises(DataError, match=r"missing\.py cannot be read"):
        bench({"sums": rows_of(*ROWS), "mine": node}, edges).give("mine.scores")
