"""Numbers that clash: batches and groups, lengths and positions, rates, bounds, caps."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from coloop.plan.phases import FlatPhase
from coloop.plan.refusals import TREES
from coloop.plan.settings.architecture import Architecture, UnknownArchitecture
from coloop.plan.settings.facts import architecture_of, origin_of
from coloop.spec.diagnostics import Change, Diagnostic, Fix, error, warning
from coloop.spec.graph import PortRef
from coloop.spec.groups import rollout_of, turns_of
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
from coloop.spec.rollout import Turns
from coloop.spec.search import Expand
from coloop.validate.facts import Facts
from coloop.validate.groups import completions

SANE_RATES: Final[Mapping[str, tuple[float, float]]] = {
    "adamw": (1e-9, 3e-2),
    "adamw8bit": (1e-9, 3e-2),
    "lion": (1e-10, 3e-3),
    "rmsprop": (1e-9, 3e-2),
    "muon": (1e-6, 1.0),
    "sgd": (1e-7, 10.0),
}
"""Learning rates outside of these have never trained anything that we know of."""


def texts_fit_the_model(facts: Facts) -> Iterator[Diagnostic]:
    """What is written leaves room for the prompt within the model's positions."""
    for name, node in facts.nodes.items():
        if not isinstance(node, ActorNode | VerifierNode) or not facts.lineage.writes(name):
            continue
        arch, rollout = architecture(facts, name), facts.rollout(name)
        if arch is None or rollout is None:
            continue
        path = f"nodes.{name}.rollout.max_new_tokens"
        for phase in facts.phases:
            new = phase.overrides.get(path, rollout.max_new_tokens)
            if not isinstance(new, int):
                continue
            needed = new + _observed_tokens(turns_of(facts.spec, name))
            if needed < arch.max_positions:
                continue
            room = arch.max_positions // 2
            fix = Fix.set(f"Set it to {room}", path, room)
            observed = needed - new
            told = f" and read {observed} from tools" if observed else ""
            yield error(
                "numbers.too_long",
                f"nodes.{name}.rollout.max_new_tokens",
                f"`{name}` may generate {new} tokens{told}, but the context of its model is "
                f"{arch.max_positions} tokens, including the prompt",
                "lower `max_new_tokens`, or use a model with a longer context",
                fix,
            )
            break


def rates_are_sane(facts: Facts) -> Iterator[Diagnostic]:
    """A learning rate that can neither learn nor diverge is likely a slip."""
    for group in facts.groups.values():
        if not group.trainable:
            continue
        optimizer = facts.training(group.name).optimizer
        path = f"nodes.{group.name}.training.optimizer.lr"
        low, high = SANE_RATES[optimizer.name]
        values = {f"nodes.{group.name}": optimizer.lr}
        values |= {p.label: p.overrides[path] for p in facts.phases if path in p.overrides}
        for place, rate in values.items():
            if not isinstance(rate, int | float) or low <= rate <= high:
                continue
            where = "" if place.startswith("nodes.") else f" in {place}"
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
    """Completions that are compared are not all the same text."""
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
    """The architecture of a node, where it is known without looking outside of `root`."""
    origin = origin_of(facts.spec, node)
    model = facts.model(origin) if origin is not None else None
    if model is None:
        return None
    name = getattr(model, "architecture", None) or getattr(model, "path", None)
    if name is None:
        return None
    root = facts.root
    if facts.is_outside(str(name)):
        root = None
    return _known(model.type, str(name), root)


@lru_cache(maxsize=512)
def _known(kind: str, name: str, root: Path | None) -> Architecture | None:
    try:
        if kind == "scratch":
            return architecture_of(ScratchModel(type="scratch", architecture=name), root)
        return architecture_of(PretrainedModel(type="pretrained", path=name), root)
    except (UnknownArchitecture, ValueError):
        return None


def _observed_tokens(turns: Turns | None) -> int:
    if turns is None or turns.observation_tokens is None:
        return 0
    return turns.observation_tokens * turns.answers


def products_are_of_chances(facts: Facts) -> Iterator[Diagnostic]:
    """What `outcome` teaches is a number of any sign before the sigmoid: two wrong steps would make
    a right text."""
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


# Budgets of searches: that the first wish of a search fits into them, without which it finds
# nothing in any step.


def budgets_hold_a_search(facts: Facts) -> Iterator[Diagnostic]:
    """In some phase a search may ask for its completions once: a wish is granted only where its
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
    """By limit what is wanted of it at least in a phase, what it is, and why that is too little."""
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
    """Limits, the least of each with which anything is found, and why."""
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
