"""Losses without a ratio, which hold for rows of the very policy that they move."""

from collections.abc import Iterator

from coloop.spec.diagnostics import Change, Diagnostic, Fix, Severity
from coloop.validate.facts import Facts, PhaseFacts, found

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


RULES = (several_steps_have_a_ratio,)
