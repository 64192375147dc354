"""Texts on their way through vLLM: requests in by token ids, tokens out one step at a time.

vLLM ends a text at its end token or its limit; stop texts are found here, as for every engine,
because they may begin in an earlier request. Scores go the same way, as prompts of which vLLM tells
the log-probs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from coloop.workers.rollout.kept import KeptTexts
from coloop.workers.rollout.protocol import Generation
from coloop.workers.rollout.stops import StopTexts
from coloop.workers.rollout.text_engine import is_cut
from coloop.workers.rollout.texts import takes_likeliest


@dataclass(slots=True)
class _Running:
    text: Generation
    looked: int
    """Tokens that were searched for stop texts."""


class VllmTexts:
    """Implements `Writer` over an `LLMEngine`."""

    def __init__(self, vllm: Any, kept: KeptTexts, is_end: Tensor, stops: StopTexts) -> None:
        self._vllm = vllm
        self._kept = kept
        self._ends = is_end.nonzero().flatten().tolist()
        self._stops = stops
        self._may_end: dict[int, list[bool]] = {}
        self._running: dict[str, _Running] = {}
        self._scored: dict[str, list[float] | None] = {}
        self._ended: list[Generation] = []

    def __len__(self) -> int:
        return len(self._running) + len(self._ended)

    def texts(self) -> list[Generation]:
        return [one.text for one in self._running.values()]

    def written(self) -> int:
        running = sum(len(one.text.token_ids) for one in self._running.values())
        return running + sum(len(text.token_ids) for text in self._ended)

    def clear(self) -> None:
        self._vllm.abort_request([*self._running, *self._scored])
        self._running, self._scored, self._ended = {}, {}, []

    def add(self, text: Generation) -> None:
        text.sampled_log_probs = (text.sampled_log_probs or []) if is_cut(text.request) else None
        name, read = str(text.ticket), list(text.to_read)
        parameters = self._parameters(text, len(read), text.before)
        self._vllm.add_request(name, {"prompt_token_ids": read}, parameters)
        self._running[name] = _Running(text, looked=text.before)

    def _parameters(self, text: Generation, read: int, written: int) -> Any:
        """How vLLM writes a text of which so many tokens are to be read, the last of them
        written before."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        from coloop.workers.rollout.vllm_worker import DRAW

        request = text.request
        first = len(request.prompt_ids) if request.seed_from is None else request.seed_from
        draw = {
            "seed": request.seed,
            "start": read - first,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "top_k": request.top_k,
            "greedy": takes_likeliest(request),
        }
        return SamplingParams(
            temperature=0.0,  # it takes the token that is drawn in `vllm_worker`
            max_tokens=request.max_new_tokens - written,
            logprobs=2 if is_cut(request) else 0,
            flat_logprobs=True,
            detokenize=False,
            ignore_eos=True,
            stop_token_ids=self._ends,
            output_kind=RequestOutputKind.DELTA,
            extra_args={DRAW: draw},
        )

    def step(self) -> list[Generation]:
        if self._running:
            self._step()
        ended, self._ended = self._ended, []
        return ended

    def take_out(self, tickets: Collection[int]) -> tuple[list[Generation], list[Generation]]:
        names = [name for name, one in self._running.items() if one.text.ticket in tickets]
        self._vllm.abort_request(names)
        cut = [self._running.pop(name) for name in names]
        ended, self._ended = self._ended, []
        taken = [text for text in ended if text.ticket in tickets]
        others = [text for text in ended if text.ticket not in tickets]
        return [*taken, *(one.text.ends("aborted") for one in cut)], others

    def score(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-prob of every token; what is written goes on meanwhile."""
        from vllm import SamplingParams

        parameters = SamplingParams(
            temperature=0.0,
            max_tokens=1,
            prompt_logprobs=0,
            flat_logprobs=True,
            detokenize=False,
            ignore_eos=True,
        )
        names = [f"score-{number}" for number in range(len(sequences))]
        short = {name: [0.0] * len(s) for name, s in zip(names, sequences, strict=True)}
        for name, sequence in zip(names, sequences, strict=True):
            if len(sequence) > 1:
                given = {"prompt_token_ids": list(sequence)}
                self._vllm.add_request(name, given, parameters)
                self._scored[name] = None
        while None in self._scored.values():
            self._step()
        scored, self._scored = self._scored, {}
        return [scored.get(name) or short[name] for name in names]

    def _step(self) -> None:
        for output in self._vllm.step():
            if output.request_id in self._scored:
                self._scored[output.request_id] = [0.0, *output.prompt_logprobs.logprobs]
            elif output.request_id in self._running:
                self._read(output.request_id, output.outputs[0])

    def _read(self, name: str, output: Any) -> None:
        """Takes the new tokens of a text, and the text out where it has ended."""
        from coloop.workers.rollout.vllm_worker import log_probs_of

        one = self._running[name]
        text = one.text
        told = output.logprobs  # of all new tokens in lists
        text.token_ids += output.token_ids
        if text.sampled_log_probs is None:
            text.log_probs += told.logprobs
        else:
            for first, end in zip(told.start_indices, told.end_indices, strict=True):
                before, after = log_probs_of(told.token_ids[first:end], told.logprobs[first:end])
                text.log_probs.append(before)
                text.sampled_log_probs.append(after)
        is_stopped = self._is_stopped(one)
        if not is_stopped and output.finish_reason is None:
            return
        if output.finish_reason is None:
            self._vllm.abort_request([name])
        del self._running[name]
        is_eos = text.token_ids[-1] in self._ends
        self._ended.append(text.ends("stop" if is_stopped else "eos" if is_eos else "length"))
        if text.request.keep:
            self._kept.add(text.ticket, [*text.request.prompt_ids, *text.token_ids], None)

    def _is_stopped(self, one: _Running) -> bool:
        """Whether a stop text is complete; what follows it is cut off."""
        text, request = one.text, one.text.request
        new, one.looked = text.token_ids[one.looked :], len(text.token_ids)
        if not request.stop:
            return False
        number = self._stops.number_of(request.stop)
        if number not in self._may_end:
            self._may_end[number] = self._stops.may_end[number].tolist()
        if not any(self._may_end[number][token] for token in new):
            return False
        first = len(request.prompt_ids) if request.stop_from is None else request.stop_from
        earlier = list(request.prompt_ids[first:])
        whole = earlier + text.token_ids
        found = self._stops.first_end(number, whole, len(whole) - len(new))
        if found is None:
            return False
        for values in (text.token_ids, text.log_probs, text.sampled_log_probs or []):
            del values[found - len(earlier) :]
        return True
