"""Where things run: pools on the machine, engines and backends that work there, degrees that
divide."""

from collections.abc import Iterator
from typing import Any, Final

from coloop.errors import PresetNotFound
from coloop.spec import presets
from coloop.spec.diagnostics import Change, Diagnostic, Fix, Severity, closest, did_you_mean
from coloop.spec.model import ScratchModel
from coloop.spec.nodes import ToolNode
from coloop.validate.facts import MAIN_POOL, Facts, found
from coloop.validate.numerics import architecture

VLLM_CPU_HEAD_SIZES: Final = frozenset({32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512})
"""Head sizes that vLLM's CPU kernels have."""

ENVIRONMENTS: Final = ("proof",)
CHECKERS: Final = ("proof",)


def presets_exist(facts: Facts) -> Iterator[Diagnostic]:
    """Hardware and architectures are known by the names that are written."""
    hardware = facts.spec.hardware
    if facts.hardware is None:
        is_gpu = hardware.gpu is not None
        name = hardware.gpu if is_gpu else hardware.preset
        known = presets.list_gpus() if is_gpu else presets.list_hardware()
        field = "hardware.gpu" if is_gpu else "hardware.preset"
        yield _unknown_preset("GPU" if is_gpu else "hardware preset", name or "", known, field)
    for name in facts.nodes:
        model = facts.model(name)
        if isinstance(model, ScratchModel) and not _is_architecture(model.architecture):
            yield _unknown_preset(
                "architecture",
                model.architecture,
                presets.list_models(),
                f"nodes.{name}.model.architecture",
                node=name,
            )


def built_ins_exist(facts: Facts) -> Iterator[Diagnostic]:
    """Environments and checkers are known by the names that are written."""
    for name, node in facts.nodes.items():
        if isinstance(node, ToolNode) and node.name is not None and node.name not in ENVIRONMENTS:
            yield _unknown_preset(
                "environment", node.name, ENVIRONMENTS, f"nodes.{name}.name", node=name
            )
        checker = getattr(node, "checker", None)
        if checker is not None and checker not in CHECKERS:
            yield _unknown_preset("checker", checker, CHECKERS, f"nodes.{name}.checker", node=name)


def pools_exist(facts: Facts) -> Iterator[Diagnostic]:
    """Nodes name pools that are there, and pools have nodes."""
    pools = list(facts.spec.hardware.pools) or [MAIN_POOL]
    used: set[str] = set()
    for name, node in facts.nodes.items():
        rollout = facts.rollout(name)
        wanted = [("pool", node.pool), ("rollout.pool", rollout.pool if rollout else None)]
        for field, pool in wanted:
            if pool is None:
                continue
            used.add(pool)
            if pool not in pools:
                yield _unknown_pool(facts, name, field, pool, pools)
        if node.pool is None and facts.model(name) is not None:
            used.add(MAIN_POOL)
            if MAIN_POOL not in pools:
                yield _unknown_pool(facts, name, "pool", MAIN_POOL, pools)
    for pool in facts.spec.hardware.pools:
        if pool not in used and used <= {*pools}:
            yield found(
                "placement.unused_pool",
                f"no node uses the pool `{pool}`",
                severity=Severity.WARNING,
                hint="name it in a node's `pool` or `rollout.pool`, or remove it",
                field=f"hardware.pools.{pool}",
                fixes=(
                    Fix(
                        title=f"Remove {pool}",
                        changes=(Change(op="remove", path=f"hardware.pools.{pool}"),),
                    ),
                ),
            )


def pools_fit_the_machine(facts: Facts) -> Iterator[Diagnostic]:
    """Pools together are no larger than the hardware, and count what it has."""
    machine, pools = facts.hardware, facts.spec.hardware.pools
    if machine is None or not pools:
        return
    unit = "gpus" if machine.gpus else "workers"
    wrong = [name for name, pool in pools.items() if getattr(pool, unit) is None]
    for name in wrong:
        other = "workers" if unit == "gpus" else "gpus"
        count = getattr(pools[name], other)
        change = Change(op="set", path=f"hardware.pools.{name}", value={unit: count})
        yield found(
            "placement.wrong_unit",
            f"the pool `{name}` counts `{other}`, but {machine.name} has {unit}",
            hint=f"write `{name}: {{{unit}: {count}}}`",
            field=f"hardware.pools.{name}",
            fixes=(Fix(title=f"Count {unit}", changes=(change,)),),
        )
    there = machine.gpus or machine.workers
    wanted = {name: getattr(pool, unit) or 0 for name, pool in pools.items()}
    if not wrong and sum(wanted.values()) > there:
        requested = " + ".join(f"{count} ({name})" for name, count in wanted.items())
        yield found(
            "placement.pools_too_large",
            f"the pools need {sum(wanted.values())} {unit} ({requested}), but {machine.name} has "
            f"{there}",
            hint="make pools smaller, or let roles share a pool",
            field="hardware.pools",
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
                change = Change(op="set", path=f"nodes.{name}.rollout.engine", value="torch")
                yield found(
                    "placement.engine",
                    f"vLLM cannot run `{name}` on a CPU: its head dimension is {arch.head_dim}",
                    hint=f"use `engine: torch`, or a model with a head dimension of {sizes}",
                    node=name,
                    field="rollout.engine",
                    fixes=(Fix(title="Generate with torch", changes=(change,)),),
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


def _unknown_preset(
    what: str, name: str, known: Any, field: str, node: str | None = None
) -> Diagnostic:
    fixes = tuple(
        Fix(title=f"Use {near}", changes=(Change(op="set", path=field, value=near),))
        for near in closest(name, known, limit=1)
    )
    return found(
        "placement.unknown_preset",
        f"there is no {what} `{name}`",
        hint=did_you_mean(name, known),
        node=node,
        field=field.removeprefix(f"nodes.{node}.") if node is not None else field,
        fixes=fixes,
    )


def _unknown_pool(facts: Facts, node: str, field: str, pool: str, pools: list[str]) -> Diagnostic:
    where = (
        "; without `pool`, a node is in `main`"
        if getattr(facts.nodes[node], "pool", None) is None
        else ""
    )
    path = f"nodes.{node}.{field}"
    return found(
        "placement.unknown_pool",
        f"there is no pool `{pool}`{where}",
        hint=did_you_mean(pool, pools),
        node=node,
        field=field,
        fixes=tuple(
            Fix(title=f"Put it in {name}", changes=(Change(op="set", path=path, value=name),))
            for name in (closest(pool, pools, limit=1) or pools[:1])
        ),
    )


def _wants_gpu(node: str, field: str, what: str) -> Diagnostic:
    return found(
        "placement.needs_gpu",
        f"`{what}` works on GPUs only, and this loop runs on a CPU",
        hint="remove it, or use hardware with GPUs",
        node=node,
        field=field,
        fixes=(
            Fix(
                title=f"Remove {what}", changes=(Change(op="remove", path=f"nodes.{node}.{field}"),)
            ),
        ),
    )


RULES = (
    presets_exist,
    built_ins_exist,
    pools_exist,
    pools_fit_the_machine,
    engines_can_run,
)
