"""Edges with `rounds`: what goes round, what goes on, what leaves the region."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.spec.lineage import Lineages

Bench = Callable[..., Any]

MARK = {
    "kind": "reward",
    "source": {
        "type": "python",
        "code": "def reward(prompts, completions, **columns):\n"
        "    return [float(ord(c[-1]) - ord('a')) for c in completions]\n",
    },
}
TALK = {"kind": "template", "text": "{{ problems.prompt }}{{ actor.completion }}"}


def talk(
    rows_of: Any, actor: Any, rounds: int = 3, branch: str | None = None, **more: Any
) -> tuple[dict[str, Any], list[Any]]:
    """One writer who goes on with what it wrote: `p` -> `pa`, `pb` -> `paa`, `pab`."""
    closing = {"from": "actor.rollouts", "to": "ask.rows", "rounds": rounds}
    nodes = {
        "problems": rows_of({"prompt": "p"}, {"prompt": "q"}, rows_per_step=2),
        "ask": TALK,
        "actor": {**actor(), "algorithm": {"name": "reinforce", "advantage": "none"}},
        "mark": MARK,
        **more,
    }
    edges = [
        "problems.rows -> ask.rows",
        "ask.rows -> actor.prompts",
        {**closing, "branch": branch} if branch else closing,
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> actor.rewards",
    ]
    return nodes, edges


def written(unrolled: Any, port: str = "actor.rollouts") -> list[tuple[int, str]]:
    """Round and text of the rows at a port."""
    rows = unrolled.tables[tuple(port.split("."))].rows
    return [(row.round, row.columns["completion"]) for row in rows]


def append(prompt: str, k: int) -> str:
    """Only what is added: the template puts the old text before it."""
    return f"{prompt[1:]}{'abcdefgh'[k]}"


# --- branches


def test_one_goes_on_through_the_first_sample(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*talk(rows_of, actor))
    loop.hosts.write = append

    found = written(loop.step())

    assert found == [
        *[(1, "a"), (1, "b"), (1, "a"), (1, "b")],
        *[(2, "aa"), (2, "ab"), (2, "aa"), (2, "ab")],
        *[(3, "aaa"), (3, "aab"), (3, "aaa"), (3, "aab")],
    ]


def test_all_goes_on_as_a_tree(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*talk(rows_of, actor, branch="all"))
    loop.hosts.write = append

    found = written(loop.step())

    assert [sum(number == one for number, _ in found) for one in (1, 2, 3)] == [4, 8, 16]
    last = [text for number, text in found if number == 3][:8]
    assert last == ["aaa", "aab", "aba", "abb", "baa", "bab", "bba", "bbb"]


def test_lines_write_one_text_each_from_round_two_on(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*talk(rows_of, actor, branch="lines"))
    loop.hosts.write = append

    found = written(loop.step())

    assert found[:4] == [(1, "a"), (1, "b"), (1, "a"), (1, "b")]
    assert found[4:] == [
        *[(2, "aa"), (2, "ba"), (2, "aa"), (2, "ba")],
        *[(3, "aaa"), (3, "baa"), (3, "aaa"), (3, "baa")],
    ]


@pytest.mark.sample(1)
@pytest.mark.parametrize("branch", ["one", "all", "lines"])
def test_a_greedy_extra_stands_beside_every_text_and_nothing_follows_it(
    branch: str, bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = talk(rows_of, actor, 2, branch)
    nodes["actor"]["rollout"] = {"completions_per_prompt": 2, "greedy_extra": True}
    loop = bench(nodes, edges)
    loop.hosts.write = append

    rows = loop.step().tables["actor", "rollouts"].rows

    first, second = ([row for row in rows if row.round == number] for number in (1, 2))
    greedy = {row.id for row in first if row.is_greedy}
    assert len(greedy) == 2
    assert all(greedy.isdisjoint(row.trail) for row in second)
    prompts = {"one": 2, "all": 4, "lines": 4}[branch]
    each = 1 if branch == "lines" else 2
    assert [row.is_greedy for row in second].count(True) == prompts
    assert len(second) == prompts * (each + 1)
    assert all(item.id not in greedy for item in loop.items())


def test_every_text_of_a_step_has_an_id_and_a_seed_of_its_own(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*talk(rows_of, actor, branch="all"))
    loop.hosts.write = append

    rows = loop.step().tables["actor", "rollouts"].rows

    assert len({row.id for row in rows}) == len(rows) == 28
    seeds = [seed for group in loop.hosts.seeds for seed in group]
    assert len(set(seeds)) == len(seeds)


def test_who_entered_once_is_asked_again_under_seeds_and_places_of_its_own(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """Nobody writes to the rows that go round: the same problems come back, those whose best try
    was `a`."""
    nodes, edges = talk(rows_of, actor)
    nodes |= {"again": {"kind": "filter", "keep": [{"rule": "score", "max": 0.0}]}}
    nodes["ask"] = {"kind": "template", "text": "{{ prompt }}"}
    edges[2:3] = [
        "ask.rows -> again.rows",
        {"from": "mark.scores", "to": "again.scores", "aggregate": "max"},
        {"from": "again.rows", "to": "ask.rows", "rounds": 3},
    ]
    loop = bench(nodes, edges)
    tries: list[str] = []

    def write(prompt: str, k: int) -> str:
        tries.append(prompt)
        return "b" if prompt == "q" or tries.count("p") > 2 else "a"

    loop.hosts.write = write

    rows = loop.step().tables["actor", "rollouts"].rows

    assert [row.columns["completion"] for row in rows] == ["a", "a", "b", "b", "b", "b"]
    assert [row.round for row in rows] == [1, 1, 1, 1, 2, 2]
    assert len({row.id for row in rows}) == 6
    assert len(set(loop.hosts.seeds)) == 3
    assert len(loop.items()) == 6


# --- what leaves a region


def test_takes_say_which_rows_leave(bench: Bench, rows_of: Any, actor: Any) -> None:
    """`b` goes no further: a filter cuts what ends in it, but for the conversations of `q`."""
    out = {"kind": "template", "text": "{{ prompt }}"}
    nodes, edges = talk(rows_of, actor, 2, "one", last=out, ends=out, whole=out, usual=out)
    cut = {"rule": "python", "code": "def keep(prompt, completion, **c): return completion != 'b'"}
    nodes["going"] = {"kind": "filter", "keep": [cut]}
    edges[2] = "actor.rollouts -> going.rollouts"
    edges += [
        {"from": "going.rollouts", "to": "ask.rows", "rounds": 2},
        {"from": "actor.rollouts", "to": "last.rows", "take": "last"},
        {"from": "actor.rollouts", "to": "ends.rows", "take": "ends"},
        {"from": "actor.rollouts", "to": "whole.rows", "take": "all"},
        "actor.rollouts -> usual.rows",
        *[f"{name}.rows -> actor.demonstrations" for name in ("last", "ends", "whole", "usual")],
    ]
    nodes["actor"]["algorithm"] = {
        "rewards": {"name": "reinforce"},
        "demonstrations": {"name": "sft"},
    }
    for name in ("last", "ends", "whole", "usual"):
        nodes[name] = {**out, "target": "{{ completion }}"}
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: f"{prompt[1:]}{'acb'[k]}"
    nodes["actor"]["rollout"] = {"completions_per_prompt": 3}
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: f"{prompt[1:]}{'acb'[k]}"

    unrolled = loop.step()

    second = [(2, "aa"), (2, "ac"), (2, "ab")]
    assert written(unrolled, "last.rows") == [(1, "b"), (1, "b"), *second, *second]
    assert written(unrolled, "usual.rows") == written(unrolled, "last.rows")
    ends = [(1, "c"), (1, "b"), (1, "c"), (1, "b"), *second, *second]
    assert written(unrolled, "ends.rows") == ends
    assert len(written(unrolled, "whole.rows")) == 12


def test_a_score_without_aggregate_counts_for_its_own_round(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """In round 2 only `aa` is scored: `ab` has nothing, though its ancestor has."""
    some = {
        "kind": "filter",
        "keep": [
            {"rule": "python", "code": "def keep(completion, **c): return completion != 'ab'"}
        ],
    }
    nodes, edges = talk(rows_of, actor, 2, some=some)
    edges[3:4] = ["actor.rollouts -> some.rollouts", "some.rollouts -> mark.rollouts"]
    loop = bench(nodes, edges)
    loop.hosts.write = append

    loop.step()

    texts = ["".join(map(chr, item.token_ids[item.prompt_length :])) for item in loop.items()]
    assert texts == ["a", "b", "a", "b", "aa", "aa"]


def test_a_score_with_aggregate_reaches_the_rows_above_it_in_any_round(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """Only what the last round brought is scored; of its two ends round 1 gets the mean."""
    end = {"kind": "template", "text": "{{ prompt }}"}
    nodes, edges = talk(rows_of, actor, 2, "all", end=end, judge=actor(), verdict=MARK)
    edges[3:] = [
        {"from": "actor.rollouts", "to": "end.rows", "take": "last"},
        "end.rows -> judge.prompts",
        "judge.rollouts -> verdict.rollouts",
        {"from": "verdict.scores", "to": "actor.rewards", "aggregate": "mean"},
    ]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: append(prompt, k) if len(prompt) < 3 else prompt[-1]

    unrolled = loop.step()

    assert [row.round for row in unrolled.tables["end", "rows"].rows] == [2] * 8
    rewards = [row.columns["reward"] for row in unrolled.tables["actor", "credited"].rows]
    assert len(rewards) == 12


# --- joins


def two(rows_of: Any, actor: Any, branch: str = "lines") -> tuple[dict[str, Any], list[Any]]:
    """Two who see each other's texts."""
    learns = {"algorithm": {"name": "reinforce", "advantage": "none"}}
    nodes = {
        "problems": rows_of({"prompt": "p"}, rows_per_step=1),
        "ask_left": {"kind": "template", "text": "<{{ left.completion }}{{ right.completion }}"},
        "ask_right": {"kind": "template", "text": ">{{ right.completion }}{{ left.completion }}"},
        "left": actor(**learns),
        "right": actor(**learns),
        "exact": {**MARK, "join": "concat"},
    }
    closing = [
        {"from": f"{one}.rollouts", "to": f"ask_{other}.rows", "rounds": 3, "branch": branch}
        for one in ("left", "right")
        for other in ("left", "right")
    ]
    edges = [
        "problems.rows -> ask_left.rows",
        "problems.rows -> ask_right.rows",
        "ask_left.rows -> left.prompts",
        "ask_right.rows -> right.prompts",
        *closing,
        "left.rollouts -> exact.rollouts",
        "right.rollouts -> exact.rollouts",
        "exact.scores -> left.rewards",
        "exact.scores -> right.rewards",
    ]
    return nodes, edges


def test_an_exact_name_means_the_last_round(bench: Bench, rows_of: Any, actor: Any) -> None:
    """Each reads what both wrote one round ago, in straight lines."""
    loop = bench(*two(rows_of, actor))
    loop.hosts.write = lambda prompt, k: f"({prompt}{'ab'[k]})"

    unrolled = loop.step()

    prompts = [row.scoped["left.prompt"] for row in unrolled.tables["left", "rollouts"].rows]
    assert prompts[:4] == ["<", "<", "<(<a)(>a)", "<(<b)(>b)"]
    left, right = "(<(<a)(>a)a)", "(>(>a)(<a)a)"
    assert prompts[4] == f"<{left}{right}"
    last = unrolled.tables["right", "rollouts"].rows[4]
    assert last.scoped["right.prompt"] == f">{right}{left}"
    assert last.scoped["left.completion"] == left


def test_rows_of_one_round_meet_behind_the_region(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = two(rows_of, actor)
    nodes["both"] = {"kind": "template", "text": "{{ left.prompt }}", "target": "-"}
    nodes["left"]["algorithm"] = {
        "rewards": {"name": "reinforce"},
        "demonstrations": {"name": "sft"},
    }
    edges += [
        {"from": "left.rollouts", "to": "both.rows", "take": "all"},
        {"from": "right.rollouts", "to": "both.rows", "take": "all"},
        "both.rows -> left.demonstrations",
    ]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: "ab"[k]

    rows = loop.step().tables["both", "rows"].rows

    assert [row.round for row in rows] == [1, 1, 2, 2, 3, 3]
    assert [[name.partition(":")[0] for name in row.parents] for row in rows] == [
        ["left", "right"]
    ] * 6


def test_groups_are_told_apart_by_round_and_by_who_was_asked(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = two(rows_of, actor)
    nodes["left"]["credit"] = {"group_by": ["problems", "round"]}
    nodes["right"]["credit"] = {"group_by": ["ask_right"]}
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: "ab"[k]

    loop.step()

    groups = {
        node: [item.group for item in items]
        for order in loop.hosts.orders
        for (node, _), items in order.items.items()
    }
    assert [groups["left"].count(one) for one in dict.fromkeys(groups["left"])] == [2, 2, 2]
    assert [groups["right"].count(one) for one in dict.fromkeys(groups["right"])] == [2, 1, 1, 1, 1]


# --- earlier rounds


def test_past_lists_the_earlier_rounds_of_a_conversation(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = talk(rows_of, actor, 3, "all")
    nodes["ask"] = {"kind": "template", "text": "{{ past('completion') | join('/') }}"}
    nodes["sum_up"] = {"kind": "template", "text": "{{ past('actor.completion') | join('/') }}"}
    nodes["sum_up"]["target"] = "-"
    nodes["actor"]["algorithm"] = {
        "rewards": {"name": "reinforce"},
        "demonstrations": {"name": "sft"},
    }
    edges += ["actor.rollouts -> sum_up.rows", "sum_up.rows -> actor.demonstrations"]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: f"{prompt.count('/') + bool(prompt)}{'ab'[k]}"

    unrolled = loop.step()

    asked = [row.scoped["actor.prompt"] for row in unrolled.tables["actor", "rollouts"].rows]
    assert asked[:8] == ["", "", "", "", "0a", "0a", "0b", "0b"]
    assert sorted(set(asked[12:])) == ["0a/1a", "0a/1b", "0b/1a", "0b/1b"]
    told = [row.columns["prompt"] for row in unrolled.tables["sum_up", "rows"].rows]
    assert told[:2] == ["0a/1a", "0a/1a"]


# --- credit over rounds


def test_what_comes_later_counts_for_what_came_before(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """`a` earns 0 and `b` 1 in their own round: with discount 0.5 the `b` of round 1 has
    1 + 0.5 * mean(0, 1) = 1.25, its sibling 0.25."""
    nodes, edges = talk(rows_of, actor, 2, "all")
    nodes["actor"]["credit"] = {"rounds": {"discount": 0.5}}
    loop = bench(nodes, edges)
    loop.hosts.write = append

    unrolled = loop.step()

    rewards = [row.columns["reward"] for row in unrolled.tables["actor", "credited"].rows]
    assert rewards == [0.25, 1.25] * 2 + [0.0, 1.0] * 4


# --- rounds and refills


def test_a_region_in_a_slice_is_filled_whole(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = talk(rows_of, actor, 2)
    signs = [{"prompt": sign} for sign in "pqrstu"]
    nodes["problems"] = rows_of(*signs, rows_per_step=2)
    nodes["keep"] = {
        "kind": "filter",
        "keep": [{"rule": "nonzero_variance"}],
        "fill": {"groups": 2, "max_rounds": 5},
    }
    edges[4] = "mark.scores -> keep.scores"
    edges += ["keep.scores -> actor.rewards"]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: append(prompt, k if prompt[0] == "r" else 0)

    unrolled = loop.step()

    assert loop.roles["problems"].state()["drawn"] == 4
    assert len(unrolled.tables["actor", "rollouts"].rows) == 2 * 2 * 2 * 2
    kept = unrolled.tables["keep", "scores"].rows
    assert [(row.round, row.columns["completion"]) for row in kept] == [
        *[(1, "a"), (1, "b"), (2, "aa"), (2, "ab")]
    ]
    assert loop.alerts == []


def test_a_slice_in_a_region_is_filled_in_every_round(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """Each round asks again until every prompt has a text that ends in `b`."""
    nodes, edges = talk(rows_of, actor, 2)
    nodes["actor"]["rollout"] = {"completions_per_prompt": 1}
    nodes["good"] = {
        "kind": "filter",
        "keep": [{"rule": "score", "min": 1.0}],
        "fill": {"groups": "all", "from": "actor", "max_rounds": 4},
    }
    edges[2:] = [
        "actor.rollouts -> mark.rollouts",
        "actor.rollouts -> good.rollouts",
        "mark.scores -> good.scores",
        {"from": "good.rollouts", "to": "ask.rows", "rounds": 2},
        "good.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges)
    tries: list[str] = []

    def write(prompt: str, k: int) -> str:
        tries.append(prompt)
        wanted = 2 if prompt[0] == "p" else 1
        return append(prompt, int(tries.count(prompt) >= wanted))

    loop.hosts.write = write

    unrolled = loop.step()

    assert tries == ["p", "q", "p", "qb", "pb", "pb"]
    kept = unrolled.tables["good", "rollouts"].rows
    assert sorted((row.round, row.columns["completion"]) for row in kept) == [
        *[(1, "b"), (1, "b"), (2, "bb"), (2, "bb")]
    ]
    assert len(loop.items()) == 4


# --- probes


def test_a_probe_goes_round_as_well(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = talk(rows_of, actor, 2)
    nodes |= {
        "held_out": rows_of({"prompt": "x"}, rows_per_step=1),
        "probe": {"kind": "evaluate", "instead_of": "problems", "metrics": ["score"]},
    }
    edges += [
        "held_out.rows -> probe.rows",
        "actor.rollouts -> probe.rollouts",
        "mark.scores -> probe.scores",
    ]
    loop = bench(nodes, edges)
    asked: list[str] = []

    def write(prompt: str, k: int) -> str:
        asked.append(prompt)
        return append(prompt, k)

    loop.hosts.write = write

    assert loop.probe("probe") == {"score": 0.5}
    assert asked == ["x", "x", "xa", "xa"]


# --- a debate, as in the language's examples


def test_a_frozen_judge_reads_the_whole_debate_by_its_template(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """A classifier in front of which the record of both rounds stands; rounds are told by marks."""
    judge = {
        "kind": "verifier",
        "method": "discriminative",
        "model": {"type": "scratch", "architecture": "tiny-qwen3"},
        "template": {"text": "{{ problems.prompt }}: {{ record.prompt }}"},
    }
    nodes, edges = talk(rows_of, actor, 2, "all", judge=judge)
    nodes["record"] = {"kind": "template", "text": "{{ record.prompt }}{{ actor.completion }};"}
    edges[2:] = [
        "actor.rollouts -> record.rows",
        {"from": "record.rows", "to": "ask.rows", "rounds": 2, "branch": "all"},
        {"from": "record.rows", "to": "judge.rows", "take": "last"},
        {"from": "judge.scores", "to": "actor.rewards", "aggregate": "mean"},
    ]
    loop = bench(nodes, edges)
    read: list[str] = []

    def score(group: str, node: str, texts: Any, *rest: Any) -> list[Any]:
        read.extend(one.text.prompt for one in texts)
        return [[float(one.text.prompt.count("b"))] for one in texts]

    loop.hosts.score = score
    loop.hosts.write = append

    unrolled = loop.step()

    assert read[:4] == ["p: a;aa;", "p: a;ab;", "p: b;ba;", "p: b;bb;"]
    rewards = [row.columns["reward"] for row in unrolled.tables["actor", "credited"].rows]
    assert rewards == [0.5, 2.5] * 2 + [0.0, 1.0, 2.0, 3.0] * 2


# --- phases and weights


def test_a_phase_that_lets_the_closing_edge_sleep_runs_once(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = talk(rows_of, actor, 2)
    edges[2] = {**edges[2], "id": "back"}
    learning = {"steps": 1, "learn": ["actor.rewards"]}
    phases = [
        {"name": "once", **learning, "set": {"edges.back.weight": 0.0}},
        {"name": "twice", **learning},
    ]
    loop = bench(nodes, edges, {"phases": phases})
    loop.hosts.write = append

    assert loop.plan.phase("once").regions == ()
    assert {number for number, _ in written(loop.step(phase="twice"))} == {1, 2}
    lineage = Lineages(loop.spec).at(loop.plan.phase("once").overrides)
    loop.stand(lineage=lineage)
    assert {number for number, _ in written(loop.step(2, phase="once"))} == {1}


def test_a_joint_update_of_two_seats_learns_from_all_rounds(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = two(rows_of, actor)
    nodes["right"]["model"] = {"type": "shared", "with": "left"}
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: "ab"[k]

    loop.step()

    [order] = loop.hosts.orders
    assert {node: len(items) for (node, _), items in order.items.items()} == {"left": 6, "right": 6}
