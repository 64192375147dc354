"""GRPO as a bare loop: what is possible where a loop has one purpose.

A static cache, joined products, bfloat16 over float32 masters, `torch.compile` of reading, writing
and update, one process a core with its share of the rows, gradients summed by gloo. No events, no
checkpoints, no tables, no proof that the engine has the weights.
"""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial

import torch
import torch.distributed as dist
from tests.bench.grpo import bare_model as model
from tests.bench.grpo.arm import Ended, Meter
from tests.bench.grpo.work import (
    CLIP_NORM,
    DEVIATION_EPSILON,
    EPSILON,
    PROMPTS,
    SAMPLES,
    SIZES,
    Work,
    read_rows,
    score,
)
from torch import Tensor
from transformers import AutoTokenizer

ROWS_AT_ONCE = 32
"""Rows of a micro-batch: what they leave behind stays near the core."""


class Bare:
    """One process of the loop."""

    def __init__(self, work: Work, rank: int) -> None:
        self._work, self._size = work, SIZES[work.size]
        self._rank, self._world = rank, work.processes
        self._dtype = getattr(torch, work.precision)
        self._tokenizer = AutoTokenizer.from_pretrained(work.folder)
        self._texts = self._tokenizer.batch_decode(
            [[number] for number in range(self._size.vocabulary)], skip_special_tokens=True
        )
        self._rows = read_rows(work.rows)
        encoded = self._tokenizer([row["prompt"] for row in self._rows])["input_ids"]
        self._prompts = torch.tensor(encoded)  # (rows, P)
        self._masters = model.read_weights(work.folder, self._size)
        for weight in self._masters.values():
            weight.requires_grad_()
        parameters = list(self._masters.values())
        self._optimizer = torch.optim.AdamW(
            parameters, lr=work.learning_rate, weight_decay=0.0, fused=True
        )
        self._prompt_tokens = self._prompts.shape[1]
        self._length = self._prompt_tokens + work.new_tokens
        self._angles = model.angles(self._length, self._size, self._dtype)
        own = PROMPTS * SAMPLES // self._world
        kept = (own, self._size.kv_heads, self._length, self._size.head_width)
        self._keys = [torch.zeros(kept, dtype=self._dtype) for _ in range(self._size.layers)]
        self._values = [torch.zeros(kept, dtype=self._dtype) for _ in range(self._size.layers)]
        self._generator = torch.Generator().manual_seed(work.seed * 1000 + rank)
        compiled = partial(torch.compile, dynamic=False) if work.is_compiled else _as_it_is
        self._one_more = compiled(partial(model.one_more, size=self._size))
        self._loss = compiled(self._loss_of)
        self._at = 0

    def step(self, meter: Meter | None) -> None:
        began = time.perf_counter()
        places = [(self._at + n) % len(self._rows) for n in range(PROMPTS)]
        self._at += PROMPTS
        own = PROMPTS // self._world
        places = places[self._rank * own : (self._rank + 1) * own]
        with torch.no_grad():
            tokens = self._write(self._prompts[places])  # (N, T)
        if meter is not None:
            rows = len(tokens) * self._world
            meter.wrote(rows * self._work.new_tokens, time.perf_counter() - began)
        advantages = self._judge(tokens, places)
        began = time.perf_counter()
        self._learn(tokens, advantages)
        if meter is not None:
            meter.learned(time.perf_counter() - began)

    def _cast(self) -> model.Weights:
        return {name: weight.to(self._dtype) for name, weight in self._masters.items()}

    def _write(self, prompts: Tensor) -> Tensor:
        """Rows of prompts (n, P), each completed `SAMPLES` times, (N, T)."""
        weights, size, (cos, sin) = self._cast(), self._size, self._angles
        before = self._prompt_tokens
        hidden, keys, values = model.read(prompts, weights, cos[:before], sin[:before], size)
        for number in range(size.layers):
            for held, new in ((self._keys, keys), (self._values, values)):
                held[number][:, :, :before] = new[number].repeat_interleave(SAMPLES, 0)
        logits = model.logits_of(hidden[:, -1], weights).repeat_interleave(SAMPLES, 0)
        noise = self._noise(len(logits))
        tokens, _ = model.drawn(logits, noise[0])
        written = [tokens]
        positions = torch.arange(self._length)
        for number in range(1, self._work.new_tokens):
            position = positions[before + number - 1 : before + number]
            tokens, _ = self._one_more(
                tokens, position, noise[number], self._keys, self._values, weights, cos, sin
            )
            written.append(tokens)
        return torch.cat([prompts.repeat_interleave(SAMPLES, 0), torch.stack(written, 1)], 1)

    def _noise(self, rows: int) -> Tensor:
        wanted = (self._work.new_tokens, rows, self._size.vocabulary)
        return torch.empty(wanted).exponential_(generator=self._generator)

    def _judge(self, tokens: Tensor, places: list[int]) -> Tensor:
        """Advantages of the rows, (N,)."""
        scores = []
        for number, ids in enumerate(tokens[:, self._prompt_tokens :].tolist()):
            text = "".join(self._texts[token] for token in ids)
            answer = self._rows[places[number // SAMPLES]]["answer"]
            scores.append(score(self._work.reward, text, answer))
        rewards = torch.tensor(scores).view(-1, SAMPLES)
        spread = rewards.std(1, keepdim=True) + DEVIATION_EPSILON
        return ((rewards - rewards.mean(1, keepdim=True)) / spread).flatten()

    def _loss_of(self, tokens: Tensor, advantages: Tensor, weights: model.Weights) -> Tensor:
        cos, sin = (part[:-1] for part in self._angles)
        hidden, _, _ = model.read(tokens[:, :-1], weights, cos, sin, self._size)
        before = self._prompt_tokens
        logits = model.logits_of(hidden[:, before - 1 :], weights)  # (n, new, V)
        targets = tokens[:, before:, None]
        log_probs = logits.log_softmax(-1).gather(2, targets).squeeze(2)
        ratio = (log_probs - log_probs.detach()).exp()
        gains = advantages[:, None]
        clipped = ratio.clamp(1 - EPSILON, 1 + EPSILON) * gains
        return -torch.minimum(ratio * gains, clipped).sum()

    def _learn(self, tokens: Tensor, advantages: Tensor) -> None:
        count = PROMPTS * SAMPLES * self._work.new_tokens
        weights = {
            name: weight.detach().to(self._dtype).requires_grad_()
            for name, weight in self._masters.items()
        }
        size = min(ROWS_AT_ONCE, len(tokens))
        for first in range(0, len(tokens), size):
            part = slice(first, first + size)
            loss = self._loss(tokens[part], advantages[part], weights)
            (loss / count).backward()
        for name, master in self._masters.items():
            grad = weights[name].grad
            assert grad is not None
            master.grad = grad.float()
        if self._world > 1:
            flat = torch.cat([master.grad.flatten() for master in self._masters.values()])
            dist.all_reduce(flat)
            at = 0
            for master in self._masters.values():
                master.grad.copy_(flat[at : at + master.numel()].view_as(master))
                at += master.numel()
        torch.nn.utils.clip_grad_norm_(self._masters.values(), CLIP_NORM, foreach=True)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)


def _as_it_is(function):
    return function


def main() -> None:
    work, rank = Work.from_json(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    torch.set_num_threads(work.threads)
    if rank:
        _follow(work, rank, sys.argv[3])
        return
    helpers: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="bench-bare-") as place:
        for number in range(1, work.processes):
            command = [sys.executable, "-m", "tests.bench.grpo.bare_arm", work.to_json()]
            helpers.append(
                subprocess.Popen([*command, str(number), place], stdin=subprocess.DEVNULL)
            )
        _join(work, 0, place)
        meter = Meter(helpers=[one.pid for one in helpers])
        bare = Bare(work, 0)
        meter.ready(processes=work.processes)
        try:
            for _ in range(work.steps):
                meter.begin_step()
                _go_on(work, True)
                bare.step(meter)
                meter.end_step()
        except Ended:
            pass
        _go_on(work, False)
        for one in helpers:
            one.wait(timeout=60)
    sys.stdout.flush()
    os._exit(0)


def _follow(work: Work, rank: int, place: str) -> None:
    """A further process: does what the first one does."""
    _join(work, rank, place)
    bare = Bare(work, rank)
    while _go_on(work, True):
        bare.step(None)
    os._exit(0)


def _join(work: Work, rank: int, place: str) -> None:
    if work.processes > 1:
        dist.init_process_group(
            "gloo", init_method=f"file://{place}/meet", rank=rank, world_size=work.processes
        )


def _go_on(work: Work, is_wanted: bool) -> bool:
    """Whether the first process takes another step."""
    if work.processes == 1:
        return is_wanted
    told = torch.tensor([int(is_wanted)])
    dist.broadcast(told, 0)
    return bool(told)


if __name__ == "__main__":
    main()
