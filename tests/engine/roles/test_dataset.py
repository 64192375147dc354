"""Rows from outside: passes, order, unfolding, parameters that a phase changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coloop.errors import DataError
from coloop.plan.types import PhasePlan
from coloop.spec.paths import apply_overrides

ROWS = [{"prompt": f"p{n}", "target": "t"} for n in range(5)]
LEARNER = {
    "kind": "actor",
    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
    "algorithm": {"name": "sft"},
}
TO_LEARNER = ["gold.rows -> policy.demonstrations"]

Bench = Callable[..., Any]


def prompts(bench: Any, steps: int, **options: Any) -> list[list[str]]:
    """Prompts of the rows of each step."""
    return [
        [row.columns["prompt"] for row in bench.give("gold.rows", step, **options).rows]
        for step in range(1, steps + 1)
    ]


def test_a_pass_goes_over_every_row_and_on_into_the_next(bench: Bench, rows_of: Any) -> None:
    loop = bench({"gold": rows_of(*ROWS, rows_per_step=3), "policy": LEARNER}, TO_LEARNER)

    assert prompts(loop, 4) == [
        ["p0", "p1", "p2"],
        ["p3", "p4", "p0"],
        ["p1", "p2", "p3"],
        ["p4", "p0", "p1"],
    ]


def test_ids_tell_passes_apart(bench: Bench, rows_of: Any) -> None:
    loop = bench({"gold": rows_of(*ROWS, rows_per_step=5), "policy": LEARNER}, TO_LEARNER)

    ids = [row.id for step in (1, 2) for row in loop.give("gold.rows", step).rows]

    assert len(set(ids)) == 10
    assert ids[0] == "gold:0.0"
    assert ids[5] == "gold:1.0"


def test_without_rows_per_step_a_step_has_all(bench: Bench, rows_of: Any) -> None:
    loop = bench({"gold": rows_of(*ROWS), "policy": LEARNER}, TO_LEARNER)

    assert [len(step) for step in prompts(loop, 2)] == [5, 5]


def test_a_shuffled_pass_has_every_row_once_and_another_order(bench: Bench, rows_of: Any) -> None:
    gold = {**rows_of(*ROWS, rows_per_step=5), "shuffle": True}
    loop = bench({"gold": gold, "policy": LEARNER}, TO_LEARNER)

    first, second, third = prompts(loop, 3)

    assert sorted(first) == sorted(second) == sorted(third)
    assert len({tuple(first), tuple(second), tuple(third)}) > 1


def test_a_probe_reads_the_same_rows_every_time_and_moves_nothing(
    bench: Bench, rows_of: Any
) -> None:
    loop = bench({"gold": rows_of(*ROWS, rows_per_step=2), "policy": LEARNER}, TO_LEARNER)
    prompts(loop, 1)

    assert prompts(loop, 2, is_probe=True) == [["p0", "p1"]] * 2
    assert prompts(loop, 1) == [["p2", "p3"]]


def test_a_probe_on_few_rows_reads_each_once(bench: Bench, rows_of: Any) -> None:
    loop = bench({"gold": rows_of(*ROWS, rows_per_step=99), "policy": LEARNER}, TO_LEARNER)

    assert [len(step) for step in prompts(loop, 1, is_probe=True)] == [5]


def test_entries_of_a_list_become_children_of_their_row(bench: Bench, rows_of: Any) -> None:
    rows = [{"prompt": "a", "target": ["x", "y"]}, {"prompt": "b", "target": ["z"]}]
    loop = bench({"gold": rows_of(*rows, unfold="target"), "policy": LEARNER}, TO_LEARNER)

    table = loop.give("gold.rows")

    assert [row.columns["target"] for row in table.rows] == ["x", "y", "z"]
    assert [row.columns["prompt"] for row in table.rows] == ["a", "a", "b"]
    assert [row.k for row in table.rows] == [0, 1, 0]
    assert table.rows[0].parents == table.rows[1].parents == ("gold:0.0",)


def test_a_column_that_is_no_list_cannot_be_unfolded(bench: Bench, rows_of: Any) -> None:
    loop = bench({"gold": rows_of(*ROWS, unfold="target"), "policy": LEARNER}, TO_LEARNER)

    with pytest.raises(DataError, match="must be a list in every row"):
        loop.give("gold.rows")


def test_rows_with_both_sides_are_pairs_too(bench: Bench, rows_of: Any) -> None:
    gold = rows_of({"prompt": "p", "chosen": "c", "rejected": "r"})
    policy = {**LEARNER, "algorithm": {"name": "dpo"}}
    loop = bench({"gold": gold, "policy": policy}, ["gold.pairs -> policy.pairs"])

    assert [row.columns["chosen"] for row in loop.give("gold.pairs").rows] == ["c"]


def task(**parameters: Any) -> dict[str, Any]:
    source = {"type": "task", "task": "arithmetic", "size": 8, **parameters}
    return {"kind": "dataset", "source": source, "rows_per_step": 3}


def test_source_parameters_may_change_and_passes_keep_their_count(bench: Bench) -> None:
    loop = bench({"gold": task(digits=1), "policy": LEARNER}, TO_LEARNER)
    prompts(loop, 4)
    easy = loop.context.spec

    loop.stand(spec=apply_overrides(easy, {"nodes.gold.source.digits": 3}))
    [hard] = prompts(loop, 1)

    assert all(len(prompt) > len("9+9=") for prompt in hard)
    assert loop.give("gold.rows").rows[0].id.startswith("gold:2.")


def test_a_step_that_was_taken_back_takes_its_source_back_too(bench: Bench) -> None:
    values = {"nodes.gold.source.digits": 3, "nodes.gold.source.size": 12}
    whole, broken, resumed = (
        bench({"gold": task(digits=1), "policy": LEARNER}, TO_LEARNER) for _ in range(3)
    )
    for loop in (whole, broken):
        prompts(loop, 2)
        loop.stand(spec=apply_overrides(loop.spec, values))

    memory = broken.roles["gold"].remember()
    prompts(broken, 1)
    broken.roles["gold"].recall(memory)
    state = broken.roles["gold"].state()
    resumed.roles["gold"].load_state(state)
    resumed.stand(spec=apply_overrides(resumed.spec, values))

    expected = prompts(whole, 3)
    assert state["source"] is None
    assert prompts(broken, 3) == expected
    assert prompts(resumed, 3) == expected


def test_phases_that_set_a_source_by_turns_go_on_to_rows_not_seen(bench: Bench) -> None:
    loop = bench({"gold": task(digits=3), "policy": LEARNER}, TO_LEARNER)
    spec = loop.context.spec
    harder = apply_overrides(spec, {"nodes.gold.source.digits": 4})

    ids = []
    for turn in (spec, harder) * 2:
        loop.stand(spec=turn)
        ids += [row.id for row in loop.give("gold.rows").rows]

    assert len(set(ids)) == 12


@pytest.mark.parametrize("size", [None, 12], ids=["as many rows as written", "fewer rows"])
def test_a_resume_goes_on_in_the_source_that_was_set(bench: Bench, size: int | None) -> None:
    values = {"nodes.gold.source.digits": 3} | ({"nodes.gold.source.size": size} if size else {})
    first, second = (
        bench({"gold": task(digits=1), "policy": LEARNER}, TO_LEARNER) for _ in range(2)
    )
    first.stand(spec=apply_overrides(first.spec, values))
    prompts(first, 2)

    second.stand(spec=apply_overrides(second.spec, values))
    second.roles["gold"].load_state(first.roles["gold"].state())

    assert prompts(second, 3) == prompts(first, 3)


def test_a_phase_that_counts_passes_begins_with_a_new_one(bench: Bench, rows_of: Any) -> None:
    loop = bench(
        {"gold": rows_of(*ROWS, rows_per_step=3), "policy": LEARNER},
        TO_LEARNER,
        {"epochs": 1},
    )
    phase: PhasePlan = loop.plan.phases[0]
    prompts(loop, 1)

    loop.roles["gold"].phase_starts(phase, {}, loop.context)

    assert prompts(loop, 1) == [["p0", "p1", "p2"]]
    assert loop.roles["gold"].steps_for_epochs(2, loop.context) == 4


def test_a_resume_on_a_file_that_was_edited_is_told(
    bench: Bench, tmp_path: Path, through_files: Any
) -> None:
    path = tmp_path / "rows.jsonl"

    def loop_on(*rows: dict[str, Any]) -> Any:
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        source = {"type": "file", "path": str(path)}
        gold = {"kind": "dataset", "source": source, "rows_per_step": 1}
        return bench({"gold": gold, "policy": LEARNER}, TO_LEARNER)

    first = loop_on(*ROWS)
    prompts(first, 2)
    state = through_files(first.roles["gold"].state())
    same, edited = loop_on(*ROWS), loop_on(*ROWS[:-1], {"prompt": "other", "target": "t"})
    for loop in (same, edited):
        loop.roles["gold"].load_state(state)
        prompts(loop, 2)

    assert same.alerts == []
    [(code, message)] = edited.alerts
    assert code == "data.changed"
    assert f"{path} has changed since the checkpoint" in message


def test_keys_that_are_null_are_left_out_and_told_once(bench: Bench, rows_of: Any) -> None:
    call = {"function": {"name": "add", "arguments": {"a": 1, "b": None}}}
    target = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    loop = bench(
        {"gold": rows_of({"prompt": "p", "target": target}, rows_per_step=1), "policy": LEARNER},
        TO_LEARNER,
    )

    rows = [loop.give("gold.rows", step).rows[0] for step in (1, 2)]

    plain = {"function": {"name": "add", "arguments": {"a": 1}}}
    assert rows[0].columns["target"] == [{**target[0], "tool_calls": [plain]}]
    assert [code for code, _ in loop.alerts] == ["data.nulls"]


MARKED = {
    "kind": "reward",
    "source": {
        "type": "python",
        "code": "def reward(completions, **columns):\n"
        "    return [float(c[1] in '02') for c in completions]\n",
    },
}
"""1 for answers to the prompts p0 and p2."""


@pytest.mark.parametrize("unfold", [False, True])
def test_a_curriculum_measures_rows_by_what_descends_from_them(
    unfold: bool, bench: Bench, rows_of: Any, actor: Any
) -> None:
    bands = [{"up_to": 0.5, "weight": 1}, {"up_to": 1.0, "weight": 0}]
    rows: list[dict[str, Any]] = [{"prompt": f"p{n}"} for n in range(5)]
    fields: dict[str, Any] = {"rows_per_step": 3, "curriculum": {"by": "mark", "bands": bands}}
    if unfold:
        rows = [{"prompt": [row["prompt"]]} for row in rows]
        fields["unfold"] = "prompt"
    nodes = {
        "sums": rows_of(*rows, **fields, shuffle=True),
        "actor": {**actor(), "algorithm": {"name": "grpo"}},
        "mark": MARKED,
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges)
    role = loop.roles["sums"]

    steps = []
    for number in range(1, 6):
        tables = loop.step(number).tables
        steps.append(sorted(row.columns["prompt"] for row in tables["sums", "rows"].rows))
        role.step_ends(tables, loop.context)

    # once all were seen, the two that are always right fill nothing any more
    assert steps[-1] == steps[-2] == ["p1", "p3", "p4"]
    means = dict(role.state()["pools"]["means"])
    assert means == {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0, 4: 0.0}
    assert loop.outcomes["sums.load"].metrics == {
        "band/0.5": 0.6,
        "band/1": 0.4,
        "band/unmeasured": 0.0,
    }


def test_an_evaluation_neither_draws_nor_measures_by_the_curriculum(
    bench: Bench, rows_of: Any
) -> None:
    fields = {"rows_per_step": 2, "curriculum": {"by": "mark"}, "shuffle": True}
    nodes = {"gold": rows_of(*ROWS, **fields), "policy": LEARNER, "mark": MARKED}
    loop = bench(nodes, TO_LEARNER)
    before = loop.roles["gold"].state()

    first = prompts(loop, 3, is_probe=True)

    assert first[0] == first[1] == first[2]
    assert loop.roles["gold"].state() == before


def test_a_step_that_is_rolled_back_gives_its_draws_and_measurements_back(
    bench: Bench, rows_of: Any
) -> None:
    fields = {"rows_per_step": 2, "curriculum": {"by": "mark"}, "shuffle": True}
    nodes = {"gold": rows_of(*ROWS, **fields), "policy": LEARNER, "mark": MARKED}
    loop = bench(nodes, TO_LEARNER)
    role = loop.roles["gold"]
    memory = role.remember()

    once = prompts(loop, 1)
    role.recall(memory)

    assert prompts(loop, 1) == once
