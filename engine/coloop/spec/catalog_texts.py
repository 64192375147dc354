"""Words and looks of the catalog: titles, help, icons, groups, colours, formulas, starting nodes.

The catalog joins them with ports and schemas; a test says when a kind, port type or algorithm has
no words here. Icons are names of lucide, colours are names of CSS variables of the page.
"""

from __future__ import annotations

from dataclasses import dataclass

from coloop.spec.base import FormSection
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.nodes.texts import KindText


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupText:
    """How a section of the palette presents itself."""

    title: str
    color: str


GROUPS: dict[str, GroupText] = {
    "data": GroupText(title="Data", color="--group-data"),
    "models": GroupText(title="Models", color="--group-models"),
    "scores": GroupText(title="Scores", color="--group-scores"),
    "shaping": GroupText(title="Shaping", color="--group-shaping"),
    "tools": GroupText(title="Tools and search", color="--group-tools"),
    "measuring": GroupText(title="Measuring", color="--group-measuring"),
}
"""Sections of the palette, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionText:
    """How a part of a form presents itself."""

    title: str
    opens: bool = False
    """Whether it begins open."""


FORM_SECTIONS: dict[FormSection, SectionText] = {
    "model": SectionText(title="Model"),
    "reading": SectionText(title="Reading"),
    "generation": SectionText(title="Generation", opens=True),
    "learning": SectionText(title="Learning", opens=True),
    "placement": SectionText(title="Placement"),
    "checkpoint": SectionText(title="Checkpoint"),
    "note": SectionText(title="Note"),
}
"""Parts of a form, in order."""


KIND_TEXTS: dict[str, KindText] = {
    kind: node.about.text
    for group in GROUPS
    for kind, node in NODE_CLASSES.items()
    if node.about.text.group == group
}
"""Words of the kinds, in the order of the palette."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortText:
    """How a port type looks and what it is."""

    color: str
    shape: str
    help: str


PORT_TEXTS: dict[str, PortText] = {
    "Rows": PortText(
        color="--port-rows",
        shape="square",
        help="A table of rows with columns such as `prompt` and `answer`.",
    ),
    "Rollouts": PortText(
        color="--port-rollouts",
        shape="circle",
        help="Rows that a policy wrote, with tokens and log-probs; accepted wherever rows are.",
    ),
    "Pairs": PortText(
        color="--port-pairs", shape="pentagon", help="Rows with a chosen and a rejected side."
    ),
    "Scores": PortText(
        color="--port-scores",
        shape="diamond",
        help="One number a row, or numbers at its steps or tokens.",
    ),
    "LogProbs": PortText(
        color="--port-log-probs", shape="triangle", help="One log-prob for each token of a row."
    ),
    "Values": PortText(
        color="--port-values", shape="hexagon", help="One value for each token of a row."
    ),
    "Policy": PortText(
        color="--port-policy",
        shape="ring",
        help="A handle: the node at the other end lets this one write.",
    ),
    "Check": PortText(
        color="--port-check",
        shape="ring",
        help="A handle: the node at the other end asks this one for a score.",
    ),
    "Tool": PortText(
        color="--port-tool", shape="ring", help="A handle: what a policy may call while it writes."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmText:
    """What an algorithm is."""

    title: str
    help: str
    formula: str


ALGORITHM_TEXTS: dict[str, AlgorithmText] = {
    "grpo": AlgorithmText(
        title="GRPO",
        help="Compares the answers to one prompt with each other; no critic.",
        formula="A = (r - mean(group)) / (std(group) + eps);"
        " loss = -min(ratio A, clip(ratio, 1-low, 1+high) A)",
    ),
    "dr_grpo": AlgorithmText(
        title="Dr. GRPO",
        help="GRPO without its two biases: no division by the deviation, none by the length.",
        formula="A = r - mean(group); loss summed over tokens / (rows * max_new_tokens)",
    ),
    "dapo": AlgorithmText(
        title="DAPO",
        help="GRPO with a higher upper clip and a mean over tokens; goes with a filter for "
        "groups without variance and an overlong penalty.",
        formula="as GRPO with high > low, mean over all tokens",
    ),
    "gspo": AlgorithmText(
        title="GSPO",
        help="Clips the ratio of whole sequences; steadier for mixtures of experts.",
        formula="s = exp(mean_t log ratio_t); loss = -min(s A, clip(s, 1-low, 1+high) A)",
    ),
    "cispo": AlgorithmText(
        title="CISPO",
        help="Clips the weight, never the gradient: every token goes on learning.",
        formula="loss = -stop_gradient(clip(ratio, min, max)) A log p",
    ),
    "rloo": AlgorithmText(
        title="RLOO",
        help="The baseline of an answer is the mean of the others.",
        formula="A_i = r_i - mean(r_j, j != i)",
    ),
    "opo": AlgorithmText(
        title="OPO",
        help="The baseline of least variance: rewards weighted by length; strictly on-policy.",
        formula="A = r - sum(L_j r_j) / sum(L_j); loss = -A log p",
    ),
    "remax": AlgorithmText(
        title="ReMax",
        help="The baseline is the reward of the greedy answer; wants `rollout.greedy_extra`.",
        formula="A = r - r(greedy); loss = -A log p",
    ),
    "reinforce": AlgorithmText(
        title="REINFORCE",
        help="The plain policy gradient on discounted returns; a baseline by `advantage`.",
        formula="A_t = G_t = r_t + gamma G_t+1; loss = -A log p",
    ),
    "reinforce_pp": AlgorithmText(
        title="REINFORCE++",
        help="Discounted returns, whitened over all tokens; no groups needed.",
        formula="A_t = whiten(G_t); clipped loss",
    ),
    "reinforce_pp_baseline": AlgorithmText(
        title="REINFORCE++ with baseline",
        help="The group's mean is taken off, then all tokens are whitened.",
        formula="A = whiten(r - mean(group)); clipped loss",
    ),
    "ppo": AlgorithmText(
        title="PPO",
        help="Advantages from a critic's values; wants a critic at `values`.",
        formula="d_t = r_t + gamma V_t+1 - V_t; A_t = d_t + gamma lambda A_t+1; clipped loss",
    ),
    "vapo": AlgorithmText(
        title="VAPO",
        help="PPO whose lambda grows with the length of the answer, with a higher upper clip.",
        formula="lambda = 1 - 1 / (alpha L); else as PPO",
    ),
    "pf_ppo": AlgorithmText(
        title="PF-PPO",
        help="PPO on rows that are drawn again by their scores, so that a noisy reward is trusted "
        "where it is sure; goes with a filter that has `resample`.",
        formula="rows drawn with replacement by |r|^k, each counted as often as drawn; as PPO",
    ),
    "dpo": AlgorithmText(
        title="DPO",
        help="Prefers the chosen side over the rejected one, measured against the reference.",
        formula="z = log(p/ref)(chosen) - log(p/ref)(rejected); loss = -log sigmoid(beta z)",
    ),
    "ipo": AlgorithmText(
        title="IPO",
        help="Drives the margin to a fixed value instead of to infinity.",
        formula="loss = (z - 1 / (2 beta))^2, z a mean over tokens",
    ),
    "kto": AlgorithmText(
        title="KTO",
        help="Weighs each side alone against the batch's mean, after prospect theory.",
        formula="loss = 1 - sigmoid(+-beta (log(p/ref) - z0)), z0 of answers to other prompts",
    ),
    "orpo": AlgorithmText(
        title="ORPO",
        help="Imitation plus an odds ratio; needs no reference.",
        formula="loss = sft - beta log sigmoid(log odds(chosen) - log odds(rejected))",
    ),
    "simpo": AlgorithmText(
        title="SimPO",
        help="Mean log-probs and a margin; needs no reference.",
        formula="loss = -log sigmoid(beta (mean log p(chosen) - mean log p(rejected)) - gamma)",
    ),
    "spin": AlgorithmText(
        title="SPIN",
        help="DPO of gold answers against those of the policy's own earlier self.",
        formula="as DPO with chosen = gold, rejected = own, reference = previous self",
    ),
    "online_dpo": AlgorithmText(
        title="Online DPO",
        help="DPO of the policy's own answers of this step, paired by what scores them.",
        formula="as DPO with chosen and rejected of one prompt's own answers",
    ),
    "sft": AlgorithmText(
        title="Imitation (SFT)",
        help="Cross-entropy on demonstrations.",
        formula="loss = -mean over tokens log p(token)",
    ),
    "bradley_terry": AlgorithmText(
        title="Bradley-Terry",
        help="A scorer learns that chosen scores higher than rejected.",
        formula="loss = -log sigmoid(s(chosen) - s(rejected) - margin)",
    ),
    "label_ce": AlgorithmText(
        title="Label words",
        help="A language model learns which of a few words to say.",
        formula="loss = -log p(label | label words)",
    ),
    "regression": AlgorithmText(
        title="Regression", help="A scorer learns numbers.", formula="loss = (s - label)^2"
    ),
    "outcome": AlgorithmText(
        title="Outcome",
        help="A scorer learns right from wrong, whole or step by step.",
        formula="loss = BCE(sigmoid(s), label)",
    ),
    "implicit_prm": AlgorithmText(
        title="Implicit process reward",
        help="Learns outcomes as a language model and is read as a reward of each token.",
        formula="loss = BCE(sigmoid(beta sum_t (log p - log prior)), label)",
    ),
    "value": AlgorithmText(
        title="Value",
        help="A critic learns the returns of its actor.",
        formula="loss = 1/2 max((V - R)^2, (clip(V, V_old +- clip) - R)^2)",
    ),
}

FRAMEWORKS: dict[str, str] = {
    "trl": "TRL",
    "verl": "verl",
    "openrlhf": "OpenRLHF",
    "nemo": "NeMo RL",
}
