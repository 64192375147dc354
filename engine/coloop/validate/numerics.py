"""Numbers that clash: batches and groups, parallel degrees, lengths, rates, bounds, budgets."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import gcd, isqrt, prod
from pathlib import Path
from typing import Final

from coloop.plan.phases import FlatPhase
from coloop.plan.refusals import TREES
from coloop.plan.settings.architecture import Architecture, UnknownArchitecture, shares_heads
from coloop.plan.settings.facts import architecture_of, origin_of
from coloop.spec.algorithm import algorithm_paths
from coloop.spec.diagnostics import Change, Diagnostic, Fix, error, warning
from coloop.spec.graph import PortRef
from coloop.spec.groups import DEFAULT_POOL, WeightsGroup, rollout_of, turns_of
from coloop.spec.metrics import samples_of
from coloop.spec.model import PretrainedModel, ScratchModel
from coloop.spec.nodes import (
    ActorNode,
    BufferNode,
    EvaluateNode,
    FilterNode,
    SearchNode,
    VerifierNode,
)
from coloop.spec.nodes.search import branches
from coloop.spec.ports import PORTS
from coloop.spec.row_counts import Count
from coloop.spec.search import Expand
from coloop.validate.facts import Facts
from coloop.validate.groups import completions

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
    """Warn about a mini-batch above the rows of a step: the node's own value if too large in every
    phase that uses it, an override if too large in its phase."""
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
    """Rows on which a step of the phase trains this group; None if not known exactly."""
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
    """`shared`: rows per step of each phase that uses the node's own value."""
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
    """Warn if rows are used in several optimizer steps without a ratio in the loss: after the first
    step they come from older weights."""
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
    """Why rows are used in several optimizer steps, and the responsible field; else None."""
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
    is_generation = field.startswith("rollout")
    is_even = arch.heads % degree == 0 and arch.kv_heads % degree == 0
    if not (is_even or (is_generation and shares_heads(arch, degree))):
        fitting = arch.heads if is_generation else gcd(arch.heads, arch.kv_heads)
        message = (
            f"`{field}: {degree}` does not divide the attention heads of the model ({arch.heads}, "
            f"{arch.kv_heads} for keys and values)"
        )
        yield _indivisor(at, message, "it", fitting)


def _indivisor(at: str, message: str, what: str, number: int) -> Diagnostic:
    hint = f"{what} must divide {number}: " + ", ".join(map(str, divisors(number)))
    return error("numbers.divisibility", at, message, hint)


def _device_count(facts: Facts, pool: str | None) -> int | None:
    """GPUs of a pool, or worker processes on a CPU; None for an unknown pool or machine."""
    machine, pools = facts.hardware, facts.spec.hardware.pools
    if machine is None:
        return None
    if not pools:
        return machine.gpus or 1
    section = pools.get(pool or DEFAULT_POOL)
    return None if section is None else section.gpus or section.workers


# Lengths, rates, bounds and caps.


SANE_RATES: Final[Mapping[str, tuple[float, float]]] = {
    "adamw": (1e-9, 3e-2),
    "adamw8bit": (1e-9, 3e-2),
    "lion": (1e-10, 3e-3),
    "rmsprop": (1e-9, 3e-2),
    "muon": (1e-6, 1.0),
    "sgd": (1e-7, 10.0),
}
"""By optimizer, the lowest and highest plausible learning rate."""


def texts_fit_the_model(facts: Facts) -> Iterator[Diagnostic]:
    """Generated tokens and tool results leave room for the prompt within the model's context."""
    for name, node in facts.nodes.items():
        if not isinstance(node, ActorNode | VerifierNode) or not facts.lineage.writes(name):
            continue
        arch, rollout = architecture(facts, name), facts.rollout(name)
        if arch is None or rollout is None:
            continue
        path, turns = f"nodes.{name}.rollout.max_new_tokens", turns_of(facts.spec, name)
        observed = (turns.observation_tokens or 0) * turns.answers if turns is not None else 0
        for phase in facts.phases:
            new = phase.overrides.get(path, rollout.max_new_tokens)
            if not isinstance(new, int):
                continue
            if new + observed < arch.max_positions:
                continue
            room = arch.max_positions // 2
            fix = Fix.set(f"Set it to {room}", path, room)
            reading = f" and read {observed} from tools" if observed else ""
            yield error(
                "numbers.too_long",
                f"nodes.{name}.rollout.max_new_tokens",
                f"`{name}` may generate {new} tokens{reading}, but the context of its model is "
                f"{arch.max_positions} tokens, including the prompt",
                "lower `max_new_tokens`, or use a model with a longer context",
                fix,
            )
            break


def rates_are_sane(facts: Facts) -> Iterator[Diagnostic]:
    """Learning rates are plausible for their optimizer, and `min_lr` is not above `lr`."""
    for group in facts.groups.values():
        if not group.trainable:
            continue
        optimizer = facts.training(group.name).optimizer
        path = f"nodes.{group.name}.training.optimizer.lr"
        low, high = SANE_RATES[optimizer.name]
        values = {f"nodes.{group.name}": optimizer.lr}
        values |= {p.label: p.overrides[path] for p in facts.phases if path in p.overrides}
        for source, rate in values.items():
            if not isinstance(rate, int | float) or low <= rate <= high:
                continue
            where = "" if source.startswith("nodes.") else f" in {source}"
            yield warning(
                "numbers.learning_rate",
                f"nodes.{group.name}.training.optimizer.lr",
                f"a learning rate of {rate:g}{where} is outside of any reasonable range for "
                f"{optimizer.name}",
                f"{low:g} to {high:g} is usual; full fine-tuning with RL uses 1e-7 to 1e-5",
            )
            break
        if optimizer.min_lr > optimizer.lr:
            yield warning(
                "numbers.learning_rate",
                f"nodes.{group.name}.training.optimizer.min_lr",
                f"`min_lr: {optimizer.min_lr:g}` is above `lr: {optimizer.lr:g}`, so the learning "
                "rate would rise",
                "the decay ends at `min_lr`",
            )


def warm_ups_end(facts: Facts) -> Iterator[Diagnostic]:
    for group in facts.groups.values():
        warmup = facts.training(group.name).optimizer.warmup
        if warmup < 1 or not group.trainable:
            continue
        for phase in facts.phases:
            steps = phase.section.steps
            is_live = any(node in group.members for node, _ in phase.live)
            if is_live and steps is not None and warmup >= steps:
                yield warning(
                    "numbers.warmup",
                    f"nodes.{group.name}.training.optimizer.warmup",
                    f"the warmup of the learning rate takes {warmup:g} steps, but {phase.label} "
                    f"has {steps}",
                    "a value below 1 is a share of the phase, e.g. `warmup: 0.05`",
                )
                break


def bounds_leave_something(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.of(FilterNode):
        for index, rule in enumerate(node.keep):
            low, high = getattr(rule, "min", None), getattr(rule, "max", None)
            is_open = getattr(rule, "open", False)
            if low is None or high is None or low < high or (low == high and not is_open):
                continue
            change = Change(op="set", path=f"nodes.{name}.keep.{index}.min", value=high)
            other = Change(op="set", path=f"nodes.{name}.keep.{index}.max", value=low)
            yield error(
                "numbers.empty_band",
                f"nodes.{name}.keep.{index}",
                f"`{rule.rule}` keeps nothing: no number is at least {low:g} and at most {high:g}",
                "swap `min` and `max`",
                *((Fix(title="Swap the bounds", changes=(change, other)),) if low > high else ()),
            )


def buffers_hold_what_they_give(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.of(BufferNode):
        if node.rows_per_step is None:
            continue
        held = node.capacity * (node.keep_iterations or 1)
        if node.rows_per_step > held:
            yield error(
                "numbers.buffer",
                f"nodes.{name}.rows_per_step",
                f"`{name}` should return {node.rows_per_step} rows per step but holds {held}",
                "raise `capacity` or lower `rows_per_step`",
                Fix.set(f"Set it to {held}", f"nodes.{name}.rows_per_step", held),
            )


def refills_can_end(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.of(FilterNode):
        if node.fill is None:
            continue
        counts = facts.counts(facts.phases[0])
        edges = facts.walk.row_edges(name) or facts.walk.score_edges(name)
        rows = counts.of_edge(edges[0]).rows if edges else None
        each = counts.group_size(name)
        fill = node.fill
        if rows is None or (isinstance(fill.groups, int) and not each):
            continue
        wanted = fill.rows if fill.rows is not None else fill.groups
        offered = rows if fill.rows is not None else rows // (each or 1)
        if isinstance(wanted, int) and wanted > offered * fill.max_rounds:
            unit = "rows" if fill.rows is not None else "groups"
            yield error(
                "numbers.fill_unreachable",
                f"nodes.{name}.fill",
                f"`{name}` waits for {wanted} {unit}, but {fill.max_rounds} passes of {offered} "
                f"produce at most {offered * fill.max_rounds}",
                f"raise `max_rounds` to {-(-wanted // max(offered, 1))} or more, or lower the "
                "target",
            )


def samples_are_enough(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.of(EvaluateNode):
        if node.samples is None:
            continue
        for index, metric in enumerate(node.metrics):
            k = samples_of(metric)
            if k is not None and k > node.samples and not node.greedy:
                yield error(
                    "numbers.samples",
                    f"nodes.{name}.metrics.{index}",
                    f"`{metric}` needs {k} samples, but `{name}` generates {node.samples}",
                    f"set `samples: {k}`",
                    Fix.set(f"Generate {k} samples", f"nodes.{name}.samples", k),
                )


def groups_explore(facts: Facts) -> Iterator[Diagnostic]:
    for name, full in facts.rewards:
        rollout = facts.rollout(name)
        if rollout is None or rollout.temperature > 0 or not full.needs_group:
            continue
        yield error(
            "numbers.no_exploration",
            f"nodes.{name}.rollout.temperature",
            f"`{name}` generates greedily (`temperature: 0`), so all rows of a group are the same "
            f"text and `{full.name}` has nothing to compare",
            "set `rollout.temperature: 1.0`",
            Fix.set("Sample at temperature 1", f"nodes.{name}.rollout.temperature", 1.0),
        )


def architecture(facts: Facts, node: str) -> Architecture | None:
    origin = origin_of(facts.spec, node)
    model = facts.model(origin) if origin is not None else None
    if model is None:
        return None
    name = getattr(model, "architecture", None) or getattr(model, "path", None)
    if name is None:
        return None
    return _known(model.type, str(name), facts.root)


@lru_cache(maxsize=512)
def _known(kind: str, name: str, root: Path | None) -> Architecture | None:
    try:
        if kind == "scratch":
            return architecture_of(ScratchModel(type="scratch", architecture=name), root)
        return architecture_of(PretrainedModel(type="pretrained", path=name), root)
    except (UnknownArchitecture, ValueError):
        return None


def products_are_of_chances(facts: Facts) -> Iterator[Diagnostic]:
    """A product of step scores needs probabilities: before the sigmoid, scores of wrong steps are
    negative, and the product of two is positive."""
    for name, node in facts.of(VerifierNode):
        if node.method != "discriminative":
            continue
        taught = {algorithm.name for algorithm in facts.algorithms(name, "labels")}
        read = node.read
        if read.reduce != "product" or read.activation == "sigmoid" or "outcome" not in taught:
            continue
        yield warning(
            "numbers.product_of_logits",
            f"nodes.{name}.read.activation",
            f"`{name}` multiplies raw step scores, which are negative for steps that are probably "
            "wrong: the product of two such steps looks like that of a good text",
            "set `read.activation: sigmoid` to multiply probabilities",
            Fix.set("Read probabilities", f"nodes.{name}.read.activation", "sigmoid"),
        )


# Budgets of searches: the first request of a search must fit, or it never finds anything.


def budgets_hold_a_search(facts: Facts) -> Iterator[Diagnostic]:
    """In some phase the budget admits the first request of a search: one is only granted if its
    longest completions fit."""
    for name, node in facts.nodes.items():
        here = PortRef(node=name, port="policy")
        policies = [edge.source.node for edge in facts.walk.edges if edge.target == here]
        if not isinstance(node, SearchNode) or not policies:
            continue
        if rollout_of(facts.spec, policies[0]) is None:
            continue
        read = (f"nodes.{name}.", f"nodes.{policies[0]}.rollout.")
        if any(path.startswith(read) for path in facts.moved_paths):
            continue
        by_phase = [_too_little(facts, phase, name, node, policies[0]) for phase in facts.phases]
        for field, (least, given, why) in by_phase[0].items():
            if all(field in found_there for found_there in by_phase):
                yield error(
                    "numbers.search_budget",
                    f"nodes.{name}.budget.{field}",
                    f"`{name}` cannot finish: {why}, but `budget.{field}` is {given}",
                    f"raise `budget.{field}` to {least} or more",
                )


def _too_little(
    facts: Facts, phase: FlatPhase, name: str, node: SearchNode, policy: str
) -> dict[str, tuple[int, int, str]]:
    """By limit that is too low in a phase: the minimum, the actual value and why more is needed."""
    missed: dict[str, tuple[int, int, str]] = {}
    for field, least, why in _least(facts, phase, name, node, policy):
        own = getattr(node.budget, field)
        given = facts.whole_number(phase, f"nodes.{name}.budget.{field}", own)
        if given is not None and given < least:
            missed[field] = least, given, why
    return missed


def _least(
    facts: Facts, phase: FlatPhase, name: str, node: SearchNode, policy: str
) -> Iterator[tuple[str, int, str]]:
    """Limits, each with the lowest value at which a search finds anything, and why."""
    rollout = rollout_of(facts.spec, policy)
    assert rollout is not None
    each = facts.whole_number(phase, f"nodes.{name}.completions", node.completions)
    each = each if isinstance(each, int) else None
    if node.method == "monte_carlo" and each is not None:
        yield "searches_per_row", each, f"each step is completed {each} times"
    if node.method not in TREES and facts.lineage.labels_texts(name):
        return
    if node.method in TREES:
        expand = node.expand or Expand()
        samples = facts.whole_number(phase, f"nodes.{name}.expand.samples", expand.samples)
        first = branches(expand.model_copy(update={"samples": samples}))
    else:
        first = completions(facts, policy, phase) if node.method == "monte_carlo" else each
    if first is None:
        return
    path = f"nodes.{policy}.rollout.max_new_tokens"
    longest = facts.whole_number(phase, path, rollout.max_new_tokens)
    if node.method == "monte_carlo":
        yield "searches_per_row", first, f"it generates {first} texts per row"
    yield "tokens", first * longest, f"it starts with {first} texts of up to {longest} tokens"
