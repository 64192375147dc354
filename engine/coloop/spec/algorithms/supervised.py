"""Algorithms that learn from what is given: preferences, demonstrations, labels and returns.

z is the difference of both sides' log ratios to the reference, s the score of a row, V the value of
a token and R its return.
"""

from functools import partial
from typing import Any, Final

from coloop.spec.plugins import ARXIV, AlgorithmRecord

PREFERENCE_BASE: dict[str, Any] = {
    "beta": 0.1,
    "loss": "sigmoid",
    "label_smoothing": 0.0,
    "reduce": "sum",
    "sft": 0.0,
    "gamma": 0.0,
}
"""What every preference algorithm of port `pairs` starts from."""

_preference = partial(AlgorithmRecord, fields="preference", recipe="preference")

PREFERENCES: Final = (
    _preference(
        name="dpo",
        title="DPO",
        help=("Prefers the chosen side over the rejected one, measured against the reference."),
        formula=("z = log(p/ref)(chosen) - log(p/ref)(rejected); loss = -log sigmoid(beta z)"),
        paper=ARXIV + "2305.18290",
        preset={},
    ),
    _preference(
        name="ipo",
        title="IPO",
        help="Drives the margin to a fixed value instead of to infinity.",
        formula="loss = (z - 1 / (2 beta))^2, z a mean over tokens",
        paper=ARXIV + "2310.12036",
        preset={"loss": "ipo", "reduce": "mean"},
    ),
    # z0 is at least 0, and measured once an update.
    _preference(
        name="kto",
        title="KTO",
        help=("Weighs each side separately against the batch's mean, after prospect theory."),
        formula=("loss = 1 - sigmoid(+-beta (log(p/ref) - z0)), z0 of answers to other prompts"),
        paper=ARXIV + "2402.01306",
        preset={"loss": "kto"},
    ),
    _preference(
        name="orpo",
        title="ORPO",
        help="SFT plus an odds ratio; needs no reference.",
        formula="loss = sft - beta log sigmoid(log odds(chosen) - log odds(rejected))",
        paper=ARXIV + "2403.07691",
        preset={"loss": "orpo", "reduce": "mean"},
        needs_reference=False,
    ),
    _preference(
        name="simpo",
        title="SimPO",
        help="Mean log-probs and a margin; needs no reference.",
        formula=("loss = -log sigmoid(beta (mean log p(chosen) - mean log p(rejected)) - gamma)"),
        paper=ARXIV + "2405.14734",
        preset={"loss": "simpo", "reduce": "mean", "beta": 2.0, "gamma": 0.5},
        needs_reference=False,
    ),
    _preference(
        name="spin",
        title="SPIN",
        help="DPO of gold answers against answers of an earlier version of the policy.",
        formula="as DPO with chosen = gold, rejected = own, reference = previous self",
        paper=ARXIV + "2401.01335",
        preset={},
    ),
    _preference(
        name="online_dpo",
        title="Online DPO",
        help=("DPO of the policy's own answers of this step, paired by their scores."),
        formula="as DPO with chosen and rejected of one prompt's own answers",
        paper=ARXIV + "2402.04792",
        preset={},
    ),
)

OF_OWN_SECTION: Final = (
    AlgorithmRecord(
        name="sft",
        title="SFT",
        help="Cross-entropy on demonstrations.",
        formula="loss = -mean over tokens log p(token)",
        paper=ARXIV + "2203.02155",
        recipe="imitation",
    ),
    # of rewards: arXiv 2009.01325
    AlgorithmRecord(
        name="bradley_terry",
        title="Bradley-Terry",
        help="Trains a scorer to score the chosen side higher than the rejected one.",
        formula="loss = -log sigmoid(s(chosen) - s(rejected) - margin)",
        paper="https://doi.org/10.1093/biomet/39.3-4.324",
        recipe="bradley_terry",
    ),
    # also arXiv 2506.14175
    AlgorithmRecord(
        name="label_ce",
        title="Label words",
        help="Trains a language model to choose one of a few label words.",
        formula="loss = -log p(label | label words)",
        paper=ARXIV + "2408.15240",
        recipe="choices",
    ),
    # mean over what is labelled: texts, steps or tokens
    AlgorithmRecord(
        name="regression",
        title="Regression",
        help="Trains a scorer on numeric labels.",
        formula="loss = (s - label)^2",
        paper=ARXIV + "2406.08673",
        recipe="labels",
    ),
    # the same mean; the label is rounded unless it is soft
    AlgorithmRecord(
        name="outcome",
        title="Outcome",
        help="Trains a scorer to tell right from wrong, per text or per step.",
        formula="loss = BCE(sigmoid(s), label)",
        paper=ARXIV + "2110.14168",
        recipe="labels",
    ),
    # also arXiv 2502.01456
    AlgorithmRecord(
        name="implicit_prm",
        title="Implicit process reward",
        help=("A language model that learns from outcomes and gives a reward for each token."),
        formula="loss = BCE(sigmoid(beta sum_t (log p - log prior)), label)",
        paper=ARXIV + "2412.01981",
        recipe="implicit_prm",
    ),
    # clipping: arXiv 2005.12729
    AlgorithmRecord(
        name="value",
        title="Value",
        help="Trains a critic on the returns of its actor.",
        formula="loss = 1/2 max((V - R)^2, (clip(V, V_old +- clip) - R)^2)",
        paper=ARXIV + "1506.02438",
        recipe="value",
    ),
)
"""Algorithms with a section of their own."""
