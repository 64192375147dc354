"""A filter with `fill` re-runs the stages before it until it has enough, or its rounds are over."""

from collections.abc import Callable
from typing import Any

import pytest

Bench = Callable[..., Any]

SUMS = [{"prompt": sign} for sign in "abcdefghij"]
MARK = {
    "kind": "reward",
    "source": {
        "type": "python",
        "code": "def reward(prompts, completions, **columns):\n"
        "    return [float('ABCDEFGH'.find(c[-1])) for c in completions]\n",
    },
}


def sampled(
    rows_of: Any, actor: Any, fill: dict[str, Any], per_step: int = 2, **more: Any
) -> tuple[Any, Any]:
    """Dynamic sampling: a prompt's group is kept when its scores differ."""
    nodes = {
        "sums": rows_of(*SUMS, rows_per_step=per_step),
        "actor": {**actor(), "algorithm": {"name": "reinforce", "advantage": "none"}},
        "mark": MARK,
        "keep": {"kind": "filter", "keep": [{"rule": "nonzero_variance"}], "fill": fill},
        **more,
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "actor.rollouts -> keep.rollouts",
        "mark.scores -> keep.scores",
        "keep.scores -> actor.rewards",
    ]
    return nodes, edges


def only(*prompts: str) -> Callable[[str, int], str]:
    """A writer that differs between its samples for these prompts only."""
    return lambda prompt, k: "AB"[k] if prompt in prompts else "Z"


def kept(unrolled: Any) -> list[str]:
    """Prompts of the groups that came through."""
    rows = unrolled.tables["keep", "rollouts"].rows
    return list(dict.fromkeys(row.columns["prompt"] for row in rows))


def test_passes_go_on_until_there_are_enough_groups(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*sampled(rows_of, actor, {"groups": 2}))
    loop.hosts.write = only("c", "f", "h")

    unrolled = loop.step()

    assert kept(unrolled) == ["c", "f"]
    assert len(loop.items()) == 4
    assert loop.alerts == []
    assert loop.roles["sums"].state()["drawn"] == 6


def test_a_surplus_is_dropped_or_kept_as_said(bench: Bench, rows_of: Any, actor: Any) -> None:
    for surplus, expected in (("drop", ["a"]), ("keep", ["a", "b", "c"])):
        loop = bench(*sampled(rows_of, actor, {"groups": 1, "surplus": surplus}, per_step=3))
        loop.hosts.write = only("a", "b", "c")

        assert kept(loop.step()) == expected


def test_rows_may_be_asked_for_in_place_of_groups(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*sampled(rows_of, actor, {"rows": 3, "surplus": "drop"}))
    loop.hosts.write = only("b", "c")

    unrolled = loop.step()

    assert len(unrolled.tables["keep", "rollouts"].rows) == 3


def test_after_the_last_round_it_goes_on_with_what_it_has(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*sampled(rows_of, actor, {"groups": 4, "max_rounds": 3}))
    loop.hosts.write = only("d")

    unrolled = loop.step()

    assert kept(unrolled) == ["d"]
    assert len(loop.items()) == 2
    codes = [code for code, _ in loop.alerts]
    assert codes.count("filter.not_filled") == 1
    assert "not enough rows after 3 rounds" in dict(loop.alerts)["filter.not_filled"]


def test_tables_of_all_passes_stand_one_after_another(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*sampled(rows_of, actor, {"groups": 2}))
    loop.hosts.write = only("c", "f")

    unrolled = loop.step()

    assert [row.columns["prompt"] for row in unrolled.tables["sums", "rows"].rows] == list("abcdef")
    assert len(unrolled.tables["actor", "rollouts"].rows) == 12


class Trying:
    """A writer whose samples differ only from a certain try on."""

    def __init__(self, tries: dict[str, int]) -> None:
        self.tries = tries
        self.seen: list[str] = []

    def __call__(self, prompt: str, k: int) -> str:
        if k == 0:
            self.seen.append(prompt)
        turn = self.seen.count(prompt)
        return f"{turn}{'AB'[k]}" if turn >= self.tries.get(prompt, 1) else f"{turn}Z"


@pytest.mark.parametrize("groups", ["all", 2])
def test_a_pass_from_the_writer_on_makes_new_rows_with_their_own_scores(
    groups: Any, bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*sampled(rows_of, actor, {"groups": groups, "from": "actor", "max_rounds": 5}))
    writer = loop.hosts.write = Trying({"a": 3, "b": 1} if groups == "all" else {"a": 2, "b": 2})

    unrolled = loop.step()

    assert set(kept(unrolled)) == {"a", "b"}
    if groups == "all":
        assert writer.seen == ["a", "b", "a", "a"]  # only rows that still lack a group go again
    rows = unrolled.tables["actor", "rollouts"].rows
    assert len({row.id for row in rows}) == len(rows)
    texts = {row.id: row.columns["completion"] for row in rows}
    learned = {item.id: item for item in loop.items()}
    assert all(
        item.advantages == float("ABCDEFGH".find(texts[name][-1])) for name, item in learned.items()
    )
    assert [chr(item.token_ids[item.prompt_length]) for item in learned.values()] == [
        texts[name][0] for name in learned
    ]


def test_what_a_writer_learns_from_is_not_waited_for(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    fill = {"groups": "all", "from": "actor", "max_rounds": 5}
    nodes, edges = sampled(rows_of, actor, fill)
    nodes["gold"] = rows_of({"prompt": "a", "target": "x"})
    nodes["actor"]["algorithm"] = {
        "rewards": {"name": "reinforce", "advantage": "none"},
        "demonstrations": {"name": "sft"},
    }
    phases = [{"name": "both", "steps": 9, "learn": ["actor.rewards", "actor.demonstrations"]}]
    loop = bench(nodes, [*edges, "gold.rows -> actor.demonstrations"], {"phases": phases})
    loop.hosts.write = Trying({"a": 2, "b": 1})
    passes = []
    loop.stage_started = lambda work: (
        passes.append(work.task.step_context.turn) if work.stage.name == "actor.generate" else None
    )

    unrolled = loop.step()

    assert set(kept(unrolled)) == {"a", "b"}
    assert passes == [1, 2]
    assert loop.alerts == []


def test_a_greedy_row_that_is_kept_does_not_fill_its_group(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    fill = {"groups": "all", "from": "actor", "max_rounds": 3}
    nodes, edges = sampled(rows_of, actor, fill, per_step=1)
    nodes["actor"]["rollout"] = {"completions_per_prompt": 1, "greedy_extra": True}
    nodes["keep"]["keep"] = [{"rule": "score", "min": 0.0}]
    loop = bench(nodes, edges)
    tries = []
    loop.hosts.write = lambda prompt, k: (
        "A"
        if loop.hosts.samplings[-1].temperature == 0 or tries.append(prompt) or tries[2:]
        else "Z"
    )

    unrolled = loop.step()

    assert tries == ["a", "a", "a"]
    assert len([row for row in unrolled.tables["keep", "rollouts"].rows if not row.is_greedy]) == 1
    assert loop.alerts == []


def test_places_of_later_rows_come_after_those_of_the_first(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    fill = {"groups": "all", "from": "actor", "max_rounds": 2}
    loop = bench(*sampled(rows_of, actor, fill, per_step=1))
    loop.hosts.write = Trying({"a": 2})

    unrolled = loop.step()

    rows = unrolled.tables["actor", "rollouts"].rows
    assert [row.k for row in rows] == [0, 1, 2, 3]
    assert {row.group for row in rows} == {"sums:0.0"}


def test_greedy_rows_are_not_what_is_waited_for(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = sampled(rows_of, actor, {"rows": 4, "surplus": "drop"})
    nodes["actor"]["rollout"] = {"completions_per_prompt": 2, "greedy_extra": True}
    loop = bench(nodes, edges)
    loop.hosts.write = only("a", "d")

    unrolled = loop.step()

    assert kept(unrolled) == ["a", "d"]
    assert len(loop.items()) == 4


def test_draws_differ_from_pass_to_pass(bench: Bench, rows_of: Any, actor: Any) -> None:
    fill = {"groups": "all", "from": "actor", "max_rounds": 3}
    loop = bench(*sampled(rows_of, actor, fill, per_step=1))
    loop.hosts.write = only()

    loop.step()

    assert len(loop.hosts.seeds) == 3
    assert len({seed for seeds in loop.hosts.seeds for seed in seeds}) == 6


def test_a_probe_refills_nothing(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = sampled(rows_of, actor, {"groups": 9})
    nodes["held_out"] = rows_of({"prompt": "x"}, {"prompt": "y"})
    nodes["probe"] = {"kind": "evaluate", "instead_of": "sums", "metrics": ["score"]}
    edges += ["held_out.rows -> probe.rows", "keep.scores -> probe.scores"]
    loop = bench(nodes, edges)
    loop.hosts.write = only("x")

    assert loop.probe("probe") == {"score": 0.5}
    assert len(loop.hosts.seeds) == 2


LEARNER = {"algorithm": {"name": "reinforce", "advantage": "none"}}


def test_a_reference_sees_the_rows_of_all_passes(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = sampled(rows_of, actor, {"groups": 2})
    nodes["actor"]["algorithm"] = {"name": "reinforce", "kl": {"coefficient": 0.1}}
    nodes["start"] = {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}}
    edges += ["actor.rollouts -> start.rollouts", "start.log_probs -> actor.reference"]
    loop = bench(nodes, edges)
    loop.hosts.write = only("c", "f")

    unrolled = loop.step()

    assert len(unrolled.tables["start", "log_probs"].rows) == 12
    assert len(loop.items()) == 4
    assert all(item.log_probs_reference is not None for item in loop.items())


def test_a_second_reward_reaches_every_kept_row(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = sampled(rows_of, actor, {"groups": 2})
    nodes["actor"]["credit"] = {"missing": "skip_row"}
    nodes["again"] = MARK
    edges += ["actor.rollouts -> again.rollouts", "again.scores -> actor.rewards"]
    loop = bench(nodes, edges)
    loop.hosts.write = only("c", "f")

    loop.step()

    delivered = loop.outcomes["actor.credit"].detail["edges"]
    assert delivered["keep.scores->actor.rewards"]["delivered"] == 4
    assert delivered["again.scores->actor.rewards"]["delivered"] == 12
    assert len(loop.items()) == 4


def test_a_second_learner_gets_the_prompts_of_all_passes(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = sampled(rows_of, actor, {"groups": 2})
    nodes |= {"other": actor(**LEARNER), "again": MARK}
    edges += [
        "sums.rows -> other.prompts",
        "other.rollouts -> again.rollouts",
        "again.scores -> other.rewards",
    ]
    loop = bench(nodes, edges)
    loop.hosts.write = only("c", "f")

    unrolled = loop.step()

    assert len(unrolled.tables["other", "rollouts"].rows) == 12


def twice(rows_of: Any, actor: Any, fill: dict[str, Any], per_step: int = 2) -> tuple[Any, Any]:
    """Two writers over one dataset, each with a filter that refills."""
    nodes, edges = sampled(rows_of, actor, fill, per_step)
    nodes |= {"other": actor(**LEARNER), "again": MARK, "both": {**nodes["keep"]}}
    edges += [
        "sums.rows -> other.prompts",
        "other.rollouts -> again.rollouts",
        "other.rollouts -> both.rollouts",
        "again.scores -> both.scores",
        "both.scores -> other.rewards",
    ]
    return nodes, edges


def prompts_of(table: Any) -> str:
    return "".join(dict.fromkeys(row.columns["prompt"] for row in table.rows))


def test_two_fills_of_one_dataset_begin_alike_and_go_on_with_rows_of_their_own(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*twice(rows_of, actor, {"groups": 1, "max_rounds": 2}))
    loop.hosts.write = only("d", "e")

    unrolled = loop.step()

    assert prompts_of(unrolled.tables["actor", "rollouts"]) == "abcd"
    assert prompts_of(unrolled.tables["other", "rollouts"]) == "abef"
    assert prompts_of(unrolled.tables["sums", "rows"]) == "abcdef"
    assert kept(unrolled) == ["d"]
    assert prompts_of(unrolled.tables["both", "rollouts"]) == "e"
    assert loop.alerts == []


def test_fills_that_have_enough_load_no_more(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*twice(rows_of, actor, {"groups": 1, "max_rounds": 3}))
    loop.hosts.write = only("a")

    unrolled = loop.step()

    assert prompts_of(unrolled.tables["sums", "rows"]) == "ab"
    assert loop.roles["sums"].state()["drawn"] == 2


def test_two_filters_that_write_again_from_one_writer_make_rows_of_their_own(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    fill = {"groups": "all", "from": "actor", "max_rounds": 2}
    nodes, edges = sampled(rows_of, actor, fill, per_step=1)
    nodes |= {"again": MARK, "both": {**nodes["keep"]}}
    edges += [
        "actor.rollouts -> again.rollouts",
        "again.scores -> both.scores",
        "both.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges)
    loop.hosts.write = only()

    unrolled = loop.step()

    rows = unrolled.tables["actor", "rollouts"].rows
    assert [row.k for row in rows] == [0, 1, 2, 3, 4, 5]
    assert len({seed for seeds in loop.hosts.seeds for seed in seeds}) == 6
    assert len(unrolled.tables["mark", "scores"].rows) == 4
    assert len(unrolled.tables["again", "scores"].rows) == 4


@pytest.mark.sample(1)
@pytest.mark.parametrize("start", [None, "sums"])
def test_groups_stay_whole_where_two_datasets_are_read(
    start: str | None, bench: Bench, rows_of: Any, actor: Any
) -> None:
    fill = {"groups": 9, "max_rounds": 3} | ({"from": start} if start else {})
    nodes, edges = sampled(rows_of, actor, fill)
    nodes["more"] = rows_of(*({"prompt": sign} for sign in "uvwxyz"), rows_per_step=1)
    loop = bench(nodes, ["more.rows -> actor.prompts", *edges])
    loop.hosts.write = only()

    unrolled = loop.step()

    rows = unrolled.tables["actor", "rollouts"].rows
    assert prompts_of(unrolled.tables["more", "rows"]) == ("u" if start else "uvw")
    assert {sum(r.group == row.group for r in rows) for row in rows} == {2}
    assert loop.roles["more"].state()["drawn"] == (1 if start else 3)


def test_what_a_buffer_gives_again_are_new_rows(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = sampled(rows_of, actor, {"groups": 9, "max_rounds": 3})
    nodes["pool"] = {"kind": "buffer", "capacity": 4, "sample": "oldest", "rows_per_step": 2}
    edges = ["sums.rows -> pool.seed", "pool.rows -> actor.prompts", *edges[1:]]
    loop = bench(nodes, edges)
    loop.hosts.write = only()

    unrolled = loop.step()

    rows = unrolled.tables["actor", "rollouts"].rows
    assert len(rows) == 12
    assert {sum(r.group == row.group for r in rows) for row in rows} == {2}
