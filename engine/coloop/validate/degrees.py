"""Parallel degrees: they divide pool, heads and batch."""

from collections.abc import Iterator
from math import gcd, isqrt
from typing import Final

from coloop.spec.diagnostics import Change, Diagnostic, Fix
from coloop.spec.training import Training
from coloop.validate.facts import MAIN_POOL, Facts, found
from coloop.validate.numerics import architecture


def degrees_divide(facts: Facts) -> Iterator[Diagnostic]:
    """Parallel degrees divide the pool, the heads and the batch."""
    for group in facts.groups.values():
        if not group.trainable:
            continue
        training = facts.training(group.name)
        places = _places(facts, facts.nodes[group.name].pool)
        yield from _check_training_degrees(facts, group.name, training, places)
    for name in facts.nodes:
        rollout = facts.rollout(name)
        if rollout is None or not facts.lineage.writes(name):
            continue
        places = _places(facts, rollout.pool or facts.nodes[name].pool)
        yield from _check_degree(
            facts, name, "rollout.tensor_parallel", rollout.tensor_parallel, places
        )


def _check_training_degrees(
    facts: Facts, name: str, training: Training, places: int | None
) -> Iterator[Diagnostic]:
    degrees = {
        "tensor_parallel": training.tensor_parallel or 1,
        "pipeline_parallel": training.pipeline_parallel or 1,
        "context_parallel": training.context_parallel or 1,
    }
    problems = list(
        _check_degree(facts, name, "training.tensor_parallel", training.tensor_parallel, places)
    )
    yield from problems
    if places is None or problems:
        return
    product = 1
    for degree in degrees.values():
        product *= degree
    if places % product:
        shown = " x ".join(f"{key} {value}" for key, value in degrees.items() if value > 1)
        yield found(
            "numbers.divisibility",
            f"{shown} = {product} does not divide the {places} devices of its pool",
            hint=f"the product must divide {places}: " + ", ".join(map(str, divisors(places))),
            node=name,
            field="training",
        )
        return
    ranks = places // product
    spread = training.backend in ("fsdp2", "deepspeed", "megatron") or (
        training.backend is None and bool(facts.hardware and facts.hardware.gpus)
    )
    batch = training.mini_batch
    if spread and batch is not None and ranks > 1 and batch % ranks:
        below, above = batch // ranks * ranks, (batch // ranks + 1) * ranks
        values = [value for value in (below, above) if value]
        path = f"nodes.{name}.training.mini_batch"
        yield found(
            "numbers.divisibility",
            f"`mini_batch: {batch}` cannot be split evenly over {ranks} ranks",
            hint="nearest valid values: " + " and ".join(str(value) for value in values),
            node=name,
            field="training.mini_batch",
            fixes=tuple(
                Fix(title=f"Set it to {v}", changes=(Change(op="set", path=path, value=v),))
                for v in values
            ),
        )


def _check_degree(
    facts: Facts, name: str, field: str, degree: int | None, places: int | None
) -> Iterator[Diagnostic]:
    if degree is None or degree == 1:
        return
    if places is not None and places % degree:
        yield found(
            "numbers.divisibility",
            f"`{field}: {degree}` does not divide the {places} devices of its pool",
            hint=f"it must divide {places}: " + ", ".join(map(str, divisors(places))),
            node=name,
            field=field,
        )
        return
    arch = architecture(facts, name)
    if arch is None:
        return
    # A writer's GPUs may keep the same heads for keys; those that learn would need their gradients.
    is_shared = field.startswith("rollout") and degree % arch.kv_heads == 0
    if arch.heads % degree or (arch.kv_heads % degree and not is_shared):
        fitting = arch.heads if field.startswith("rollout") else gcd(arch.heads, arch.kv_heads)
        yield found(
            "numbers.divisibility",
            f"`{field}: {degree}` does not divide the attention heads of the model ({arch.heads}, "
            f"{arch.kv_heads} for keys and values)",
            hint=f"it must divide {fitting}: " + ", ".join(map(str, divisors(fitting))),
            node=name,
            field=field,
        )


def _places(facts: Facts, pool: str | None) -> int | None:
    """GPUs of a pool, or worker processes on a CPU; `None` where the pool or machine is unknown."""
    machine, pools = facts.hardware, facts.spec.hardware.pools
    if machine is None:
        return None
    if not pools:
        return machine.gpus or 1
    section = pools.get(pool or MAIN_POOL)
    return None if section is None else section.gpus or section.workers


RULES = (degrees_divide,)


MOST_TRIED: Final = 2**20
"""With this, all divisors of numbers up to 10^12 are found; of a larger one, some."""


def divisors(number: int) -> list[int]:
    """Divisors of a positive number, in rising order; 1 and itself are always among them."""
    small = [n for n in range(1, min(isqrt(number), MOST_TRIED) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})
