"""Divergences between a policy and a teacher: literal numbers, and what TRL and verl print.

The numbers of TRL 1.16 are printed by `python -m tests.bench.distillation_numbers`.
"""

import math

import pytest
import torch
from tests.engine.numerics import near
from torch import Tensor

from coloop.algorithms.distillation import Comparison, divergence, divergence_of_top, with_tail
from coloop.workers.training.divergence import Asked, TeacherTokens, compare_logits

P = torch.tensor([[0.5, 0.25, 0.25], [0.8, 0.1, 0.1]]).log()
Q = torch.tensor([[0.25, 0.5, 0.25], [0.1, 0.1, 0.8]]).log()
LN2 = math.log(2)


def test_the_divergences_on_literal_numbers() -> None:
    # 1/2 ln 2 - 1/4 ln 2, and 0.8 ln 8 - 0.1 ln 8 of the second; both are alike the other way round
    expected = [LN2 / 4, 0.7 * 3 * LN2]

    assert divergence(P, Q, kind="reverse").tolist() == near(expected)
    assert divergence(P, Q, kind="forward").tolist() == near(expected)
    # m = (0.375, 0.375, 0.25): 1/2 (1/4 ln(2/3) + 1/2 ln(4/3)) twice
    middle = 0.25 * math.log(2 / 3) + 0.5 * math.log(4 / 3)
    assert float(divergence(P, Q, kind="jsd", beta=0.5)[0]) == near(middle)


def test_what_becomes_of_other_words_on_literal_numbers() -> None:
    known = torch.tensor([[0.5, 0.25]]).log()

    assert with_tail(known, "drop").exp().tolist() == [near([0.5, 0.25])]
    assert with_tail(known, "renormalize").exp().tolist() == [near([2 / 3, 1 / 3])]
    assert with_tail(known, "bucket").exp().tolist() == [near([0.5, 0.25, 0.25])]
    assert torch.isfinite(with_tail(torch.zeros(1, 1), "bucket")).all()


def slow(log_p: Tensor, log_q: Tensor, kind: str, beta: float) -> list[float]:
    """Word by word in Python."""
    totals = []
    for ours, theirs in zip(log_p.tolist(), log_q.tolist(), strict=True):
        total = 0.0
        for a, b in zip(ours, theirs, strict=True):
            p, q = math.exp(a), math.exp(b)
            if kind == "reverse":
                total += p * (a - b)
            elif kind == "forward":
                total += q * (b - a)
            else:
                m = math.log(beta * q + (1 - beta) * p)
                total += beta * q * (b - m) + (1 - beta) * p * (a - m)
        totals.append(total)
    return totals


@pytest.mark.parametrize("kind", ["reverse", "forward", "jsd"])
def test_the_divergences_word_by_word(kind: str) -> None:
    draw = torch.Generator().manual_seed(0)
    log_p, log_q = (torch.randn(5, 9, generator=draw).double().log_softmax(-1) for _ in range(2))

    found = divergence(log_p, log_q, kind=kind, beta=0.3)

    assert found.tolist() == pytest.approx(slow(log_p, log_q, kind, 0.3))
    assert (found >= 0).all()


def test_a_bucket_for_the_rest_is_between_nothing_and_the_whole() -> None:
    """Joining words never takes distributions further apart."""
    draw = torch.Generator().manual_seed(1)
    log_p, log_q = (torch.randn(20, 9, generator=draw).log_softmax(-1) for _ in range(2))
    theirs, ids = log_q.topk(4)
    comparison = Comparison(divergence="reverse", beta=0.5, k=4, tail="bucket")

    found = divergence_of_top(log_p.gather(1, ids), theirs, comparison)

    assert (found >= 0).all()
    assert (found <= divergence(log_p, log_q, kind="reverse") + 1e-6).all()


def test_an_unknown_divergence_is_refused() -> None:
    with pytest.raises(ValueError, match="no divergence 'other'"):
        divergence(P, Q, kind="other")


# Logits of two positions and five words.
STUDENT = torch.tensor([[1.0, -0.5, 0.25, 2.0, 0.0], [0.3, 0.7, -1.2, 0.1, 0.9]])
TEACHER = torch.tensor([[0.5, 0.5, -1.0, 1.5, 0.2], [-0.4, 1.6, 0.8, 0.0, -2.0]])

OF_TRL: dict[tuple[str, float], tuple[list[float], list[list[float]]]] = {
    ("reverse", 1.0): (
        [0.122796, 1.015884],
        [
            [0.010406, -0.067674, 0.079006, 0.028288, -0.050027],
            [-0.018409, -0.473132, -0.116593, -0.106793, 0.714927],
        ],
    ),
    ("reverse", 2.0): (
        [0.050853, 0.295428],
        [
            [0.007922, -0.03638, 0.034634, 0.013061, -0.019237],
            [0.008197, -0.088719, -0.060562, -0.020011, 0.161095],
        ],
    ),
    ("forward", 1.0): (
        [0.153236, 0.667273],
        [
            [0.033145, -0.129323, 0.059519, 0.090098, -0.053439],
            [0.112103, -0.272759, -0.206055, 0.041562, 0.32515],
        ],
    ),
    ("forward", 2.0): (
        [0.054657, 0.248408],
        [
            [0.012887, -0.046869, 0.030428, 0.021247, -0.017694],
            [0.031704, -0.065066, -0.078612, 0.006737, 0.105236],
        ],
    ),
    ("jsd", 1.0): (
        [0.028877, 0.137561],
        [
            [0.004968, -0.020248, 0.012764, 0.013505, -0.010989],
            [0.018717, -0.06102, -0.028147, 0.003177, 0.067273],
        ],
    ),
    ("jsd", 2.0): (
        [0.01112, 0.052567],
        [
            [0.002352, -0.008928, 0.006521, 0.003878, -0.003823],
            [0.005485, -0.014526, -0.014127, 6.7e-05, 0.023102],
        ],
    ),
}
"""By divergence and temperature: the losses of `DistillationTrainer`, and their gradient."""

OF_SDPO: dict[tuple[str, str], list[float]] = {
    ("reverse", "bucket"): [0.113125, 0.922443],
    ("forward", "bucket"): [0.128948, 0.480993],
    ("jsd", "bucket"): [0.025391, 0.108738],
    ("reverse", "renormalize"): [0.023223, 1.064788],
    ("forward", "renormalize"): [0.018858, 0.635596],
    ("jsd", "renormalize"): [0.004174, 0.138924],
}
"""By divergence and tail: at the three likely words of the student."""

DIGITS = 6
JSD = 0.3


@pytest.mark.parametrize(("kind", "temperature"), OF_TRL)
def test_the_losses_and_gradients_are_those_of_trl(kind: str, temperature: float) -> None:
    losses, slope = OF_TRL[kind, temperature]
    logits = STUDENT.clone().requires_grad_()
    log_q = (TEACHER / temperature).log_softmax(-1)

    found = divergence((logits / temperature).log_softmax(-1), log_q, kind=kind, beta=JSD)
    found.sum().backward()

    assert found.tolist() == near(losses, terms=100, digits=DIGITS)
    assert logits.grad is not None
    for ours, theirs in zip(logits.grad.tolist(), slope, strict=True):
        assert ours == near(theirs, terms=100, digits=DIGITS)


@pytest.mark.parametrize("kind", ["reverse", "forward", "jsd"])
def test_the_kernel_of_the_engine_has_the_gradient_of_trl(kind: str) -> None:
    losses, slope = OF_TRL[kind, 2.0]
    comparison = Comparison(divergence=kind, beta=JSD, k=None, tail="bucket")
    logits = STUDENT.clone().requires_grad_()
    words = (TEACHER / 2).log_softmax(-1)
    teacher = TeacherTokens(tokens=torch.arange(2), weights=torch.ones(2), words=words)
    asked = Asked(comparison=comparison, teachers=(teacher,))

    found = compare_logits(logits, torch.tensor([0, 1]), 2.0, asked, 1)
    found.divergence.sum().backward()

    assert found.divergence.tolist() == near(losses, terms=100, digits=DIGITS)
    assert logits.grad is not None
    for ours, theirs in zip(logits.grad.tolist(), slope, strict=True):
        assert ours == near(theirs, terms=100, digits=DIGITS)


@pytest.mark.parametrize(("kind", "tail"), OF_SDPO)
def test_the_losses_at_likely_words_are_those_of_trl(kind: str, tail: str) -> None:
    log_p, log_q = STUDENT.log_softmax(-1), TEACHER.log_softmax(-1)
    ours, ids = log_p.topk(3)
    comparison = Comparison(divergence=kind, beta=JSD, k=3, tail=tail)

    found = divergence_of_top(ours, log_q.gather(1, ids), comparison)

    assert found.tolist() == near(OF_SDPO[kind, tail], terms=100, digits=DIGITS)


def test_the_loss_without_a_tail_is_that_of_verl() -> None:
    """`compute_forward_kl_topk` at the three likely words of the teacher, without its clamps."""
    log_p, log_q = STUDENT.log_softmax(-1), TEACHER.log_softmax(-1)
    theirs, ids = log_q.topk(3)
    ours = log_p.gather(1, ids)
    comparison = Comparison(divergence="forward", beta=JSD, k=3, tail="drop")

    found = divergence_of_top(ours, theirs, comparison)

    assert found.tolist() == near([0.120697, 0.78267], terms=100, digits=DIGITS)
    assert ours.exp().sum(-1).tolist() == near([0.824277, 0.473073], terms=100, digits=DIGITS)
    assert theirs.exp().sum(-1).tolist() == near([0.830357, 0.910325], terms=100, digits=DIGITS)
