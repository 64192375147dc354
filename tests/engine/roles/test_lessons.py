"""What is credited beside plain own rows: greedy baselines, rows of others, several algorithms,
class weights, balance, and a KL coefficient that adapts. Each by hand on texts of a script."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.numerics import near

Bench = Callable[..., Any]

ENDS = {
    "kind": "reward",
    "source": {
        "type": "python",
        "code": "def reward(prompts, completions, **columns):\n"
        "    return [float('abcd'.index(c[-1])) for c in completions]\n",
    },
}
"""0 for the first completion of a prompt, 1 for the second, and so on."""
PLAIN = {"name": "reinforce", "advantage": "none"}


def loop_of(
    bench: Bench,
    rows_of: Any,
    actor: Any,
    algorithm: Any,
    *,
    prompts: str = "pq",
    nodes: Any = None,
    edges: Any = (),
    **fields: Any,
) -> Any:
    everyone = {
        "sums": rows_of(*({"prompt": sign} for sign in prompts)),
        "actor": {**actor(), "algorithm": algorithm, **fields},
        "mark": ENDS,
        **(nodes or {}),
    }
    own = ["sums.rows -> actor.prompts", "actor.rollouts -> mark.rollouts"]
    return bench(everyone, [*own, "mark.scores -> actor.rewards", *edges])


def learned(loop: Any) -> dict[str, Any]:
    return {item.id.removeprefix("actor:"): item.advantages for item in loop.items()}


# --- ReMax


def test_rows_are_compared_with_the_greedy_text_of_their_prompt(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """The script's greedy text ends as its first draw does, and is worth 0 there."""
    rollout = {"completions_per_prompt": 2, "greedy_extra": True}
    loop = loop_of(bench, rows_of, actor, {"name": "remax"}, rollout=rollout)
    loop.hosts.write = lambda prompt, k: prompt + "cb"[k]  # greedy: c, worth 2

    loop.step()

    # 2 and 1 less 2
    assert learned(loop) == {
        f"sums:0.{row}.{k}": value for row in (0, 1) for k, value in enumerate((0.0, -1.0))
    }
    assert loop.outcomes["actor.credit"].detail["without_greedy"] == 0


def test_a_row_whose_greedy_text_has_no_score_leaves_the_update(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    rollout = {"completions_per_prompt": 1, "greedy_extra": True}
    code = (
        "def reward(prompts, completions, greedy, **columns):\n"
        "    return [None if g and p == 'q' else 1.0 for p, g in zip(prompts, greedy)]\n"
    )
    picky = {"kind": "reward", "source": {"type": "python", "code": code}}
    loop = loop_of(bench, rows_of, actor, {"name": "remax"}, rollout=rollout, nodes={"mark": picky})

    loop.step()

    assert learned(loop) == {"sums:0.0.0": 0.0}
    assert loop.outcomes["actor.credit"].detail["without_greedy"] == 1


def test_drawn_rows_are_compared_with_the_greedy_text_of_their_prompt(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    rollout = {"completions_per_prompt": 2, "greedy_extra": True}
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": {**actor(), "algorithm": {"name": "remax"}, "rollout": rollout},
        "mark": ENDS,
        "drawn": {"kind": "filter", "resample": {"weight": "power", "rows": 4}},
    }
    edges = ["sums.rows -> actor.prompts", "actor.rollouts -> mark.rollouts"]
    edges += ["actor.rollouts -> drawn.rollouts", "mark.scores -> drawn.scores"]
    loop = bench(nodes, [*edges, "drawn.scores -> actor.rewards"])
    loop.hosts.write = lambda prompt, k: (
        "b" if loop.hosts.samplings[-1].temperature == 0 else prompt + "ad"[k]
    )

    loop.step()

    # the text worth 0 is never drawn: 3 less 1
    assert learned(loop) == {"sums:0.0.1": 2.0}
    assert loop.outcomes["actor.credit"].detail["without_greedy"] == 0


# --- rows that others wrote


def with_refiner(bench: Bench, rows_of: Any, actor: Any, **off_policy: Any) -> Any:
    """Another writes to the first text of each prompt; what it wrote is scored apart."""
    nodes = {
        "ask": {"kind": "template", "text": "{{ completion }}!"},
        "one": {"kind": "filter", "per_group": {"max": 1, "pick": "first"}},
        "refiner": actor(rollout={"completions_per_prompt": 1}),
        "again": {
            "kind": "reward",
            "source": {
                "type": "python",
                "code": "def reward(prompts, completions, **columns):\n"
                "    return [5.0] * len(completions)\n",
            },
        },
    }
    edges = [
        "actor.rollouts -> one.rollouts",
        "one.rollouts -> ask.rows",
        "ask.rows -> refiner.prompts",
        "refiner.rollouts -> again.rollouts",
        "again.scores -> actor.rewards",
    ]
    algorithm = {"name": "reinforce", "advantage": "group_mean", "off_policy": off_policy}
    return loop_of(bench, rows_of, actor, algorithm, nodes=nodes, edges=edges)


@pytest.mark.parametrize(("prompt", "before"), [("own", "p"), ("as_written", "pa!")])
def test_a_row_of_another_counts_in_the_group_of_the_prompt_that_it_answers(
    prompt: str, before: str, bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = with_refiner(bench, rows_of, actor, shaping=0.1, prompt=prompt)

    loop.step()

    items = {item.id: item for item in loop.items()}
    assert len(items) == 6
    of_p = [item for name, item in items.items() if "sums:0.0" in name]
    # 0, 1 and 5: mean 2
    assert [item.advantages for item in of_p] == [-2.0, -1.0, 3.0]
    assert [item.numbers["of_others"] for item in of_p] == [0.0, 0.0, 1.0]
    stranger = of_p[2]
    assert stranger.writer == ""  # of the script's own; the row is the refiner's
    assert "".join(map(chr, stranger.token_ids[: stranger.prompt_length])) == before
    detail = loop.outcomes["actor.credit"].detail
    assert (detail["groups"], detail["group_size"], detail["without_prompt"]) == (2, 3, 0)
    assert detail["edges"]["again.scores->actor.rewards"] == {"delivered": 2, "none": 0}


def test_without_off_policy_rows_of_others_are_ignored(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = with_refiner(bench, rows_of, actor, shaping=0.1)
    changed = loop.spec.model_copy(deep=True)
    entry = changed.nodes["actor"].algorithm
    object.__setattr__(entry, "off_policy", None)
    loop.stand(spec=changed)

    loop.step()

    assert set(learned(loop).values()) == {-0.5, 0.5}


# --- several algorithms


def test_every_algorithm_of_a_port_has_advantages_of_its_own(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    algorithm = {"rewards": [PLAIN, {"name": "rloo", "weight": 0.5}, {"name": "dr_grpo"}]}
    loop = loop_of(bench, rows_of, actor, algorithm, prompts="p")

    loop.step()

    first, second = loop.items()
    assert (first.advantages, second.advantages) == (0.0, 1.0)
    assert (first.numbers["advantages.1"], second.numbers["advantages.1"]) == (-1.0, 1.0)
    assert (first.numbers["advantages.2"], second.numbers["advantages.2"]) == (-0.5, 0.5)
    metrics = loop.outcomes["actor.credit"].metrics
    assert metrics["advantage/mean"] == 0.5  # of the first


def test_a_row_that_only_one_algorithm_takes_is_there_for_that_one(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """One compares with the greedy text, which has a score for one prompt alone."""
    rollout = {"completions_per_prompt": 1, "greedy_extra": True}
    code = (
        "def reward(prompts, completions, greedy, **columns):\n"
        "    return [None if g and p == 'q' else 1.0 for p, g in zip(prompts, greedy)]\n"
    )
    picky = {"kind": "reward", "source": {"type": "python", "code": code}}
    algorithm = {"rewards": [{"name": "remax"}, PLAIN]}
    loop = loop_of(bench, rows_of, actor, algorithm, rollout=rollout, nodes={"mark": picky})

    loop.step()

    found = {item.id: (item.advantages, dict(item.numbers)) for item in loop.items()}
    assert found == {
        "actor:sums:0.0.0": (0.0, {"advantages.1": 1.0}),
        "actor:sums:0.1.0": (None, {"advantages.1": 1.0}),
    }


# --- class weights


def by_class(bench: Bench, rows_of: Any, actor: Any, **weights: Any) -> Any:
    credit = {"class_weights": {"by": "mark", **weights}}
    rollout = {"completions_per_prompt": 4}
    return loop_of(bench, rows_of, actor, PLAIN, prompts="p", rollout=rollout, credit=credit)


def test_rare_classes_weigh_more_and_frequencies_last(
    bench: Bench, rows_of: Any, actor: Any, through_files: Any
) -> None:
    loop = by_class(bench, rows_of, actor, ema=0.5)
    loop.hosts.write = lambda prompt, k: prompt + "bccc"[k]  # 1, 2, 2, 2

    loop.step()

    # shares 1/4 and 3/4: weights 2/m and 2/√3/m, m = √(1/4) + √(3/4)
    mean = math.sqrt(0.25) + math.sqrt(0.75)
    rare, frequent = 2 / mean, 2 / math.sqrt(3) / mean
    assert [*learned(loop).values()] == near([rare, *[2 * frequent] * 3])
    metrics = loop.outcomes["actor.credit"].metrics
    assert (metrics["class/1"], metrics["class/2"]) == (0.25, 0.75)

    role = loop.roles["credit:actor"]
    kept = through_files(role.state())
    loop.hosts.write = lambda prompt, k: prompt + "bbbb"[k]
    loop.step(2)
    again = loop.outcomes["actor.credit"].metrics
    role.load_state(kept)
    loop.step(2)

    # half of the old shares, half of 1 and 0
    assert (again["class/1"], again["class/2"]) == near((0.625, 0.375))
    assert loop.outcomes["actor.credit"].metrics == again


def test_a_row_without_a_class_weighs_as_ever(bench: Bench, rows_of: Any, actor: Any) -> None:
    code = (
        "def reward(prompts, completions, **columns):\n"
        "    return [None if c[-1] == 'a' else 1.0 for c in completions]\n"
    )
    nodes = {"kind_of": {"kind": "reward", "source": {"type": "python", "code": code}}}
    nodes["sum"] = {
        "kind": "reward",
        "source": {"type": "builtin", "name": "weighted", "weights": {"mark": 1.0}},
    }
    loop = loop_of(
        bench,
        rows_of,
        actor,
        PLAIN,
        prompts="p",
        nodes=nodes,
        edges=["actor.rollouts -> kind_of.rollouts", "kind_of.scores -> actor.rewards"],
        credit={"class_weights": {"by": "kind_of"}},
    )

    loop.step()

    # one class alone has weight 1: 0 and 1 + 1
    assert [*learned(loop).values()] == [0.0, 2.0]


# --- balance


@pytest.mark.parametrize(
    ("to", "expected"),
    [(2, {"b": 0, "c": 1, "d": 1, "a": 0}), (6, {"d": 2, "c": 2, "b": 1, "a": 1})],
)
def test_as_many_rows_as_are_wanted_stand_in_the_update(
    to: int, expected: dict[str, int], bench: Bench, rows_of: Any, actor: Any
) -> None:
    credit = {"balance": {"per": "role", "to": to, "by": "advantage"}}
    rollout = {"completions_per_prompt": 4}
    loop = loop_of(bench, rows_of, actor, PLAIN, prompts="p", rollout=rollout, credit=credit)

    loop.step()

    counts = {chr(item.token_ids[-1]): item.count for item in loop.items()}
    assert counts == {sign: count for sign, count in expected.items() if count}


def test_rows_of_a_role_stay_by_the_size_of_what_they_teach(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """Of 1, 0, -1 and -2 for each of two prompts, the two of all that are farthest from 0."""
    code = (
        "def reward(prompts, completions, **columns):\n"
        "    return [1.0 - 'abcd'.index(c[-1]) for c in completions]\n"
    )
    nodes = {"mark": {"kind": "reward", "source": {"type": "python", "code": code}}}
    credit = {"balance": {"per": "role", "to": 2, "by": "advantage"}}
    rollout = {"completions_per_prompt": 4}
    loop = loop_of(bench, rows_of, actor, PLAIN, nodes=nodes, rollout=rollout, credit=credit)

    loop.step()

    assert learned(loop) == {"sums:0.0.3": -2.0, "sums:0.1.3": -2.0}


@pytest.mark.slow
def test_random_rows_stay_as_the_seed_says(bench: Bench, rows_of: Any, actor: Any) -> None:
    credit = {"balance": {"per": "prompt", "to": 2}}
    rollout = {"completions_per_prompt": 4}

    def kept(step: int) -> list[str]:
        loop = loop_of(bench, rows_of, actor, PLAIN, rollout=rollout, credit=credit)
        loop.step(step)
        return [item.id for item in loop.items()]

    draws = [kept(step) for step in range(1, 6)]
    assert kept(1) == draws[0]
    assert len({*map(tuple, draws)}) > 1
    for ids in draws:
        assert len([one for one in ids if "sums:0.0" in one]) == 2
        assert len([one for one in ids if "sums:0.1" in one]) == 2


# --- KL in the reward


def adapting(bench: Bench, rows_of: Any, actor: Any, **kl: Any) -> Any:
    own = {"coefficient": 0.1, "into": "reward", "estimator": "k1", "target": 0.1, "horizon": 4}
    algorithm = {**PLAIN, "kl": {**own, **kl}}
    nodes = {"start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}}}
    edges = ["actor.rollouts -> start.rollouts", "start.log_probs -> actor.reference"]
    return loop_of(bench, rows_of, actor, algorithm, nodes=nodes, edges=edges)


def test_a_coefficient_in_the_reward_follows_its_target(
    bench: Bench, rows_of: Any, actor: Any, through_files: Any
) -> None:
    """The script writes at −0.5, its reference says −0.25: k1 is −0.25 at each token, far below the
    target, so with 4 rows and a horizon of 4 the coefficient falls by a fifth each step."""
    loop = adapting(bench, rows_of, actor)
    role = loop.roles["credit:actor"]

    found = []
    for step in (1, 2, 3):
        kept, memory = through_files(role.state()), role.remember()
        loop.step(step)
        found.append(dict(loop.outcomes["actor.credit"].metrics))

    assert [one["kl/coefficient"] for one in found] == near([0.1, 0.08, 0.064])
    assert [one["kl/penalty"] for one in found] == near([-0.025, -0.02, -0.016])
    role.recall(memory)
    loop.step(3)
    assert loop.outcomes["actor.credit"].metrics == found[2]
    role.load_state(kept)
    loop.step(3)
    assert loop.outcomes["actor.credit"].metrics == found[2]


def test_without_a_target_the_coefficient_stays(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = adapting(bench, rows_of, actor, target=None)

    loop.step(1)
    loop.step(2)

    metrics = loop.outcomes["actor.credit"].metrics
    assert metrics["kl/penalty"] == near(-0.025)
    assert "kl/coefficient" not in metrics
