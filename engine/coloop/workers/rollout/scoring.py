"""Log-probs of given tokens from hidden states, without holding all logits at once.

B sequences, T tokens, W model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from coloop.spec.table_sizes import loss_chunk


def token_log_probs(
    hidden: Tensor, tokens: Tensor, logits_of: Callable[[Tensor], Tensor], temperature: float
) -> Tensor:
    """Log-prob of tokens[:, t] given those before it, at a temperature; column 0 is 0. (B, T)
    float32

    hidden (B, T, W), tokens (B, T); `logits_of` maps (M, W) to (M, V).
    """
    rows, longest = tokens.shape
    scores = torch.zeros(rows, longest, device=hidden.device)
    if longest < 2:
        return scores
    flat = hidden[:, :-1].reshape(rows * (longest - 1), -1)
    targets = tokens[:, 1:].reshape(-1)
    vocabulary = logits_of(flat[:1]).shape[-1]
    size = loss_chunk(vocabulary, on_cpu=hidden.device.type == "cpu")
    parts = [
        log_probs_of(logits_of(flat[at : at + size]), targets[at : at + size], temperature)
        for at in range(0, len(flat), size)
    ]
    scores[:, 1:] = torch.cat(parts).view(rows, longest - 1)
    return scores


def log_probs_of(logits: Tensor, tokens: Tensor, temperature: float) -> Tensor:
    """Log-prob of each token under its logits at a temperature. (M, V), (M,) -> (M,) float32"""
    return scaled_log_softmax(logits, temperature).gather(1, tokens[:, None]).squeeze(1)


def scaled_log_softmax(logits: Tensor, temperature: float) -> Tensor:
    """Log-probs of all tokens at a temperature. (M, V) -> (M, V) float32"""
    scaled = logits.float() / temperature if temperature != 1.0 else logits.float()
    return torch.log_softmax(scaled, dim=-1)
