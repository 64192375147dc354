"""Checks that the rows of a step divide evenly into mini-batches, groups and parallel ranks."""

from collections.abc import Iterator, Sequence
from math import gcd, isqrt, prod
from typing import Final

from coloop.plan.phases import FlatPhase
from coloop.spec.algorithm import algorithm_paths
from coloop.spec.diagnostics import Diagnostic, Fix, error, warning
from coloop.spec.groups import DEFAULT_POOL, WeightsGroup
from coloop.spec.ports import PORTS
from coloop.spec.row_counts import Count
from coloop.validate.facts import Facts
from coloop.validate.numerics import architecture

MOST_TRIED: Final = 2**20
"""Largest candidate of `divisors`: it finds all divisors of numbers up to 10^12, else only some."""


def batches_divide(facts: Facts) -> Iterator[Diagnostic]:
    reported: set[str] = set()
    for phase in facts.phases:
        for group in facts.groups.values():
            live = _live(phase, group)
            if len(live) != 1 or group.name in reported:
                continue
            training = facts.training(group.name)
            path = f"nodes.{group.name}.training.mini_batch"
            batch = phase.overrides.get(path, training.mini_batch)
            if not isinstance(batch, int) or batch < 1:
                continue
            count = _rows_to_learn(facts, phase, *live[0])
            if count.rows is None or not count.is_exact or count.rows <= batch:
                continue
            if count.rows % batch:
                reported.add(group.name)
                inheriting = [p for p in facts.phases if path not in p.overrides]
                shared = [rows for p in inheriting if (rows := _rows_of_group(facts, p, group))]
                yield _indivisible(phase, path, count, batch, shared)


def mini_batches_cut(facts: Facts) -> Iterator[Diagnostic]:
    """Warn about a mini-batch that is larger than the rows of a step: the node's own where that
    holds in every phase that uses it, a phase's override where it holds in that phase."""
    if facts.has_broken_edges:
        return
    for group in facts.groups.values():
        path = f"nodes.{group.name}.training.mini_batch"
        by_node: list[int | None] = []
        for phase in facts.phases:
            rows = _rows_of_group(facts, phase, group)
            if rows == 0:
                continue
            if path not in phase.overrides:
                by_node.append(rows)
                continue
            batch = phase.overrides[path]
            if isinstance(batch, int) and rows is not None and rows < batch:
                is_own = path in phase.section.set
                at = f"{phase.path}.set.{path}" if is_own else phase.path
                yield _uncut(batch, rows, at, f" of {phase.label}")
        batch, known = facts.training(group.name).mini_batch, [n for n in by_node if n is not None]
        if batch is None or not known or len(known) < len(by_node) or max(known) >= batch:
            continue
        yield _uncut(batch, max(known), path, "")


def _live(phase: FlatPhase, group: WeightsGroup) -> list[tuple[str, str]]:
    return sorted(port for port in phase.live if port[0] in group.members)


def _rows_of_group(facts: Facts, phase: FlatPhase, group: WeightsGroup) -> int | None:
    """Rows on which a step of the phase trains this group; None where not known exactly."""
    live = _live(phase, group)
    if not live:
        return 0
    rows = [_rows_to_learn(facts, phase, *port) for port in live]
    return sum(count.rows or 0 for count in rows) if all(c.is_exact for c in rows) else None


def _uncut(batch: int, rows: int, at: str, where: str) -> Diagnostic:
    fixes = Fix.remove("Use all rows of a step", at), Fix.set(f"Set it to {rows}", at, rows)
    return warning(
        "numbers.mini_batch",
        at,
        f"`mini_batch: {batch}` is more than the {rows} rows of a step{where}, so each step is a "
        "single update",
        "remove `mini_batch`, or give a step more rows",
        *(fixes if at.endswith("mini_batch") else ()),
    )


def micro_batches_fit(facts: Facts) -> Iterator[Diagnostic]:
    for group in facts.groups.values():
        training, at = facts.training(group.name), f"nodes.{group.name}.training.micro_batch"
        if not group.trainable or training.micro_batch is None or training.mini_batch is None:
            continue
        if training.micro_batch > training.mini_batch:
            yield error(
                "numbers.divisibility",
                at,
                f"`micro_batch: {training.micro_batch}` is larger than `mini_batch: "
                f"{training.mini_batch}`",
                "remove `micro_batch`: the compiler chooses it",
                Fix.set(f"Set it to {training.mini_batch}", at, training.mini_batch),
            )


def streams_hold_whole_groups(facts: Facts) -> Iterator[Diagnostic]:
    if not facts.spec.schedule.stream:
        return
    for name, full in facts.rewards:
        rollout = facts.rollout(name)
        batch = facts.training(name).mini_batch
        if rollout is None or batch is None or not full.needs_group:
            continue
        group = rollout.completions_per_prompt
        if group > 1 and batch % group:
            yield _nearest(
                f"nodes.{name}.training.mini_batch",
                f"`stream` needs mini-batches of whole groups, but `mini_batch: {batch}` is not a "
                f"multiple of `completions_per_prompt: {group}`",
                _multiples(group, batch),
            )


def _rows_to_learn(facts: Facts, phase: FlatPhase, node: str, port: str) -> Count:
    rule = facts.spec.schedule.learn.get(node)
    if rule is not None and rule.rows is not None:
        return Count(rows=rule.rows, is_exact=True, breakdown=f"`learn.{node}.rows`")
    if PORTS[facts.nodes[node].kind].inputs[port].phase != "learn":
        return Count(rows=None)
    return facts.counts(phase).taught(node, port)


def _indivisible(
    phase: FlatPhase, path: str, count: Count, batch: int, shared: Sequence[int]
) -> Diagnostic:
    """
    Args:
        shared: rows per step of each phase that takes the node's own value.
    """
    assert count.rows is not None
    breakdown = f" ({count.breakdown})" if count.breakdown else ""
    others = () if path in phase.overrides else shared
    factors = [n for n in divisors(count.rows) if all(r % n == 0 or r <= n for r in others)]
    below = max((n for n in factors if n < batch), default=1)
    above = min((n for n in factors if n > batch), default=count.rows)
    where = "" if phase.is_whole else f" in {phase.label}"
    return _nearest(
        path,
        f"a step has {count.rows} rows{breakdown}{where}, which is not a multiple of `mini_batch: "
        f"{batch}`",
        (below, above),
    )


def _nearest(at: str, message: str, values: tuple[int, ...]) -> Diagnostic:
    hint = "nearest valid values: " + " and ".join(str(value) for value in values)
    fixes = (Fix.set(f"Set it to {value}", at, value) for value in values)
    return error("numbers.divisibility", at, message, hint, *fixes)


def _multiples(unit: int, near: int) -> tuple[int, ...]:
    below = near // unit * unit
    return (below, below + unit) if below else (unit,)


def divisors(number: int) -> list[int]:
    """Divisors of a positive number in ascending order, always including 1 and the number."""
    small = [n for n in range(1, min(isqrt(number), MOST_TRIED) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})


# Losses without a ratio: correct only for rows that the policy wrote with its current weights.

WITHOUT_RATIO = frozenset({"policy_gradient"})


def several_steps_have_a_ratio(facts: Facts) -> Iterator[Diagnostic]:
    """Warn where rows are used in more than one optimizer step and the loss has no ratio: from the
    second step on, they come from older weights."""
    for name, full in facts.rewards:
        if full.loss not in WITHOUT_RATIO or full.off_policy is not None:
            continue
        if name not in facts.group_of:  # its weights are unknown, which another check reports
            continue
        learning = (phase for phase in facts.phases if (name, "rewards") in phase.live)
        for phase in learning:
            reason = _why_several(facts, phase, name)
            if reason is not None:
                yield _unfit(facts, phase, name, full.name, *reason)
                break


def _why_several(facts: Facts, phase: FlatPhase, name: str) -> tuple[str, str] | None:
    """Why the rows of this learner are used in several optimizer steps, and the field responsible;
    None where they are not."""
    group = facts.group_of[name].name
    training = facts.training(name)
    path = f"nodes.{group}.training"
    epochs = phase.overrides.get(f"{path}.epochs", training.epochs)
    if isinstance(epochs, int) and epochs > 1:
        return f"`epochs: {epochs}` repeats them", f"{path}.epochs"
    for learner in (group, name):
        rule = facts.spec.schedule.learn.get(learner)
        where = f"schedule.learn.{learner}.updates"
        updates = phase.overrides.get(where, rule.updates if rule else 1)
        if isinstance(updates, int) and updates > 1:
            return f"`updates: {updates}` repeats them", where
    batch = phase.overrides.get(f"{path}.mini_batch", training.mini_batch)
    rows = facts.counts(phase).taught(name, "rewards").rows
    if isinstance(batch, int) and rows is not None and rows > batch > 0:
        return f"{rows} rows are split into mini-batches of {batch}", f"{path}.mini_batch"
    return None


def _unfit(
    facts: Facts, phase: FlatPhase, name: str, algorithm: str, reason: str, at: str
) -> Diagnostic:
    path = next(p for port, p, _ in algorithm_paths(facts.spec, name) if port == "rewards")
    clipped = Fix.set("Use the clipped loss", f"{path}.loss", "clipped")
    removal = [Fix.remove(f"Remove {at}", at)] if at not in phase.overrides else []
    return warning(
        "learning.no_ratio",
        at,
        f"the loss of `{algorithm}` has no ratio, but the rows of `{name}` are used in several "
        f"optimizer steps: {reason}, so from the second step on they are off-policy",
        "use each batch of rows in one optimizer step, or set `loss: clipped`, which clips the "
        "ratio",
        *removal,
        clipped,
    )


# Parallel degrees must divide the pool's devices, the attention heads and the batch.


def degrees_divide(facts: Facts) -> Iterator[Diagnostic]:
    for group in facts.groups.values():
        if group.trainable:
            yield from _check_training_degrees(facts, group.name)
    for name in facts.nodes:
        rollout = facts.rollout(name)
        if rollout is not None and facts.lineage.writes(name):
            devices = _device_count(facts, rollout.pool or facts.nodes[name].pool)
            field = "rollout.tensor_parallel"
            yield from _check_degree(facts, name, field, rollout.tensor_parallel, devices)


def _check_training_degrees(facts: Facts, name: str) -> Iterator[Diagnostic]:
    training, at = facts.training(name), f"nodes.{name}.training"
    devices, field = _device_count(facts, facts.nodes[name].pool), "training.tensor_parallel"
    problems = list(_check_degree(facts, name, field, training.tensor_parallel, devices))
    yield from problems
    if devices is None or problems:
        return
    fields = ("tensor_parallel", "pipeline_parallel", "context_parallel")
    degrees = {field: getattr(training, field) or 1 for field in fields}
    product = prod(degrees.values())
    if devices % product:
        shown = " x ".join(f"{key} {value}" for key, value in degrees.items() if value > 1)
        message = f"{shown} = {product} does not divide the {devices} devices of its pool"
        yield _indivisor(at, message, "the product", devices)
        return
    ranks = devices // product
    is_sharded = training.backend in ("fsdp2", "deepspeed", "megatron") or (
        training.backend is None and bool(facts.hardware and facts.hardware.gpus)
    )
    batch = training.mini_batch
    if is_sharded and batch is not None and ranks > 1 and batch % ranks:
        message = f"`mini_batch: {batch}` cannot be split evenly over {ranks} ranks"
        yield _nearest(f"{at}.mini_batch", message, _multiples(ranks, batch))


def _check_degree(
    facts: Facts, name: str, field: str, degree: int | None, devices: int | None
) -> Iterator[Diagnostic]:
    at = f"nodes.{name}.{field}"
    if degree is None or degree == 1:
        return
    if devices is not None and devices % degree:
        message = f"`{field}: {degree}` does not divide the {devices} devices of its pool"
        yield _indivisor(at, message, "it", devices)
        return
    arch = architecture(facts, name)
    if arch is None:
        return
    # For generation, several GPUs may hold copies of one key/value head; in training, the gradients
    # of such copies would have to be summed.
    is_shared = field.startswith("rollout") and degree % arch.kv_heads == 0
    if arch.heads % degree or (arch.kv_heads % degree and not is_shared):
        fitting = arch.heads if field.startswith("rollout") else gcd(arch.heads, arch.kv_heads)
        message = (
            f"`{field}: {degree}` does not divide the attention heads of the model ({arch.heads}, "
            f"{arch.kv_heads} for keys and values)"
        )
        yield _indivisor(at, message, "it", fitting)


def _indivisor(at: str, message: str, what: str, number: int) -> Diagnostic:
    hint = f"{what} must divide {number}: " + ", ".join(map(str, divisors(number)))
    return error("numbers.divisibility", at, message, hint)


def _device_count(facts: Facts, pool: str | None) -> int | None:
    """GPUs of a pool, or worker processes on a CPU; `None` where the pool or machine is unknown."""
    machine, pools = facts.hardware, facts.spec.hardware.pools
    if machine is None:
        return None
    if not pools:
        return machine.gpus or 1
    section = pools.get(pool or DEFAULT_POOL)
    return None if section is None else section.gpus or section.workers
