"""Names of algorithms, what they stand for, and what a node does with its ports."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from coloop.spec.algorithm import (
    DISTILLATION_NAMES,
    PREFERENCE_NAMES,
    REWARDS_NAMES,
    BradleyTerry,
    Correction,
    Kl,
    PreferenceAlgorithm,
    ResolvedPreference,
    RewardsAlgorithm,
    RewardsName,
    Sft,
    node_algorithms,
    reads,
    resolve_algorithm,
    resolve_pairs_algorithm,
    resolve_rewards_algorithm,
)
from coloop.spec.algorithms.registry import PRESETS, family_of
from coloop.spec.io import parse


def rewards(**fields: object) -> RewardsAlgorithm:
    """A section as YAML would give it."""
    return RewardsAlgorithm.model_validate(fields)


def test_every_name_has_a_preset_and_every_preset_a_name() -> None:
    assert set(PRESETS) == {*REWARDS_NAMES, *PREFERENCE_NAMES, *DISTILLATION_NAMES}


@pytest.mark.parametrize("name", REWARDS_NAMES)
def test_every_rewards_preset_resolves_to_a_complete_algorithm(name: str) -> None:
    full = resolve_rewards_algorithm(rewards(name=name), max_new_tokens=64)

    assert full.family in get_args(RewardsName)
    assert full.divisor == 64
    assert (full.clip_low is None) == (full.clip_high is None)
    assert full.loss in ("cispo", "dppo") or full.ratio_max is None
    assert full.loss != "cispo" or full.ratio_max is not None
    over_tokens = full.loss == "sequence_clipped" and full.aggregation == "token_mean"
    assert over_tokens is (name == "verl-gspo")
    assert (full.old_policy, full.correction.method) != ("engine", "token_tis")


@pytest.mark.parametrize("name", PREFERENCE_NAMES)
def test_every_preference_preset_resolves(name: str) -> None:
    full = resolve_pairs_algorithm(PreferenceAlgorithm.model_validate({"name": name}))

    assert isinstance(full, ResolvedPreference)
    assert full.beta > 0


def test_our_grpo_has_the_defaults_of_the_algorithms_page() -> None:
    full = resolve_rewards_algorithm(rewards(name="grpo"))

    assert (full.advantage, full.loss, full.aggregation) == (
        "group_mean_std",
        "clipped",
        "token_mean",
    )
    assert (full.clip_low, full.clip_high, full.dual_clip) == (0.2, 0.2, None)
    assert (full.epsilon, full.deviation, full.kl) == (1e-6, "unbiased", None)
    assert (full.correction.method, full.correction.max) == ("token_tis", 2.0)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("dr_grpo", {"advantage": "group_mean", "aggregation": "constant", "deviation": "none"}),
        ("dapo", {"clip_low": 0.2, "clip_high": 0.28, "aggregation": "token_mean"}),
        ("gspo", {"clip_low": 3e-4, "clip_high": 4e-4, "aggregation": "sequence_mean"}),
        ("rloo", {"advantage": "leave_one_out"}),
        ("opo", {"advantage": "length_weighted", "loss": "policy_gradient"}),
        ("reinforce", {"advantage": "discounted_return", "clip_low": None, "whiten": False}),
        ("reinforce_pp_baseline", {"advantage": "group_mean", "whiten": True}),
        ("ppo", {"advantage": "gae", "gae_lambda": 1.0, "whiten": True}),
        ("vapo", {"advantage": "gae", "length_alpha": 0.05, "clip_high": 0.28}),
        ("pf_ppo", {"advantage": "gae", "gae_lambda": 1.0, "whiten": True, "clip_high": 0.2}),
        ("trl-grpo", {"epsilon": 1e-4, "aggregation": "token_mean", "family": "grpo"}),
        ("verl-grpo", {"epsilon": 1e-6, "dual_clip": 3.0}),
        ("verl-cispo", {"ratio_min": 0.8, "ratio_max": 1.2}),
        ("openrlhf-grpo", {"epsilon": 1e-9, "reward_clip": 10.0}),
        ("openrlhf-reinforce-pp", {"family": "reinforce_pp", "whiten_deviation": "population"}),
        ("nemo-grpo", {"advantage": "leave_one_out", "deviation": "leave_one_out"}),
        ("trl-ppo", {"gae_lambda": 0.95}),
        ("trl-luspo", {"loss": "sequence_clipped", "aggregation": "sequence_sum"}),
        ("verl-gspo", {"loss": "sequence_clipped", "aggregation": "token_mean"}),
        ("verl-gdpo", {"combine": "separate_advantages", "whiten": True}),
        ("verl-dppo_kl", {"divergence": "kl", "divergence_low": 0.2, "ratio_max": 3.0}),
        ("nemo-ppo", {"gae_lambda": 0.95, "clip_high": 0.28, "dual_clip": 10.0, "kl": None}),
        (
            "prime-grpo",
            {
                "advantage": "group_mean",
                "loss": "dppo",
                "divergence_high": 0.2,
                "ratio_max": None,
                "old_policy": "engine",
                "ratio_penalty": 1e-3,
            },
        ),
        ("prime-max_rl", {"family": "maxrl", "advantage": "mean_normalised", "loss": "dppo"}),
        ("prime-rae", {"family": "rae", "advantage": "moving_average", "baseline_decay": 0.95}),
        ("gdpo", {"combine": "normalize_then_sum", "advantage": "group_mean_std"}),
    ],
)
def test_a_name_stands_for_these_values(name: str, facts: dict[str, object]) -> None:
    full = resolve_rewards_algorithm(rewards(name=name))

    assert {field: getattr(full, field) for field in facts} == facts


def test_parity_presets_keep_the_kl_and_correction_of_their_framework() -> None:
    openrlhf = resolve_rewards_algorithm(rewards(name="openrlhf-ppo"))
    nemo = resolve_rewards_algorithm(rewards(name="nemo-grpo"))
    trl = resolve_rewards_algorithm(rewards(name="trl-grpo"))

    assert openrlhf.kl is not None
    assert (openrlhf.kl.coefficient, openrlhf.kl.estimator, openrlhf.kl.into) == (
        0.01,
        "k1",
        "reward",
    )
    assert nemo.kl is not None
    assert (nemo.kl.coefficient, nemo.kl.estimator, nemo.kl.into) == (0.01, "k3", "loss")
    assert trl.kl is None
    assert (trl.correction.method, trl.correction.max) == ("sequence_mask", 3.0)
    assert openrlhf.correction.method == "none"


@pytest.mark.parametrize(
    ("name", "written", "estimator", "by_ratio"),
    [
        ("trl-grpo", {"coefficient": 0.04}, "k3", True),
        ("trl-grpo", {"coefficient": 0.04, "by_ratio": False}, "k3", False),
        ("trl-grpo", {"into": "reward"}, "k1", False),
        ("verl-grpo", {}, "k3", False),
        ("nemo-grpo", {"coefficient": 0.04}, "k3", False),
        ("grpo", {}, "k2", False),
    ],
)
def test_a_written_kl_has_the_form_of_the_framework(
    name: str, written: dict[str, object], estimator: str, by_ratio: bool
) -> None:
    kl = resolve_rewards_algorithm(rewards(name=name, kl=written)).kl

    assert kl is not None
    assert (kl.estimator, kl.by_ratio) == (estimator, by_ratio)


def test_a_framework_that_clips_texts_over_tokens_may_say_so() -> None:
    assert rewards(name="verl-gspo", aggregation="token_mean").aggregation == "token_mean"
    with pytest.raises(ValidationError, match="a ratio of sequences needs `sequence_mean`"):
        rewards(name="gspo", aggregation="token_mean")


def test_what_is_written_beats_the_preset_and_null_differs_from_silence() -> None:
    full = resolve_rewards_algorithm(
        rewards(name="ppo", clip_high=None, clip_low=None, whiten=False, gamma=None, kl=None)
    )

    assert (full.clip_low, full.clip_high, full.whiten) == (None, None, False)
    assert full.gamma == 1.0
    assert resolve_rewards_algorithm(rewards(name="openrlhf-ppo", kl=None)).kl is None


def test_a_partly_written_section_is_filled_from_the_preset() -> None:
    full = resolve_rewards_algorithm(rewards(name="openrlhf-ppo", kl={"coefficient": 0.5}))

    assert full.kl is not None
    assert (full.kl.coefficient, full.kl.estimator, full.kl.into) == (0.5, "k1", "reward")


@pytest.mark.parametrize(("into", "estimator"), [("loss", "k2"), ("reward", "k1")])
def test_the_estimator_follows_where_the_kl_goes(into: str, estimator: str) -> None:
    entry = rewards(name="grpo", kl={"coefficient": 0.1, "into": into})

    kl = resolve_rewards_algorithm(entry).kl

    assert kl is not None
    assert kl.estimator == estimator


def test_another_method_of_correction_has_its_own_cap() -> None:
    icepop = resolve_rewards_algorithm(rewards(name="grpo", correction={"method": "icepop"}))
    none = resolve_rewards_algorithm(rewards(name="grpo", correction=None))

    assert (icepop.correction.method, icepop.correction.max) == ("icepop", 5.0)
    assert (none.correction.method, none.correction.max) == ("none", None)


def test_what_an_algorithm_reads_follows_from_its_settings() -> None:
    assert reads(rewards(name="grpo")) == frozenset()
    assert reads(rewards(name="grpo", kl={"coefficient": 0.1})) == {"reference"}
    assert reads(rewards(name="openrlhf-ppo")) == {"reference", "values"}
    assert reads(PreferenceAlgorithm.model_validate({"name": "dpo"})) == {"reference"}
    assert reads(PreferenceAlgorithm.model_validate({"name": "simpo"})) == frozenset()
    assert reads(Sft(name="sft")) == frozenset()


def test_groups_greedy_rows_and_values_are_wanted_by_those_that_use_them() -> None:
    def full(name: str) -> object:
        return resolve_rewards_algorithm(rewards(name=name))

    needs = ("needs_group", "needs_greedy", "needs_values")
    assert [getattr(full("grpo"), need) for need in needs] == [True, False, False]
    assert [getattr(full("remax"), need) for need in needs] == [False, True, False]
    assert [getattr(full("ppo"), need) for need in needs] == [False, False, True]
    assert [getattr(full("reinforce"), need) for need in needs] == [False, False, False]


def test_a_scorers_algorithm_is_complete_as_it_is() -> None:
    entry = BradleyTerry(name="bradley_terry")

    assert resolve_algorithm(entry) is entry


@pytest.mark.parametrize(
    ("name", "family"),
    [("grpo", "grpo"), ("trl-grpo", "grpo"), ("verl-spin", "spin"), ("trl-sapo", "grpo")],
)
def test_a_parity_preset_belongs_to_a_family(name: str, family: str) -> None:
    assert family_of(name) == family


SHORT = """\
coloop: 1
name: short
nodes:
  data: {{kind: dataset, source: {{type: task, task: preference}}}}
  scorer: {{kind: reward, source: {{type: model}}, model: {{type: pretrained, path: x}},
           algorithm: {algorithm}}}
edges: [{edges}]
schedule: {{steps: 1}}
"""


def algorithms(algorithm: str, *edges: str) -> dict[str, list[str]]:
    """Names of the scorer's algorithms by port."""
    found = parse(SHORT.format(algorithm=algorithm, edges=", ".join(edges)))
    assert found.spec is not None, found.diagnostics
    by_port = node_algorithms(found.spec, "scorer")
    return {port: [entry.name for entry in entries] for port, entries in by_port.items()}


def test_the_short_form_serves_the_port_that_is_connected() -> None:
    pairs = "data.pairs -> scorer.pairs"
    labels = "data.rows -> scorer.labels"

    assert algorithms("{name: bradley_terry}", pairs) == {"pairs": ["bradley_terry"]}
    assert algorithms("{name: label_ce}", labels) == {"labels": ["label_ce"]}
    assert algorithms("{name: label_ce}", pairs, labels) == {
        "pairs": ["label_ce"],
        "labels": ["label_ce"],
    }
    assert algorithms("{name: bradley_terry}") == {"pairs": ["bradley_terry"]}


def test_the_long_form_may_have_several_at_one_port() -> None:
    both = (
        "{pairs: [{name: bradley_terry}, {name: label_ce, weight: 0.1}], labels: {name: outcome}}"
    )

    assert algorithms(both) == {"pairs": ["bradley_terry", "label_ce"], "labels": ["outcome"]}


def test_a_node_without_an_algorithm_has_none() -> None:
    assert algorithms("null") == {}


def test_sections_can_be_made_in_python() -> None:
    entry = RewardsAlgorithm(
        name="grpo", kl=Kl(coefficient=0.1), correction=Correction(method="none")
    )

    full = resolve_rewards_algorithm(entry)

    assert (full.kl.coefficient if full.kl else None, full.correction.method) == (0.1, "none")
