"""Algorithms of port `rewards`, and the advantages of which they are made.

A is the advantage of a token, r the score of a row, g its group, G_t = r_t + γ G_{t+1} what a token
earns from here on, ρ = π / π_old.
"""

from functools import partial
from typing import Any, Final

from coloop.spec.plugins import ARXIV, AdvantageRecord, AlgorithmRecord

REWARDS_BASE: dict[str, Any] = {
    "advantage": "group_mean_std",
    "loss": "clipped",
    "aggregation": "token_mean",
    "divisor": None,
    "clip_low": 0.2,
    "clip_high": 0.2,
    "dual_clip": None,
    "ratio_min": None,
    "ratio_max": None,
    "reduce": "mean",
    "epsilon": 1.0e-6,
    "deviation": None,
    "whiten": False,
    "whiten_deviation": "unbiased",
    "gamma": 1.0,
    "gae_lambda": 1.0,
    "length_alpha": None,
    "reward_clip": None,
    "entropy": None,
    "kl": None,
    "correction": {"method": "token_tis", "max": 2.0},
    "off_policy": None,
    "tau_positive": 1.0,
    "tau_negative": 1.05,
    "covariance_share": 2.0e-4,
}
"""What every algorithm of port `rewards` starts from."""

PLAIN: Final[dict[str, Any]] = {"loss": "policy_gradient", "clip_low": None, "clip_high": None}
BY_SEQUENCE: Final[dict[str, Any]] = {"loss": "sequence_clipped", "aggregation": "sequence_mean"}

ADVANTAGES: Final = (
    AdvantageRecord(name="gae", needs="values"),
    AdvantageRecord(
        name="group_mean_std",
        needs="group",
        deviation="unbiased",
        formula="r_i - mean(group)",
        note="Better or worse than the group's mean.",
    ),
    AdvantageRecord(
        name="group_mean",
        needs="group",
        formula="r_i - mean(group)",
        note="Better or worse than the group's mean.",
    ),
    AdvantageRecord(
        name="leave_one_out",
        needs="group",
        formula="r_i - mean(others)",
        note="Better or worse than the mean of the others in the group.",
    ),
    AdvantageRecord(
        name="length_weighted",
        needs="group",
        formula="r_i - sum_j(L_j * r_j) / sum_j(L_j)",
        note="Compared with the group's mean, in which long texts count more.",
    ),
    AdvantageRecord(name="greedy", needs="greedy"),
    AdvantageRecord(name="discounted_return"),
    AdvantageRecord(
        name="best_minus_second",
        needs="group",
        deviation="unbiased",
        whole_rows=True,
        formula="r_best - r_second",
        note="For the best text of a group; the others have 0.",
    ),
    AdvantageRecord(
        name="mean_normalised",
        needs="group",
        formula="(r_i - mean(group)) / mean(group)",
        note="Advantage relative to the group's mean: rare success counts more.",
    ),
    AdvantageRecord(name="none"),
)
"""Their functions are in `recipes.estimators`."""

_policy = partial(AlgorithmRecord, fields="rewards", recipe="policy")

POLICIES: Final = (
    _policy(
        name="grpo",
        title="GRPO",
        help="Compares the answers to one prompt with each other; no critic.",
        formula=(
            "A = (r - mean(group)) / (std(group) + eps); loss = -min(ratio A, clip(ratio, "
            "1-low, 1+high) A)"
        ),
        paper=ARXIV + "2402.03300",
        preset={"advantage": "group_mean_std"},
    ),
    _policy(
        name="dr_grpo",
        title="Dr. GRPO",
        help=("GRPO without its two biases: no division by the deviation, none by the length."),
        formula=("A = r - mean(group); loss summed over tokens / (rows * max_new_tokens)"),
        paper=ARXIV + "2503.20783",
        preset={"advantage": "group_mean", "aggregation": "constant"},
    ),
    _policy(
        name="dapo",
        title="DAPO",
        help=(
            "GRPO with a higher upper clip and a mean over tokens; use with a filter for groups "
            "without variance and an overlong penalty."
        ),
        formula="as GRPO with high > low, mean over all tokens",
        paper=ARXIV + "2503.14476",
        preset={"advantage": "group_mean_std", "clip_high": 0.28},
    ),
    _policy(
        name="gspo",
        title="GSPO",
        help="Clips the ratio of whole sequences; more stable for mixtures of experts.",
        formula=("s = exp(mean_t log ratio_t); loss = -min(s A, clip(s, 1-low, 1+high) A)"),
        paper=ARXIV + "2507.18071",
        preset={
            "advantage": "group_mean_std",
            **BY_SEQUENCE,
            "clip_low": 3.0e-4,
            "clip_high": 4.0e-4,
        },
    ),
    _policy(
        name="cispo",
        title="CISPO",
        help="Clips the weight, not the gradient: every token keeps a gradient.",
        formula="loss = -stop_gradient(clip(ratio, min, max)) A log p",
        paper=ARXIV + "2506.13585",
        preset={
            "advantage": "group_mean_std",
            "loss": "cispo",
            "clip_low": None,
            "clip_high": None,
            "ratio_min": 0.0,
            "ratio_max": 5.0,
        },
    ),
    _policy(
        name="rloo",
        title="RLOO",
        help="The baseline of an answer is the mean of the others.",
        formula="A_i = r_i - mean(r_j, j != i)",
        paper=ARXIV + "2402.14740",
        preset={"advantage": "leave_one_out"},
    ),
    _policy(
        name="opo",
        title="OPO",
        help=("Minimum-variance baseline: the mean reward weighted by length; strictly on-policy."),
        formula="A = r - sum(L_j r_j) / sum(L_j); loss = -A log p",
        paper=ARXIV + "2505.23585",
        preset={"advantage": "length_weighted", **PLAIN},
    ),
    _policy(
        name="remax",
        title="ReMax",
        help=("The baseline is the reward of the greedy answer; needs `rollout.greedy_extra`."),
        formula="A = r - r(greedy); loss = -A log p",
        paper=ARXIV + "2310.10505",
        preset={"advantage": "greedy", **PLAIN},
    ),
    # with `advantage: group_mean` the loss of MAGRPO (arXiv 2508.04652)
    _policy(
        name="reinforce",
        title="REINFORCE",
        help=("The plain policy gradient on discounted returns; a baseline by `advantage`."),
        formula="A_t = G_t = r_t + gamma G_t+1; loss = -A log p",
        paper="https://doi.org/10.1007/BF00992696",
        preset={"advantage": "discounted_return", **PLAIN},
    ),
    _policy(
        name="reinforce_pp",
        title="REINFORCE++",
        help="Discounted returns, whitened over all tokens; no groups needed.",
        formula="A_t = whiten(G_t); clipped loss",
        paper=ARXIV + "2501.03262",
        preset={"advantage": "discounted_return", "whiten": True},
    ),
    # The mean over tokens is not that of rows, so a group of equal rewards gets a small advantage
    # where lengths differ: that is the algorithm.
    _policy(
        name="reinforce_pp_baseline",
        title="REINFORCE++ with baseline",
        help="Subtracts the group's mean, then whitens all tokens.",
        formula="A = whiten(r - mean(group)); clipped loss",
        paper=ARXIV + "2501.03262",
        preset={"advantage": "group_mean", "whiten": True},
    ),
    # GAE: arXiv 1506.02438
    _policy(
        name="ppo",
        title="PPO",
        help="Advantages from a critic's values; needs a critic at `values`.",
        formula=("d_t = r_t + gamma V_t+1 - V_t; A_t = d_t + gamma lambda A_t+1; clipped loss"),
        paper=ARXIV + "1707.06347",
        preset={"advantage": "gae", "whiten": True},
    ),
    _policy(
        name="vapo",
        title="VAPO",
        help=("PPO whose lambda grows with the length of the answer, with a higher upper clip."),
        formula="lambda = 1 - 1 / (alpha L); else as PPO",
        paper=ARXIV + "2504.05118",
        preset={"advantage": "gae", "clip_high": 0.28, "length_alpha": 0.05},
    ),
    _policy(
        name="pf_ppo",
        title="PF-PPO",
        help=(
            "PPO on rows resampled by their scores, so that a noisy reward counts where it is "
            "confident; use with a filter that has `resample`."
        ),
        formula=("rows drawn with replacement by |r|^k, each counted as often as drawn; as PPO"),
        paper=ARXIV + "2409.06957",
        preset={"advantage": "gae", "whiten": True},
    ),
    # A group without any reward teaches nothing.
    _policy(
        name="maxrl",
        title="MaxRL",
        help=(
            "Divides by the mean of the group instead of its deviation, so that a right answer to "
            "a hard prompt counts more; for rewards that are not negative."
        ),
        formula="A = (r - mean(group)) / mean(group); clipped loss",
        paper=ARXIV + "2602.02710",
        preset={"advantage": "mean_normalised"},
    ),
)
