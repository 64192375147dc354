"""Parity presets: our algorithms with the defaults of other frameworks.

`trl-grpo` is GRPO as TRL has it, under the framework's own name for it. The versions of which the
source was read stand in `algorithms/recipes/README.md`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from coloop.spec.algorithms.policies import BY_SEQUENCE
from coloop.spec.plugins import ARXIV, AlgorithmRecord, Fields, RecipeName

FRAMEWORKS: Final[dict[str, str]] = {
    "trl": "TRL",
    "verl": "verl",
    "openrlhf": "OpenRLHF",
    "nemo": "NeMo RL",
}
"""By prefix, the name of a framework."""

Preset = Mapping[str, Any]

_NO_CORRECTION: Preset = {"correction": {"method": "none"}}
_NO_CLIP: Preset = {"clip_low": None, "clip_high": None}
_KL_IN_REWARD: Preset = {"kl": {"coefficient": 0.05, "estimator": "k1", "into": "reward"}}
_TRL: Preset = {"correction": {"method": "sequence_mask", "max": 3.0}, "epsilon": 1.0e-4}
_OPENRLHF: Preset = {
    **_NO_CORRECTION,
    "reward_clip": 10.0,
    "whiten_deviation": "population",
    "kl": {"coefficient": 0.01, "estimator": "k1", "into": "reward"},
}
_NEMO: Preset = {
    **_NO_CORRECTION,
    "whiten_deviation": "population",
    "kl": {"coefficient": 0.01, "estimator": "k3", "into": "loss"},
}
_GROUP: Preset = {"advantage": "group_mean_std"}
_OTHERS: Preset = {"advantage": "leave_one_out", "deviation": "leave_one_out"}
_WHITENED_GAE: Preset = {"advantage": "gae", "whiten": True}
_WHITENED_RETURN: Preset = {"advantage": "discounted_return", "whiten": True}
_WHITENED_GROUP: Preset = {"advantage": "group_mean", "whiten": True}
_CISPO: Preset = {**_GROUP, **_NO_CLIP, "loss": "cispo"}
_DR_GRPO: Preset = {"advantage": "group_mean", "aggregation": "constant"}
_TEXT_RATIO: Preset = {
    **_NO_CORRECTION,
    **BY_SEQUENCE,
    **_KL_IN_REWARD,
    "advantage": "leave_one_out",
    "reduce": "sum",
}
_SAPO: Preset = {**_GROUP, **_NO_CLIP, "loss": "sapo", "aggregation": "sequence_mean"}
_DUAL: Preset = {**_NO_CORRECTION, "dual_clip": 3.0}

_REWARDS: Final[Mapping[str, Preset]] = {
    "trl-grpo": {**_TRL, **_GROUP},
    "trl-dr_grpo": {**_TRL, **_DR_GRPO},
    "trl-gspo": {**_TRL, **BY_SEQUENCE, **_GROUP},
    "trl-cispo": {**_TRL, **_CISPO, "ratio_min": 0.0, "ratio_max": 5.0},
    "trl-sapo": {**_TRL, **_SAPO},
    "trl-rloo": _TEXT_RATIO,
    "trl-ppo": {**_NO_CORRECTION, **_WHITENED_GAE, **_KL_IN_REWARD, "gae_lambda": 0.95},
    "verl-grpo": {**_DUAL, **_GROUP},
    "verl-dr_grpo": {**_DUAL, **_DR_GRPO},
    "verl-dapo": {**_NO_CORRECTION, **_GROUP, "clip_high": 0.28, "dual_clip": 10.0},
    "verl-gspo": {**_NO_CORRECTION, **BY_SEQUENCE, **_GROUP},
    "verl-cispo": {**_NO_CORRECTION, **_CISPO, "ratio_min": 0.8, "ratio_max": 1.2},
    "verl-rloo": {**_DUAL, "advantage": "leave_one_out"},
    "verl-opo": {**_DUAL, "advantage": "length_weighted"},
    "verl-remax": {**_DUAL, "advantage": "greedy"},
    "verl-reinforce_pp": {**_DUAL, **_WHITENED_RETURN},
    "verl-reinforce_pp_baseline": {**_DUAL, **_WHITENED_GROUP},
    "verl-ppo": {**_DUAL, **_WHITENED_GAE},
    "openrlhf-ppo": {**_OPENRLHF, **_WHITENED_GAE},
    "openrlhf-reinforce-pp": {**_OPENRLHF, **_WHITENED_RETURN},
    "openrlhf-reinforce-pp-baseline": {**_OPENRLHF, **_WHITENED_GROUP},
    "openrlhf-rloo": {**_OPENRLHF, "advantage": "leave_one_out"},
    "openrlhf-grpo": {**_OPENRLHF, **_GROUP, "epsilon": 1.0e-9},
    "openrlhf-dr_grpo": {**_OPENRLHF, "advantage": "group_mean"},
    "openrlhf-gspo": {**_OPENRLHF, **BY_SEQUENCE, **_GROUP, "epsilon": 1.0e-9},
    "nemo-grpo": {**_NEMO, **_OTHERS},
    "nemo-gspo": {**_NEMO, **BY_SEQUENCE, **_OTHERS},
    "nemo-reinforce_pp_baseline": {**_NEMO, **_WHITENED_GROUP},
    "nemo-ppo": {**_NEMO, **_WHITENED_GAE},
}
_PREFERENCES: Final[Mapping[str, Preset]] = {
    "trl-dpo": {},
    "trl-ipo": {"loss": "ipo", "reduce": "mean"},
    "trl-kto": {"loss": "kto"},
    "openrlhf-dpo": {},
    "openrlhf-ipo": {"loss": "ipo", "reduce": "sum"},
    "nemo-dpo": {"beta": 0.05},
    "verl-spin": {},
}
_FAMILIES: Final[Mapping[str, str]] = {
    "trl-sapo": "grpo",
    "openrlhf-reinforce-pp": "reinforce_pp",
    "openrlhf-reinforce-pp-baseline": "reinforce_pp_baseline",
}
"""The algorithm of which it is a setting, where that has another name."""
_TEXTS: Final[Mapping[str, Preset]] = {
    "trl-sapo": {
        "title": "SAPO",
        "help": "Weights tokens by a smooth gate of the ratio instead of clipping it.",
        "formula": "loss = -sigmoid(tau (ratio - 1)) 4 / tau A, tau by the sign of A",
        "paper": ARXIV + "2511.20347",
    },
}
"""Of presets whose loss is not their family's."""


def _records(
    presets: Mapping[str, Preset], fields: Fields, recipe: RecipeName
) -> Iterator[AlgorithmRecord]:
    for name, preset in presets.items():
        framework, _, own_name = name.partition("-")
        yield AlgorithmRecord(
            name=name,
            family=_FAMILIES.get(name, own_name),
            framework=framework,
            fields=fields,
            recipe=recipe,
            preset=preset,
            **_TEXTS.get(name, {}),
        )


REWARDS_OF_FRAMEWORKS: Final = tuple(_records(_REWARDS, "rewards", "policy"))
PREFERENCES_OF_FRAMEWORKS: Final = tuple(_records(_PREFERENCES, "preference", "preference"))
