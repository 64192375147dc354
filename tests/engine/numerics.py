"""How far two ways to compute one number may lie apart: what the arithmetic allows, no more.

A result of `terms` roundings, one after another, of numbers up to `scale` is off by at most
γ = terms · u / (1 − terms · u) times `scale`, with u half the distance from 1 to the next number of
the type (N. Higham, Accuracy and Stability of Numerical Algorithms, 2002, 3.1). Which order a
processor adds in decides where in that bound a result lies, so it is the only tolerance that holds
on all of them. A wrong formula is off by a share of the scale, thousands of times the bound; where
that is not far enough, the test computes in float64 as well.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

Numbers = Tensor | np.ndarray | Sequence[Any] | float


def rounding(terms: int, *, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> float:
    """The most that a result is off after so many roundings of numbers up to `scale`."""
    unit = torch.finfo(dtype).eps / 2
    assert terms * unit < 1
    return terms * unit / (1 - terms * unit) * scale


def near(
    expected: Any,
    *,
    terms: int = 16,
    scale: float | None = None,
    digits: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> Any:
    """What equals `expected` up to rounding, for `==`.

    Args:
        terms: roundings in a row; the default is that of a formula of a few numbers.
        scale: greatest number that is rounded on the way; None: the greatest expected, at least 1.
        digits: places after the point that `expected` was printed with; None: it is exact.
    """
    size = max(_greatest(expected), 1.0) if scale is None else scale
    printed = 0.0 if digits is None else 0.5 * 10.0**-digits
    bound = rounding(terms, scale=size, dtype=dtype) + printed
    return pytest.approx(expected, rel=0, abs=bound)


def assert_near(
    found: Numbers,
    expected: Numbers,
    *,
    terms: int,
    scale: float | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Tensors or lists equal up to rounding; `scale` None: the greatest number of `expected`."""
    ours, theirs = (
        torch.as_tensor(one.copy() if isinstance(one, np.ndarray) else one).detach().double()
        for one in (found, expected)
    )
    assert ours.shape == theirs.shape
    size = _greatest(theirs) if scale is None else scale
    bound = rounding(terms, scale=size, dtype=dtype)
    distance = float((ours - theirs).abs().max()) if ours.numel() else 0.0
    assert distance <= bound, f"{distance:.3g} apart; {bound:.3g} at most by {terms} roundings"


def forward_terms(model: Any, tokens: int) -> int:
    """Roundings on the longest way through a causal model's forward pass of so many tokens."""
    config = model.config
    width = config.hidden_size
    inner = getattr(config, "intermediate_size", None) or 4 * width
    # two norms, queries against keys, softmax and sum over them, in and out of attention and MLP
    layer = 2 * width + width + 3 * tokens + 2 * width + width + inner
    return int(config.num_hidden_layers * layer + 2 * width + config.vocab_size)


def gradient_terms(model: Any, tokens: int, sequences: int = 1) -> int:
    """The same there and back, each step of which has two products, and over all tokens."""
    return 3 * forward_terms(model, tokens) + tokens * sequences


def _greatest(numbers: Any) -> float:
    if isinstance(numbers, Tensor):
        return float(numbers.abs().max()) if numbers.numel() else 0.0
    if isinstance(numbers, dict):
        return max((_greatest(value) for value in numbers.values()), default=0.0)
    if isinstance(numbers, Sequence):
        return max((_greatest(value) for value in numbers), default=0.0)
    return abs(float(numbers))
