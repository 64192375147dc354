"""Where things run: presets and built-ins exist, pools fit the hardware, and engines, optimizers
and backends work there."""

from collections.abc import Iterable, Iterator
from typing import Final

from coloop.errors import PresetNotFound
from coloop.spec import presets
from coloop.spec.diagnostics import Diagnostic, Fix, did_you_mean, error, warning
from coloop.spec.groups import DEFAULT_POOL
from coloop.spec.model import ScratchModel
from coloop.spec.nodes import ToolNode
from coloop.validate.facts import Facts, corrections
from coloop.validate.numerics import architecture

VLLM_CPU_HEAD_SIZES: Final = frozenset({32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512})
"""Head sizes supported by vLLM on CPUs."""

ENVIRONMENTS: Final = ("proof",)
CHECKERS: Final = ("proof",)


def presets_exist(facts: Facts) -> Iterator[Diagnostic]:
    """Names of hardware presets, GPUs and architectures are known."""
    hardware = facts.spec.hardware
    if facts.hardware is None and hardware.gpu is not None and hardware.figures is not None:
        lacking = [f for f in presets.NEEDED_FIGURES if getattr(hardware.figures, f) is None]
        yield error(
            "placement.unknown_preset",
            f"hardware.figures.{lacking[0]}",
            f"there is no GPU `{hardware.gpu}`, and its figures lack `{'`, `'.join(lacking)}`",
            "give all of memory_gib, bf16_tflops and bandwidth, or the name of a known GPU",
        )
    elif facts.hardware is None and hardware.gpu is not None:
        yield _unknown("GPU", "hardware.gpu", hardware.gpu, presets.list_gpus())
    elif facts.hardware is None:
        known = presets.list_hardware()
        yield _unknown("hardware preset", "hardware.preset", hardware.preset or "", known)
    for name in facts.nodes:
        model = facts.model(name)
        if isinstance(model, ScratchModel) and not _is_architecture(model.architecture):
            at = f"nodes.{name}.model.architecture"
            yield _unknown("architecture", at, model.architecture, presets.list_models())


def built_ins_exist(facts: Facts) -> Iterator[Diagnostic]:
    """Names of built-in environments and checkers are known."""
    for name, node in facts.nodes.items():
        if isinstance(node, ToolNode) and node.name is not None and node.name not in ENVIRONMENTS:
            yield _unknown("environment", f"nodes.{name}.name", node.name, ENVIRONMENTS)
        checker = getattr(node, "checker", None)
        if checker is not None and checker not in CHECKERS:
            yield _unknown("checker", f"nodes.{name}.checker", checker, CHECKERS)


def pools_exist(facts: Facts) -> Iterator[Diagnostic]:
    """Nodes name existing pools, and every pool is used."""
    pools = list(facts.spec.hardware.pools) or [DEFAULT_POOL]
    used: set[str] = set()
    for name, node in facts.nodes.items():
        rollout = facts.rollout(name)
        own = node.pool or (DEFAULT_POOL if facts.model(name) is not None else None)
        wanted = {"pool": own, "rollout.pool": rollout.pool if rollout else None}
        for field, pool in wanted.items():
            if pool is None:
                continue
            used.add(pool)
            if pool not in pools:
                at = f"nodes.{name}.{field}"
                where = "" if node.pool else "; without `pool`, a node is in `main`"
                fixes = corrections(at, pool, pools, "Put it in {}")
                yield error(
                    "placement.unknown_pool",
                    at,
                    f"there is no pool `{pool}`{where}",
                    did_you_mean(pool, pools),
                    *(fixes or (Fix.set(f"Put it in {pools[0]}", at, pools[0]),)),
                )
    for pool in facts.spec.hardware.pools:
        if pool not in used and used <= {*pools}:
            yield warning(
                "placement.unused_pool",
                f"hardware.pools.{pool}",
                f"no node uses the pool `{pool}`",
                "name it in a node's `pool` or `rollout.pool`, or remove it",
                Fix.remove(f"Remove {pool}", f"hardware.pools.{pool}"),
            )


def pools_fit_the_machine(facts: Facts) -> Iterator[Diagnostic]:
    """Pools count GPUs or workers, as the hardware does, and together have no more than it."""
    machine, pools = facts.hardware, facts.spec.hardware.pools
    if machine is None or not pools:
        return
    unit = "gpus" if machine.gpus else "workers"
    wrong = [name for name, pool in pools.items() if getattr(pool, unit) is None]
    for name in wrong:
        other = "workers" if unit == "gpus" else "gpus"
        count = getattr(pools[name], other)
        yield error(
            "placement.wrong_unit",
            f"hardware.pools.{name}",
            f"the pool `{name}` counts `{other}`, but {machine.name} has {unit}",
            f"write `{name}: {{{unit}: {count}}}`",
            Fix.set(f"Count {unit}", f"hardware.pools.{name}", {unit: count}),
        )
    there = machine.gpus or machine.workers
    wanted = {name: getattr(pool, unit) or 0 for name, pool in pools.items()}
    if not wrong and sum(wanted.values()) > there:
        requested = " + ".join(f"{count} ({name})" for name, count in wanted.items())
        yield error(
            "placement.pools_too_large",
            "hardware.pools",
            f"the pools need {sum(wanted.values())} {unit} ({requested}), but {machine.name} has "
            f"{there}",
            "make pools smaller, or let roles share a pool",
        )


def engines_can_run(facts: Facts) -> Iterator[Diagnostic]:
    """Engines and optimizers work on the hardware of their pool."""
    machine = facts.hardware
    if machine is None or machine.gpus:
        return
    for name in facts.nodes:
        rollout = facts.rollout(name)
        if rollout is not None and rollout.engine == "vllm" and facts.lineage.writes(name):
            arch = architecture(facts, name)
            if arch is not None and arch.head_dim not in VLLM_CPU_HEAD_SIZES:
                sizes = ", ".join(str(size) for size in sorted(VLLM_CPU_HEAD_SIZES))
                yield error(
                    "placement.engine",
                    f"nodes.{name}.rollout.engine",
                    f"vLLM cannot run `{name}` on a CPU: its head dimension is {arch.head_dim}",
                    f"use `engine: torch`, or a model with a head dimension of {sizes}",
                    Fix.set("Generate with torch", f"nodes.{name}.rollout.engine", "torch"),
                )
        quantization = getattr(facts.model(name), "quantization", None)
        if quantization is not None:
            yield _wants_gpu(name, "model.quantization", quantization)
    for group in facts.groups.values():
        training = facts.training(group.name)
        if group.trainable and training.optimizer.name == "adamw8bit":
            yield _wants_gpu(group.name, "training.optimizer.name", "adamw8bit")
        if group.trainable and training.dtype == "fp8":
            yield _wants_gpu(group.name, "training.dtype", "fp8")
        if group.trainable and training.backend == "megatron":
            yield _wants_gpu(group.name, "training.backend", "megatron")


def _is_architecture(name: str) -> bool:
    try:
        presets.model(name)
    except PresetNotFound:
        return False
    return True


def _unknown(what: str, at: str, name: str, known: Iterable[str]) -> Diagnostic:
    fixes = corrections(at, name, known, "Use {}")
    hint = did_you_mean(name, known)
    return error("placement.unknown_preset", at, f"there is no {what} `{name}`", hint, *fixes)


def _wants_gpu(node: str, field: str, what: str) -> Diagnostic:
    return error(
        "placement.needs_gpu",
        f"nodes.{node}.{field}",
        f"`{what}` works on GPUs only, and this loop runs on a CPU",
        "remove it, or use hardware with GPUs",
        Fix.remove(f"Remove {what}", f"nodes.{node}.{field}"),
    )
