"""Batches: the rows of a step, mini-batches, micro-batches and groups divide."""

from collections.abc import Collection, Iterator, Sequence

from coloop.spec.diagnostics import Change, Diagnostic, Fix, Severity
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.ports import PORTS
from coloop.spec.row_counts import Count
from coloop.validate.degrees import divisors
from coloop.validate.facts import Facts, PhaseFacts, found


def batches_divide(facts: Facts) -> Iterator[Diagnostic]:
    """The rows of a step are whole mini-batches."""
    reported: set[str] = set()
    for phase in facts.phases:
        counts: RowCounts | None = None
        for group in facts.groups.values():
            live = sorted(port for port in phase.live if port[0] in group.members)
            if len(live) != 1 or group.name in reported:
                continue
            training = facts.training(group.name)
            path = f"nodes.{group.name}.training.mini_batch"
            batch = phase.overrides.get(path, training.mini_batch)
            if not isinstance(batch, int) or batch < 1:
                continue
            counts = counts or facts.counts(phase)
            count = _rows_to_learn(facts, counts, *live[0])
            if count.rows is None or not count.is_exact or count.rows <= batch:
                continue
            if count.rows % batch:
                reported.add(group.name)
                elsewhere = _rows_elsewhere(facts, path, group.members)
                yield _indivisible(phase, group.name, path, count, batch, elsewhere)


def _rows_elsewhere(facts: Facts, path: str, members: Collection[str]) -> list[int]:
    """Rows of a step in each phase that learns by the node's own mini-batch, where known."""
    rows = [
        _rows_of_group(facts, phase, members)
        for phase in facts.phases
        if path not in phase.overrides
    ]
    return [count for count in rows if count]


def mini_batches_cut(facts: Facts) -> Iterator[Diagnostic]:
    """A mini-batch is a part of the rows of a step: the node's in one of the phases that learn by
    it, one that a phase sets in that phase."""
    if facts.has_broken_edges:
        return
    for group in facts.groups.values():
        field = "training.mini_batch"
        path = f"nodes.{group.name}.{field}"
        by_node: list[int | None] = []
        for phase in facts.phases:
            rows = _rows_of_group(facts, phase, group.members)
            if rows == 0:
                continue
            if path not in phase.overrides:
                by_node.append(rows)
                continue
            batch = phase.overrides[path]
            if isinstance(batch, int) and rows is not None and rows < batch:
                yield _uncut(batch, rows, None, _place_of_override(phase, path), phase.label)
        batch, known = facts.training(group.name).mini_batch, [n for n in by_node if n is not None]
        if batch is None or not known or len(known) < len(by_node) or max(known) >= batch:
            continue
        yield _uncut(batch, max(known), group.name, field, None)


def _rows_of_group(facts: Facts, phase: PhaseFacts, members: Collection[str]) -> int | None:
    """Rows that a step of the phase learns on these weights; null: not known exactly."""
    live = sorted(port for port in phase.live if port[0] in members)
    if not live:
        return 0
    counts = facts.counts(phase)
    rows = [_rows_to_learn(facts, counts, *port) for port in live]
    return sum(count.rows or 0 for count in rows) if all(one.is_exact for one in rows) else None


def _place_of_override(phase: PhaseFacts, path: str) -> str:
    own = phase.section is not None and path in phase.section.set
    return f"{phase.path}.set.{path}" if own else phase.path


def _uncut(batch: int, rows: int, node: str | None, field: str, where: str | None) -> Diagnostic:
    path = field if node is None else f"nodes.{node}.{field}"
    fixes = (
        Fix(title="Use all rows of a step", changes=(Change(op="remove", path=path),)),
        Fix(title=f"Set it to {rows}", changes=(Change(op="set", path=path, value=rows),)),
    )
    return found(
        "numbers.mini_batch",
        f"`mini_batch: {batch}` is more than the {rows} rows of a step"
        + (f" of {where}" if where else "")
        + ", so each step is a single update",
        severity=Severity.WARNING,
        hint="remove `mini_batch`, or give a step more rows",
        node=node,
        field=field,
        fixes=fixes if path.endswith("mini_batch") else (),
    )


def micro_batches_fit(facts: Facts) -> Iterator[Diagnostic]:
    """A micro-batch is a part of a mini-batch."""
    for group in facts.groups.values():
        training = facts.training(group.name)
        if not group.trainable or training.micro_batch is None or training.mini_batch is None:
            continue
        if training.micro_batch > training.mini_batch:
            change = Change(
                op="set",
                path=f"nodes.{group.name}.training.micro_batch",
                value=training.mini_batch,
            )
            yield found(
                "numbers.divisibility",
                f"`micro_batch: {training.micro_batch}` is larger than `mini_batch: "
                f"{training.mini_batch}`",
                hint="remove `micro_batch`: the compiler chooses it",
                node=group.name,
                field="training.micro_batch",
                fixes=(Fix(title=f"Set it to {training.mini_batch}", changes=(change,)),),
            )


def streams_hold_whole_groups(facts: Facts) -> Iterator[Diagnostic]:
    """With `stream` a mini-batch is made of whole groups."""
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
                f"`stream` needs mini-batches of whole groups, but `mini_batch: {batch}` is not a "
                f"multiple of `completions_per_prompt: {group}`",
                node=name,
                field="training.mini_batch",
                values=_multiples(group, batch),
            )


def _rows_to_learn(facts: Facts, counts: RowCounts, node: str, port: str) -> Count:
    rule = facts.spec.schedule.learn.get(node)
    if rule is not None and rule.rows is not None:
        return Count(rows=rule.rows, is_exact=True, breakdown=f"`learn.{node}.rows`")
    if PORTS[facts.nodes[node].kind].inputs[port].phase != "learn":
        return Count(rows=None)
    return counts.taught(node, port)


def _indivisible(
    phase: PhaseFacts, group: str, path: str, count: Count, batch: int, elsewhere: Sequence[int]
) -> Diagnostic:
    """
    Args:
        elsewhere: rows of the phases that a new value holds in as well.
    """
    assert count.rows is not None
    breakdown = f" ({count.breakdown})" if count.breakdown else ""
    others = () if path in phase.overrides else elsewhere
    factors = [n for n in divisors(count.rows) if all(r % n == 0 or r <= n for r in others)]
    below = max((n for n in factors if n < batch), default=1)
    above = min((n for n in factors if n > batch), default=count.rows)
    where = "" if phase.name is None else f" in {phase.label}"
    return _nearest(
        f"a step has {count.rows} rows{breakdown}{where}, which is not a multiple of `mini_batch: "
        f"{batch}`",
        node=group,
        field=path.removeprefix(f"nodes.{group}."),
        values=(below, above),
    )


def _nearest(message: str, *, node: str, field: str, values: tuple[int, ...]) -> Diagnostic:
    path = f"nodes.{node}.{field}"
    fixes = tuple(
        Fix(title=f"Set it to {value}", changes=(Change(op="set", path=path, value=value),))
        for value in values
    )
    return found(
        "numbers.divisibility",
        message,
        hint="nearest valid values: " + " and ".join(str(value) for value in values),
        node=node,
        field=field,
        fixes=fixes,
    )


def _multiples(unit: int, near: int) -> tuple[int, ...]:
    below = near // unit * unit
    return (below, below + unit) if below else (unit,)


RULES = (
    batches_divide,
    mini_batches_cut,
    micro_batches_fit,
    streams_hold_whole_groups,
)


# Losses without a ratio, which hold for rows of the very policy that they move.

WITHOUT_RATIO = frozenset({"policy_gradient"})


def several_steps_have_a_ratio(facts: Facts) -> Iterator[Diagnostic]:
    """Rows that make more than one optimizer step meet a policy that did not write them."""
    for name, full in facts.rewards:
        if full.loss not in WITHOUT_RATIO or full.off_policy is not None:
            continue
        if name not in facts.group_of:  # its weights are not told: another finding says so
            continue
        for phase in facts.phases:
            if (name, "rewards") not in phase.live:
                continue
            reason = _why_several(facts, phase, name)
            if reason is not None:
                yield _unfit(facts, phase, name, full.name, *reason)
                break


def _why_several(facts: Facts, phase: PhaseFacts, name: str) -> tuple[str, str] | None:
    """Why a row set of this learner makes several optimizer steps, and the field that says so."""
    group = facts.group_of[name].name
    training = facts.training(name)
    path = f"nodes.{group}.training"
    epochs = phase.overrides.get(f"{path}.epochs", training.epochs)
    if isinstance(epochs, int) and epochs > 1:
        return f"`epochs: {epochs}` repeats them", f"{path}.epochs"
    for known in (group, name):
        rule = facts.spec.schedule.learn.get(known)
        where = f"schedule.learn.{known}.updates"
        updates = phase.overrides.get(where, rule.updates if rule else 1)
        if isinstance(updates, int) and updates > 1:
            return f"`updates: {updates}` repeats them", where
    batch = phase.overrides.get(f"{path}.mini_batch", training.mini_batch)
    rows = facts.counts(phase).taught(name, "rewards").rows
    if isinstance(batch, int) and rows is not None and rows > batch > 0:
        return f"{rows} rows are split into mini-batches of {batch}", f"{path}.mini_batch"
    return None


def _unfit(
    facts: Facts, phase: PhaseFacts, name: str, algorithm: str, reason: str, where: str
) -> Diagnostic:
    node, field = _node_and_field(facts, where)
    fixes = [Fix(title="Use the clipped loss", changes=(_clipped(facts, name),))]
    if where not in phase.overrides:
        fixes.insert(
            0,
            Fix(title=f"Remove {where}", changes=(Change(op="remove", path=where),)),
        )
    return found(
        "learning.no_ratio",
        f"the loss of `{algorithm}` has no ratio, but the rows of `{name}` are used in several "
        f"optimizer steps: {reason}, so from the second step on they are off-policy",
        severity=Severity.WARNING,
        hint=(
            "use each batch of rows in one optimizer step, or set `loss: clipped`, which clips the "
            "ratio"
        ),
        node=node,
        field=field,
        fixes=tuple(fixes),
    )


def _clipped(facts: Facts, name: str) -> Change:
    """The change that gives the algorithm at `rewards` the clipped loss, with its usual bounds."""
    path = f"nodes.{name}.algorithm"
    section = getattr(facts.nodes[name], "algorithm", None)
    if getattr(section, "rewards", None) is not None:
        path += ".rewards"
    return Change(op="set", path=f"{path}.loss", value="clipped")


def _node_and_field(facts: Facts, where: str) -> tuple[str | None, str]:
    head, _, rest = where.partition(".")
    node, _, field = rest.partition(".")
    return (node, field) if head == "nodes" and node in facts.nodes else (None, where)


RATIO_RULES = (several_steps_have_a_ratio,)
