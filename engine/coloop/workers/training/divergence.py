"""Divergence of a policy from its teachers at each trained token, straight from states and the
head's weights.

    z = f(states weightᵀ + bias) / heat      log p = z − log Σ e^z      D = Σ_j w_j D(p, q_j)

Logits are held for `chunk` states at a time and computed again in the backward pass, in which the
gradient of D is written down:

    reverse   p (log p − log q − KL(p, q))
    forward   p − q
    jsd       (1 − β) p (log p − log m − KL(p, m)),   m = β q + (1 − β) p
    top k     Σ_k dD/dlog p_k (1[word k] − p)

N states, H width, V words, S of them on this rank, K words of a teacher.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from coloop.algorithms.batch import Batch
from coloop.algorithms.distillation import Comparison, divergence_of_top, log_mixture
from coloop.algorithms.masks import wide
from coloop.data.distributions import Words
from coloop.workers.training.fused import (
    PLAIN,
    Finish,
    compute_type,
    first_word,
    is_hot,
    log_sum,
    summed_behind,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherTokens:
    """What one teacher says of N_j of N trained tokens."""

    tokens: Tensor  # (N_j,) which of them, in rising order
    weights: Tensor  # (N_j,) float32
    words: Tensor  # (N_j, V) or (N_j, K) log-probs, float32 or float16, maybe in host memory
    ids: Tensor | None = None  # (N_j, K) long; None: the whole vocabulary

    def within(self, start: int, stop: int) -> "TeacherTokens":
        """Of these of the N tokens, counted from `start`."""
        low, high = torch.searchsorted(
            self.tokens, torch.tensor([start, stop], device=self.tokens.device)
        ).tolist()
        device = self.tokens.device
        ids = None if self.ids is None else self.ids[low:high].to(device)
        return TeacherTokens(
            tokens=self.tokens[low:high] - start,
            weights=self.weights[low:high],
            words=self.words[low:high].to(device),
            ids=ids,
        )

    def to(self, dtype: torch.dtype) -> "TeacherTokens":
        return replace(self, weights=self.weights.to(dtype), words=self.words.to(dtype))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Teachers to compare with, and how."""

    comparison: Comparison
    teachers: tuple[TeacherTokens, ...]

    @classmethod
    def of(cls, batch: Batch, comparison: Comparison) -> "Asked":
        sizes = batch.loss_mask.sum(1)
        teachers = []
        for rows in batch.teachers:
            tokens = rows.tokens(batch.loss_mask)
            if not len(tokens):
                continue
            weights = rows.weights.to(sizes.device).repeat_interleave(sizes)[tokens]
            words = rows.together("words")
            ids = rows.together("word_ids") if rows.word_ids else None
            if ids is not None and comparison.k is not None:
                words, ids = words[:, : comparison.k], ids[:, : comparison.k]
            teachers.append(TeacherTokens(tokens=tokens, weights=weights, words=words, ids=ids))
        return cls(comparison=comparison, teachers=tuple(teachers))


class Compared(NamedTuple):
    """Of each state; only the divergence has a gradient. (N,) each."""

    log_probs: Tensor  # of the targets
    entropy: Tensor
    divergence: Tensor
    mass: Tensor  # probability of the compared words by the teachers
    own_mass: Tensor  # and by the policy


WHOLE = Comparison(divergence="reverse", beta=0.5, k=None, tail="bucket")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    asked: Asked
    targets: Tensor  # (N,) counted from the first word of this rank
    heat: float | Tensor  # one, or (N, 1)
    chunk: int
    finish: Finish
    compute: torch.dtype
    first: int = 0  # number of this rank's first word
    mesh: DeviceMesh | None = None  # of the ranks that have the other words

    def at(self, start: int, stop: int) -> "_Call":
        heat = self.heat[start:stop] if isinstance(self.heat, Tensor) else self.heat
        teachers = tuple(teacher.within(start, stop) for teacher in self.asked.teachers)
        asked = replace(self.asked, teachers=teachers)
        return replace(self, asked=asked, targets=self.targets[start:stop], heat=heat)

    def teachers(self, dtype: torch.dtype) -> Iterator[TeacherTokens]:
        """Those that say something of these tokens, in the type in which they are compared."""
        for teacher in self.asked.teachers:
            if len(teacher.tokens):
                yield teacher.to(dtype)

    def summed(self, part: Tensor) -> Tensor:
        if self.mesh is not None:
            dist.all_reduce(part, group=self.mesh.get_group())
        return part


def compare_states(
    head: nn.Linear,
    states: Tensor,
    targets: Tensor,
    heat: float | Tensor,
    asked: Asked,
    chunk: int,
    finish: Finish = PLAIN,
) -> Compared:
    """States (N, H) of the decoder, with the head's weights, against the teachers."""
    weight: Tensor = head.weight
    bias: Tensor | None = head.bias
    mesh, first = None, 0
    if isinstance(weight, DTensor):
        mesh, first = weight.device_mesh, first_word(weight.shape[0], weight.device_mesh)
        states = summed_behind(states, mesh)
        weight = weight.to_local()
        bias = bias.to_local() if isinstance(bias, DTensor) else None
    call = _Call(
        asked=asked,
        targets=targets - first,
        heat=heat,
        chunk=chunk,
        finish=finish,
        compute=compute_type(weight),
        first=first,
        mesh=mesh,
    )
    return Compared(*_OfStates.apply(states, weight, bias, call))  # type: ignore[no-untyped-call]


def compare_logits(
    logits: Tensor, targets: Tensor, heat: float | Tensor, asked: Asked, chunk: int
) -> Compared:
    """The same from whole logits (N, V) before they are divided by the temperature."""
    call = _Call(
        asked=asked, targets=targets, heat=heat, chunk=chunk, finish=PLAIN, compute=logits.dtype
    )
    return Compared(*_OfLogits.apply(logits, call))  # type: ignore[no-untyped-call]


class WordLogProbs(NamedTuple):
    """What is said of the words at each of N states, in host memory but for the first."""

    log_probs: Tensor  # (N,) of the targets
    words: Tensor  # (N, K) log-probs, as `Words` asks for them
    ids: Tensor | None  # (N, K) int32, the most likely first; None: the whole vocabulary


LEAST_LOG_PROB = -1e4
"""Log-prob of words that a model excludes, so that it fits into a float16."""


def tell_states(
    head: nn.Linear,
    states: Tensor,
    targets: Tensor,
    heat: float | Tensor,
    words: Words,
    chunk: int,
    finish: Finish = PLAIN,
) -> WordLogProbs:
    """What the head says of states (N, H), without gradient."""
    weight: Tensor = head.weight
    bias: Tensor | None = head.bias
    mesh, vocabulary = None, weight.shape[0]
    if isinstance(weight, DTensor):
        mesh = weight.device_mesh
        weight = weight.to_local()
        bias = bias.to_local() if isinstance(bias, DTensor) else None
    asked = Asked(comparison=WHOLE, teachers=())
    call = _Call(
        asked=asked,
        targets=targets,
        heat=heat,
        chunk=chunk,
        finish=finish,
        compute=compute_type(weight),
        mesh=mesh,
    )
    with torch.autocast(states.device.type, enabled=False):
        parts = [
            _told(_heated(_whole(finished, vocabulary, call), own), own, words)
            for _, own, finished in _chunks(states.to(call.compute), weight, bias, call)
        ]
    return _told_together(parts, states)


def tell_logits(
    logits: Tensor, targets: Tensor, heat: float | Tensor, words: Words, chunk: int
) -> WordLogProbs:
    """The same from whole logits (N, V) before they are divided by the temperature."""
    asked = Asked(comparison=WHOLE, teachers=())
    call = _Call(
        asked=asked, targets=targets, heat=heat, chunk=chunk, finish=PLAIN, compute=logits.dtype
    )
    parts = [
        _told(_heated(wide(logits[part]), own), own, words)
        for part, own in _slices(len(logits), call)
    ]
    return _told_together(parts, logits)


def _whole(logits: Tensor, vocabulary: int, call: _Call) -> Tensor:
    """(n, S) of each rank's words -> (n, V) on all of them."""
    if call.mesh is None:
        return logits
    shape = torch.Size((len(logits), vocabulary))
    cut = DTensor.from_local(
        logits, call.mesh, [Shard(1)], run_check=False, shape=shape, stride=(vocabulary, 1)
    )
    whole: Tensor = cut.full_tensor()
    return whole


def _told(logits: Tensor, call: _Call, words: Words) -> WordLogProbs:
    log_probs = logits.log_softmax(-1)
    chosen = log_probs.gather(1, call.targets[:, None]).squeeze(1)
    ids: Tensor | None = None
    if words.k is not None:
        log_probs, ids = log_probs.topk(min(words.k, log_probs.shape[1]), dim=-1)
        ids = ids.int().cpu()
    dtype = torch.float16 if words.dtype == "float16" else torch.float32
    return WordLogProbs(chosen, log_probs.clamp(min=LEAST_LOG_PROB).to(dtype).cpu(), ids)


def _told_together(parts: Sequence[WordLogProbs], like: Tensor) -> WordLogProbs:
    if not parts:
        return WordLogProbs(like.new_zeros(0, dtype=torch.float32), torch.zeros(0, 0), None)
    ids = [part.ids for part in parts if part.ids is not None]
    return WordLogProbs(
        torch.cat([part.log_probs for part in parts]),
        torch.cat([part.words for part in parts]),
        torch.cat(ids) if ids else None,
    )


class _OfStates(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, call: _Call
    ) -> tuple[Tensor, ...]:
        narrow = states.to(call.compute)
        with torch.autocast(states.device.type, enabled=False):
            measured = [
                _measured(_heated(finished, own), own)
                for _, own, finished in _chunks(narrow, weight, bias, call)
            ]
        outputs = _joined(measured, states)
        ctx.call, ctx.state_type = call, states.dtype
        ctx.save_for_backward(narrow, weight, bias)
        ctx.mark_non_differentiable(*(outputs[:2] + outputs[3:]))
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, *grads: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        states, weight, bias = ctx.saved_tensors
        call, grad = ctx.call, grads[2]
        learns = ctx.needs_input_grad
        to_states = torch.zeros_like(states, dtype=grad.dtype) if learns[0] else None
        to_weight = torch.zeros_like(weight) if learns[1] else None
        to_bias = torch.zeros_like(bias) if bias is not None and learns[2] else None
        with torch.autocast(states.device.type, enabled=False):
            own_weight = weight.to(call.compute)
            for part, own, finished in _chunks(states, weight, bias, call):
                into = _gradient(_heated(finished, own), own, grad[part])
                slope = call.finish.slope(finished)
                if isinstance(slope, Tensor) or slope != 1.0:
                    into.mul_(slope)
                if is_hot(own.heat):
                    into.div_(own.heat)
                narrow = into.to(call.compute)
                if to_states is not None:
                    to_states[part] = (narrow @ own_weight).to(to_states.dtype)
                if to_weight is not None:
                    to_weight += (narrow.t() @ states[part]).to(to_weight.dtype)
                if to_bias is not None:
                    to_bias += into.sum(0).to(to_bias.dtype)
        return (
            None if to_states is None else to_states.to(ctx.state_type),
            to_weight,
            to_bias,
            None,
        )


class _OfLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, call: _Call) -> tuple[Tensor, ...]:
        measured = [
            _measured(_heated(wide(logits[part]), own), own)
            for part, own in _slices(len(logits), call)
        ]
        outputs = _joined(measured, logits)
        ctx.call = call
        ctx.save_for_backward(logits)
        ctx.mark_non_differentiable(*(outputs[:2] + outputs[3:]))
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (logits,) = ctx.saved_tensors
        into = torch.empty_like(logits)
        for part, own in _slices(len(logits), ctx.call):
            slope = _gradient(_heated(wide(logits[part]), own), own, grads[2][part])
            into[part] = (slope / own.heat if is_hot(own.heat) else slope).to(into.dtype)
        return into, None


def _slices(states: int, call: _Call) -> Iterator[tuple[slice, _Call]]:
    for start in range(0, states, call.chunk):
        stop = min(start + call.chunk, states)
        yield slice(start, stop), call.at(start, stop)


def _chunks(
    states: Tensor, weight: Tensor, bias: Tensor | None, call: _Call
) -> Iterator[tuple[slice, _Call, Tensor]]:
    """Of each chunk: its states, the call for them, and undivided logits (n, S)."""
    own_weight = weight.to(call.compute)
    own_bias = None if bias is None else bias.to(call.compute)
    for part, own in _slices(len(states), call):
        product = torch.nn.functional.linear(states[part], own_weight, own_bias)
        yield part, own, call.finish(wide(product))


def _heated(logits: Tensor, call: _Call) -> Tensor:
    return logits / call.heat if is_hot(call.heat) else logits


def _joined(measured: Sequence[tuple[Tensor, ...]], like: Tensor) -> tuple[Tensor, ...]:
    if not measured:
        return tuple(like.new_zeros(0, dtype=torch.float32) for _ in Compared._fields)
    return tuple(torch.cat(parts) for parts in zip(*measured, strict=True))


def _log_probs(logits: Tensor, call: _Call) -> Tensor:
    """(n, S) of this rank's words among all."""
    total = log_sum(logits.logsumexp(-1), call.mesh) if logits.shape[1] else None
    if total is None:
        total = log_sum(logits.new_full(logits.shape[:1], -torch.inf), call.mesh)
    return logits - total[:, None]


def _at(log_probs: Tensor, words: Tensor, call: _Call) -> Tensor:
    """Log-probs (n, K) of words that are counted from this rank's first, wherever they are."""
    if call.mesh is None:
        return log_probs.gather(1, words)
    own = (words >= 0) & (words < log_probs.shape[1])
    found = log_probs.gather(1, words.clamp(0, max(log_probs.shape[1] - 1, 0)))
    return call.summed(torch.where(own, found, 0.0))


def _own_words(teacher: TeacherTokens, log_p: Tensor, call: _Call) -> Tensor:
    """The teacher's log-probs of this rank's words. (n_j, S)."""
    return teacher.words[:, call.first : call.first + log_p.shape[1]]


def _measured(logits: Tensor, call: _Call) -> tuple[Tensor, ...]:
    log_p = _log_probs(logits, call)
    entropy = call.summed(-torch.linalg.vecdot(log_p.exp(), log_p))
    chosen = _at(log_p, call.targets[:, None], call).squeeze(1)
    apart, mass, own_mass = (torch.zeros_like(chosen) for _ in range(3))
    for teacher in call.teachers(log_p.dtype):
        own = log_p[teacher.tokens]
        if teacher.ids is None:
            found = _divergence_of_all(own, _own_words(teacher, own, call), call)
            known = own_known = torch.ones_like(found)
        else:
            at = _at(own, teacher.ids - call.first, call)
            found = divergence_of_top(at, teacher.words, call.asked.comparison)
            known, own_known = teacher.words.exp().sum(-1), at.exp().sum(-1)
        apart.index_add_(0, teacher.tokens, teacher.weights * found)
        mass.index_add_(0, teacher.tokens, teacher.weights * known)
        own_mass.index_add_(0, teacher.tokens, teacher.weights * own_known)
    return chosen, entropy, apart, mass, own_mass


def _divergence_of_all(log_p: Tensor, log_q: Tensor, call: _Call) -> Tensor:
    comparison = call.asked.comparison
    if comparison.divergence == "forward":
        return call.summed(_apart(log_q, log_p))
    if comparison.divergence == "reverse":
        return call.summed(_apart(log_p, log_q))
    log_m, beta = log_mixture(log_p, log_q, comparison.beta), comparison.beta
    return call.summed(beta * _apart(log_q, log_m) + (1 - beta) * _apart(log_p, log_m))


def _apart(log_p: Tensor, log_q: Tensor) -> Tensor:
    apart: Tensor = torch.linalg.vecdot(log_p.exp(), log_p - log_q)
    return apart


def _gradient(logits: Tensor, call: _Call, grad: Tensor) -> Tensor:
    """Of the divergence towards this chunk's divided logits (n, S), times `grad` (n,)."""
    log_p = _log_probs(logits, call)
    into = torch.zeros_like(log_p)
    for teacher in call.teachers(log_p.dtype):
        own = log_p[teacher.tokens]
        share = (teacher.weights * grad[teacher.tokens])[:, None]
        if teacher.ids is None:
            slope = _slope_of_all(own, _own_words(teacher, own, call), call).mul_(share)
        else:
            slope = _slope_of_top(own, teacher, call).mul_(share)
        into.index_add_(0, teacher.tokens, slope)
    return into


def _slope_of_all(log_p: Tensor, log_q: Tensor, call: _Call) -> Tensor:
    comparison = call.asked.comparison
    if comparison.divergence == "forward":
        return log_p.exp() - log_q.exp()
    factor = 1.0
    if comparison.divergence == "jsd":
        log_q, factor = log_mixture(log_p, log_q, comparison.beta), 1 - comparison.beta
    away = log_p - log_q
    share = log_p.exp()
    mean = call.summed(torch.linalg.vecdot(share, away))
    return share.mul_(away.sub_(mean[:, None])).mul_(factor)


def _slope_of_top(log_p: Tensor, teacher: TeacherTokens, call: _Call) -> Tensor:
    assert teacher.ids is not None
    words = teacher.ids - call.first
    with torch.enable_grad():
        at = _at(log_p, words, call).detach().requires_grad_()
        found = divergence_of_top(at, teacher.words, call.asked.comparison)
        (slope,) = torch.autograd.grad(found.sum(), at)
    into = log_p.exp() * -slope.sum(-1, keepdim=True)
    if call.mesh is not None:
        own = (words >= 0) & (words < log_p.shape[1])
        words, slope = words.clamp(0, log_p.shape[1] - 1), torch.where(own, slope, 0.0)
    return into.scatter_add_(1, words, slope)
