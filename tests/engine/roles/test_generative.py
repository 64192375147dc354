"""Judges in words: what they are asked, what is read, and to which rows the scores go."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from coloop.data.tables import Table
from coloop.errors import DataError
from coloop.workers.messages import Sampling

Bench = Callable[..., Any]

MODEL = {"type": "scratch", "architecture": "tiny-qwen3"}
YES = {"verdict": "(yes|no)", "values": {"yes": 1, "no": 0}}
BETTER = {"verdict": r"\[(A|B)\]", "values": {"A": 1, "B": 0}}
PAIR = {"prompt": "p", "chosen": "good", "rejected": "bad"}
COMPARE = "{{ prompt }} A: {{ a }} B: {{ b }}?"


def judge(text: str = "{{ prompt }}{{ completion }}?", **fields: Any) -> dict[str, Any]:
    return {
        "kind": "verifier",
        "method": "generative",
        "model": MODEL,
        "template": {"text": text},
        "read": YES,
        "rollout": {"completions_per_prompt": 2},
        **fields,
    }


def judging(bench: Bench, rows: Any, actor: Any, **fields: Any) -> Any:
    """A loop whose writer answers each row twice, and whose judge looks at each answer."""
    nodes = {"sums": rows, "actor": actor(), "judge": judge(**fields)}
    return bench(nodes, ["sums.rows -> actor.prompts", "actor.rollouts -> judge.rollouts"])


def comparing(bench: Bench, rows: Any, **fields: Any) -> Any:
    own = judge(COMPARE, **{"read": {**BETTER, "order": "given"}, **fields})
    return bench({"pairs": rows, "judge": own}, ["pairs.pairs -> judge.comparisons"])


def prompts(table: Table) -> list[Any]:
    return [row.columns["prompt"] for row in table.rows]


def test_a_verdict_is_a_child_of_what_it_judges(
    bench: Bench, rows_of: Any, actor: Any, scores: Any, column: Any
) -> None:
    loop = judging(bench, rows_of({"prompt": "p"}), actor)
    loop.hosts.write = lambda prompt, k: ("yes", "no")[k] if "?" in prompt else "ab"[k]

    judged = loop.give("judge.scores")
    answers = loop.outcomes["actor.generate"].outputs["rollouts"]

    assert scores(judged) == [1.0, 0.0, 1.0, 0.0]
    assert [row.parents[0] for row in judged.rows] == [
        row.id for row in answers.rows for _ in range(2)
    ]
    assert [row.group for row in judged.rows] == [row.parents[0] for row in judged.rows]
    assert prompts(judged) == ["pa?", "pa?", "pb?", "pb?"]
    assert column(judged, "judge.prompt") == prompts(judged)
    assert column(judged, "actor.completion") == ["a", "a", "b", "b"]
    assert {row.writer for row in judged.rows} == {"judge"}
    assert all(row.tokens is not None and row.tokens.loss_mask.all() for row in judged.rows)


def test_the_rollouts_of_a_judge_bring_their_scores(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    loop = judging(bench, rows_of({"prompt": "p"}), actor)
    loop.hosts.write = lambda prompt, k: "yes" if "?" in prompt else "a"

    assert column(loop.give("judge.rollouts"), "judge") == [1.0] * 4


def test_scores_rise_to_what_was_judged(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": actor(algorithm={"name": "grpo"}),
        "judge": judge(),
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> judge.rollouts",
        {"from": "judge.scores", "to": "actor.rewards", "aggregate": "mean"},
    ]
    loop = bench(nodes, edges)
    verdicts = {"pa?": ("yes", "no"), "pb?": ("no", "no")}
    loop.hosts.write = lambda prompt, k: verdicts[prompt][k] if "?" in prompt else "ab"[k]

    loop.step()

    credited = loop.outcomes["actor.credit"].outputs["credited"]
    assert [row.column("reward") for row in credited.rows] == [0.5, 0.0]


def test_a_chat_is_asked_as_messages(bench: Bench, rows_of: Any) -> None:
    chat = [
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": "{{ prompt }}?"},
    ]
    own = judge(template={"messages": chat})
    loop = bench({"sums": rows_of({"prompt": "p"}), "judge": own}, ["sums.rows -> judge.rows"])

    [first, _] = prompts(loop.give("judge.rollouts"))

    assert first == [
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": "p?"},
    ]


def test_a_template_sees_scores_that_come_in_and_draws_from_its_library(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "rules": rows_of({"rule": "r1"}),
        "actor": actor(),
        "brief": {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 2}},
        "judge": judge("{{ completion }} {{ brief }} {{ others('rule', 1)[0] }}"),
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> brief.rollouts",
        "actor.rollouts -> judge.rollouts",
        "brief.scores -> judge.scores",
        "rules.rows -> judge.library",
    ]

    asked = prompts(bench(nodes, edges).give("judge.rollouts"))

    assert asked == ["pa 0.0 r1", "pa 0.0 r1", "pb 0.0 r1", "pb 0.0 r1"]


def test_a_text_in_which_nothing_is_found_has_no_score(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    loop = judging(bench, rows_of({"prompt": "p"}), actor)
    loop.hosts.write = lambda prompt, k: ("yes", "perhaps")[k] if "?" in prompt else "a"

    assert scores(loop.give("judge.scores")) == [1.0, None] * 2
    assert loop.outcomes["judge.score"].metrics["parse/none"] == 0.5


def test_of_texts_in_which_nothing_is_looked_for_none_counts_as_unread(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = judging(bench, rows_of({"prompt": "p"}), actor, read={})

    loop.give("judge.rollouts")

    assert "parse/none" not in loop.outcomes["judge.score"].metrics


def test_what_a_text_is_worth_in_which_nothing_is_found_is_said_by_the_loop(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    read = {**BETTER, "order": "both", "on_no_match": 0.0, "range": [0, 1]}
    loop = comparing(bench, rows_of(PAIR), read=read, rollout={"completions_per_prompt": 1})
    loop.hosts.write = lambda prompt, k: "?"

    table = loop.give("judge.scores")

    assert scores(table) == [0.0, 0.0]  # swapped or not: it is never turned
    assert table.unturned == {row.id for row in table.rows}


@pytest.mark.parametrize(
    ("order", "shown", "found"),
    [
        ("given", ["p A: good B: bad?"], [1.0]),
        ("both", ["p A: good B: bad?", "p A: bad B: good?"], [1.0, 0.0]),
    ],
)
def test_scores_of_a_pair_are_turned_back_to_chosen(
    bench: Bench, rows_of: Any, scores: Any, order: str, shown: list[str], found: list[float]
) -> None:
    """It always says A: right where `chosen` is shown as `a`, wrong where `rejected` is."""
    one = {"completions_per_prompt": 1}
    loop = comparing(bench, rows_of(PAIR), read={**BETTER, "order": order}, rollout=one)
    loop.hosts.write = lambda prompt, k: "[A]"

    table = loop.give("judge.scores")

    assert prompts(table) == shown
    assert scores(table) == found


def test_numbers_without_a_range_are_turned_to_their_negative(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    read = {"number": r"(-?\d+)", "order": "both"}
    loop = comparing(bench, rows_of(PAIR), read=read, rollout={"completions_per_prompt": 1})
    loop.hosts.write = lambda prompt, k: "3"

    assert scores(loop.give("judge.scores")) == [3.0, -3.0]


def test_an_order_is_drawn_for_each_pair_and_the_same_in_every_run(
    bench: Bench, rows_of: Any, column: Any
) -> None:
    pairs = rows_of(*({**PAIR, "prompt": f"p{n}"} for n in range(40)))
    read = {**BETTER, "order": "random"}

    def orders() -> list[bool]:
        loop = comparing(bench, pairs, read=read, rollout={"completions_per_prompt": 1})
        swapped: list[bool] = column(loop.give("judge.scores"), "swapped")
        return swapped

    first = orders()

    assert first == orders()
    assert 10 <= sum(first) <= 30  # of 40 at one half: 3.2 standard deviations


def test_two_orders_have_draws_of_their_own(bench: Bench, rows_of: Any) -> None:
    loop = comparing(bench, rows_of(PAIR), read={**BETTER, "order": "both"})

    table = loop.give("judge.rollouts")

    assert [row.k for row in table.rows] == [0, 1, 2, 3]
    assert len({row.id for row in table.rows}) == 4
    seeds = [seed for request in loop.hosts.seeds for seed in request]
    assert len(set(seeds)) == 4


@pytest.mark.parametrize(("words", "share"), [("[A][B]", 1.0), ("[A][A]", 0.0), ("[B][B]", 0.0)])
def test_a_judge_of_both_orders_says_how_often_it_agrees_with_itself(
    bench: Bench, rows_of: Any, words: str, share: float
) -> None:
    one = {"completions_per_prompt": 1}
    loop = comparing(bench, rows_of(PAIR), read={**BETTER, "order": "both"}, rollout=one)
    loop.hosts.write = lambda prompt, k: words[3:] if "A: bad" in prompt else words[:3]

    loop.give("judge.scores")

    assert loop.outcomes["judge.score"].metrics["swap/consistent"] == share


def test_a_verdict_about_a_pair_reaches_both_of_its_sides(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """Each text is paired with the other; the judge likes `chosen`, which is the earlier one."""
    own = judge(COMPARE, read={**BETTER, "order": "given"})
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": actor(algorithm={"name": "grpo"}),
        "matches": {"kind": "pairs", "method": "all"},
        "judge": own,
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> matches.rollouts",
        "matches.pairs -> judge.comparisons",
        {"from": "judge.scores", "to": "actor.rewards", "aggregate": "mean"},
    ]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: "[A]" if "?" in prompt else "ab"[k]

    loop.step()

    credited = loop.outcomes["actor.credit"].outputs["credited"]
    assert [row.column("reward") for row in credited.rows] == [1.0, 0.0]


STEPS = {
    "step_verdicts": r"step (\d+): (right|wrong)",
    "values": {"right": 1, "wrong": -1},
    "step_scale": "per_step_count",
}


def stepping(bench: Bench, rows_of: Any, actor: Any, **read: Any) -> Any:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": actor(algorithm={"name": "grpo"}, rollout={"completions_per_prompt": 2}),
        "judge": judge(read={**STEPS, **read}),
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> judge.rollouts",
        {"from": "judge.step_scores", "to": "actor.rewards", "aggregate": "mean"},
    ]
    loop = bench(nodes, edges)
    first = "step 1: right\nstep 2: wrong"
    loop.hosts.write = lambda prompt, k: (
        (first, "step 1: right")[k] if "?" in prompt else ("a\nbc", "b\ncd")[k]
    )
    return loop


def test_step_scores_stand_at_the_tokens_of_the_judged_text(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    table = stepping(bench, rows_of, actor).give("judge.step_scores")

    # `a` ends with the token of the line break, 1, and `bc` with the last one, 3; a half each
    assert scores(table) == [{1: 0.5, 3: -0.5}, {1: 0.5}] * 2
    assert table.judged == {row.id: row.parents[0] for row in table.rows}


def test_step_scores_rise_to_the_judged_text_place_by_place(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = stepping(bench, rows_of, actor)

    loop.step()

    credited = loop.outcomes["actor.credit"].outputs["credited"]
    # at 1 the mean of 0.5 and 0.5, at 3 what the first verdict alone says
    assert [row.column("reward") for row in credited.rows] == [0.0, 0.0]
    assert loop.outcomes["judge.score"].metrics["parse/none"] == 0.0


@pytest.mark.parametrize(
    ("reduce", "found"), [("mean", [0.0, 0.5]), ("min", [-0.5, 0.5]), ("last", [-0.5, 0.5])]
)
def test_steps_become_one_score(
    bench: Bench, rows_of: Any, actor: Any, scores: Any, reduce: str, found: list[float]
) -> None:
    loop = stepping(bench, rows_of, actor, reduce=reduce)

    assert scores(loop.give("judge.scores")) == found * 2


CHANCE = {"score": "probability", "labels": ["yes", "no"]}


def test_without_a_rollout_the_chance_of_the_first_label_scores_the_judged_rows(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    loop = judging(bench, rows_of({"prompt": "p"}), actor, read=CHANCE, rollout=None)
    asked: list[Any] = []

    def choose(text: Any) -> list[float]:
        asked.append((text.text.prompt, text.choice.words))
        return [math.log(0.3), math.log(0.1)]

    loop.hosts.choose = choose
    table = loop.give("judge.scores")

    assert scores(table) == [pytest.approx(0.75)] * 2  # 0.3 / (0.3 + 0.1)
    assert {row.writer for row in table.rows} == {"actor"}
    assert asked == [("ppa?", ("yes", "no")), ("ppb?", ("yes", "no"))]


def test_chances_of_both_orders_are_turned_back_and_their_mean_counts(
    bench: Bench, rows_of: Any, scores: Any, column: Any
) -> None:
    read = {"labels": ["A", "B"], "order": "both"}
    loop = comparing(bench, rows_of(PAIR), read=read, rollout=None)
    loop.hosts.choose = lambda text: (
        [math.log(0.6), math.log(0.4)] if "A: good" in text.text.prompt else [0.0, 0.0]
    )

    table = loop.give("judge.scores")

    assert scores(table) == [pytest.approx((0.6 + 0.5) / 2)]
    assert column(table, "judge.orders") == [[pytest.approx(0.6), 0.5]]
    assert loop.outcomes["judge.score"].metrics["swap/consistent"] == 0.0


def test_the_chance_at_a_verdict_is_asked_where_its_word_begins(
    bench: Bench, rows_of: Any, actor: Any, scores: Any
) -> None:
    read = {**CHANCE, "verdict": "so (yes|no)", "clamp": [0.4, 0.6]}
    loop = judging(bench, rows_of({"prompt": "p"}), actor, read=read)
    loop.hosts.write = lambda prompt, k: ("so no, so yes", "well")[k] if "?" in prompt else "a"
    places: list[Any] = []

    def choose(text: Any) -> list[float]:
        places.append(text.choice.at)
        return [math.log(0.9), math.log(0.1)]

    loop.hosts.choose = choose
    table = loop.give("judge.scores")

    assert scores(table) == [0.6, None] * 2
    assert places == ["so no, so yes".rindex("yes")] * 2


def test_a_threshold_is_asked_after_the_score_is_turned(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    read = {"labels": ["A", "B"], "order": "both", "threshold": 0.6}
    loop = comparing(bench, rows_of(PAIR), read=read, rollout=None)
    loop.hosts.choose = lambda text: (
        [math.log(0.7), math.log(0.3)]
        if "A: good" in text.text.prompt
        else [math.log(0.3), math.log(0.7)]
    )

    table = loop.give("judge.scores")

    assert scores(table) == [1.0]  # 0.7 in both orders
    assert table.score_range == (0.0, 1.0)


def test_a_judge_of_nothing_gives_nothing(bench: Bench, rows_of: Any) -> None:
    nothing = {"kind": "filter", "keep": [{"rule": "regex", "column": "prompt", "pattern": "z"}]}
    nodes = {"sums": rows_of({"prompt": "p"}), "none": nothing, "judge": judge("{{ prompt }}")}
    loop = bench(nodes, ["sums.rows -> none.rows", "none.rows -> judge.rows"])

    assert len(loop.give("judge.scores")) == 0
    assert len(loop.give("judge.rollouts")) == 0


def test_a_verifier_learns_from_rewards_in_groups_over_what_it_judges(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    own = judge(algorithm={"rewards": {"name": "grpo"}})
    exact = {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}}
    agrees = {
        "kind": "reward",
        "source": {"type": "builtin", "name": "agreement", "columns": ["judge", "exact"]},
    }
    nodes = {
        "sums": rows_of({"prompt": "p", "answer": "a"}),
        "actor": actor(),
        "exact": exact,
        "judge": own,
        "agrees": agrees,
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> judge.rollouts",
        "judge.scores -> agrees.scores",
        "exact.scores -> agrees.scores",
        "agrees.scores -> judge.rewards",
    ]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: ("yes", "no")[k] if "?" in prompt else "ab"[k]

    loop.step()

    items = loop.items()
    # of `a`, which is right, the first verdict agrees; of `b` the second
    assert [item.advantages > 0 for item in items] == [True, False, False, True]
    assert len({item.group for item in items}) == 2
    assert [item.id.partition(":")[0] for item in items] == ["judge"] * 4


def test_a_probe_sets_how_a_judge_writes_where_nobody_writes_before_it(
    bench: Bench, rows_of: Any
) -> None:
    nodes = {
        "pairs": rows_of(PAIR),
        "held_out": rows_of(PAIR),
        "judge": judge(COMPARE, read=BETTER),
        "probe": {"kind": "evaluate", "instead_of": "pairs", "greedy": True, "metrics": ["score"]},
    }
    edges = [
        "pairs.pairs -> judge.comparisons",
        "held_out.rows -> probe.rows",
        "judge.scores -> probe.scores",
    ]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: "[A]" if "A: good" in prompt else "[B]"

    assert loop.probe("probe") == {"score": 1.0}
    assert [one.temperature for one in loop.hosts.samplings] == [0.0]
    assert isinstance(loop.hosts.samplings[0], Sampling)


DPO = {"pairs": {"name": "dpo"}}


def taught(bench: Bench, rows: Any, own: dict[str, Any]) -> Any:
    nodes = {
        "pairs": rows,
        "judge": {**own, "algorithm": DPO},
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "judge"}},
    }
    edges = [
        "pairs.pairs -> judge.pairs",
        "pairs.pairs -> start.pairs",
        "start.log_probs -> judge.reference",
    ]
    return bench(nodes, edges)


def texts(pair: Any) -> tuple[Any, str, str]:
    assert pair.chosen.text.prompt == pair.rejected.text.prompt
    return pair.chosen.text.prompt, pair.chosen.text.target, pair.rejected.text.target


def test_a_judge_that_shows_both_sides_is_taught_its_label_of_the_better_one(
    bench: Bench, rows_of: Any
) -> None:
    read = {**BETTER, "labels": ["A", "B"], "order": "both"}
    loop = taught(bench, rows_of(PAIR), judge(COMPARE, read=read))

    loop.step()

    assert [texts(pair) for pair in loop.items("pairs")] == [
        ("p A: good B: bad?", "A", "B"),
        ("p A: bad B: good?", "B", "A"),
    ]


def test_a_judge_is_taught_which_critique_it_shall_rather_write(bench: Bench, rows_of: Any) -> None:
    row = {"prompt": "p", "completion": "c", "chosen": "it is right", "rejected": "bla"}
    loop = taught(bench, rows_of(row), judge())

    loop.step()

    assert [texts(pair) for pair in loop.items("pairs")] == [("pc?", "it is right", "bla")]


def test_the_reference_of_a_judge_measures_what_it_is_taught(bench: Bench, rows_of: Any) -> None:
    read = {**BETTER, "labels": ["A", "B"], "order": "random"}
    loop = taught(bench, rows_of(PAIR), judge(COMPARE, read=read))
    measured: list[Any] = []
    score_pairs = loop.hosts.score_pairs

    def listen(group: str, node: str, pairs: Any) -> Any:
        measured.extend(pairs)
        return score_pairs(group, node, pairs)

    loop.hosts.score_pairs = listen
    loop.step()

    assert [texts(pair) for pair in measured] == [texts(pair) for pair in loop.items("pairs")]


def test_labelled_pairs_want_a_label_for_each_side(bench: Bench, rows_of: Any) -> None:
    loop = taught(bench, rows_of(PAIR), judge(COMPARE, read=BETTER))

    with pytest.raises(DataError, match=r"`read\.labels` has none"):
        loop.step()


def test_pairs_of_verdicts_are_learned_as_they_were_drawn(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": actor(rollout={"completions_per_prompt": 1}),
        "judge": judge(algorithm=DPO),
        "brief": {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 9}},
        "best": {"kind": "pairs", "method": "best_worst"},
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "judge"}},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> judge.rollouts",
        "judge.rollouts -> brief.rollouts",
        "judge.rollouts -> best.rollouts",
        "brief.scores -> best.scores",
        "best.pairs -> judge.pairs",
        "best.pairs -> start.pairs",
        "start.log_probs -> judge.reference",
    ]
    loop = bench(nodes, edges)
    loop.hosts.writer = "judge"
    loop.hosts.write = lambda prompt, k: ("no", "no, wait")[k] if "?" in prompt else "a"

    loop.step()

    [pair] = loop.items("pairs")
    whole = ["".join(map(chr, one.token_ids)) for one in (pair.chosen, pair.rejected)]
    assert whole == ["pa?no", "pa?no, wait"]


def test_a_judge_of_several_texts_together_gives_a_score_to_each_with_each_vote(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    asks = "{% for text in completion %}{{ loop.index }}: {{ text }} {% endfor %}?"
    own = judge(
        asks,
        join={"gather": "sums"},
        per="row",
        read={"numbers": r"(\d+) is (\d+)"},
    )
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": actor(algorithm={"name": "grpo"}),
        "judge": own,
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> judge.rollouts",
        {"from": "judge.scores", "to": "actor.rewards", "aggregate": "sum"},
    ]
    loop = bench(nodes, edges)
    votes = ("1 is 7 2 is 3", "2 is 4")
    loop.hosts.write = lambda prompt, k: votes[k] if "?" in prompt else "ab"[k]

    loop.step()

    judged = loop.outcomes["judge.score"].outputs
    assert prompts(judged["rollouts"]) == ["1: a 2: b ?"] * 2
    credited = loop.outcomes["actor.credit"].outputs["credited"]
    assert [row.column("reward") for row in credited.rows] == [7.0, 7.0]  # 7, and 3 + 4
    assert loop.outcomes["judge.score"].metrics["parse/none"] == 0.0
