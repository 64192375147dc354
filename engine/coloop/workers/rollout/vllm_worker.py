"""What runs inside vLLM's worker: every engine's draws, scores at a temperature, weights in place.

vLLM draws from one generator a request, and takes log-probs before the temperature or after the
cut. So tokens are drawn here, as in the torch engine, by position; vLLM gets a row in which one
token is possible, whose value is its log-prob (`logprobs_mode` processed_logits). A second, lower
value is the log-prob after a cut.

B rows of a batch, N of them ours, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from vllm.distributed import get_tp_group
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload
from vllm.v1.executor.uniproc_executor import ExecutorWithExternalLauncher
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor, MoveDirectionality

from coloop.workers.rollout.decoder import scaled_log_softmax
from coloop.workers.rollout.isolated_groups import EngineRank
from coloop.workers.rollout.sampling import KEEP_ALL, Settings, draw, uniforms

DRAW = "coloop_draw"
"""Key of a request's settings among the extra arguments of its sampling parameters."""
AHEAD = 64  # draws of a row that are computed at once


def log_probs_of(tokens: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """A drawn token's log-probs before and after the cut, from vLLM's report: the token first,
    then, where the row is cut, the likeliest ones."""
    before = values[0]
    second = max(value for one, value in zip(tokens, values, strict=True) if one != tokens[0])
    return before, 2 * before - second - 1


@dataclass(frozen=True, slots=True)
class Row:
    given: Mapping[str, Any]
    output: list[int]  # its tokens so far; vLLM appends to this very list


class SeededSampler(LogitsProcessor):  # type: ignore[misc]
    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        del vllm_config, is_pin_memory
        self._device = device
        self._rows: dict[int, Row] = {}
        self._ours: list[Row] = []  # in the order of their places
        self._places = torch.empty(0)
        self._settings = Settings()
        self._uniform = torch.empty(0)  # the next draws of each row, (N, AHEAD)
        self._used = AHEAD
        self._expected: list[int] = []
        """How many tokens each row has when the next unused draws are its own."""

    def is_argmax_invariant(self) -> bool:
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        if batch_update is None:
            return
        for place in batch_update.removed:
            self._rows.pop(place, None)
        for place, parameters, _, output in batch_update.added:
            self._rows.pop(place, None)
            given = (parameters.extra_args or {}).get(DRAW)
            if given is not None:
                self._rows[place] = Row(given, output)
        for source, target, direction in batch_update.moved:
            moved, replaced = self._rows.pop(source, None), self._rows.pop(target, None)
            if moved is not None:
                self._rows[target] = moved
            if replaced is not None and direction == MoveDirectionality.SWAP:
                self._rows[source] = replaced
        order = sorted(self._rows)
        self._ours = [self._rows[place] for place in order]
        self._places = torch.tensor(order, device=self._device)
        self._settings = self._read_settings([row.given for row in self._ours])
        self._used = AHEAD

    def _read_settings(self, rows: list[Mapping[str, Any]]) -> Settings:
        def put(values: list[Any], nothing: Any) -> Tensor | None:
            is_asked = any(value != nothing for value in values)
            return torch.tensor(values, device=self._device) if is_asked else None

        everything = torch.iinfo(torch.int64).max
        return Settings(
            inverse_temperature=put([1 / (row["temperature"] or 1.0) for row in rows], 1.0),
            greedy=put([row["greedy"] for row in rows], False),
            top_p=put([row["top_p"] if row["top_p"] < 1 else KEEP_ALL for row in rows], KEEP_ALL),
            top_k=put([row["top_k"] or everything for row in rows], everything),
            all_greedy=all(row["greedy"] for row in rows),
        )

    def apply(self, logits: Tensor) -> Tensor:
        """(B, V), float32; overwritten."""
        if not self._ours:
            return logits
        uniform = self._next_uniform()
        if len(self._ours) == len(logits):
            tokens, log_probs = draw(logits, uniform, self._settings)
            logits.fill_(-torch.inf)
        else:
            copied = logits[self._places]  # (N, V)
            tokens, log_probs = draw(copied, uniform, self._settings)
            logits[self._places] = -torch.inf
        tokens = _of_first_rank(tokens)
        before = log_probs[:, 0]
        logits[self._places, tokens] = before
        if self._settings.cuts:
            beside = (tokens + 1) % logits.shape[1]
            logits[self._places, beside] = 2 * before - log_probs[:, 1] - 1
        return logits

    def _next_uniform(self) -> Tensor:
        """Each row's next number, (N,): computed for many steps, anew after an irregular one."""
        written = [len(row.output) for row in self._ours]
        if self._used == AHEAD or written != self._expected:
            seeds = [row.given["seed"] for row in self._ours]
            starts = [
                row.given["start"] + count for row, count in zip(self._ours, written, strict=True)
            ]
            self._uniform = uniforms(seeds, AHEAD, self._device, starts=starts)
            self._used = 0
        self._expected = [count + 1 for count in written]
        self._used += 1
        return self._uniform[:, self._used - 1]


def _of_first_rank(tokens: Tensor) -> Tensor:
    """The draws of the first rank of a tensor-parallel group on all of them. Each draws from the
    same logits, but sums on a GPU are not the same to the last bit, and ranks with other tokens
    would schedule other steps."""
    group = get_tp_group()
    drawn: Tensor = group.broadcast(tokens.contiguous(), src=0) if group.world_size > 1 else tokens
    return drawn


def executor_of(rank: EngineRank, name: str) -> type[ExecutorWithExternalLauncher]:
    """The executor of one of the ranks that share an engine; they have met already, under `name`.
    vLLM's own reads them from the environment of `torchrun`."""

    class Executor(ExecutorWithExternalLauncher):  # type: ignore[misc]
        def _distributed_args(self) -> tuple[str, int, int]:
            """Place of the meeting, rank in the group, and index of the GPU, of which this process
            sees one. The CPU build names its shared memory after the part behind the colon."""
            return f"met:{name}", rank.rank, 0

    return Executor


class WorkerExtension:
    model_runner: Any

    def report_draws(self) -> None:
        """Report the values of drawn tokens as they are; prompts keep log-probs."""
        self.model_runner.sampler.logprobs_mode = "processed_logits"

    def score_at(self, temperature: float) -> None:
        """From now on log-probs of prompts are those at this temperature."""
        self.model_runner.sampler.compute_logprobs = lambda logits: scaled_log_softmax(
            logits, temperature
        )

    def take_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Load all weights in place; after an error they can be loaded again."""
        runner = self.model_runner
        try:
            runner.reload_weights(weights_iterator=weights)
        except BaseException:
            finalize_layerwise_reload(runner.get_model(), runner.model_config)
            raise
