"""Log-probs from states and head in one function: the numbers and the gradient of the slow way,
with no more logits held than were asked for."""

from math import exp, log
from typing import Any

import pytest
import torch
from tests.engine.numerics import assert_near, near
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from coloop.workers.training.fused import Finish, finish_of, log_probs_of_states

STATES, WIDTH, WORDS = 11, 6, 23


def made(**more: Any) -> tuple[nn.Linear, Tensor, Tensor]:
    """A head, states and targets, in float64."""
    torch.manual_seed(3)
    head = nn.Linear(WIDTH, WORDS, dtype=torch.float64, **more)
    states = torch.randn(STATES, WIDTH, dtype=torch.float64, requires_grad=True)
    return head, states, torch.arange(STATES) * 5 % WORDS


def slow(
    head: nn.Linear, states: Tensor, targets: Tensor, heat: float | Tensor, finish: Finish
) -> tuple[Tensor, Tensor]:
    """Formula by formula, all logits at once."""
    logits = (states @ head.weight.T + (0 if head.bias is None else head.bias)) * finish.scale
    if finish.cap is not None:
        logits = finish.cap * torch.tanh(logits / finish.cap)
    shares = torch.softmax(logits / heat, -1)
    return shares.log()[range(STATES), targets], -(shares * shares.log()).sum(-1)


def test_a_vocabulary_of_three_words_by_hand() -> None:
    head = nn.Linear(1, 3, bias=False)
    head.weight.data = torch.tensor([[1.0], [2.0], [-1.0]])
    states = torch.tensor([[0.5], [1.0]], requires_grad=True)

    said, entropy = log_probs_of_states(head, states, torch.tensor([2, 1]), 0.5, "measured", 1)
    said.sum().backward()

    # Logits over the temperature: 1, 2, -1 and 2, 4, -2.
    sums = [exp(1) + exp(2) + exp(-1), exp(2) + exp(4) + exp(-2)]
    p = [[exp(1) / sums[0], exp(2) / sums[0], exp(-1) / sums[0]]]
    p += [[exp(2) / sums[1], exp(4) / sums[1], exp(-2) / sums[1]]]
    assert said.tolist() == near([-1 - log(sums[0]), 4 - log(sums[1])])
    assert entropy is not None
    assert not entropy.requires_grad
    assert entropy.tolist() == near([-sum(one * log(one) for one in row) for row in p])
    # d log p[t] / d z[j] = (j = t) - p[j], and z = w x / 0.5.
    into = [[-p[0][0], -p[0][1], 1 - p[0][2]], [-p[1][0], 1 - p[1][1], -p[1][2]]]
    by_state = [2 * (one[0] * 1 + one[1] * 2 - one[2]) for one in into]
    assert states.grad is not None
    assert states.grad.flatten().tolist() == near(by_state)
    by_word = [2 * (into[0][word] * 0.5 + into[1][word] * 1.0) for word in range(3)]
    assert head.weight.grad is not None
    assert head.weight.grad.flatten().tolist() == near(by_word)


HEATS = {"one": 1.0, "same": 0.7, "of each": torch.linspace(0.5, 2, STATES)[:, None].double()}
FINISHES = {"plain": Finish(), "scaled": Finish(scale=0.3), "capped": Finish(scale=2, cap=1.5)}


@pytest.mark.parametrize("chunk", [1, 4, STATES])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("heat", HEATS.values(), ids=HEATS)
@pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES)
def test_numbers_and_gradient_are_those_of_the_slow_way(
    finish: Finish, heat: float | Tensor, bias: bool, chunk: int
) -> None:
    head, states, targets = made(bias=bias)
    weights = torch.randn(2, STATES, generator=torch.Generator().manual_seed(1)).double()
    learned = [states, *head.parameters()]

    said, entropy = log_probs_of_states(head, states, targets, heat, "learned", chunk, finish)
    assert entropy is not None
    ours = torch.autograd.grad((weights[0] * said + weights[1] * entropy).sum(), learned)
    wanted, spread = slow(head, states, targets, heat, finish)
    theirs = torch.autograd.grad((weights[0] * wanted + weights[1] * spread).sum(), learned)

    assert_near(said, wanted, terms=256, dtype=torch.float64)
    assert_near(entropy, spread, terms=256, dtype=torch.float64)
    for one, other in zip(ours, theirs, strict=True):
        assert_near(one, other, terms=1024, scale=100, dtype=torch.float64)


@pytest.mark.parametrize("entropy", ["none", "measured"])
def test_what_learns_nothing_gets_no_gradient(entropy: Any) -> None:
    head, states, targets = made()
    head.requires_grad_(False)

    said, spread = log_probs_of_states(head, states, targets, 1.0, entropy, 2)
    said.sum().backward()

    wanted, expected = slow(head, states, targets, 1.0, Finish())
    [theirs] = torch.autograd.grad(wanted.sum(), [states])
    assert states.grad is not None
    assert_near(states.grad, theirs, terms=512, scale=10, dtype=torch.float64)
    assert head.weight.grad is None
    assert (spread is None) == (entropy == "none")
    if spread is not None:
        assert_near(spread, expected, terms=256, dtype=torch.float64)


def test_far_logits_neither_overflow_nor_lose_the_entropy() -> None:
    head, states, targets = made(bias=False)
    head, states = head.float(), (states.detach() * 200).float()
    wide = nn.Linear(WIDTH, WORDS, bias=False, dtype=torch.float64)
    wide.weight.data = head.weight.detach().double()

    said, entropy = log_probs_of_states(head, states, targets, 1.0, "measured", 3)

    logits = states.double() @ wide.weight.T
    exact = logits.log_softmax(-1)
    assert_near(said, exact[range(STATES), targets], terms=64)
    greatest = float(logits.detach().abs().max())
    assert_near(entropy, -(exact.exp() * exact).sum(-1), terms=64, scale=greatest)


class Greatest(TorchDispatchMode):
    """The most numbers of any tensor that is made, and how often the head is cast."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers, self.casts, self.operations = 0, 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.operations += 1
        for one in made if isinstance(made, tuple | list) else [made]:
            if isinstance(one, Tensor):
                self.numbers = max(self.numbers, one.numel())
                self.casts += func._schema.name == "aten::_to_copy" and one.numel() == 4096 * 8
        return made


def test_no_more_logits_are_held_than_were_asked_for() -> None:
    head, states = nn.Linear(8, 4096, bias=False), torch.randn(64, 8, requires_grad=True)
    targets = torch.arange(64)

    with Greatest() as seen, torch.autocast("cpu", dtype=torch.bfloat16):
        said, _ = log_probs_of_states(head, states, targets, 0.9, "measured", 16)
        said.sum().backward()

    assert seen.numbers == 16 * 4096
    assert seen.casts == 2  # once in each direction, however many parts there are
    assert head.weight.grad is not None
    assert head.weight.grad.dtype == torch.float32


def test_under_autocast_it_computes_as_whole_logits_do() -> None:
    torch.manual_seed(0)
    head, states = nn.Linear(16, 512, bias=False), torch.randn(40, 16)
    targets = torch.arange(40)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = head(states).float() / 0.8
        said, _ = log_probs_of_states(head, states, targets, 0.8, "none", 7)

    assert_near(said, logits.log_softmax(-1)[range(40), targets], terms=16)


def test_what_a_family_does_to_its_logits_is_read_from_its_settings() -> None:
    class Config:
        final_logit_softcapping = 30
        logit_scale = 0.0625
        logits_scaling = 8.0

    assert finish_of(Config()) == Finish(scale=0.0078125, cap=30.0)
    assert finish_of(None) == Finish()
