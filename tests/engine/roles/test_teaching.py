"""Rows at teaching ports: demonstrations and pairs, weighed by their edges, kept until there are
enough, applied together or one role after another."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.numerics import near

from coloop.algorithms.batch import Text
from coloop.errors import DataError

Bench = Callable[..., Any]

GOLD = [{"prompt": f"p{n}", "target": f"t{n}"} for n in range(4)]
PAIR = {"prompt": "p", "chosen": "c", "rejected": "r", "margin": 0.5, "probability": 0.8}
SFT = {"name": "sft"}


def test_rows_imitate_their_target_and_rollouts_their_own_tokens(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "gold": rows_of(GOLD[0]),
        "writer": actor(),
        "actor": {**actor(), "algorithm": SFT},
    }
    edges = [
        "gold.rows -> writer.prompts",
        "gold.rows -> actor.demonstrations",
        {"from": "writer.rollouts", "to": "actor.demonstrations", "weight": 0.25},
    ]
    loop = bench(nodes, edges)

    loop.step()

    items = loop.items("demonstrations")
    assert [item.text for item in items] == [Text(prompt="p0", target="t0"), None, None]
    assert [item.token_ids[-1] for item in items[1:]] == [ord("a"), ord("b")]
    assert [item.weight for item in items] == [1.0, 0.25, 0.25]


def test_a_row_without_a_target_is_named(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes = {"gold": rows_of({"prompt": "p"}), "actor": {**actor(), "algorithm": SFT}}
    loop = bench(nodes, ["gold.rows -> actor.demonstrations"])

    with pytest.raises(DataError, match=r"gold:0\.0 has no text or chat in column `target`"):
        loop.step()


def test_a_row_without_a_prompt_is_named(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes = {"gold": rows_of({"target": "p"}), "actor": {**actor(), "algorithm": SFT}}
    loop = bench(nodes, ["gold.rows -> actor.demonstrations"])

    with pytest.raises(DataError, match="column `prompt`: it is not there; its columns are target"):
        loop.step()


def test_pairs_bring_margin_probability_and_reference(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "given": rows_of(PAIR),
        "actor": {**actor(), "algorithm": {"name": "dpo"}},
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
    }
    edges = [
        "given.pairs -> actor.pairs",
        "given.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
    ]
    loop = bench(nodes, edges)

    loop.step()

    [item] = loop.items("pairs")
    assert (item.margin, item.probability) == (0.5, 0.8)
    assert item.chosen.text.target == "c"
    assert item.chosen.log_probs_reference.tolist() == [-0.1]
    assert item.rejected.log_probs_reference.tolist() == [-0.2]


def test_rows_that_are_pairs_as_well_are_imitated_without_the_reference_of_the_pair(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "given": rows_of({**PAIR, "target": "c"}),
        "actor": {**actor(), "algorithm": {"pairs": {"name": "dpo"}, "demonstrations": SFT}},
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
    }
    edges = [
        "given.rows -> actor.demonstrations",
        "given.pairs -> actor.pairs",
        "given.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
    ]
    loop = bench(nodes, edges)

    loop.step()

    [row], [pair] = loop.items("demonstrations"), loop.items("pairs")
    assert (row.id, row.text) == (pair.id, Text(prompt="p", target="c"))
    assert row.log_probs_reference is None
    assert pair.chosen.log_probs_reference.tolist() == [-0.1]


@pytest.mark.parametrize(
    ("value", "margin"), [(0.5, 0.5), ("0.5", 0.5), (2, 2.0), (None, 0.0), (True, 1.0)]
)
def test_a_margin_is_a_number_of_the_column_that_is_named(
    value: Any, margin: float, bench: Bench, rows_of: Any
) -> None:
    loop = bench(*with_margin(rows_of, value))

    loop.step()

    assert [item.margin for item in loop.items("pairs")] == [margin]


@pytest.mark.parametrize("value", ["far", "nan", 1e308, [1.0], {"by": 1}])
def test_a_margin_that_is_no_number_is_named(value: Any, bench: Bench, rows_of: Any) -> None:
    loop = bench(*with_margin(rows_of, value))

    with pytest.raises(DataError, match=r"`taste\.pairs` reads its column `gap`, which must") as e:
        loop.step()

    assert e.value.node == "taste"


def with_margin(rows_of: Any, value: Any) -> tuple[dict[str, Any], list[str]]:
    """A reward model that learns a pair whose margin stands in the column `gap`."""
    taste = {
        "kind": "reward",
        "source": {"type": "model"},
        "model": {"type": "scratch", "architecture": "tiny-qwen3"},
        "algorithm": {"name": "bradley_terry", "margin": "gap"},
    }
    nodes = {"given": rows_of({**PAIR, "gap": value}), "taste": taste}
    return nodes, ["given.pairs -> taste.pairs"]


def test_pairs_without_the_reference_that_is_read_are_counted(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "given": rows_of(PAIR),
        "others": rows_of(PAIR),
        "actor": {**actor(), "algorithm": {"name": "dpo"}},
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
    }
    edges = [
        "given.pairs -> actor.pairs",
        "others.pairs -> actor.pairs",
        "given.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
    ]
    loop = bench(nodes, edges)

    loop.step()

    assert len(loop.items("pairs")) == 1
    [port] = loop.outcomes["actor.learn"].detail["ports"]
    assert port["without_reference"] == 1
    assert loop.outcomes["actor.learn"].member_metrics["actor"]["rows/left_out"] == 0.5
    assert port["edges"]["others.pairs->actor.pairs"] == {"delivered": 1, "none": 0}


def test_a_pair_that_is_not_sure_is_refused_by_a_loss_that_wants_it_to_be(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "given": rows_of(PAIR),
        "actor": {**actor(), "algorithm": {"name": "kto"}},
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
    }
    loop = bench(nodes, KTO_EDGES)

    with pytest.raises(DataError, match=r"given:0\.0 has the probability 0\.8.*`kto`") as refused:
        loop.step()

    assert (refused.value.node, refused.value.field) == ("actor", "algorithm.pairs.loss")
    assert "`hinge`, `ipo`, `sigmoid`" in str(refused.value)


KTO = {
    "actor": {"algorithm": {"name": "kto"}},
    "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
}
KTO_EDGES = [
    "given.pairs -> actor.pairs",
    "given.pairs -> start.pairs",
    "start.log_probs -> actor.reference",
]


def pair_rows(prompts: str) -> list[dict[str, Any]]:
    return [{"prompt": p, "chosen": f"c{n}", "rejected": f"r{n}"} for n, p in enumerate(prompts)]


@pytest.mark.parametrize(
    ("prompts", "strangers"),
    [
        ("pqr", [("p", 1), ("q", 2), ("r", 0)]),
        ("ppq", [("p", 2), ("p", 2), ("q", 0)]),
        ("pqqp", [("p", 1), ("q", 3), ("q", 3), ("p", 1)]),
        ("pp", [None, None]),
    ],
)
def test_kto_brings_the_answers_of_the_next_other_prompt(
    prompts: str, strangers: list[Any], bench: Bench, rows_of: Any, actor: Any
) -> None:
    given = rows_of(*pair_rows(prompts))
    nodes = {"given": given, **KTO, "actor": {**actor(), **KTO["actor"]}}
    loop = bench(nodes, KTO_EDGES)
    asked: list[tuple[str, str, str]] = []
    said = loop.hosts.score_pairs

    def score_pairs(group: str, node: str, pairs: Any) -> Any:
        asked.extend(
            (p.chosen.text.prompt, p.chosen.text.target, p.rejected.text.target) for p in pairs
        )
        return said(group, node, pairs)

    loop.hosts.score_pairs = score_pairs
    loop.step()

    crossed = [(one[0], f"c{one[1]}", f"r{one[1]}") for one in strangers if one]
    assert asked == [(p, f"c{n}", f"r{n}") for n, p in enumerate(prompts)] + crossed
    for item, other in zip(loop.items("pairs"), strangers, strict=True):
        texts = [(one.text.prompt, one.text.target) for one in item.extra]
        assert texts == ([(other[0], f"c{other[1]}"), (other[0], f"r{other[1]}")] if other else [])
        assert [list(one.log_probs_reference) for one in item.extra] == (
            [near([-0.1]), near([-0.2])] if other else []
        )


def test_what_was_drawn_is_measured_under_another_prompt_by_its_tokens(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}, {"prompt": "q"}),
        "writer": actor(),
        "length": {"kind": "reward", "source": {"type": "python", "code": FIRST_IS_BETTER}},
        "own": {"kind": "pairs", "method": "best_worst"},
        **KTO,
        "actor": {**actor(), **KTO["actor"]},
    }
    edges = [
        "sums.rows -> writer.prompts",
        "writer.rollouts -> length.rollouts",
        "writer.rollouts -> own.rollouts",
        "length.scores -> own.scores",
        *(edge.replace("given", "own") for edge in KTO_EDGES),
    ]
    loop = bench(nodes, edges)

    loop.step()

    first = loop.items("pairs")[0]
    texts = [bytes(one.token_ids.tolist()).decode() for one in first.extra]
    assert texts == ["pqa", "pqb"]  # under p, what was written to q
    assert [one.loss_mask.tolist() for one in first.extra] == [[False, True, True]] * 2


FIRST_IS_BETTER = """
def reward(prompts, completions, **columns):
    return [1.0 if text.endswith("a") else 0.0 for text in completions]
"""


def labelled(bench: Bench, rows_of: Any, code: str, *rows: dict[str, Any]) -> Any:
    """Numbers of a scorer of its own are what a model is to say."""
    nodes = {
        "texts": rows_of(*rows),
        "truth": {"kind": "reward", "source": {"type": "python", "code": code}},
        "rm": {
            "kind": "reward",
            "source": {"type": "model"},
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "algorithm": {"name": "regression", "weight": 0.5},
        },
    }
    edges = [
        "texts.rows -> truth.rows",
        {"from": "truth.scores", "to": "rm.labels", "weight": 0.25},
    ]
    return bench(nodes, edges)


SIZES = """
def reward(prompts, completions, target, **columns):
    return [None if one == "none" else len(one) / 2 for one in target]
"""


def test_labels_are_the_numbers_of_their_scorer(bench: Bench, rows_of: Any) -> None:
    rows = [{"prompt": "p", "target": text} for text in ("ab", "none", "abc")]
    loop = labelled(bench, rows_of, SIZES, *rows)

    loop.step()

    items = loop.items("labels")
    assert [item.text for item in items] == [Text(prompt="p", target=t) for t in ("ab", "abc")]
    assert [dict(item.numbers) for item in items] == [{"label": 1.0}, {"label": 1.5}]
    assert [item.weight for item in items] == [0.25, 0.25]
    [port] = loop.outcomes["rm.learn"].detail["ports"]
    assert port["edges"]["truth.scores->rm.labels"] == {"delivered": 3, "none": 1}


def test_numbers_of_steps_are_no_labels_of_a_text(bench: Bench, rows_of: Any) -> None:
    code = "def reward(prompts, completions, **columns):\n    return [[0.5] for _ in prompts]\n"
    loop = labelled(bench, rows_of, code, {"prompt": "p", "target": "t"})

    with pytest.raises(DataError, match=r"`truth`.*`rm\.labels` needs one number per text"):
        loop.step()


def waiting(bench: Bench, rows_of: Any, actor: Any, rows: int = 5) -> Any:
    nodes = {"gold": rows_of(*GOLD, rows_per_step=2), "actor": {**actor(), "algorithm": SFT}}
    schedule = {"steps": 9, "learn": {"actor": {"rows": rows, "updates": 3}}}
    return bench(nodes, ["gold.rows -> actor.demonstrations"], schedule)


def test_rows_wait_until_there_are_enough(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = waiting(bench, rows_of, actor)

    orders = []
    for step in range(1, 7):
        loop.step(step)
        orders.append(len(loop.hosts.orders))

    assert orders == [0, 0, 1, 1, 1, 2]
    assert [len(items) for order in loop.hosts.orders for items in order.items.values()] == [6, 6]
    assert [order.updates for order in loop.hosts.orders] == [3, 3]
    assert loop.alerts == []
    assert not loop.outcomes["actor.learn"].is_idle


def test_as_many_rows_as_wanted_are_enough(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = waiting(bench, rows_of, actor, rows=4)

    loop.step(1)
    assert loop.hosts.orders == []
    loop.step(2)

    assert [len(items) for order in loop.hosts.orders for items in order.items.values()] == [4]


def test_waiting_rows_survive_a_resume(
    bench: Bench, rows_of: Any, actor: Any, through_files: Any
) -> None:
    old, new = (waiting(bench, rows_of, actor) for _ in "ab")
    for step in (1, 2):
        old.step(step)

    new.groups["actor"].load_state(through_files(old.groups["actor"].state()))
    new.roles["gold"].load_state(old.roles["gold"].state())
    old.step(3)
    new.step(3)

    assert new.hosts.orders == old.hosts.orders


def test_a_step_that_is_taken_back_leaves_waiting_rows_as_they_were(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = waiting(bench, rows_of, actor)
    loop.step(1)
    before, memory = loop.groups["actor"].state(), loop.groups["actor"].remember()

    loop.step(2)
    loop.groups["actor"].recall(memory)

    assert loop.groups["actor"].state() == before


def shared(bench: Bench, rows_of: Any, actor: Any, **schedule: Any) -> Any:
    """Two roles on one set of weights."""
    nodes = {
        "gold": rows_of(*GOLD),
        "actor": {**actor(), "algorithm": SFT},
        "twin": {
            **actor(),
            "model": {"type": "shared", "with": "actor"},
            "algorithm": {"name": "sft", "weight": 0.5},
        },
    }
    edges = ["gold.rows -> actor.demonstrations", "gold.rows -> twin.demonstrations"]
    return bench(nodes, edges, {"steps": 9, **schedule})


def test_roles_that_share_weights_learn_in_one_update(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = shared(bench, rows_of, actor)

    loop.step()

    [order] = loop.hosts.orders
    assert order.group == "actor"
    assert [node for node, _ in order.items] == ["actor", "twin"]
    assert order.order == ()


def test_an_order_is_handed_on(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = shared(bench, rows_of, actor, order=["twin", "actor"])

    loop.step()

    assert loop.hosts.orders[0].order == ("twin", "actor")


@pytest.mark.parametrize(("schedule", "updates"), [({}, 9), ({"order": ["twin", "actor"]}, 18)])
def test_rates_decay_over_the_updates_of_a_phase(
    schedule: dict[str, Any], updates: int, bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = shared(bench, rows_of, actor, **schedule)

    loop.groups["actor"].phase_starts(loop.plan.phases[0], {"actor": 9, "twin": 9}, loop.context)
    loop.step(1)
    loop.step(2)

    assert [order.phase_updates for order in loop.hosts.orders] == [updates] * 2
    assert [order.is_new_phase for order in loop.hosts.orders] == [True, False]


def test_a_greedy_extra_is_not_imitated(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": {
            **actor(),
            "rollout": {"completions_per_prompt": 2, "greedy_extra": True},
            "algorithm": SFT,
        },
    }
    edges = ["sums.rows -> actor.prompts", "actor.rollouts -> actor.demonstrations"]
    loop = bench(nodes, edges)

    loop.step()

    assert [item.id for item in loop.items("demonstrations")] == [
        "actor:sums:0.0.0",
        "actor:sums:0.0.1",
    ]
    [port] = loop.outcomes["actor.learn"].detail["ports"]
    assert (port["learned"], port["greedy"]) == (2, 1)
