"""Divergence from teachers, straight from states and weights, against the plain computation."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near
from tests.engine.training.conftest import VOCABULARY, tiny_model
from torch import Tensor, nn

from coloop.algorithms.batch import collate, completion_sequence
from coloop.algorithms.distillation import Comparison, divergence, with_tail
from coloop.algorithms.recipes.protocol import Needs
from coloop.data.distributions import Distribution, Teacher, Words
from coloop.workers.training.divergence import Asked, TeacherTokens, compare_logits, compare_states
from coloop.workers.training.forward import ForwardOptions, TokenModel
from coloop.workers.training.fused import PLAIN, Finish
from coloop.workers.training.scorer import Scorer

N, H, V, K = 7, 5, 11, 4
COMPARISONS = {
    "reverse": Comparison(divergence="reverse", beta=0.5, k=None, tail="bucket"),
    "forward": Comparison(divergence="forward", beta=0.5, k=None, tail="bucket"),
    "jsd": Comparison(divergence="jsd", beta=0.3, k=None, tail="bucket"),
    "top reverse": Comparison(divergence="reverse", beta=0.5, k=K, tail="bucket"),
    "top forward": Comparison(divergence="forward", beta=0.5, k=K, tail="drop"),
    "top jsd": Comparison(divergence="jsd", beta=0.7, k=K, tail="renormalize"),
}
FINISHES = {"plain": PLAIN, "scaled and capped": Finish(scale=0.5, cap=3.0)}


class Drawn:
    """States, a head, and two teachers, of which the second says nothing of some tokens."""

    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(3)

        def numbers(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=draw, dtype=torch.float64)

        self.states = numbers(N, H).requires_grad_()
        self.head = nn.Linear(H, V, dtype=torch.float64)
        with torch.no_grad():
            self.head.weight.copy_(numbers(V, H))
            self.head.bias.copy_(numbers(V))
        self.targets = torch.randint(V, (N,), generator=draw)
        self.heat = 0.5 + torch.rand(N, 1, generator=draw, dtype=torch.float64)
        self.of_all = [numbers(N, V).log_softmax(-1), numbers(N, V).log_softmax(-1)]
        self.tokens = [torch.arange(N), torch.tensor([1, 2, 5])]
        self.weights = [torch.tensor([1, 0.25, 0.25, 1, 1, 0.25, 1]), torch.full((3,), 0.75)]

    def asked(self, comparison: Comparison) -> Asked:
        teachers = []
        for whole, tokens, weights in zip(self.of_all, self.tokens, self.weights, strict=True):
            words, ids = whole[tokens], None
            if comparison.k is not None:
                words, ids = words.topk(comparison.k)
            teachers.append(
                TeacherTokens(tokens=tokens, weights=weights.double(), words=words, ids=ids)
            )
        return Asked(comparison=comparison, teachers=tuple(teachers))

    def plain(self, comparison: Comparison, finish: Finish) -> Tensor:
        """D of each state, with logits of all states and autograd."""
        log_p = (finish(self.head(self.states)) / self.heat).log_softmax(-1)
        total = torch.zeros(N, dtype=torch.float64)
        for teacher in self.asked(comparison).teachers:
            own = log_p[teacher.tokens]
            theirs = teacher.words
            if teacher.ids is not None:
                own = with_tail(own.gather(1, teacher.ids), comparison.tail)
                theirs = with_tail(theirs, comparison.tail)
            found = divergence(own, theirs, kind=comparison.divergence, beta=comparison.beta)
            total = total.index_add(0, teacher.tokens, teacher.weights * found)
        return total

    def gradients(self, loss: Tensor) -> list[Tensor]:
        learned = [self.states, self.head.weight, self.head.bias]
        return list(torch.autograd.grad(loss, learned))


@pytest.mark.parametrize("chunk", [3, 100])
@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_loss_and_gradient_are_those_of_whole_logits(name: str, finish: Finish, chunk: int) -> None:
    drawn, comparison = Drawn(), COMPARISONS[name]
    given = torch.linspace(-1, 2, N, dtype=torch.float64)
    asked = drawn.asked(comparison)

    found = compare_states(
        drawn.head, drawn.states, drawn.targets, drawn.heat, asked, chunk, finish
    )

    wanted = drawn.plain(comparison, finish)
    assert_near(found.divergence, wanted, terms=1000)
    pairs = zip(
        drawn.gradients((found.divergence * given).sum()),
        drawn.gradients((wanted * given).sum()),
        strict=True,
    )
    for one, other in pairs:
        assert_near(one, other, terms=1000)


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_model_that_cannot_be_taken_apart_gives_the_same(name: str) -> None:
    drawn, comparison = Drawn(), COMPARISONS[name]
    asked, head = drawn.asked(comparison), drawn.head

    apart = compare_states(head, drawn.states, drawn.targets, drawn.heat, asked, 3)
    whole = compare_logits(head(drawn.states), drawn.targets, drawn.heat, asked, 3)

    for one, other in zip(apart, whole, strict=True):
        assert_near(one, other, terms=1000)
    pairs = zip(
        drawn.gradients(apart.divergence.sum()),
        drawn.gradients(whole.divergence.sum()),
        strict=True,
    )
    for one, other in pairs:
        assert_near(one, other, terms=1000)


def test_the_log_probs_entropies_and_masses_beside_it() -> None:
    drawn, comparison = Drawn(), COMPARISONS["top reverse"]
    asked = drawn.asked(comparison)
    log_p = (drawn.head(drawn.states) / drawn.heat).log_softmax(-1).detach()

    found = compare_states(drawn.head, drawn.states, drawn.targets, drawn.heat, asked, 3)

    assert_near(found.log_probs, log_p.gather(1, drawn.targets[:, None]).squeeze(1), terms=100)
    assert_near(found.entropy, -(log_p.exp() * log_p).sum(-1), terms=100)
    first, second = (teacher.words.exp().sum(-1) for teacher in asked.teachers)
    mass = (first * drawn.weights[0]).index_add(0, drawn.tokens[1], second * drawn.weights[1])
    assert_near(found.mass, mass, terms=100)
    assert not found.log_probs.requires_grad
    assert not found.mass.requires_grad


Ask = Callable[[Any], list[Teacher]]
TEXTS = [
    completion_sequence(id="a", prompt_ids=[1, 2], completion_ids=[3, 4, 5], loss_mask=[1, 0, 1]),
    completion_sequence(id="b", prompt_ids=[2], completion_ids=[6], loss_mask=[1]),
]


def test_a_scorer_tells_of_the_trained_tokens_alone() -> None:
    model = tiny_model().double()
    scorer = Scorer(model)
    log_probs = scorer.score(TEXTS, temperature=2.0)

    whole = scorer.distributions(TEXTS, Words(k=None), temperature=2.0)
    top = scorer.distributions(TEXTS, Words(k=3), temperature=2.0)

    for text, known, all_words, likely in zip(TEXTS, log_probs, whole, top, strict=True):
        trained = int(text.loss_mask.sum())
        assert all_words.log_probs.tolist() == pytest.approx(known[text.loss_mask].tolist())
        assert all_words.words is not None
        assert likely.words is not None
        assert all_words.words.log_probs.shape == (trained, VOCABULARY)
        best = all_words.words.top(3)
        assert best.ids is not None
        assert likely.words.ids is not None
        assert likely.words.ids.tolist() == best.ids.tolist()
        assert_near(likely.words.log_probs, best.log_probs, terms=100)


def test_a_distribution_can_be_sent_in_half_the_bytes() -> None:
    scorer = Scorer(tiny_model())

    [single] = scorer.distributions(TEXTS[1:], Words(k=None))
    [half] = scorer.distributions(TEXTS[1:], Words(k=None, dtype="float16"))

    assert single.words is not None
    assert half.words is not None
    assert single.words.bytes == 2 * half.words.bytes == 4 * VOCABULARY
    assert_near(half.words.log_probs, single.words.log_probs, terms=2, dtype=torch.float16)


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_policy_is_not_apart_from_itself(name: str) -> None:
    model, comparison = tiny_model().double(), COMPARISONS[name]
    said = Scorer(model).distributions(TEXTS, Words(k=comparison.k))
    rows = [
        replace(text, teachers=(replace(told, node="teacher"),))
        for text, told in zip(TEXTS, said, strict=True)
    ]
    needs = Needs(reads=frozenset({"teachers"}), entropy=True, comparison=comparison)

    outputs = TokenModel(model, ForwardOptions(loss_chunk=2)).outputs(
        collate(rows, reads=needs.reads), needs
    )

    assert outputs.divergence is not None
    outputs.divergence.sum().backward()
    assert outputs.divergence.abs().max() < 1e-6
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    if comparison.tail != "drop":
        assert max(float(grad.abs().max()) for grad in gradients) < 1e-5


def test_a_teacher_of_other_tokens_is_refused() -> None:
    said = Distribution(log_probs=torch.zeros(1, VOCABULARY).numpy())
    teacher = Teacher(node="t", weight=1.0, log_probs=torch.zeros(1).numpy(), words=said)

    with pytest.raises(ValueError, match="2 trained tokens, but its teacher 't' has scored 1"):
        collate([replace(TEXTS[0], teachers=(teacher,))], reads={"teachers"})
