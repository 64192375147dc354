"""Judges that write nothing: the task's rule, whole and by step; votes."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.errors import DataError

Bench = Callable[..., Any]

LETTERS = {"task": "last_letter", "prompt": "ab cd:", "answer": "bd", "steps": ["b", "bd"]}


def rule(**read: Any) -> dict[str, Any]:
    return {"kind": "verifier", "method": "rule", "read": read}


def vote(**fields: Any) -> dict[str, Any]:
    return {"kind": "verifier", "method": "vote", **fields}


def judged(bench: Bench, rows: Any, judge: dict[str, Any], *more: Any) -> Any:
    return bench({"sums": rows, "judge": judge}, ["sums.rows -> judge.rows", *more])


def test_a_rule_grades_the_whole_completion(bench: Bench, rows_of: Any, scores: Any) -> None:
    rows = rows_of({**LETTERS, "completion": "x\nbd"}, {**LETTERS, "completion": "bd\nx"})

    assert scores(judged(bench, rows, rule()).give("judge.scores")) == [1.0, 0.0]


def test_a_rule_grades_each_step(bench: Bench, rows_of: Any, scores: Any) -> None:
    rows = rows_of({**LETTERS, "completion": "b\nxd"}, {**LETTERS, "completion": "b\nbd"})
    loop = judged(bench, rows, rule(granularity="step", reduce="mean"))

    assert scores(loop.give("judge.step_scores")) == [{0: 1.0, 1: 0.0}, {0: 1.0, 1: 1.0}]
    assert scores(loop.give("judge.scores")) == [0.5, 1.0]


def test_steps_of_a_drawn_text_stand_at_its_tokens(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    nodes = {"sums": rows_of(LETTERS), "actor": actor(), "judge": rule(granularity="step")}
    loop = bench(nodes, ["sums.rows -> actor.prompts", "actor.rollouts -> judge.rollouts"])
    loop.hosts.write = lambda prompt, k: ("b\nbd", "b\nx")[k]

    assert scores(loop.give("judge.step_scores")) == [{1: 1.0, 3: 1.0}, {1: 1.0, 2: 0.0}]


def test_a_rule_without_a_task_says_what_is_missing(bench: Bench, rows_of: Any) -> None:
    loop = judged(bench, rows_of({"prompt": "p", "completion": "c"}), rule())

    with pytest.raises(DataError, match="which task it is of"):
        loop.give("judge.scores")


def voted(bench: Bench, rows_of: Any, actor: Any, texts: list[str], judge: Any) -> Any:
    """A loop whose writer answers two problems with these texts, half of them each."""
    count = len(texts) // 2
    writer = actor(rollout={"completions_per_prompt": count})
    nodes = {"sums": rows_of({"prompt": "p"}, {"prompt": "q"}), "actor": writer, "judge": judge}
    loop = bench(nodes, ["sums.rows -> actor.prompts", "actor.rollouts -> judge.rollouts"])
    loop.hosts.write = lambda prompt, k: texts[k + count * (prompt == "q")]
    return loop


def test_the_majority_of_a_prompts_texts_is_right(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    texts = ["is 3", "is 4", "so 4", "7", "7", "4"]
    loop = voted(bench, rows_of, actor, texts, vote(answer=r"(\d+)"))

    assert scores(loop.give("judge.scores")) == [0, 1, 1, 1, 1, 0]


def test_of_equal_answers_the_first_seen_counts(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    loop = voted(bench, rows_of, actor, ["a", "b", "b", "a", "a", "b", "b", "a"], vote())

    assert scores(loop.give("judge.scores")) == [1, 0, 0, 1, 1, 0, 0, 1]


def test_a_group_without_an_answer_gets_nothing_and_a_person_is_told(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    loop = voted(bench, rows_of, actor, ["a", "b", "3", "c"], vote(answer=r"(\d+)"))

    assert scores(loop.give("judge.scores")) == [0, 0, 1, 0]
    assert [code for code, _ in loop.alerts] == ["verifier.no_answers"]


def test_scores_that_come_in_weigh_the_votes(bench: Bench, rows_of: Any, scores: Any) -> None:
    trust = {"kind": "reward", "source": {"type": "builtin", "name": "column", "column": "w"}}
    rows = rows_of(*({"prompt": "p", "completion": c, "w": w} for c, w in (("a", 3), ("b", 2))))
    nodes = {"sums": rows, "trust": trust, "judge": vote(by="role")}  # all rows in one vote
    edges = ["sums.rows -> trust.rows", "sums.rows -> judge.rows", "trust.scores -> judge.scores"]

    assert scores(bench(nodes, edges).give("judge.scores")) == [1.0, 0.0]


def test_a_threshold_and_bounds_are_of_what_is_given(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    rows = rows_of({**LETTERS, "completion": "b\nx"}, {**LETTERS, "completion": "b\nbd"})
    read = {"granularity": "step", "reduce": "mean", "threshold": 0.75}

    assert scores(judged(bench, rows, rule(**read)).give("judge.scores")) == [0.0, 1.0]
