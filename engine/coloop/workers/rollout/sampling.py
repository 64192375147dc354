"""Draws the next token of each row of a batch, and tells how likely it was.

Pure functions of logits, settings and one uniform number a row. Without a cut three kernels go over
the vocabulary (log-softmax, exp, running sum), one more at a temperature or for greedy rows.

B rows, V vocabulary. Log-probs are float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

KEEP_ALL = 2.0
"""The top-p of a row that is not cut: above any running sum, whatever its rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How each row is drawn; None where no row of the call asks for it."""

    inverse_temperature: Tensor | None = None  # (B,) float32
    greedy: Tensor | None = None  # (B,) bool
    top_p: Tensor | None = None  # (B,) float32, `KEEP_ALL` keeps all
    top_k: Tensor | None = None  # (B,) int64, V or more keeps all
    all_greedy: bool = False

    @property
    def cuts(self) -> bool:
        return not self.all_greedy and (self.top_p is not None or self.top_k is not None)

    def part(self, first: int, last: int) -> Settings:

        def cut(values: Tensor | None) -> Tensor | None:
            return None if values is None else values[first:last]

        return Settings(
            inverse_temperature=cut(self.inverse_temperature),
            greedy=cut(self.greedy),
            top_p=cut(self.top_p),
            top_k=cut(self.top_k),
            all_greedy=self.all_greedy,
        )


NO_SCRIPT = -1  # in the place of a scripted token: the row draws its own


def draw(
    logits: Tensor, uniform: Tensor, settings: Settings, scripted: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """One token a row, (B,) int64, and how likely it was: (B, 1), its log-prob at the temperature,
    or where rows are cut (B, 2), that before and that after the cut. The logits are overwritten.

    Args:
        logits: (B, V), float32 or of 16 bits.
        uniform: (B,) in [0, 1).
        scripted: (B,) tokens that stand for what is drawn, `NO_SCRIPT` where none does.
    """
    if logits.ndim != 2 or uniform.shape != logits.shape[:1]:
        raise ValueError(
            f"logits (B, V) and uniform (B,) expected, found {logits.shape}, {uniform.shape}"
        )
    wants_greedy = settings.all_greedy or settings.greedy is not None
    best = logits.argmax(-1) if wants_greedy else None  # of the raw logits: scaling makes ties
    logits = _tempered(logits, settings.inverse_temperature)
    log_p = torch.log_softmax(logits, dim=-1)  # (B, V)
    sampled: Tensor | None = None
    if settings.all_greedy and best is not None:
        tokens = best
    else:
        p = torch.exp(log_p, out=logits)
        if settings.cuts:
            tokens, sampled = _draw_cut(p, uniform, settings)
        else:
            tokens = _invert(p.cumsum_(-1), uniform)
        if settings.greedy is not None and best is not None:
            tokens = torch.where(settings.greedy, best, tokens)
            if sampled is not None:  # a greedy row is not drawn from a cut distribution
                sampled = torch.where(settings.greedy, _pick(log_p, tokens), sampled)
    if scripted is not None:
        tokens = torch.where(scripted != NO_SCRIPT, scripted, tokens)
    log_probs = log_p.gather(1, tokens[:, None])
    if sampled is None:
        return tokens, log_probs
    if scripted is not None:
        sampled = torch.where(scripted != NO_SCRIPT, log_probs[:, 0], sampled)
    return tokens, torch.cat((log_probs, sampled[:, None]), 1)


def _pick(values: Tensor, index: Tensor) -> Tensor:
    return values.gather(1, index[:, None]).squeeze(1)  # (B, V), (B,) -> (B,)


def _tempered(logits: Tensor, inverse_temperature: Tensor | None) -> Tensor:
    """In float32, scaled and converted at once; those of float32 in place."""
    if inverse_temperature is None:
        return logits.float()
    scale = inverse_temperature[:, None]
    return logits.mul_(scale) if logits.dtype == torch.float32 else logits * scale


def _invert(running: Tensor, uniform: Tensor) -> Tensor:
    """The token at which running weights (B, V) pass uniform * total: never one of weight 0."""
    target = running[:, -1] * uniform
    tokens = torch.searchsorted(running, target[:, None], right=True).squeeze(1)
    return tokens.clamp_(max=running.shape[1] - 1)


def _draw_cut(p: Tensor, uniform: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """Top-k, then top-p of what is left, then a draw from what is left of that. p (B, V) is
    overwritten.

    Drawn in the order of the vocabulary, so that a row that is not cut gets the token it gets in a
    batch where no row is.
    """
    falling, order = p.sort(dim=-1, descending=True, stable=True)  # (B, V)
    is_cut: Tensor | None = None
    if settings.top_k is not None:
        rank = torch.arange(p.shape[1], device=p.device)
        is_cut = rank[None, :] >= settings.top_k[:, None]
    if settings.top_p is not None:
        if is_cut is not None:
            falling.masked_fill_(is_cut, 0.0)
        total = falling.sum(-1, keepdim=True)
        before = falling.cumsum(-1).sub_(falling).div_(total)  # of likelier ones
        is_behind = before >= settings.top_p[:, None]  # never the likeliest one
        is_cut = is_behind if is_cut is None else is_cut.logical_or_(is_behind)
    assert is_cut is not None, "no row is cut"
    p.masked_fill_(torch.empty_like(is_cut).scatter_(1, order, is_cut), 0.0)
    tokens = _invert(torch.cumsum(p, -1, out=falling), uniform)
    return tokens, (_pick(p, tokens) / p.sum(-1)).log()


# Number t of seed s is a pure function of (s, t), the finaliser of SplitMix64 (Steele, Lea, Flood
# 2014), so a row's numbers depend on nothing else of a batch. N rows, T draws.

_MASK_64 = (1 << 64) - 1


def _signed(value: int) -> int:
    value &= _MASK_64
    return value - (1 << 64) if value >= 1 << 63 else value


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)
_MANTISSA_BITS = 24


def _shift_right(bits: Tensor, by: int) -> Tensor:
    """Logical shift; the shift of int64 would drag the sign along."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


def _mix(bits: Tensor) -> Tensor:
    bits = (bits ^ _shift_right(bits, 30)) * _FIRST
    bits = (bits ^ _shift_right(bits, 27)) * _SECOND
    return bits ^ _shift_right(bits, 31)


def uniforms(
    seeds: Sequence[int],
    draws: int,
    device: torch.device | str = "cpu",
    *,
    starts: Sequence[int] | None = None,
) -> Tensor:
    """Draws s .. s+T-1 of each seed (N, T), s from `starts` or 0, in float32 steps of 2^-24."""
    streams = torch.tensor([_signed(seed) for seed in seeds], dtype=torch.int64, device=device)
    places = torch.arange(1, draws + 1, dtype=torch.int64, device=device)[None, :]
    if starts is not None and any(starts):
        places = places + torch.tensor(starts, dtype=torch.int64, device=device)[:, None]
    bits = _mix(_mix(streams + _GOLDEN)[:, None] + places * _GOLDEN)  # (N, T)
    return _shift_right(bits, 64 - _MANTISSA_BITS).to(torch.float32) * 2.0**-_MANTISSA_BITS
