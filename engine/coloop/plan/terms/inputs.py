"""The inputs of an estimate as numbers that are traced: each with its name and where it is from.

Facts of the hardware, of models, row counts and settings stay what they are; only what they are
computed with changes, so that `Memory` and `Clock` give the numbers of the estimate with their
formulas.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import fields, replace
from typing import Any, cast

from coloop.plan.settings.architecture import Architecture, Cache, ParameterCount
from coloop.plan.settings.engines import Engine
from coloop.plan.settings.machine import Machine, PoolShare
from coloop.plan.settings.settings import Decision
from coloop.plan.settings.survey import Survey
from coloop.plan.settings.traced import Unit, leaf
from coloop.plan.settings.weights import Block, Precision, Weights
from coloop.spec.lean import record
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.placement import Hardware
from coloop.spec.row_counts import Count
from coloop.spec.table_sizes import TableSize

OWN_FIGURE = "your own figure"
FIGURES: Mapping[str, tuple[str, str, Unit]] = {
    "bandwidth": ("memory bandwidth", "bandwidth", "B/s"),
    "bf16_flops": ("bfloat16 operations a second", "bf16_tflops", "FLOP/s"),
    "fp32_flops": ("float32 operations a second", "", "FLOP/s"),
    "link_bandwidth": ("bandwidth between GPUs", "link", "B/s"),
    "training_share": ("share that training reaches", "", ""),
}
"""Facts of a GPU: name, field of `hardware.figures`, unit."""
SHAPES = {
    "vocab_size": "vocabulary",
    "hidden_size": "hidden size",
    "layers": "layers",
    "heads": "heads",
    "kv_heads": "key heads",
    "head_dim": "head size",
    "ffn": "feed-forward size",
}
COUNTS = {
    "total": "parameters",
    "active": "active parameters",
    "embedding": "embedding",
    "head": "output matrix",
    "layer": "parameters of a layer",
    "routed": "parameters of experts",
}
SIZES = {
    "rows": "rows",
    "prompt": "mean prompt",
    "prompt_max": "longest prompt",
    "written": "mean completion",
    "written_max": "longest completion",
}


@record
class TracedArchitecture(Architecture):
    """Unequal to a plain one with the same numbers, so that caches keep them apart."""


@record
class TracedMachine(Machine):
    @property
    def tokens_at_once(self) -> Any:
        said = "tokens that fill a pass"
        filled = Machine.tokens_at_once.fget(self)  # type: ignore[attr-defined]
        return leaf(filled, said, "tokens", "more at once are no faster")

    def visible_bytes(self, pool: PoolShare) -> Any:
        source = self.preset.gpu or self.preset.title
        size = Machine.visible_bytes(self, pool)
        return leaf(size, "memory that a process can use", "B", _of_gpu(source))

    def usable_bytes(self, pool: PoolShare) -> Any:
        size = Machine.usable_bytes(self, pool)
        return leaf(size, "memory that the loop may use", "B", "hardware.memory_budget")

    def network(self, cards: int = 1) -> Any:
        speed = Machine.network(self, cards)
        return leaf(speed, "bandwidth between machines", "B/s", "a card of NDR400 for each GPU")


def traced_survey(survey: Survey, reasons: Mapping[str, Decision]) -> Survey:
    """A copy whose numbers are traced. `reasons`: by path, why an open setting has its value."""
    traced = copy(survey)
    traced.machine = _machine(survey.machine, survey.spec.hardware)
    traced.weights = {
        name: _weights(weights, traced, reasons) for name, weights in survey.weights.items()
    }
    traced.counts = _counts(survey.counts)
    traced.passes = {probe: tuple(map(_counts, survey.passes_of(probe))) for probe in survey.probes}
    traced.engines = tuple(_engine(engine, traced, reasons) for engine in survey.engines)
    traced.find_engines()
    return traced


def _machine(machine: Machine, hardware: Hardware) -> Machine:
    preset = machine.preset
    own = set() if hardware.figures is None else hardware.figures.model_fields_set
    known = preset.gpu or preset.title
    facts = {
        name: leaf(
            getattr(preset, name),
            said,
            unit,
            OWN_FIGURE if field in own else _of_gpu(known, name in preset.unverified),
        )
        for name, (said, field, unit) in FIGURES.items()
    }
    facts["bf16_flops"] = leaf(
        preset.bf16_flops,
        FIGURES["bf16_flops"][0] if preset.gpus else "float32 operations a second of a core",
        "FLOP/s",
        facts["bf16_flops"].made.source,
    )
    pools = {name: _pool(pool, hardware) for name, pool in machine.pools.items()}
    return TracedMachine(
        preset=replace(preset, **facts),
        pools=pools,
        budget=machine.budget,
        processor=machine.processor,
    )


def _of_gpu(name: str, is_unverified: bool = False) -> str:
    return f"{name}, not verified" if is_unverified else f"data of {name}"


def _pool(pool: PoolShare, hardware: Hardware) -> PoolShare:
    written = f"hardware.pools.{pool.name}" if pool.name in hardware.pools else "hardware"
    if pool.gpus:
        return replace(pool, gpus=leaf(pool.gpus, f"GPUs of {pool.name}", "", written))
    return replace(pool, workers=leaf(pool.workers, f"processes of {pool.name}", "", written))


def _architecture(arch: Architecture, source: str) -> Architecture:
    values = {field.name: getattr(arch, field.name) for field in fields(Architecture)}
    shapes: dict[str, Any] = {
        name: leaf(getattr(arch, name), said, "", source) for name, said in SHAPES.items()
    }
    caches = tuple(_cache(cache, arch, shapes, source) for cache in arch.caches)
    return TracedArchitecture(**values | shapes | {"caches": caches})


def _cache(cache: Cache, arch: Architecture, shapes: Mapping[str, Any], source: str) -> Cache:
    layers = shapes["layers"]
    if cache.layers != arch.layers:
        layers = leaf(cache.layers, f"layers with a window of {cache.window}", "", source)
        if cache.window is None:
            layers = leaf(cache.layers, "layers with a full cache", "", source)
    width = leaf(cache.width, "keys and values of a token in a layer", "", source)
    return replace(cache, layers=layers, width=width)


def _weights(weights: Weights, survey: Survey, reasons: Mapping[str, Decision]) -> Weights:
    traced = copy(weights)
    source = f"{weights.arch.name}, a model of type {weights.arch.model_type}"
    traced.arch = _architecture(weights.arch, source)
    traced.count = _count(weights.count, source)
    traced.total = leaf(weights.total, "all parameters", "", source)
    if weights.total == weights.count.total:
        traced.total = traced.count.total
    learned = "trained parameters" if weights.trains_all else "parameters of the adapter"
    traced.trainable = leaf(weights.trainable, learned, "", source)
    traced.precision = _precision(weights.precision, weights, reasons)
    traced.held = traced.precision
    if weights.held != weights.precision:
        traced.held = replace(
            traced.precision,
            frozen_bytes=leaf(
                weights.held.frozen_bytes, "bytes of a frozen parameter", "B", source
            ),
        )
    traced.pool = survey.machine.pools[weights.pool.name]
    traced.shards = leaf(weights.shards, "data-parallel ranks", "", "GPUs of the pool")
    traced.blocks = tuple(
        _block(block, weights, learned, source, len(weights.blocks)) for block in weights.blocks
    )
    path = f"nodes.{weights.name}.training"
    degrees = {
        name: leaf(getattr(weights.update, name), said, "", f"{path}.{name}")
        for name, said in (
            ("tensor_parallel", "tensor-parallel degree"),
            ("pipeline_parallel", "pipeline stages"),
            ("context_parallel", "context-parallel degree"),
            ("expert_parallel", "expert-parallel degree"),
        )
        if getattr(weights.update, name) > 1
    }
    traced.update = replace(weights.update, **degrees)
    traced.states = traced.compute_states()
    return traced


def _count(count: ParameterCount, source: str) -> ParameterCount:
    traced: dict[str, Any] = {
        name: leaf(getattr(count, name), said, "", source) for name, said in COUNTS.items()
    }
    return replace(count, **traced)


def _block(block: Block, weights: Weights, learned: str, source: str, blocks: int) -> Block:
    total = leaf(block.parameters, "parameters", "", source)
    own = leaf(block.learned, learned, "", source)
    if block.learned == block.parameters:
        total = own
    ranks = block.ranks
    if ranks > 1:
        is_of_experts = blocks > 1 and block is weights.blocks[-1]
        said = "expert- and pipeline-parallel" if is_of_experts else "tensor- and pipeline-parallel"
        ranks = leaf(ranks, f"{said} ranks", "", f"nodes.{weights.name}.training")
    return Block(parameters=total, learned=own, ranks=ranks)


def _precision(
    precision: Precision, weights: Weights, reasons: Mapping[str, Decision]
) -> Precision:
    path = f"nodes.{weights.name}.training.dtype"
    source = _decided(path, reasons)
    if not weights.trains:
        source = _decided(f"nodes.{weights.name}.model.dtype", reasons)
    names = {
        "compute_bytes": "bytes of an activation",
        "master_bytes": "bytes of a trained parameter",
        "frozen_bytes": "bytes of a frozen parameter",
        "engine_bytes": "bytes of a parameter in the engine",
    }
    traced: dict[str, Any] = {
        name: leaf(getattr(precision, name), said, "B", source) for name, said in names.items()
    }
    return replace(precision, **traced)


def _decided(path: str, reasons: Mapping[str, Decision]) -> str:
    decision = reasons.get(path)
    return path if decision is None else f"{path}: {decision.reason}"


def _engine(engine: Engine, survey: Survey, reasons: Mapping[str, Decision]) -> Engine:
    path = f"nodes.{engine.writers[0]}.rollout"
    degree: Any = engine.tensor_parallel
    if degree > 1:
        degree = leaf(degree, "GPUs of an engine", "", _decided(f"{path}.tensor_parallel", reasons))
    most = leaf(
        engine.max_sequences, "sequences at once", "", _decided(f"{path}.max_num_seqs", reasons)
    )
    share: Any = engine.utilization
    if share is not None:
        share = leaf(share, "share of the GPU", "", f"{path}.gpu_memory_utilization")
    return replace(
        engine,
        weights=survey.weights[engine.weights.name],
        pool=survey.machine.pools[engine.pool.name],
        tensor_parallel=degree,
        max_sequences=most,
        utilization=share,
        rows=leaf(engine.rows, "rows", "", "rows of a step"),
        length=leaf(engine.length, "longest text", "tokens", path),
        prompt=leaf(engine.prompt, "longest prompt", "tokens", path),
    )


def _counts(counts: RowCounts) -> RowCounts:
    return cast(RowCounts, _Counts(counts))


class _Counts:
    """Row counts, whose means are traced."""

    def __init__(self, counts: RowCounts) -> None:
        self._counts = counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._counts, name)

    def of(self, node: str, port: str) -> Count:
        return self._traced(self._counts.of(node, port), node)

    def arriving(self, node: str, *ports: str) -> Count:
        return self._traced(self._counts.arriving(node, *ports), node)

    def worked_on(self, node: str) -> Count:
        return self._traced(self._counts.worked_on(node), node)

    def taught(self, node: str, port: str) -> Count:
        return self._traced(self._counts.taught(node, port), node)

    def _traced(self, count: Count, node: str) -> Count:
        mean, values = count.mean, {}
        for name, said in SIZES.items():
            unit: Unit = "" if name == "rows" else "tokens"
            values[name] = leaf(getattr(mean, name), said, unit, f"a step at {node}")
        table: TableSize = replace(mean, **values)
        return replace(count, mean=table)
