"""Judges that write nothing: the task's rule, votes, implicit rewards, classifiers."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from coloop.data.arrays import numbers_of
from coloop.data.tasks import task_rows
from coloop.data.tasks.proof import check_proof
from coloop.errors import DataError

Bench = Callable[..., Any]

MODEL = {"type": "scratch", "architecture": "tiny-qwen3"}
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

    with pytest.raises(DataError, match="which task it belongs to"):
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
    rows = rows_of(*({"prompt": "p", "completion": c, "w": w} for c, w in (("a", 2), ("b", 3))))
    nodes = {"sums": rows, "trust": trust, "judge": vote(by="role")}  # all rows in one vote
    edges = ["sums.rows -> trust.rows", "sums.rows -> judge.rows", "trust.scores -> judge.scores"]

    assert scores(bench(nodes, edges).give("judge.scores")) == [0.0, 1.0]


def test_a_greedy_extra_is_judged_and_has_no_vote(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": actor(rollout={"completions_per_prompt": 3, "greedy_extra": True}),
        "judge": vote(),
    }
    loop = bench(nodes, ["sums.rows -> actor.prompts", "actor.rollouts -> judge.rollouts"])
    loop.hosts.write = lambda prompt, k: "abb"[k]

    table = loop.give("judge.scores")

    # drawn a, b, b and greedy a: with a vote of its own there would be two of each, and a is first
    said = {(row.is_greedy, row.columns["completion"]): table.scores[row.id] for row in table.rows}
    assert said == {(False, "b"): 1.0, (False, "a"): 0.0, (True, "a"): 0.0}


def test_a_threshold_and_bounds_are_of_what_is_given(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    rows = rows_of({**LETTERS, "completion": "b\nx"}, {**LETTERS, "completion": "b\nbd"})
    read = {"granularity": "step", "reduce": "mean", "threshold": 0.75}

    assert scores(judged(bench, rows, rule(**read)).give("judge.scores")) == [0.0, 1.0]


def implicit(**read: Any) -> dict[str, Any]:
    read = {"granularity": "token", "beta": 0.5, **read}
    return {"kind": "verifier", "method": "implicit_prm", "model": MODEL, "read": read}


PRIOR_EDGES = [
    "sums.rows -> actor.prompts",
    "actor.rollouts -> prior.rollouts",
    "actor.rollouts -> judge.rollouts",
    "prior.log_probs -> judge.prior",
]


def beside_a_prior(bench: Bench, rows_of: Any, actor: Any, judge: Any, ratios: Any) -> Any:
    """A loop in which the judge's log-probs lead those of its prior by `ratios`, token by token."""
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": actor(),
        "prior": {"kind": "reference", "model": MODEL},
        "judge": judge,
    }
    loop = bench(nodes, PRIOR_EDGES)
    loop.hosts.write = lambda prompt, k: ("ab\nc", "xy")[k]

    def score(group: str, node: str, texts: Any, temperature: float, reading: str = "") -> Any:
        sizes = [len(one.token_ids) - one.prompt_length for one in texts]
        return [
            numbers_of([-1.0 + (r if node == "judge" else 0) for r in ratios[:n]]) for n in sizes
        ]

    loop.hosts.score = score
    return loop


def test_an_implicit_reward_is_the_log_ratio_of_each_token_but_the_last(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    loop = beside_a_prior(bench, rows_of, actor, implicit(), [0.5, -1.0, 0.25, 2.0])

    # beta 0.5; the texts are of four and of two tokens
    assert scores(loop.give("judge.step_scores")) == [{0: 0.25, 1: -0.5, 2: 0.125}, {0: 0.25}]
    # all tokens: 0.5 * (0.5 - 1 + 0.25 + 2), 0.5 * (0.5 - 1)
    assert scores(loop.give("judge.scores")) == [0.875, -0.25]


def test_implicit_rewards_of_steps_end_before_the_outcomes_token(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    judge = implicit(granularity="step", reduce="min")
    loop = beside_a_prior(bench, rows_of, actor, judge, [0.5, -1.0, 0.25, 2.0])

    # "ab\n" ends with its third token; "c" is the outcome's alone, and so says nothing
    assert scores(loop.give("judge.step_scores")) == [{2: -0.125}, {0: 0.25}]
    assert scores(loop.give("judge.scores")) == [-0.125, 0.25]


def test_the_token_that_ends_a_step_belongs_to_it(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    judge = implicit(granularity="step")
    loop = beside_a_prior(bench, rows_of, actor, judge, [0.5, -1.0, 0.25, 2.0])
    loop.hosts.write = lambda prompt, k: ("a\nbc", "x")[k]

    # beta 0.5: "a\n" is 0.25 - 0.5, "b" 0.125; "c" and "x" are the outcome's
    assert scores(loop.give("judge.step_scores")) == [{1: -0.25, 2: 0.125}, {}]


def test_rewards_are_brought_to_scale_by_the_greatest_reward_to_go_of_the_batch(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    judge = implicit(normalise="max_cumulative", beta=1.0)
    loop = beside_a_prior(bench, rows_of, actor, judge, [0.5, -1.0, 0.25, 2.0])

    # to go: 0.25, -0.75, -0.25 and 0.5
    expected = [{0: 0.5 / 0.75, 1: -1 / 0.75, 2: 0.25 / 0.75}, {0: 0.5 / 0.75}]
    assert scores(loop.give("judge.step_scores")) == [pytest.approx(one) for one in expected]


def test_a_running_scale_is_the_mean_over_batches_and_outlives_a_run(
    bench: Bench, rows_of: Any, actor: Any, scores: Any, through_files: Any
) -> None:
    judge = implicit(normalise="running", beta=1.0)
    first = beside_a_prior(bench, rows_of, actor, judge, [1.0, 0.0, 0.0, 0.0])
    first.give("judge.scores")
    second = beside_a_prior(bench, rows_of, actor, judge, [3.0, 0.0, 0.0, 0.0])
    second.roles["judge"].load_state(through_files(first.roles["judge"].state()))

    # greatest rewards to go of 1 and of 3: their mean is 2
    assert scores(second.give("judge.step_scores"))[1] == {0: 1.5}


def test_a_probe_leaves_the_running_scale_as_it_is(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = beside_a_prior(bench, rows_of, actor, implicit(normalise="running"), [1.0] * 4)
    before = loop.roles["judge"].state()

    loop.give("judge.scores", is_probe=True)

    assert loop.roles["judge"].state() == before


def classifier(**read: Any) -> dict[str, Any]:
    return {"kind": "verifier", "method": "discriminative", "model": MODEL, "read": read}


def by_classifier(bench: Bench, rows_of: Any, actor: Any, judge: Any, said: Any) -> Any:
    """A loop whose classifier says `said(place)` at each token of a completion that it is asked
    of."""
    nodes = {"sums": rows_of({"prompt": "p"}), "actor": actor(), "judge": judge}
    loop = bench(nodes, ["sums.rows -> actor.prompts", "actor.rollouts -> judge.rollouts"])
    loop.hosts.write = lambda prompt, k: ("ab\nc", "xy")[k]
    loop.asked = []

    def score(group: str, node: str, texts: Any, temperature: float, reading: str = "") -> Any:
        loop.asked.append((reading, [one.loss_mask[one.prompt_length :].tolist() for one in texts]))
        sizes = [len(one.token_ids) - one.prompt_length for one in texts]
        whole = reading == "scores"
        return [numbers_of([said(n)] if whole else [said(i) for i in range(n)]) for n in sizes]

    loop.hosts.score = score
    return loop


def test_a_classifier_says_one_number_of_a_text(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    judge = classifier(activation="sigmoid")
    loop = by_classifier(bench, rows_of, actor, judge, lambda n: math.log(3) if n == 4 else 0.0)

    assert scores(loop.give("judge.scores")) == pytest.approx([0.75, 0.5])


def test_a_classifier_is_read_where_steps_end(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    judge = classifier(granularity="step", reduce="product")
    loop = by_classifier(bench, rows_of, actor, judge, lambda place: place + 1.0)

    assert scores(loop.give("judge.step_scores")) == [{2: 3.0, 3: 4.0}, {1: 2.0}]
    assert scores(loop.give("judge.scores")) == [12.0, 2.0]
    assert loop.asked[0] == ("steps", [[False, False, True, True], [False, True]])


def test_a_score_that_is_no_number_ends_the_run_with_its_row(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = by_classifier(bench, rows_of, actor, classifier(), lambda n: math.nan)

    with pytest.raises(DataError, match=r"judge: the score of row .* is nan"):
        loop.give("judge.scores")


def test_a_classifier_of_classes_is_no_judge_of_one_number(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = by_classifier(bench, rows_of, actor, classifier(), lambda n: 0.0)
    loop.hosts.score = lambda group, node, texts, *_: [numbers_of([0.0, 1.0]) for _ in texts]

    with pytest.raises(DataError, match="its model gives 2 numbers per text"):
        loop.give("judge.scores")


def formal(bench: Bench, rows_of: Any, *rows: tuple[str, str | None]) -> Any:
    columns = [{"prompt": prompt, "completion": text} for prompt, text in rows]
    judge = {"kind": "verifier", "method": "formal", "checker": "proof"}
    return bench({"sums": rows_of(*columns), "judge": judge}, ["sums.rows -> judge.rows"])


def test_a_formal_checker_grades_what_it_can_read(bench: Bench, rows_of: Any, scores: Any) -> None:
    theorem = "a, a>b, ab>c |- c"
    loop = formal(
        bench,
        rows_of,
        (theorem, "b c"),
        (theorem, "c"),
        (theorem, "b"),
        ("1+1=", "b c"),
        (f"not {theorem}", "none"),
        ("not a, b>c |- c", "none"),
        (theorem, None),
    )

    assert scores(loop.give("judge.scores")) == [1.0, 0.0, 0.0, None, 0.0, 1.0, None]


def test_a_formal_checker_agrees_with_that_of_the_task(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    made = task_rows("proof", size=12, depth=(1, 4))
    atoms = ("", "b", "a b c", "none")
    tried = [(row["prompt"], text) for row in made for text in (row["answer"], *atoms)]

    found = scores(formal(bench, rows_of, *tried).give("judge.scores"))

    assert found == [check_proof({"prompt": prompt}, text) for prompt, text in tried]
    assert found[::5] == [1.0] * len(made)


def reward_model(**fields: Any) -> dict[str, Any]:
    return {"kind": "reward", "source": {"type": "model"}, "model": MODEL, **fields}


class Reader:
    """Stands for a classifier: what it is given to read, and a number by the text's length."""

    def __init__(self, loop: Any) -> None:
        self.texts: list[Any] = []
        loop.hosts.score = self.score

    def score(self, group: str, node: str, texts: Any, *_: Any) -> Any:
        self.texts += [one.text for one in texts]
        return [numbers_of([float(len(one.text.prompt))]) for one in texts]


def test_a_reward_model_reads_what_its_template_makes(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    template = {"text": "{{ prompt }}|{{ completion }}"}
    model = reward_model(template=template, read={"clamp": [0, 4]})
    rows = rows_of({"prompt": "p", "completion": "c"}, {"prompt": "pp", "completion": "ccc"})
    loop = bench({"sums": rows, "rm": model}, ["sums.rows -> rm.rows"])
    reader = Reader(loop)

    assert scores(loop.give("rm.scores")) == [3.0, 4.0]
    assert [(one.prompt, one.target) for one in reader.texts] == [("p|c", ""), ("pp|ccc", "")]


PAIR = {"prompt": "p", "chosen": "long", "rejected": "no"}
COMPARED = ["sums.pairs -> rm.comparisons"]


def test_a_reward_model_reads_each_side_of_a_pair_alone(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    model = reward_model(template={"text": "{{ prompt }}{{ completion }}"})
    loop = bench({"sums": rows_of(PAIR), "rm": model}, COMPARED)
    reader = Reader(loop)

    table = loop.give("rm.scores")

    assert scores(table) == [2.0]  # five characters against three
    assert [one.prompt for one in reader.texts] == ["plong", "pno"]
    assert table.score_range is None


def test_through_a_sigmoid_a_pairs_score_is_the_chance_of_its_order(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    model = reward_model(template={"text": "{{ completion }}"}, read={"activation": "sigmoid"})
    loop = bench({"sums": rows_of(PAIR), "rm": model}, COMPARED)
    Reader(loop)

    table = loop.give("rm.scores")

    assert scores(table) == pytest.approx([1 / (1 + math.exp(-2))])
    assert table.score_range == (0.0, 1.0)


def test_of_classes_the_score_is_the_chance_of_the_first(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    rows = rows_of({"prompt": "p", "target": "t"})
    node = reward_model(read={"labels": ["good", "fair", "bad"]})
    loop = bench({"sums": rows, "rm": node}, ["sums.rows -> rm.rows"])
    said = numbers_of([math.log(2), 0.0, 0.0])
    loop.hosts.score = lambda group, name, texts, *_: [said for _ in texts]

    assert scores(loop.give("rm.scores")) == pytest.approx([0.5])


def test_python_scores_each_row_that_was_gathered(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    code = (
        "def reward(prompts, completions, **columns):\n"
        "    return [[len(own) - len(texts[0]) for own in texts] for texts in completions]\n"
    )
    each = {
        "kind": "reward",
        "source": {"type": "python", "code": code},
        "join": {"gather": "sums"},
        "per": "row",
    }
    nodes = {"sums": rows_of({"prompt": "p"}, {"prompt": "q"}), "actor": actor(), "each": each}
    loop = bench(nodes, ["sums.rows -> actor.prompts", "actor.rollouts -> each.rollouts"])
    loop.hosts.write = lambda prompt, k: "a" * (1 + k * (1 + (prompt == "q")))

    table = loop.give("each.scores")

    assert scores(table) == [0.0, 1.0, 0.0, 2.0]
    assert [row.writer for row in table.rows] == ["actor"] * 4
    assert [row.k for row in table.rows] == [0, 1, 0, 1]


def test_a_list_of_another_length_than_was_gathered_ends_the_run(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    code = "def reward(prompts, completions, **columns):\n    return [[1.0] for _ in completions]\n"
    each = {
        "kind": "reward",
        "source": {"type": "python", "code": code},
        "join": {"gather": "sums"},
        "per": "row",
    }
    nodes = {"sums": rows_of({"prompt": "p"}), "actor": actor(), "each": each}
    loop = bench(nodes, ["sums.rows -> actor.prompts", "actor.rollouts -> each.rollouts"])

    with pytest.raises(DataError, match="gathers 2 rows but got 1 numbers"):
        loop.give("each.scores")
