"""Algorithms with a section of their own in `algorithm_fields`: imitation, scorers and critics.

s is the score of a row, V the value of a token and R its return. The comment above each record says
what the algorithm computes.
"""

from typing import Final

from coloop.spec.algorithms.record import ARXIV, AlgorithmRecord

OF_OWN_SECTION: Final = (
    # −log π of the target tokens, mean over the tokens of the optimizer step
    AlgorithmRecord(
        name="sft",
        title="Imitation (SFT)",
        help="Cross-entropy on demonstrations.",
        formula="loss = -mean over tokens log p(token)",
        paper=ARXIV + "2203.02155",
        recipe="imitation",
    ),
    # −log σ(s_chosen − s_rejected − margin), mean over pairs. arXiv 2009.01325
    AlgorithmRecord(
        name="bradley_terry",
        title="Bradley-Terry",
        help="A scorer learns that chosen scores higher than rejected.",
        formula="loss = -log sigmoid(s(chosen) - s(rejected) - margin)",
        paper="https://doi.org/10.1093/biomet/39.3-4.324",
        recipe="bradley_terry",
    ),
    # −Σ_c q_c log p_c over a few labels alone, said in words behind a prompt or by a head with a
    # class for each, mean over texts. arXiv 2506.14175
    AlgorithmRecord(
        name="label_ce",
        title="Label words",
        help="A language model learns to choose one of a few label words.",
        formula="loss = -log p(label | label words)",
        paper=ARXIV + "2408.15240",
        recipe="choices",
    ),
    # (s − label)², mean over what is labelled: texts, steps or tokens
    AlgorithmRecord(
        name="regression",
        title="Regression",
        help="A scorer learns numbers.",
        formula="loss = (s - label)^2",
        paper=ARXIV + "2406.08673",
        recipe="labels",
    ),
    # −y log σ(s) − (1 − y) log σ(−s), mean over the same; y is rounded unless the labels are soft
    AlgorithmRecord(
        name="outcome",
        title="Outcome",
        help="A scorer learns right from wrong, per text or per step.",
        formula="loss = BCE(sigmoid(s), label)",
        paper=ARXIV + "2110.14168",
        recipe="labels",
    ),
    # the same of s = β Σ_t (log π − log prior) over a text's trained tokens, which is then read
    # token by token. arXiv 2412.01981, 2502.01456
    AlgorithmRecord(
        name="implicit_prm",
        title="Implicit process reward",
        help=("Learns outcomes as a language model and is read as a reward of each token."),
        formula="loss = BCE(sigmoid(beta sum_t (log p - log prior)), label)",
        paper=ARXIV + "2412.01981",
        recipe="implicit_prm",
    ),
    # ½ max((V − R)², (clip(V, V_old ± ε) − R)²), mean over tokens. arXiv 2005.12729
    AlgorithmRecord(
        name="value",
        title="Value",
        help="A critic learns the returns of its actor.",
        formula="loss = 1/2 max((V - R)^2, (clip(V, V_old +- clip) - R)^2)",
        paper=ARXIV + "1506.02438",
        recipe="value",
    ),
)
