"""Scores at `rewards` become what a learner learns from; None and "not delivered" stay apart."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.numerics import near

from coloop.errors import DataError
from coloop.runtime.roles import CREDIT

Bench = Callable[..., Any]

GRPO = {"name": "grpo"}
SUM = {"name": "rloo"}


def builtin(name: str, **options: Any) -> dict[str, Any]:
    return {"kind": "reward", "source": {"type": "builtin", "name": name, **options}}


def python(body: str, **fields: Any) -> dict[str, Any]:
    code = f"def reward(prompts, completions, **columns):\n    return {body}\n"
    return {"kind": "reward", "source": {"type": "python", "code": code}, **fields}


ENDS = python("[float('abcd'.index(c[-1])) for c in completions]")
"""0 for the first completion of a prompt, 1 for the second, and so on."""


def writer(actor: Any, algorithm: Any = GRPO, **fields: Any) -> dict[str, Any]:
    return {**actor(), "algorithm": algorithm, **fields}


def learned(loop: Any) -> dict[str, Any]:
    """Advantages of the rows of the last update, by the ids of their rows."""
    return {item.id.removeprefix("actor:"): item.advantages for item in loop.items()}


def simple(rows_of: Any, node: dict[str, Any], scorer: dict[str, Any] = ENDS) -> tuple[Any, Any]:
    nodes = {"sums": rows_of({"prompt": "p"}, {"prompt": "q"}), "actor": node, "mark": scorer}
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> actor.rewards",
    ]
    return nodes, edges


def test_a_group_is_what_was_written_for_one_prompt(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*simple(rows_of, writer(actor, SUM)))

    loop.step()

    # leave one out: the other of the two is the baseline
    assert learned(loop) == {
        "sums:0.0.0": -1.0,
        "sums:0.0.1": 1.0,
        "sums:0.1.0": -1.0,
        "sums:0.1.1": 1.0,
    }
    detail = loop.outcomes["actor.credit"].detail
    assert detail["groups"] == 2
    assert detail["group_size"] == 2
    assert detail["edges"] == {"mark.scores->actor.rewards": {"delivered": 4, "none": 0}}
    assert detail["versions"] == [0]


@pytest.mark.parametrize("port", ["rewards", "demonstrations"])
@pytest.mark.parametrize("truncated", ["learn", "mask"])
def test_a_row_cut_by_its_limit_stays_in_its_groups_baseline(
    truncated: str, port: str, bench: Bench, rows_of: Any, actor: Any
) -> None:
    """The second of three, with scores 0, 1 and 2."""
    rollout = {"completions_per_prompt": 3, "truncated": truncated}
    algorithm = {"rewards": {"name": "reinforce", "advantage": "group_mean"}}
    if port == "demonstrations":
        algorithm = {port: {"name": "sft"}}
    nodes, edges = simple(rows_of, writer(actor, algorithm, rollout=rollout))
    if port == "demonstrations":
        del nodes["mark"]
        edges = [edges[0], "actor.rollouts -> actor.demonstrations"]
    loop = bench(nodes, edges)
    loop.hosts.is_finished = lambda k: k != 1

    loop.step()

    kept = [0, 2] if truncated == "mask" else [0, 1, 2]
    ids = [f"actor:sums:0.{prompt}.{k}" for prompt in (0, 1) for k in kept]
    assert [item.id for item in loop.items(port)] == ids
    if port == "rewards":
        assert [item.advantages for item in loop.items()] == [float(k - 1) for k in kept] * 2
        assert loop.outcomes["actor.credit"].detail["truncated"] == (
            2 if truncated == "mask" else 0
        )


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["prompt"], 2),
        (["role"], 1),
        (["round"], 1),
        (["source"], 1),
        (["sums"], 2),
        (["role", "prompt"], 2),
    ],
)
def test_groups_may_be_named(
    names: list[str], groups: int, bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*simple(rows_of, writer(actor, SUM, credit={"group_by": names})))

    loop.step()

    assert loop.outcomes["actor.credit"].detail["groups"] == groups


@pytest.mark.parametrize(
    ("group_by", "expected"),
    [(None, [0.0, 1.0, -0.5, 0.75]), (["prompt"], [0.0, 1.0, 0.0, 1.0])],
    ids=["dataset and role", "prompt"],
)
def test_a_moving_baseline_belongs_to_a_dataset_and_a_role_or_to_what_is_named(
    group_by: list[str] | None, expected: list[float], bench: Bench, rows_of: Any, actor: Any
) -> None:
    """Scores 0 and 1 for each prompt; half of the old baseline is kept."""
    rae = {"name": "rae", "baseline_decay": 0.5}
    loop = bench(*simple(rows_of, writer(actor, rae, credit={"group_by": group_by})))

    loop.step()

    assert list(learned(loop).values()) == expected


def test_datasets_have_moving_baselines_of_their_own(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """The first of two datasets is easy, the second hard: 5 and 6 against 0 and 1."""
    rae = {"name": "rae", "baseline_decay": 0.5}
    code = "[float('abcd'.index(c[-1])) + 5 * (c[0] == 'e') for c in completions]"
    nodes = {
        "easy": rows_of({"prompt": "e"}),
        "hard": rows_of({"prompt": "h"}),
        "actor": writer(actor, rae),
        "mark": python(code),
    }
    edges = [
        "easy.rows -> actor.prompts",
        "hard.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges)

    loop.step()

    # 5 against 0, 6 against 2.5; 0 against 0, 1 against 0
    assert list(learned(loop).values()) == [5.0, 3.5, 0.0, 1.0]
    state = loop.roles[f"{CREDIT}actor"].state()
    assert state["baselines"] == [
        [0, "", ["easy", "actor"], 4.25],
        [0, "", ["hard", "actor"], 0.5],
    ]


def test_a_group_by_a_node_above_holds_all_that_descends_from_its_row(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "first": actor(),
        "ask": {"kind": "template", "text": "{{ completion }}"},
        "actor": writer(actor, SUM, credit={"group_by": ["sums"]}),
        "mark": ENDS,
    }
    edges = [
        "sums.rows -> first.prompts",
        "first.rollouts -> ask.rows",
        "ask.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges)

    loop.step()

    assert loop.outcomes["actor.credit"].detail["group_size"] == 4


@pytest.mark.parametrize("name", ["ask", "few", "prompt"])
def test_a_node_that_hands_rows_on_names_the_rows_that_it_hands_on(
    name: str, bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}, {"prompt": "q"}),
        "ask": {"kind": "template", "text": "{{ prompt }}?"},
        "few": {"kind": "filter", "keep": [{"rule": "length", "column": "prompt", "max": 9}]},
        "actor": writer(actor, SUM, credit={"group_by": [name]}),
        "mark": ENDS,
    }
    edges = [
        "sums.rows -> ask.rows",
        "ask.rows -> few.rows",
        "few.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges)

    loop.step()

    detail = loop.outcomes["actor.credit"].detail
    assert (detail["groups"], detail["group_size"]) == (2, 2)


def test_a_group_by_rows_of_two_writers_names_the_rows_in_which_they_meet(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "tens": actor(),
        "units": actor(),
        "both": {"kind": "template", "text": "{{ tens.completion }}{{ units.completion }}"},
        "actor": writer(actor, SUM, credit={"group_by": ["both"]}),
        "mark": ENDS,
    }
    edges = [
        "sums.rows -> tens.prompts",
        "sums.rows -> units.prompts",
        "tens.rollouts -> both.rows",
        "units.rollouts -> both.rows",
        "both.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges)

    loop.step()

    assert loop.outcomes["actor.credit"].detail["groups"] == 2


def test_a_row_that_descends_from_no_row_of_the_named_node_is_told(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "more": rows_of({"prompt": "q"}),
        "actor": writer(actor, SUM, credit={"group_by": ["sums"]}),
        "mark": ENDS,
    }
    edges = [
        "sums.rows -> actor.prompts",
        "more.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges)

    with pytest.raises(DataError, match=r"actor:more.* does not descend from a row of `sums`"):
        loop.step()


def two(rows_of: Any, actor: Any, second: str, weight: float = 1.0, **fields: Any) -> Any:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": writer(actor, SUM, **fields),
        "mark": ENDS,
        "more": python(second),
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "actor.rollouts -> more.rollouts",
        "mark.scores -> actor.rewards",
        {"from": "more.scores", "to": "actor.rewards", "weight": weight},
    ]
    return nodes, edges


def test_several_scores_are_weighed_and_summed(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*two(rows_of, actor, "[10.0, 20.0]", weight=0.5))

    loop.step()

    assert learned(loop) == {"sums:0.0.0": -6.0, "sums:0.0.1": 6.0}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("sum_of_available", {"sums:0.0.0": -11.0, "sums:0.0.1": 11.0}),
        ("mean_of_available", {"sums:0.0.0": -5.5, "sums:0.0.1": 5.5}),
        ("skip_row", {"sums:0.0.1": 0.0}),
    ],
)
def test_what_none_means_is_said(
    missing: str, expected: dict[str, float], bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*two(rows_of, actor, "[None, 10.0]", credit={"missing": missing}))

    loop.step()

    # the second row has 1 + 10; the first only its 0
    assert learned(loop) == pytest.approx(expected)


def test_a_row_with_none_everywhere_is_out(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*simple(rows_of, writer(actor, SUM), python("[None, 2, 3, 4]")))

    loop.step()

    assert learned(loop) == {"sums:0.0.1": 0.0, "sums:0.1.0": -1.0, "sums:0.1.1": 1.0}
    detail = loop.outcomes["actor.credit"].detail
    assert (detail["rows"], detail["kept"]) == (4, 3)
    assert detail["edges"]["mark.scores->actor.rewards"] == {"delivered": 4, "none": 1}
    assert "credit.group_of_one" in [code for code, _ in loop.alerts]


def test_nothing_but_none_is_told_and_nothing_is_learned(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*simple(rows_of, writer(actor), python("[None] * 4")))

    loop.step()

    assert loop.hosts.orders == []
    assert [code for code, _ in loop.alerts] == ["learn.no_rows"]
    assert "no row of this step has a score" in loop.alerts[0][1]


@pytest.mark.parametrize(("schedule", "is_told"), [({}, True), ({"max_staleness": 1.5}, False)])
def test_rows_that_are_older_than_the_schedule_allows_are_told(
    schedule: dict[str, Any],
    is_told: bool,
    bench: Bench,
    rows_of: Any,
    actor: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = bench(*simple(rows_of, writer(actor), python("[0, 1, 2, 3]")))
    loop.hosts.writer = "actor"
    learn = loop.hosts.learn
    late = lambda order: replace(learn(order), before=2)  # noqa: E731
    monkeypatch.setattr(loop.hosts, "learn", late)
    own = loop.spec.schedule.model_copy(update=schedule)
    loop.stand(spec=loop.spec.model_copy(update={"schedule": own}))

    loop.step()

    told = [message for code, message in loop.alerts if code == "learn.too_stale"]
    assert bool(told) is is_told
    assert all("2 versions of the weights old" in message for message in told)


def test_rows_that_a_filter_cut_are_not_delivered_which_is_not_none(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = simple(rows_of, writer(actor, SUM))
    nodes["few"] = {
        "kind": "filter",
        "keep": [{"rule": "length", "max": 9}],
        "per_group": {"max": 1},
    }
    nodes["few"]["per_group"]["pick"] = "best"
    edges = [*edges[:2], "actor.rollouts -> few.rollouts", "mark.scores -> few.scores"]
    loop = bench(nodes, [*edges, "few.scores -> actor.rewards"])

    loop.step()

    assert set(learned(loop)) == {"sums:0.0.1", "sums:0.1.1"}
    detail = loop.outcomes["actor.credit"].detail
    assert detail["edges"]["few.scores->actor.rewards"] == {"delivered": 2, "none": 0}
    assert detail["rows"] == 4


def test_a_score_of_an_ancestor_counts_for_all_below(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = simple(rows_of, writer(actor, {"name": "reinforce", "advantage": "none"}))
    nodes["hard"] = python("[float(p == 'q') for p in prompts]")
    edges += ["sums.rows -> hard.rows", "hard.scores -> actor.rewards"]
    loop = bench(nodes, edges)

    loop.step()

    assert learned(loop) == {
        "sums:0.0.0": 0.0,
        "sums:0.0.1": 1.0,
        "sums:0.1.0": 1.0,
        "sums:0.1.1": 2.0,
    }


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [("mean", 0.5), ("min", 0.0), ("max", 1.0), ("sum", 1.0), ("last", 1.0)],
)
def test_scores_of_descendants_rise_as_the_edge_says(
    aggregate: str, expected: float, bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": writer(actor, {"name": "reinforce", "advantage": "none"}),
        "ask": {"kind": "template", "text": "{{ completion }}"},
        "reader": actor(),
        "mark": ENDS,
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> ask.rows",
        "ask.rows -> reader.prompts",
        "reader.rollouts -> mark.rollouts",
        {"from": "mark.scores", "to": "actor.rewards", "aggregate": aggregate},
    ]
    loop = bench(nodes, edges)

    loop.step()

    assert learned(loop) == {"sums:0.0.0": expected, "sums:0.0.1": expected}


def test_a_joint_score_reaches_both_writers(bench: Bench, rows_of: Any, actor: Any) -> None:
    plain = {"name": "reinforce", "advantage": "none"}
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": writer(actor, plain),
        "other": writer(actor, plain),
        "both": {
            "kind": "template",
            "columns": {"completion": "{{ actor.completion }}{{ other.completion }}"},
        },
        "mark": ENDS,
    }
    edges = [
        "sums.rows -> actor.prompts",
        "sums.rows -> other.prompts",
        "actor.rollouts -> both.rows",
        "other.rollouts -> both.rows",
        "both.rows -> mark.rows",
        {"from": "mark.scores", "to": "actor.rewards", "aggregate": "mean"},
        {"from": "mark.scores", "to": "other.rewards", "aggregate": "mean"},
    ]
    loop = bench(nodes, edges)

    loop.step()

    items = {node: own for order in loop.hosts.orders for (node, _), own in order.items.items()}
    assert list(items) == ["actor", "other"]
    assert [[item.advantages for item in own] for own in items.values()] == [[0.0, 1.0]] * 2


def with_reference(rows_of: Any, actor: Any, source: str) -> Any:
    algorithm = {"name": "grpo", "kl": {"coefficient": 0.1}}
    nodes, edges = simple(rows_of, writer(actor, algorithm))
    nodes |= {
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
        "few": {"kind": "filter", "keep": [{"rule": "regex", "pattern": "^p"}]},
    }
    edges += [
        "actor.rollouts -> few.rollouts",
        f"{source}.rollouts -> start.rollouts",
        "start.log_probs -> actor.reference",
    ]
    return nodes, edges


def test_a_reference_comes_with_every_row(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*with_reference(rows_of, actor, "actor"))

    loop.step()

    assert [item.log_probs_reference.tolist() for item in loop.items()] == [[0.0, -0.25, -0.25]] * 4
    assert loop.outcomes["actor.credit"].detail["without_reference"] == 0
    assert loop.outcomes["actor.credit"].metrics["rows/left_out"] == 0.0


def test_rows_without_the_reference_that_is_read_leave_the_update(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*with_reference(rows_of, actor, "few"))

    loop.step()

    assert set(learned(loop)) == {"sums:0.0.0", "sums:0.0.1"}
    assert loop.outcomes["actor.credit"].detail["without_reference"] == 2
    assert loop.outcomes["actor.credit"].metrics["rows/left_out"] == 0.5


def test_it_is_told_what_rows_lack_where_none_is_learned(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = with_reference(rows_of, actor, "few")
    nodes["few"] = {"kind": "filter", "keep": [{"rule": "length", "column": "prompt", "max": 0}]}
    loop = bench(nodes, edges)

    loop.step()

    told = [message for code, message in loop.alerts if code == "learn.no_rows"]
    assert told[0].startswith(
        "actor: none of the 4 rows that have a score has log-probs of the reference"
    )


def test_rows_with_a_reference_keep_their_own_scores_and_weights(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """The rows that stay are not the first ones."""
    nodes, edges = with_reference(rows_of, actor, "few")
    nodes["few"]["keep"][0]["pattern"] = "^q"
    nodes["mark"] = python("[10.0 * (c[0] == 'q') + 'ab'.index(c[-1]) for c in completions]")
    kl = {"coefficient": 0.1}
    nodes["actor"]["algorithm"] = {"name": "reinforce", "advantage": "none", "kl": kl}
    edges = [edge for edge in edges if edge != "mark.scores -> actor.rewards"]
    loop = bench(nodes, [*edges, {"from": "mark.scores", "to": "actor.rewards", "weight": 0.5}])

    loop.step()

    assert learned(loop) == {"sums:0.1.0": 5.0, "sums:0.1.1": 5.5}


def test_kl_may_lie_in_the_reward(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = with_reference(rows_of, actor, "actor")
    kl = {"coefficient": 1.0, "estimator": "k1", "into": "reward"}
    nodes["actor"]["algorithm"] = {"name": "reinforce", "advantage": "none", "kl": kl}
    loop = bench(nodes, edges)

    loop.step()

    # own -0.5, reference -0.25: k1 = -0.25 a token, so +0.25 of reward at each; a token looks
    # ahead to what comes after it
    assert learned(loop)["sums:0.0.1"] == pytest.approx([0.0, 1.5, 1.25])  # the prompt first


def test_rows_of_a_buffer_count_for_their_writer_only(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}, {"prompt": "q"}, rows_per_step=1),
        "actor": writer(actor, {"name": "reinforce", "advantage": "none"}),
        "other": actor(),
        "mark": {**ENDS, "join": "concat"},
        "pool": {"kind": "buffer", "capacity": 99},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "sums.rows -> other.prompts",
        "actor.rollouts -> mark.rollouts",
        "other.rollouts -> mark.rollouts",
        "mark.scores -> pool.scores",
        "pool.scores -> actor.rewards",
    ]
    loop = bench(nodes, edges, {"steps": 9, "fill": ["pool"]})
    loop.step(1)

    loop.step(2)

    items = loop.items()
    assert [item.advantages for item in items] == [0.0, 1.0]
    assert [item.group for item in items] == ["sums:0.0"] * 2
    assert loop.outcomes["actor.credit"].detail["versions"] == [0]


def test_a_greedy_extra_is_scored_and_never_learned(
    bench: Bench, rows_of: Any, actor: Any, column: Any
) -> None:
    node = writer(actor)
    node["rollout"] = {"completions_per_prompt": 2, "greedy_extra": True}
    loop = bench(*simple(rows_of, node, python("[1.0 for c in completions]")))

    unrolled = loop.step()

    table = unrolled.tables["mark", "scores"]
    assert column(table, "greedy") == [False, False, True] * 2
    assert len(loop.items()) == 4
    assert [sampling.temperature for sampling in loop.hosts.samplings] == [1.0, 0.0]


def test_what_is_written_for_a_greedy_row_is_learned(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = simple(rows_of, writer(actor, SUM))
    nodes["first"] = {**actor(), "rollout": {"completions_per_prompt": 1, "greedy_extra": True}}
    nodes["ask"] = {"kind": "template", "text": "{{ completion }}"}
    edges = ["sums.rows -> first.prompts", "first.rollouts -> ask.rows", *edges[1:]]
    loop = bench(nodes, [*edges, "ask.rows -> actor.prompts"])

    loop.step()

    assert len(loop.items()) == 8


def test_the_baseline_of_a_group_counts_its_draws(bench: Bench, rows_of: Any, actor: Any) -> None:
    score = python("[1.0 + 'abcd'.index(c[-1]) for c in completions]")  # 1 and 2 for each prompt
    nodes, edges = simple(rows_of, writer(actor, {"name": "dr_grpo"}), score)
    nodes["drawn"] = {"kind": "filter", "resample": {"weight": "power", "exponent": 1, "rows": 24}}
    edges = [*edges[:2], "mark.scores -> drawn.scores", "drawn.scores -> actor.rewards"]
    loop = bench(nodes, edges)

    loop.step()

    items = {item.id: item for item in loop.items()}
    for sum_ in ("0.0", "0.1"):
        first, second = (items[f"actor:sums:{sum_}.{k}"] for k in (0, 1))
        assert first.count + second.count > 2
        mean = (first.count + 2 * second.count) / (first.count + second.count)
        assert (first.advantages, second.advantages) == (near(1 - mean), near(2 - mean))


def test_how_often_a_row_was_drawn_counts(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = simple(rows_of, writer(actor, {"name": "reinforce", "advantage": "none"}))
    nodes["drawn"] = {"kind": "filter", "resample": {"weight": "power", "rows": 8}}
    edges = [*edges[:2], "mark.scores -> drawn.scores", "drawn.scores -> actor.rewards"]
    loop = bench(nodes, edges)

    loop.step()

    counts = {item.id: item.count for item in loop.items()}
    assert set(counts) == {"actor:sums:0.0.1", "actor:sums:0.1.1"}  # the others have weight 0
    assert sum(counts.values()) == 8
