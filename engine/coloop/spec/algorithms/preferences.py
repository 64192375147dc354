"""Algorithms of port `pairs` by which policies learn.

z is the difference of both sides' log ratios to the reference. The comment above each record says
what the algorithm computes where its preset is not changed.
"""

from functools import partial
from typing import Any, Final

from coloop.spec.algorithms.record import ARXIV, AlgorithmRecord

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
    # −log σ(β z), log ratios as sums over tokens. arXiv 2305.18290
    _preference(
        name="dpo",
        title="DPO",
        help=("Prefers the chosen side over the rejected one, measured against the reference."),
        formula=("z = log(p/ref)(chosen) - log(p/ref)(rejected); loss = -log sigmoid(beta z)"),
        paper=ARXIV + "2305.18290",
        preset={},
    ),
    # (z − 1/(2β))², log ratios as means over tokens. arXiv 2310.12036
    _preference(
        name="ipo",
        title="IPO",
        help="Drives the margin to a fixed value instead of to infinity.",
        formula="loss = (z - 1 / (2 beta))^2, z a mean over tokens",
        paper=ARXIV + "2310.12036",
        preset={"loss": "ipo", "reduce": "mean"},
    ),
    # mean of 1 − σ(β(a − z0)) of chosen, 1 − σ(β(z0 − b)) of rejected; z0 is the mean log ratio of
    # answers to others' prompts, at least 0, measured once an order. arXiv 2402.01306
    _preference(
        name="kto",
        title="KTO",
        help=("Weighs each side separately against the batch's mean, after prospect theory."),
        formula=("loss = 1 - sigmoid(+-beta (log(p/ref) - z0)), z0 of answers to other prompts"),
        paper=ARXIV + "2402.01306",
        preset={"loss": "kto"},
    ),
    # −mean_t log π(chosen) − β log σ(log odds(chosen) − log odds(rejected)), odds of mean
    # log-probs; no reference. arXiv 2403.07691
    _preference(
        name="orpo",
        title="ORPO",
        help="Imitation plus an odds ratio; needs no reference.",
        formula="loss = sft - beta log sigmoid(log odds(chosen) - log odds(rejected))",
        paper=ARXIV + "2403.07691",
        preset={"loss": "orpo", "reduce": "mean"},
        needs_reference=False,
    ),
    # −log σ(β (mean_t log π(chosen) − mean_t log π(rejected)) − γ); no reference. arXiv 2405.14734
    _preference(
        name="simpo",
        title="SimPO",
        help="Mean log-probs and a margin; needs no reference.",
        formula=("loss = -log sigmoid(beta (mean log p(chosen) - mean log p(rejected)) - gamma)"),
        paper=ARXIV + "2405.14734",
        preset={"loss": "simpo", "reduce": "mean", "beta": 2.0, "gamma": 0.5},
        needs_reference=False,
    ),
    # dpo where rejected is the text of the previous self, which is the reference as well: it starts
    # at ln 2. arXiv 2401.01335
    _preference(
        name="spin",
        title="SPIN",
        help="DPO of gold answers against answers of an earlier version of the policy.",
        formula="as DPO with chosen = gold, rejected = own, reference = previous self",
        paper=ARXIV + "2401.01335",
        preset={},
    ),
    # dpo of two of the policy's own texts to a prompt, paired by their scores in the step in which
    # they are written. arXiv 2402.04792
    _preference(
        name="online_dpo",
        title="Online DPO",
        help=("DPO of the policy's own answers of this step, paired by their scores."),
        formula="as DPO with chosen and rejected of one prompt's own answers",
        paper=ARXIV + "2402.04792",
        preset={},
    ),
)
