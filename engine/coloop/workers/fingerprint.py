"""A number that two sets of weights share only when all their bits are equal.

Words of 64 bits, the upper half folded into the lower one, weighted by odd numbers of their places
and summed modulo 2^64: no change of one word, and no cancelling changes of upper bits, leave it as
it was. The order of names does not matter.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

_MASK_64 = (1 << 64) - 1
_WORD_BYTES = 8
_HALF, _LOWER = 32, (1 << 32) - 1
_WORDS_AT_ONCE = {"cpu": 1 << 16}  # on a CPU so few that a part stays near the core
_MOST_WORDS = 1 << 22


def fingerprint(weights: Iterable[tuple[str, Tensor]], dtype: torch.dtype | None = None) -> int:
    """A 64-bit number of named weights, cast to `dtype` part by part where it is given."""
    total = 0
    for group in _together(weights, dtype):
        if len(group) > 1:
            total += _of_several(group, dtype)
        else:
            [(name, weight)] = group
            total += _number_of(name) * _of_bits(weight, dtype)
    return total & _MASK_64


def _number_of(name: str) -> int:
    return zlib.crc32(name.encode()) * 2 + 1


def _together(
    weights: Iterable[tuple[str, Tensor]], dtype: torch.dtype | None
) -> Iterator[list[tuple[str, Tensor]]]:
    """Weights of one type and device that are read at once as whole words; any other one alone."""
    group: list[tuple[str, Tensor]] = []
    words, shared = 0, None
    for name, weight in weights:
        own = prod(weight.shape) * (dtype or weight.dtype).itemsize
        most = _WORDS_AT_ONCE.get(weight.device.type, 0)
        if own % _WORD_BYTES or not 0 < own // _WORD_BYTES <= most:
            yield [(name, weight)]
            continue
        own //= _WORD_BYTES
        kind = weight.dtype, weight.device
        if group and (words + own > most or kind != shared):
            yield group
            group, words = [], 0
        group.append((name, weight))
        words, shared = words + own, kind
    if group:
        yield group


@torch.inference_mode()
def _of_several(group: list[tuple[str, Tensor]], dtype: torch.dtype | None) -> int:
    flat = [weight.reshape(-1) for _, weight in group]
    whole = torch.cat(flat).to(dtype or flat[0].dtype)
    sizes = (len(part) * whole.itemsize // _WORD_BYTES for part in flat)
    names = (name for name, _ in group)
    counts = _counts_of(tuple(zip(names, sizes, strict=True)), whole.device)
    return int(torch.dot(_folded(whole.view(torch.int64)), counts))


@lru_cache(maxsize=64)
def _counts_of(group: tuple[tuple[str, int], ...], device: torch.device) -> Tensor:
    """What each word counts, modulo 2^64: its place's number times its name's."""
    places = _odd_numbers(device)
    with torch.inference_mode(False):
        return torch.cat([places[:words] * _number_of(name) for name, words in group])


@torch.inference_mode()
def _of_bits(weight: Tensor, dtype: torch.dtype | None) -> int:
    places = _odd_numbers(weight.device)
    total = start = 0
    for words in _words_of(weight, dtype or weight.dtype, len(places)):
        part = _folded(words)
        before = int(part.sum()) if start else 0
        total += 2 * start * before + int(part.mul_(places[: len(part)]).sum())
        start += len(words)
    return total


def _folded(words: Tensor) -> Tensor:
    return (words >> _HALF).bitwise_and_(_LOWER).bitwise_xor_(words)


def _words_of(weight: Tensor, dtype: torch.dtype, count: int) -> Iterator[Tensor]:
    """The bits as int64, so many words at a time, zeros behind their end."""
    flat = weight.detach().contiguous().view(-1)
    most = count * _WORD_BYTES // dtype.itemsize
    for given in (flat,) if len(flat) <= most else torch.split(flat, most):
        part = given.to(dtype)
        rest = -len(part) * dtype.itemsize % _WORD_BYTES
        if rest:
            part = torch.nn.functional.pad(part.view(torch.uint8), (0, rest))
        elif part.storage_offset() * dtype.itemsize % _WORD_BYTES:
            part = part.clone()
        yield part.view(torch.int64)


@lru_cache(maxsize=8)
def _odd_numbers(device: torch.device) -> Tensor:
    count = _WORDS_AT_ONCE.get(device.type, _MOST_WORDS)
    with torch.inference_mode(False):
        return torch.arange(1, 2 * count, 2, device=device)
