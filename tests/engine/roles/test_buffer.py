"""Rows that outlive a step: what is taken, what is given out, what a resume brings back."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.errors import DataError

Bench = Callable[..., Any]

LETTERS = [
    {"prompt": sign, "target": sign, "weight": n, "note": ["x", n]}
    for n, sign in enumerate("abcdefgh")
]
LEARNER = {
    "kind": "actor",
    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
    "algorithm": {"name": "sft"},
}


def pooled(bench: Bench, rows_of: Any, per_step: int = 3, rows: Any = None, **fields: Any) -> Any:
    """Letters that flow through a buffer, so many a step."""
    nodes = {
        "letters": rows_of(*(rows or LETTERS), rows_per_step=per_step),
        "pool": {"kind": "buffer", "capacity": 5, **fields},
        "policy": LEARNER,
    }
    edges = ["letters.rows -> pool.rows", "pool.rows -> policy.demonstrations"]
    phases = [
        {"name": "both", "steps": 99, "learn": ["policy"], "fill": ["pool"]},
        {"name": "write", "steps": 99, "fill": ["pool"]},
        {"name": "read", "epochs": {"of": "pool", "count": 2}, "learn": ["policy"]},
    ]
    loop = bench(nodes, edges, {"phases": phases})
    for role in loop.roles.values():
        enter = getattr(role, "phase_starts", None)
        if enter is not None:
            enter(loop.plan.phase("both"), {}, loop.context)
    return loop


def given(loop: Any, step: int) -> list[str]:
    """Letters that one step reads."""
    return [row.columns["prompt"] for row in loop.give("pool.rows", step).rows]


def held(loop: Any) -> list[str]:
    """Letters that the buffer has."""
    return [entry.row.columns["prompt"] for entry in loop.roles["pool"].remember().entries]


def test_an_empty_buffer_gives_nothing_and_the_learner_says_so(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of)

    loop.step(1)

    assert [code for code, _ in loop.alerts] == ["learn.no_rows"]
    assert loop.outcomes["policy.learn"].is_idle
    assert held(loop) == ["a", "b", "c"]


def test_the_newest_stay_when_it_is_full(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of)

    for step in (1, 2, 3):
        loop.step(step, "write")

    assert held(loop) == ["e", "f", "g", "h", "a"]


@pytest.mark.parametrize(("sample", "expected"), [("newest", ["e", "d"]), ("oldest", ["a", "b"])])
def test_newest_and_oldest(sample: str, expected: list[str], bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of, 5, sample=sample, rows_per_step=2)
    loop.step(1, "write")

    assert given(loop, 2) == given(loop, 3) == expected


def test_uniform_draws_differ_by_step_and_not_by_run(bench: Bench, rows_of: Any) -> None:
    draws = []
    for _ in range(2):
        loop = pooled(bench, rows_of, 5, sample="uniform", rows_per_step=3)
        loop.step(1, "write")
        draws.append([given(loop, step) for step in range(2, 10)])

    assert draws[0] == draws[1]
    assert len({tuple(draw) for draw in draws[0]}) > 3
    assert all(len(set(draw)) == 3 for draw in draws[0])


def test_weighted_draws_follow_the_column(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of, 5, sample="weighted", weight="weight", rows_per_step=1)
    loop.step(1, "write")

    drawn = [given(loop, step)[0] for step in range(2, 202)]

    assert "a" not in drawn  # weight 0
    assert drawn.count("e") > drawn.count("b")


def test_a_weight_that_is_no_number_is_named(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of, 5, sample="weighted", weight="prompt")
    loop.step(1, "write")

    with pytest.raises(DataError, match="column `prompt` must be a number, found 'a'"):
        given(loop, 2)


def test_what_is_read_are_new_rows_that_keep_what_they_had(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "letters": rows_of({"prompt": "a", "answer": "aa"}),
        "actor": {**actor(), "algorithm": {"name": "grpo"}},
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
        "pool": {"kind": "buffer", "capacity": 9},
    }
    edges = [
        "letters.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> pool.rollouts",
        "exact.scores -> pool.scores",
        "pool.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges, {"steps": 9, "fill": ["pool"]})
    loop.step(1)

    table = loop.give("pool.scores", 2)

    assert [row.id for row in table.rows] == ["pool:0.2", "pool:1.2"]
    assert all(row.parents == () for row in table.rows)
    assert [row.writer for row in table.rows] == ["actor", "actor"]
    assert [row.group for row in table.rows] == ["letters:0.0"] * 2
    assert [row.column("exact") for row in table.rows] == [1.0, 0.0]
    assert list((table.scores or {}).values()) == [1.0, 0.0]
    assert table.scorer == "exact"
    assert [row.tokens.token_ids.tolist() for row in table.rows] == [[97, 97], [97, 98]]


def test_groups_are_drawn_whole_where_their_scores_feed_rewards(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "letters": rows_of(*LETTERS[:4], rows_per_step=2),
        "actor": {**actor(), "algorithm": {"name": "grpo"}},
        "brief": {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}},
        "pool": {"kind": "buffer", "capacity": 99, "rows_per_step": 3, "sample": "uniform"},
    }
    edges = [
        "letters.rows -> actor.prompts",
        "actor.rollouts -> brief.rollouts",
        "brief.scores -> pool.scores",
        "pool.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges, {"steps": 9, "fill": ["pool"]})
    loop.step(1)
    loop.step(2)

    groups = [row.group for row in loop.give("pool.scores", 3).rows]

    assert len(groups) == 4
    assert all(groups.count(group) == 2 for group in groups)


def test_rows_of_a_buffer_are_compared_with_those_for_the_same_prompt(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """By `prompt`, as by nothing: with a group for each row no row would be better than others."""
    code = (
        "def reward(prompts, completions, **columns):\n"
        "    return [float(len(one)) if one[-1] == 'b' else 0.0 for one in completions]\n"
    )
    nodes = {
        "letters": rows_of(*LETTERS, rows_per_step=2),
        "actor": {
            **actor(),
            "algorithm": {"name": "grpo", "advantage": "group_mean"},
            "credit": {"group_by": ["prompt"]},
        },
        "mark": {"kind": "reward", "source": {"type": "python", "code": code}},
        "pool": {"kind": "buffer", "capacity": 99},
    }
    edges = [
        "letters.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> pool.scores",
        "pool.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges, {"steps": 9, "fill": ["pool"]})
    loop.step(1)

    loop.step(2)

    groups = [item.group for item in loop.items()]
    assert len(groups) == 4
    assert all(groups.count(group) == 2 for group in groups)
    assert all(item.advantages for item in loop.items())


def grouped(bench: Bench, rows_of: Any, actor: Any, **fields: Any) -> Any:
    """Groups of two that a buffer keeps whole, as its scores feed rewards."""
    nodes = {
        "letters": rows_of(*LETTERS, rows_per_step=2),
        "actor": {**actor(), "algorithm": {"name": "grpo"}},
        "brief": {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}},
        "pool": {"kind": "buffer", "capacity": 99, **fields},
    }
    edges = [
        "letters.rows -> actor.prompts",
        "actor.rollouts -> brief.rollouts",
        "brief.scores -> pool.scores",
        "pool.scores -> actor.rewards",
    ]
    phases = [
        {"name": "write", "steps": 99, "fill": ["pool"]},
        {"name": "read", "epochs": {"of": "pool", "count": 2}, "learn": ["actor"]},
    ]
    return bench(nodes, edges, {"phases": phases})


def test_a_pass_serves_whole_groups_where_their_scores_feed_rewards(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = grouped(bench, rows_of, actor, rows_per_step=3)
    for step in (1, 2, 3):
        loop.step(step, "write")
    pool = loop.roles["pool"]
    pool.phase_starts(loop.plan.phase("read"), {}, loop.context)

    steps = pool.steps_for_epochs(2, loop.context)
    served = [
        [row.group for row in loop.give("pool.scores", step).rows] for step in range(4, 4 + steps)
    ]

    # six groups of two, at least three rows a step: two groups a step, three steps a pass
    assert [len(groups) for groups in served] == [4] * 6
    assert all(groups.count(group) == 2 for groups in served for group in groups)
    for at in (0, 3):
        once = [group for groups in served[at : at + 3] for group in groups]
        assert len(set(once)) == 6
        assert len(once) == 12


def test_what_is_written_while_a_pass_lasts_waits_for_the_next(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = grouped(bench, rows_of, actor, rows_per_step=2)
    loop.step(1, "write")
    loop.step(2, "write")
    pool = loop.roles["pool"]
    pool.phase_starts(loop.plan.phase("read"), {}, loop.context)
    assert len(loop.give("pool.scores", 3).rows) == 2

    loop.step(4, "write")
    served = [len(loop.give("pool.scores", step).rows) for step in (5, 6, 7)]

    assert served == [2, 2, 2]
    assert pool.state()["passes"] == 1


def test_groups_leave_a_full_buffer_whole(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = grouped(bench, rows_of, actor, capacity=5)

    for step in (1, 2, 3):
        loop.step(step, "write")

    groups = [entry.row.group for entry in loop.roles["pool"].remember().entries]
    assert groups == ["letters:0.4"] * 2 + ["letters:0.5"] * 2


def test_a_group_that_no_buffer_can_hold_is_told(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = grouped(bench, rows_of, actor, capacity=1)

    with pytest.raises(DataError, match=r"pool: a group of 2 rows .* capacity of 1"):
        loop.step(1, "write")


def test_its_own_rows_are_not_taken_back(bench: Bench, rows_of: Any) -> None:
    nodes = {
        "letters": rows_of(*LETTERS[:2]),
        "pool": {"kind": "buffer", "capacity": 9},
        "turn": {"kind": "template", "text": "{{ prompt }}!"},
        "policy": LEARNER,
    }
    edges = [
        "letters.rows -> pool.rows",
        "pool.rows -> turn.rows",
        "turn.rows -> pool.rows",
        "turn.rows -> policy.demonstrations",
    ]
    phases = [{"name": "both", "steps": 9, "learn": ["policy"], "fill": ["pool"]}]
    loop = bench(nodes, edges, {"phases": phases})
    loop.step(1)
    loop.step(2)

    assert held(loop) == ["a", "b", "a", "b"]


def test_a_known_value_is_not_taken_again(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of, 8, unique="note", capacity=99)

    loop.step(1, "write")
    loop.step(2, "write")

    assert len(held(loop)) == 8
    assert loop.outcomes["pool.write"].is_idle


def test_rows_without_the_column_are_not_alike(bench: Bench, rows_of: Any) -> None:
    rows = [{"prompt": "a", "note": None}, {"prompt": "b", "note": None}]

    loop = pooled(bench, rows_of, 2, rows, unique="note")
    loop.step(1, "write")

    assert held(loop) == ["a", "b"]


def test_a_known_key_replaces_its_row(bench: Bench, rows_of: Any) -> None:
    rows = [{"prompt": p, "id": n} for p, n in (("a", 1), ("b", 2), ("c", 1), ("d", 3))]
    loop = pooled(bench, rows_of, 2, rows, key="id")

    loop.step(1, "write")
    loop.step(2, "write")

    assert held(loop) == ["c", "b", "d"]


def test_as_many_rows_of_each_class(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes = {
        "letters": rows_of(*LETTERS),
        "mark": {
            "kind": "reward",
            "source": {
                "type": "python",
                "code": "def reward(prompts, completions, weight, **columns):\n"
                "    return [None if w == 7 else float(w > 1) for w in weight]\n",
            },
        },
        "pool": {
            "kind": "buffer",
            "capacity": 99,
            "rows_per_step": 6,
            "balance": {"by": "mark"},
        },
        "policy": LEARNER,
    }
    edges = [
        "letters.rows -> mark.rows",
        "letters.rows -> pool.rows",
        "mark.scores -> pool.scores",
        "pool.rows -> policy.demonstrations",
    ]
    phases = [{"name": "both", "steps": 9, "learn": ["policy"], "fill": ["pool"]}]
    loop = bench(nodes, edges, {"phases": phases})
    loop.step(1)

    drawn = given(loop, 2)

    assert sorted(drawn)[:2] == ["a", "b"]
    assert len(drawn) == 4


OF_PROMPTS = (
    "def reward(prompts, completions, **columns):\n"
    "    return [float(one > 'b') for one in prompts]\n"
)
OF_COMPLETIONS = (
    "def reward(prompts, completions, **columns):\n"
    "    return [float(one[-1] == 'b') for one in completions]\n"
)


def classes_in_groups(bench: Bench, rows_of: Any, actor: Any, by: str, algorithm: str) -> Any:
    """Groups of two for `a` and `b` of one class, `c` and `d` of the other; and what a scorer of
    completions calls classes, which are two of each group."""
    nodes = {
        "letters": rows_of(*LETTERS[:5]),
        "ask": {"kind": "reward", "source": {"type": "python", "code": OF_PROMPTS}},
        "known": {"kind": "filter", "keep": [{"rule": "score", "min": 0.0}]},
        "actor": {**actor(), "algorithm": {"name": algorithm}},
        "brief": {"kind": "reward", "source": {"type": "python", "code": OF_COMPLETIONS}},
        "pool": {"kind": "buffer", "capacity": 99, "rows_per_step": 7, "balance": {"by": by}},
    }
    edges = [
        "letters.rows -> ask.rows",
        "letters.rows -> known.rows",
        "ask.scores -> known.scores",
        "known.rows -> actor.prompts",
        "actor.rollouts -> brief.rollouts",
        "brief.scores -> pool.scores",
        "pool.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges, {"steps": 9, "fill": ["pool"]})
    loop.step(1)
    return loop


def test_classes_of_prompts_are_balanced_in_whole_groups(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = classes_in_groups(bench, rows_of, actor, "ask", "grpo")

    rows = loop.give("pool.scores", 2).rows

    # 7 // 2 = 3 rows of each class, so two groups of two
    assert sorted(row.columns["ask"] for row in rows) == [0.0] * 4 + [1.0] * 4
    groups = [row.group for row in rows]
    assert all(groups.count(group) == 2 for group in groups)


def test_classes_within_groups_split_no_group_that_is_compared(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = classes_in_groups(bench, rows_of, actor, "brief", "grpo")

    with pytest.raises(DataError, match="rows of one group are in several classes"):
        loop.give("pool.scores", 2)


@pytest.mark.slow
def test_rows_that_nobody_compares_are_balanced_one_by_one(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = classes_in_groups(bench, rows_of, actor, "brief", "reinforce")

    rows = loop.give("pool.scores", 2).rows

    assert sorted(row.columns["brief"] for row in rows) == [0.0] * 3 + [1.0] * 3


def scored_twice(bench: Bench, rows_of: Any, actor: Any, *edges: str) -> Any:
    """A buffer that two scorers of the same rollouts write into, after a step."""
    nodes = {
        "letters": rows_of({"prompt": "a", "answer": "aa"}),
        "actor": actor(),
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
        "brief": {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}},
        "pool": {"kind": "buffer", "capacity": 9, "sample": "oldest"},
        "policy": LEARNER,
    }
    always = [
        "letters.rows -> actor.prompts",
        "actor.rollouts -> exact.rollouts",
        "actor.rollouts -> brief.rollouts",
        *edges,
        "exact.scores -> pool.scores",
        "brief.scores -> pool.scores",
        "pool.rollouts -> policy.demonstrations",
    ]
    loop = bench(nodes, always, {"steps": 9, "fill": ["pool"]})
    loop.step(1)
    return loop


def test_what_each_of_several_scorers_says_is_kept(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    loop = scored_twice(bench, rows_of, actor, "actor.rollouts -> pool.rollouts")

    table = loop.give("pool.rollouts", 2)

    assert column(table, "exact") == [1.0, 0.0]
    assert column(table, "brief") == [0.5, 0.5]


def test_rows_that_only_scorers_bring_know_them_all(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    loop = scored_twice(bench, rows_of, actor)

    table = loop.give("pool.rows", 2)

    assert column(table, "exact") == [1.0, 0.0]
    assert column(table, "brief") == [0.5, 0.5]
    assert all(row.tokens is not None for row in table.rows)


def test_it_is_cleared_from_time_to_time(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of, 2, clear={"every": 2})

    sizes = []
    for step in range(1, 5):
        loop.step(step, "write")
        sizes.append(len(held(loop)))

    assert sizes == [2, 0, 2, 0]


def test_each_phase_that_fills_it_opens_an_iteration(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of, 4, capacity=3, keep_iterations=2)
    seen = []
    for step in range(1, 4):
        loop.roles["pool"].phase_starts(loop.plan.phase("write"), {}, loop.context)
        loop.step(step, "write")
        seen.append(held(loop))

    assert seen == [["b", "c", "d"], ["b", "c", "d", "f", "g", "h"], ["f", "g", "h", "b", "c", "d"]]


def test_full_counts_rows_since_the_phase_started(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of, 3)
    pool = loop.roles["pool"]

    loop.step(1, "write")
    assert not pool.is_full(loop.context)
    loop.step(2, "write")
    assert pool.is_full(loop.context)
    pool.phase_starts(loop.plan.phase("write"), {}, loop.context)
    assert not pool.is_full(loop.context)


def test_a_phase_of_passes_serves_each_row_once_a_pass(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of, 5, rows_per_step=2)
    loop.step(1, "write")
    pool = loop.roles["pool"]
    pool.phase_starts(loop.plan.phase("read"), {}, loop.context)

    steps = pool.steps_for_epochs(2, loop.context)
    drawn = [given(loop, step) for step in range(2, 2 + steps)]

    assert [len(step) for step in drawn] == [2, 2, 1, 2, 2, 1]
    first, second = ([one for step in drawn[at : at + 3] for one in step] for at in (0, 3))
    assert sorted(first) == sorted(second) == list("abcde")
    assert drawn[:3] != drawn[3:]


def test_a_pass_survives_rows_that_go_while_it_lasts(bench: Bench, rows_of: Any) -> None:
    loop = pooled(bench, rows_of, 5, rows_per_step=2)
    loop.step(1, "write")
    pool = loop.roles["pool"]
    pool.phase_starts(loop.plan.phase("read"), {}, loop.context)
    given(loop, 2)

    loop.step(3, "write")  # five other rows push out all the old ones

    assert set(given(loop, 4)) <= set(held(loop))


def seeded(bench: Bench, rows_of: Any, capacity: int) -> Any:
    nodes = {
        "letters": rows_of(*LETTERS[:4], rows_per_step=3),
        "pool": {"kind": "buffer", "capacity": capacity},
        "policy": LEARNER,
    }
    edges = ["letters.rows -> pool.seed", "pool.rows -> policy.demonstrations"]
    return bench(nodes, edges)


def test_a_seed_is_read_until_the_buffer_is_full(bench: Bench, rows_of: Any) -> None:
    loop = seeded(bench, rows_of, 3)

    for step in (1, 2, 3):
        loop.step(step)

    assert held(loop) == ["a", "b", "c"]


def test_a_seed_is_read_until_its_dataset_is_through(bench: Bench, rows_of: Any) -> None:
    loop = seeded(bench, rows_of, 99)

    for step in range(1, 6):
        loop.step(step)

    assert held(loop) == ["a", "b", "c", "d"]


def test_a_cleared_buffer_is_seeded_again(bench: Bench, rows_of: Any) -> None:
    loop = seeded(bench, rows_of, 99)
    for step in range(1, 4):
        loop.step(step)

    loop.roles["pool"].clear()
    assert held(loop) == []
    for step in range(4, 8):
        loop.step(step)

    assert sorted(held(loop)) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("sample", ["uniform", "newest"])
def test_a_resumed_buffer_gives_what_the_old_one_would(
    sample: str, bench: Bench, rows_of: Any, through_files: Any
) -> None:
    old, new = (
        pooled(bench, rows_of, 3, sample=sample, rows_per_step=2, unique="prompt") for _ in "ab"
    )
    old.step(1, "write")
    old.roles["pool"].phase_starts(old.plan.phase("read"), {}, old.context)
    given(old, 2)

    new.roles["pool"].load_state(through_files(old.roles["pool"].state()))

    assert [given(new, step) for step in (3, 4, 5)] == [given(old, step) for step in (3, 4, 5)]


def test_numbers_at_positions_survive_a_checkpoint(
    bench: Bench, rows_of: Any, actor: Any, through_files: Any
) -> None:
    nodes = {
        "letters": rows_of({"prompt": "a"}),
        "actor": {**actor(), "algorithm": {"name": "grpo"}},
        "each": {
            "kind": "reward",
            "source": {
                "type": "python",
                "code": "def reward(prompts, completions, **columns):\n"
                "    return [[0.5] for _ in prompts]\n",
            },
        },
        "pool": {"kind": "buffer", "capacity": 9},
    }
    edges = [
        "letters.rows -> actor.prompts",
        "actor.rollouts -> each.rollouts",
        "each.scores -> pool.scores",
        "pool.scores -> actor.rewards",
    ]
    old, new = (bench(nodes, edges, {"steps": 9, "fill": ["pool"]}) for _ in "ab")
    old.step(1)

    new.roles["pool"].load_state(through_files(old.roles["pool"].state()))

    table = new.give("pool.scores", 2)
    assert list((table.scores or {}).values()) == [{1: 0.5}] * 2
    assert [row.column("each") for row in table.rows] == [{1: 0.5}] * 2
    assert table.rows == old.give("pool.scores", 2).rows


@pytest.mark.slow
def test_scores_keep_the_bounds_by_which_a_pair_is_turned_over(
    bench: Bench, actor: Any, through_files: Any
) -> None:
    nodes = {
        "sums": {
            "kind": "dataset",
            "source": {"type": "task", "task": "arithmetic"},
            "rows_per_step": 1,
        },
        "actor": {**actor(), "algorithm": {"name": "grpo"}},
        "grade": {"kind": "verifier", "method": "rule", "read": {"range": [1, 10]}},
        "pool": {"kind": "buffer", "capacity": 9},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> grade.rollouts",
        "grade.scores -> pool.scores",
        "pool.scores -> actor.rewards",
    ]
    old, new = (bench(nodes, edges, {"steps": 9, "fill": ["pool"]}) for _ in "ab")
    old.step(1)

    new.roles["pool"].load_state(through_files(old.roles["pool"].state()))

    assert old.give("pool.scores", 2).score_range == (1, 10)
    assert new.give("pool.scores", 2).score_range == (1, 10)
