"""Credit of several rewards: literal numbers for every way to combine them."""

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.numerics import near
from tests.engine.recipes.literals import literal, literals

from coloop.algorithms.recipes import recipe_of
from coloop.algorithms.recipes.credit import GROUP_OF_ONE
from coloop.algorithms.recipes.estimators import GroupedRewards, normalise_over_batch
from coloop.algorithms.recipes.protocol import EdgeScores
from coloop.algorithms.recipes.rows import CreditBatch
from coloop.spec.algorithm import (
    ResolvedRewards,
    RewardsAlgorithm,
    resolve_rewards_algorithm,
)
from coloop.spec.training import Credit

Score = float | None | Mapping[int, float]


def settings(name: str = "grpo", **fields: Any) -> ResolvedRewards:
    return resolve_rewards_algorithm(
        RewardsAlgorithm.model_validate({"name": name, **fields}), max_new_tokens=8
    )


def rows(
    *edges: tuple[str, float, list[Score]],
    groups: list[int] | None = None,
    lengths: list[int] | None = None,
    **fields: Any,
) -> CreditBatch:
    size = len(edges[0][2])
    sizes = lengths or [2] * size
    return CreditBatch(
        edges=[EdgeScores(name=name, weight=weight, scores=said) for name, weight, said in edges],
        groups=groups or [0] * size,
        loss_masks=[[True] * length for length in sizes],
        **fields,
    )


def run(given: CreditBatch, algorithm: ResolvedRewards, **credit: Any) -> CreditBatch:
    recipe: Any = recipe_of(algorithm)
    output: CreditBatch = recipe.credit(given, algorithm, Credit.model_validate(credit))
    returns = None if output.returns is None else tuple(map(listed, output.returns))
    return replace(output, advantages=tuple(map(listed, output.advantages)), returns=returns)


def listed(numbers: Any) -> Any:
    """An array as a list."""
    return numbers.tolist() if isinstance(numbers, np.ndarray) else numbers


SCORES: list[Score] = [1.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5]
TWO_GROUPS = [0, 0, 0, 0, 1, 1, 1, 1]
LENGTHS = [3, 1, 2, 4, 2, 2, 1, 3]

GOLDEN = {
    "grpo": (1.499997, -0.499999, 0.0),
    "verl-grpo": (1.499997, -0.499999, 0.0),
    "trl-grpo": (1.499700, -0.499900, 0.0),
    "nemo-grpo": (1.0, -0.577349, 0.0),
    "dr_grpo": (0.75, -0.25, 0.0),
    "dppo": (0.75, -0.25, 0.0),
    "rloo": (1.0, -0.333333, 0.0),
    "verl-rloo": (1.0, -0.333333, 0.0),
    "opo": (0.7, -0.3, 0.0),
    "reinforce_pp_baseline": (2.049461, -0.788254, -0.078825),
    "verl-reinforce_pp_baseline": (2.049461, -0.788254, -0.078825),
    "nemo-reinforce_pp_baseline": (2.108878, -0.811107, -0.081111),
    "reinforce_pp": (1.669510, -1.062415, 0.303547),
    "verl-reinforce_pp": (1.669510, -1.062415, 0.303547),
}


@pytest.mark.parametrize("name", GOLDEN)
@literals(GOLDEN)
def test_presets_give_the_advantages_of_their_frameworks(name: str) -> None:
    first, others, equal = GOLDEN[name]

    output = run(rows(("exact", 1.0, SCORES), groups=TWO_GROUPS, lengths=LENGTHS), settings(name))

    assert list(output.advantages) == near([first, *[others] * 3, *[equal] * 4], digits=6)


# mean 1/4, unbiased deviation sqrt((9/16 + 3/16) / 3) = 1/2, epsilon 1e-6
OF_GRPO = dict.fromkeys(
    ("dapo", "gspo", "cispo", "vespo", "luspo"), (0.75 / 0.500001, -0.25 / 0.500001)
)


@pytest.mark.parametrize("name", OF_GRPO)
@literals(OF_GRPO)
def test_algorithms_that_are_a_loss_take_the_advantages_of_grpo(name: str) -> None:
    first, others = OF_GRPO[name]

    output = run(rows(("exact", 1.0, SCORES), groups=TWO_GROUPS, lengths=LENGTHS), settings(name))

    assert list(output.advantages) == near([first, *[others] * 3, *[0.0] * 4])


OPENRLHF = {
    "openrlhf-reinforce-pp-baseline": (2.108878, -0.811107, -0.081111),
    "openrlhf-reinforce-pp": (1.717911, -1.093216, 0.312348),
    "openrlhf-rloo": (1.0, -0.333333, 0.0),
    "openrlhf-grpo": (1.5, -0.5, 0.0),  # a deviation of exactly 1/2, plus 1e-9
}


@pytest.mark.parametrize("name", OPENRLHF)
@literals(OPENRLHF)
def test_openrlhf_presets_without_their_kl(name: str) -> None:
    first, others, equal = OPENRLHF[name]

    output = run(
        rows(("exact", 1.0, SCORES), groups=TWO_GROUPS, lengths=LENGTHS), settings(name, kl=None)
    )

    assert list(output.advantages) == near([first, *[others] * 3, *[equal] * 4], digits=6)


def test_the_best_of_a_group_is_scaled_once() -> None:
    given = rows(("exact", 1.0, SCORES), groups=TWO_GROUPS, lengths=LENGTHS)

    output = run(given, settings("grpo", advantage="best_minus_second"))

    # (1 - 0) / (0.5 + 1e-6): verl's pass@k
    assert list(output.advantages) == near([1.999996, *[0.0] * 7], digits=6)


def test_the_best_of_a_group_may_stay_unscaled() -> None:
    given = rows(("exact", 1.0, [3.0, 1.0, 0.0]))

    output = run(given, settings("grpo", advantage="best_minus_second", deviation="none"))

    assert output.advantages == (2.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openrlhf-grpo", (0.7071068, -0.7071068)),
        ("openrlhf-dr_grpo", (0.5, -0.5)),
        ("openrlhf-rloo", (1.0, -1.0)),
    ],
)
def test_openrlhf_takes_the_kl_of_each_token_after_the_baseline(
    name: str, expected: tuple[float, float]
) -> None:
    kl = {"coefficient": 0.5, "estimator": "k1"}
    given = rows(("a", 1.0, [1.0, 0.0]), log_prob_differences=[[0.2, 0.4], [0.0, 0.0]])

    output = run(given, settings(name, kl=kl))

    # a token looks ahead: 0.5 * (0.2 + 0.4) at the first, 0.5 * 0.4 at the second
    first, second = expected
    assert output.advantages[0] == near([first - 0.3, first - 0.2])
    assert output.advantages[1] == near(second)


@pytest.mark.parametrize("combine", ["sum_then_normalize", "separate_advantages"])
def test_openrlhf_clips_after_the_baseline(combine: str) -> None:
    given = rows(("a", 1.0, [30.0, 26.0, 1.0]))
    fields = {"kl": None, "reward_clip": 10.0}

    after = run(given, settings("openrlhf-dr_grpo", **fields), combine=combine)
    before = run(given, settings("dr_grpo", **fields), combine=combine)

    assert after.advantages == (10.0, 7.0, -10.0)  # 11, 7, -18 around the mean 19
    assert before.advantages == (3.0, 3.0, -6.0)  # 10, 10, 1 around the mean 7


@pytest.mark.parametrize("combine", ["sum_then_normalize", "normalize_then_sum"])
@pytest.mark.parametrize("missing", ["sum_of_available", "mean_of_available", "skip_row"])
@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "reinforce_pp_baseline", "reinforce"])
def test_weights_one_and_zero_are_the_single_reward_bit_for_bit(
    combine: str, missing: str, name: str
) -> None:
    said: list[Score] = [0.1, 0.7, None, 1 / 3, 0.9, 0.2]
    other: list[Score] = [None, 5.0, 1.0, None, -3.0, 0.1]
    groups = [0, 0, 0, 1, 1, 1]

    alone = run(
        rows(("a", 1.0, said), groups=groups), settings(name), combine=combine, missing=missing
    )
    both = run(
        rows(("a", 1.0, said), ("b", 0.0, other), groups=groups),
        settings(name),
        combine=combine,
        missing=missing,
    )

    assert both.advantages == alone.advantages
    assert both.rewards == alone.rewards


def test_rewards_are_weighted_summed_and_then_normalised() -> None:
    # R = 1·(1, 0, 1, 0) + 0.5·(0, 2, 2, 0) = (1, 1, 2, 0), mean 1
    output = run(
        rows(("a", 1.0, [1.0, 0.0, 1.0, 0.0]), ("b", 0.5, [0.0, 2.0, 2.0, 0.0])),
        settings("dr_grpo"),
    )

    assert output.rewards == (1.0, 1.0, 2.0, 0.0)
    assert output.advantages == (0.0, 0.0, 1.0, -1.0)
    assert output.metrics["reward/a"] == 0.5
    assert output.metrics["reward/b"] == 1.0


def test_what_is_missing_counts_nothing_or_the_mean_or_leaves_the_update() -> None:
    given = rows(
        ("a", 1.0, [1.0, 0.0, None, None]),
        ("b", 3.0, [None, 2.0, 1.0, None]),
    )

    summed = run(given, settings("reinforce"), missing="sum_of_available")
    mean = run(given, settings("reinforce"), missing="mean_of_available")
    skipped = run(given, settings("reinforce"), missing="skip_row")

    assert summed.rewards == (1.0, 6.0, 3.0, None)
    # weighted means: 1·1/1, (0 + 3·2)/4, 3·1/3
    assert mean.rewards == (1.0, 1.5, 1.0, None)
    assert skipped.rewards == (None, 6.0, None, None)
    assert skipped.advantages == (None, 6.0, None, None)
    assert skipped.metrics["rows/without_reward"] == 3.0


def test_gdpo_normalises_each_reward_then_the_sum_over_the_batch() -> None:
    """Rewards of unlike scale weigh alike; two groups of two."""
    small: list[Score] = [0.0, 1.0, 0.0, 0.0]
    large: list[Score] = [0.0, 0.0, 0.0, 100.0]
    groups = [0, 0, 1, 1]

    output = run(
        rows(("small", 1.0, small), ("large", 1.0, large), groups=groups),
        settings("grpo"),
        combine="normalize_then_sum",
    )

    # each normalised in its group: ∓0.7071 where it varies; the sum has mean 0 and std 0.8165
    expected = math.sqrt(0.5) / math.sqrt(4 * 0.5 / 3)
    # The epsilons of both deviations take a millionth each.
    assert list(output.advantages) == near([-expected, expected, -expected, expected], digits=5)


def test_two_events_are_enough_to_normalise_over_the_batch() -> None:
    places = torch.tensor([0, 1])
    values = torch.tensor([1.0, 3.0]).double()
    two = GroupedRewards(rows=places, groups=places, lengths=places, values=values)

    assert normalise_over_batch(two, epsilon=0.0).values.tolist() == near([-(0.5**0.5), 0.5**0.5])


def test_the_three_ways_to_combine_differ() -> None:
    given = rows(
        ("a", 1.0, [1.0, 0.0, 0.0, 0.0]), ("b", 1.0, [0.0, 0.0, 10.0, 20.0]), groups=[0] * 4
    )
    ways = ("sum_then_normalize", "normalize_then_sum", "separate_advantages")

    found = [run(given, settings("grpo"), combine=way).advantages for way in ways]

    # separate: (1.5, -.5, -.5, -.5) + (-.783349, -.783349, .261116, 1.305582)
    assert list(found[2]) == near([0.716651, -1.283349, -0.238884, 0.805582], digits=4)
    assert len({tuple(way) for way in found}) == 3


def test_a_reward_is_normalised_among_the_rows_that_it_scores() -> None:
    given = rows(("a", 1.0, [1.0, 0.0, None]), ("b", 1.0, [0.0, 0.0, 0.0]))

    output = run(given, settings("dr_grpo"), combine="separate_advantages")

    assert output.advantages == (0.5, -0.5, 0.0)


def test_a_group_of_one_gets_nothing_and_an_alert() -> None:
    given = rows(("a", 1.0, [1.0, 0.0, 5.0]), groups=[0, 0, 1])

    warned = run(given, settings("grpo"))
    allowed = run(given, settings("grpo", allow_group_of_one=True))
    without_groups = run(given, settings("reinforce"))

    assert warned.advantages[2] == allowed.advantages[2] == 0.0
    assert [code for code, _ in warned.alerts] == [GROUP_OF_ONE]
    assert "1 of 3 rows" in warned.alerts[0][1]
    assert allowed.alerts == without_groups.alerts == ()
    assert without_groups.advantages[2] == 5.0


def test_a_row_that_is_not_taught_counts_in_the_baseline_alone() -> None:
    """Lengths 1, 3 and 2; the middle one is out of loss, whitening and shown advantages."""
    given = rows(("a", 1.0, [1.0, 0.0, 5.0]), groups=[0, 0, 0], lengths=[1, 3, 2])
    cut = replace(given, taught=[True, False, True])

    plain = run(cut, settings("reinforce", advantage="group_mean"))
    white = run(cut, settings("reinforce_pp_baseline"))

    # the mean of all three is 2; the row's own reward is shown
    assert plain.advantages == (-1.0, None, 3.0)
    assert plain.rewards == (1.0, 0.0, 5.0)
    assert plain.metrics["reward/mean"] == 2.0
    assert plain.metrics["rows/truncated"] == 1.0
    assert plain.metrics["advantage/mean"] == near((-1.0 + 2 * 3.0) / 3)
    assert run(given, settings("reinforce", advantage="group_mean")).advantages[1] == -2.0
    # whitened over the tokens -1, 3, 3: mean 5/3, unbiased variance 16/3
    deviation = math.sqrt(16 / 3)
    assert white.advantages[1] is None
    assert white.advantages[0] == near((-1 - 5 / 3) / deviation)
    assert white.advantages[2] == near((3 - 5 / 3) / deviation)


def test_who_is_taught_is_known_beside_rows_that_nobody_scored() -> None:
    """The same three rows behind one without a score: whitened over the tokens -1, 3, 3."""
    given = replace(
        rows(("a", 1.0, [None, 1.0, 0.0, 5.0]), lengths=[2, 1, 3, 2]),
        taught=[False, True, False, True],
    )

    white = run(given, settings("reinforce_pp_baseline"))

    deviation = math.sqrt(16 / 3)
    assert white.advantages[0] is None
    assert white.advantages[1] == near((-1 - 5 / 3) / deviation)
    assert white.advantages[2] is None
    assert white.advantages[3] == near((3 - 5 / 3) / deviation)


def test_nothing_taught_is_no_error() -> None:
    given = replace(rows(("a", 1.0, [1.0, 0.0])), taught=[False, False])

    assert run(given, settings("reinforce_pp_baseline")).advantages == (None, None)


def test_scores_are_clipped_before_the_baseline() -> None:
    given = rows(("a", 1.0, [100.0, -100.0]))

    output = run(given, settings("dr_grpo", reward_clip=10.0))

    assert output.advantages == (10.0, -10.0)
    assert output.rewards == (100.0, -100.0)


@literal("reinforce")
def test_step_scores_become_rewards_to_go() -> None:
    given = rows(("steps", 1.0, [{0: 1.0, 2: -1.0}, {1: 2.0}]), lengths=[4, 3])

    output = run(given, settings("reinforce"))
    discounted = run(given, settings("reinforce", gamma=0.5))

    assert output.advantages == ([0.0, -1.0, -1.0, 0.0], [2.0, 2.0, 0.0])
    assert discounted.advantages == ([0.75, -0.5, -1.0, 0.0], [1.0, 2.0, 0.0])


def test_process_supervision_normalises_over_all_steps_of_the_group() -> None:
    # three steps 1, 0, 0.5: mean 0.5, std 0.5 -> 1, -1, 0
    given = rows(("steps", 1.0, [{0: 1.0, 1: 0.0}, {1: 0.5}]), lengths=[2, 2])

    output = run(given, settings("grpo", epsilon=0.0))

    assert output.advantages == ([0.0, -1.0], 0.0)


def test_a_step_score_and_a_score_of_the_row_meet() -> None:
    given = rows(("steps", 1.0, [{0: 1.0}]), ("outcome", 2.0, [3.0]), lengths=[3])

    output = run(given, settings("reinforce"))

    assert output.advantages == ([7.0, 6.0, 6.0],)
    assert output.rewards == (7.0,)


def test_a_score_of_the_row_stands_at_its_last_trained_token() -> None:
    given = CreditBatch(
        edges=[EdgeScores(name="a", weight=1.0, scores=[1.0])],
        groups=[0],
        loss_masks=[[True, False, True, False]],
    )

    output = run(given, settings("reinforce", gamma=0.5))

    assert output.advantages == ([0.5, 0.0, 1.0, 0.0],)


def test_kl_in_the_reward_is_one_number_a_row_with_a_group_baseline() -> None:
    kl = {"coefficient": 0.1, "estimator": "k1", "into": "reward"}
    given = rows(
        ("a", 1.0, [1.0, 0.0]), log_prob_differences=[[1.0, 2.0], [0.0, -1.0]], lengths=[2, 2]
    )

    output = run(given, settings("rloo", kl=kl))

    # R - 0.1 Σ k1 = (0.7, 0.1); leave one out: ±0.6
    assert list(output.advantages) == near([0.6, -0.6])
    assert output.metrics["kl/penalty"] == near(0.1 * 2 / 4)


def test_kl_of_a_row_with_steps_is_taken_once_from_its_last_step() -> None:
    kl = {"coefficient": 0.1, "estimator": "k1", "into": "reward"}
    given = rows(
        ("steps", 1.0, [{0: 1.0, 1: 0.0}, {0: 0.0, 1: 1.0}]),
        log_prob_differences=[[1.0, 1.0], [0.0, 0.0]],
    )

    output = run(given, settings("dr_grpo", kl=kl))

    # events 1, 0 - 0.1·2 and 0, 1: mean 0.45; each token gets what follows it
    assert output.advantages[0] == near([0.55 - 0.65, -0.65])
    assert output.advantages[1] == near([-0.45 + 0.55, 0.55])


def test_a_mean_of_normalised_rewards_is_by_absolute_weight() -> None:
    given = rows(("a", 1.0, [1.0, 0.0]), ("b", -3.0, [0.0, 2.0]))

    output = run(
        given,
        settings("dr_grpo"),
        combine="separate_advantages",
        missing="mean_of_available",
    )

    # (0.5 + 3·1) / 4
    assert list(output.advantages) == near([0.875, -0.875])


def test_kl_in_the_reward_is_taken_from_each_token_without_a_baseline() -> None:
    kl = {"coefficient": 0.1, "estimator": "k1", "into": "reward"}
    given = rows(("a", 1.0, [1.0]), log_prob_differences=[[1.0, 2.0]])

    output = run(given, settings("reinforce", kl=kl))

    # token rewards -0.1·1 and 1 - 0.1·2
    assert output.advantages[0] == near([0.7, 0.8])
    with pytest.raises(ValueError, match="reference"):
        run(rows(("a", 1.0, [1.0])), settings("reinforce", kl=kl))


def test_the_mean_of_rewards_counts_weights_by_their_size() -> None:
    """One edge pays, the other fines as much: their weights add up to nothing, their sizes to 2."""
    given = rows(("pays", 1.0, [1.0, 1.0]), ("fines", -1.0, [0.5, None]))

    mean = run(given, settings("reinforce"), missing="mean_of_available")

    assert list(mean.advantages) == near([0.25, 1.0])


@literal("ppo")
def test_gae_gives_advantages_and_returns_over_a_tool_gap() -> None:
    given = CreditBatch(
        edges=[EdgeScores(name="a", weight=1.0, scores=[1.0])],
        groups=[0],
        loss_masks=[[True, True, False, False, True]],
        values=[[0.1, 0.2, 9.0, 9.0, 0.4]],
    )

    output = run(given, settings("ppo", whiten=False, gae_lambda=0.95))

    assert output.returns is not None
    assert output.advantages[0] == near([0.8315, 0.77, 0, 0, 0.6], digits=6)
    assert output.returns[0] == near([0.9315, 0.97, 0, 0, 1.0], digits=6)
    both = replace(
        given,
        edges=[EdgeScores(name="a", weight=1.0, scores=[1.0, 1.0])],
        groups=[0, 0],
        loss_masks=given.loss_masks * 2,
        values=given.values * 2,
        taught=[True, False],
    )
    cut = run(both, settings("ppo", whiten=False, gae_lambda=0.95))
    assert cut.returns == (output.returns[0], None)
    with pytest.raises(ValueError, match="critic"):
        run(rows(("a", 1.0, [1.0])), settings("ppo"))


def test_a_critic_with_a_lambda_of_its_own_learns_other_returns_from_the_same_values() -> None:
    """VAPO's decoupled GAE: advantages by 0, what the critic learns by 1."""
    given = rows(("a", 1.0, [1.0]), lengths=[2], values=[[0.25, 0.5]], critic_lambdas=(1.0, 0.5))

    output = run(given, settings("ppo", whiten=False, gae_lambda=0.0))

    # deltas .5 - .25 and 1 - .5; to the end: .25 + .5 and .5; by a half: .25 + .25 and .5
    assert output.advantages[0] == near([0.25, 0.5])
    assert output.returns is not None
    assert output.returns[0] == near([0.5, 1.0])
    assert output.returns_at[1.0][0] == near([1.0, 1.0])
    assert output.returns_at[0.5][0] == near([0.75, 1.0])


@literal("vapo")
def test_a_text_of_forty_tokens_looks_ahead_by_a_half() -> None:
    """VAPO: 1 - 1 / (alpha * length) with alpha 0.05. Values 0, so each delta but the last is 0;
    not whitened."""
    output = run(rows(("a", 1.0, [1.0]), lengths=[40], values=[[0.0] * 40]), settings("vapo"))

    assert output.advantages[0] == near([0.5 ** (39 - token) for token in range(40)], digits=6)


def test_lambda_follows_the_length_of_each_row() -> None:
    """VAPO: 1 - 1 / (alpha * length)."""
    given = rows(("a", 1.0, [1.0, 1.0]), lengths=[2, 4], values=[[0.1, 0.2], [0.1, 0.2, 0.3, 0.4]])

    adaptive = run(given, settings("vapo", length_alpha=0.5))

    for place, gae_lambda in enumerate((0.0, 0.5)):
        fixed = run(given, settings("ppo", whiten=False, gae_lambda=gae_lambda))
        assert adaptive.advantages[place] == near(fixed.advantages[place], digits=6)


@literal("pf_ppo")
def test_pf_ppo_whitens_rows_as_often_as_they_were_drawn() -> None:
    """One token a row, values 0: advantages are 1 and -1, the first drawn three times. Their mean
    is 1/2, their variance (3 * 1/4 + 9/4) / 3 = 1."""
    given = rows(("a", 1.0, [1.0, -1.0]), lengths=[1, 1], values=[[0.0], [0.0]], counts=[3.0, 1.0])

    output = run(given, settings("pf_ppo"))

    assert list(output.advantages) == near([0.5, -1.5], digits=4)


@literal("remax")
def test_remax_subtracts_the_greedy_score() -> None:
    given = rows(("a", 1.0, [1.0, 0.0]), greedy_scores=[0.25, 0.25])

    assert run(given, settings("remax")).advantages == (0.75, -0.25)
    with pytest.raises(ValueError, match="greedy"):
        run(rows(("a", 1.0, [1.0])), settings("remax"))


def tokens(advantage: float | list[float] | None) -> list[float]:
    """Advantages of a row's two tokens."""
    assert advantage is not None
    return advantage if isinstance(advantage, list) else [advantage] * 2


DRAWN = {
    # rewards 1, 0, 0 drawn 3, 1, 1 times: n 5, mean 0.6, squares 3 (0.4)^2 + 2 (0.6)^2 = 1.2
    "dr_grpo": (0.4, -0.6, -0.6),
    "grpo": (0.4 / math.sqrt(1.2 / 4), -0.6 / math.sqrt(1.2 / 4), -0.6 / math.sqrt(1.2 / 4)),
    # the baseline of a draw is the mean of the 4 others: 2/4 for the first, 3/4 for the rest
    "rloo": (0.5, -0.75, -0.75),
    # lengths 1, 2, 3: baseline 3 * 1 / (3 * 1 + 2 + 3)
    "opo": (0.625, -0.375, -0.375),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_baseline_counts_a_row_as_often_as_it_was_drawn(name: str) -> None:
    given = rows(("a", 1.0, [1.0, 0.0, 0.0]), lengths=[1, 2, 3], counts=[3.0, 1.0, 1.0])

    found = run(given, settings(name))

    assert found.advantages == near(DRAWN[name], digits=5)  # ε is 1e-6 of a deviation


@pytest.mark.parametrize("combine", ["sum_then_normalize", "normalize_then_sum"])
@pytest.mark.parametrize(
    "fields",
    [{}, {"whiten": True}, {"deviation": "batch"}, {"advantage": "best_minus_second"}],
    ids=str,
)
def test_a_row_drawn_twice_is_two_rows(combine: str, fields: dict[str, Any]) -> None:
    steps: list[Score] = [{0: 0.2, 1: 0.5}, {1: 1.0}, {0: 0.1}, {1: 0.3}]
    twice = [*steps[:1], *steps]  # the first row once more
    counted = rows(("a", 1.0, steps), groups=[0, 0, 1, 1], counts=[2.0, 1.0, 1.0, 1.0])
    written = rows(("a", 1.0, twice), groups=[0, 0, 0, 1, 1])

    found = run(counted, settings("grpo", **fields), combine=combine)

    expected = run(written, settings("grpo", **fields), combine=combine).advantages[1:]
    assert [tokens(one) for one in found.advantages] == [near(tokens(one)) for one in expected]


def test_whitening_counts_a_row_as_often_as_it_was_drawn() -> None:
    once = rows(("a", 1.0, [1.0, 0.0, 0.0]), lengths=[1, 1, 1])
    counted = rows(("a", 1.0, [1.0, 0.0]), lengths=[1, 1], counts=[1.0, 2.0])

    expected = run(once, settings("reinforce_pp")).advantages
    found = run(counted, settings("reinforce_pp")).advantages

    assert list(found) == near(list(expected[:2]))


def test_rows_of_other_groups_change_nothing_without_whitening() -> None:
    few = run(rows(("a", 1.0, [0.3, 0.9]), groups=[0, 0]), settings("grpo"))
    many = run(rows(("a", 1.0, [0.3, 7.0, 0.9, -5.0]), groups=[0, 1, 0, 1]), settings("grpo"))

    assert (many.advantages[0], many.advantages[2]) == few.advantages


def test_metrics_say_what_was_rewarded() -> None:
    given = rows(("a", 1.0, [1.0, 0.0, 0.5, 0.5]), groups=[0, 0, 1, 1])

    metrics = run(given, settings("grpo")).metrics

    assert metrics["reward/mean"] == 0.5
    assert metrics["group/zero_variance"] == 0.5
    assert metrics["advantage/mean"] == near(0.0, digits=6)
    assert metrics["advantage/std"] > 0


def test_each_reward_is_shown_as_the_mean_of_what_it_said() -> None:
    given = rows(("a", 1.0, [1.0, 0.0, 0.5]), ("b", 2.0, [None, 0.25, {0: 0.5, 1: 0.25}]))

    metrics = run(given, settings("grpo")).metrics

    assert metrics["reward/a"] == near(0.5)
    assert metrics["reward/b"] == near(0.5)


def test_a_group_without_variance_counts_once_whatever_its_size() -> None:
    given = rows(("a", 1.0, [1.0, 0.0, 0.5, 0.5, 0.5]), groups=[0, 0, 1, 1, 1])

    assert run(given, settings("grpo")).metrics["group/zero_variance"] == near(0.5)


def test_tokens_of_others_between_the_own_ones_bring_nothing() -> None:
    """ReMax with KL in the reward over a gap in which KL and greedy score must not count."""
    given = CreditBatch(
        edges=[EdgeScores(name="a", weight=1.0, scores=[1.0])],
        groups=[0],
        loss_masks=[[True, False, True]],
        log_prob_differences=[[0.5, 90.0, 0.25]],
        greedy_scores=[0.25],
    )
    kl = {"coefficient": 0.1, "into": "reward", "estimator": "k1"}

    output = run(given, settings("remax", kl=kl))

    assert output.advantages[0] == near([1 - 0.05 - 0.025 - 0.25, 0.0, 1 - 0.025 - 0.25], digits=6)
    assert output.metrics["kl/penalty"] == near((0.05 + 0.025) / 2, digits=6)


def test_nothing_scored_is_no_error() -> None:
    for given in (rows(("a", 1.0, [None, None])), rows(("a", 0.0, [1.0, 1.0]))):
        output = run(given, settings("grpo"))
        assert output.advantages == (None, None)
        assert output.metrics["rows/without_reward"] == 2.0


def test_rows_without_a_trained_token_get_zero() -> None:
    given = CreditBatch(
        edges=[EdgeScores(name="a", weight=1.0, scores=[1.0, 0.0])],
        groups=[0, 0],
        loss_masks=[[False, False], [True]],
    )

    output = run(given, settings("dr_grpo"))

    assert output.advantages == (0.0, -0.5)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (rows(("a", 1.0, [1.0, float("nan")])), "row 1 is not finite"),
        (rows(("a", 1.0, [{7: 1.0}])), "token 7 of row 0"),
        (rows(("a", 1.0, [1.0]), counts=[1.0, 2.0]), "counts has 2 rows, expected 1"),
        (rows(("a", 1.0, [1.0]), ("b", 1.0, [1.0, 2.0])), "scores of b has 2 rows"),
    ],
)
def test_broken_input_is_refused_by_name(broken: CreditBatch, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(broken, settings("grpo"))


def test_estimators_see_groups_by_any_hashable_key() -> None:
    keyed = CreditBatch(
        edges=[EdgeScores(name="a", weight=1.0, scores=[1.0, 0.0, 3.0])],
        groups=[("x", 1), ("x", 1), None],
        loss_masks=[[True], [True], [True]],
    )

    assert run(keyed, settings("dr_grpo")).advantages == (0.5, -0.5, 0.0)


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "reinforce"])
def test_rows_that_earn_once_learn_the_same_beside_a_row_that_earns_twice(name: str) -> None:
    draw = random.Random(name)
    masks = [[draw.random() < 0.6 for _ in range(draw.randint(1, 6))] for _ in range(24)]
    scores: list[Score] = [draw.choice([0.0, 1.0, draw.random(), None]) for _ in masks]
    groups = [place // 6 for place in range(24)]
    alone = CreditBatch(
        edges=[EdgeScores(name="exact", weight=0.7, scores=scores)],
        groups=groups,
        loss_masks=[np.array(mask) for mask in masks],
    )
    twice = replace(
        alone,
        edges=[EdgeScores(name="exact", weight=0.7, scores=[*scores, {0: 1.0, 2: 0.5}])],
        groups=[*groups, 99],
        loss_masks=[*alone.loss_masks, np.ones(3, dtype=np.bool_)],
    )

    found, beside = run(alone, settings(name)), run(twice, settings(name))

    assert found.advantages == beside.advantages[:-1]
    assert found.rewards == beside.rewards[:-1]
    assert any(advantage for advantage in found.advantages)


def test_nothing_is_padded_where_rows_earn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError("rows are padded to one length")

    monkeypatch.setattr("coloop.algorithms.recipes.rows.pad", refuse)

    output = run(rows(("exact", 1.0, SCORES), groups=TWO_GROUPS, lengths=LENGTHS), settings())

    assert list(output.advantages[:2]) == near([1.499997, -0.499999], digits=6)
