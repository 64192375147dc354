"""Adapters: what they stand on, whether anything teaches them, and how wide they are."""

from collections.abc import Iterator

from coloop.plan.settings.facts import adapted_widths
from coloop.spec.adapters import standing_of, stays
from coloop.spec.diagnostics import Change, Diagnostic, Fix, Severity
from coloop.spec.model import SharedModel
from coloop.validate.facts import Facts, found
from coloop.validate.numerics import architecture


def adapters_stand_on_frozen_weights(facts: Facts) -> Iterator[Diagnostic]:
    """What an adapter of its own stands beside is what it was when the run started."""
    for name in facts.nodes:
        model = facts.model(name)
        if not isinstance(model, SharedModel) or model.lora is None:
            continue
        group = facts.group_of.get(model.with_)
        standing = standing_of(facts.spec, name)
        if group is None or standing is None or standing.holder != name or group.name == name:
            continue
        if group.source == "snapshot":
            why = f"`{group.name}` is a snapshot of other weights"
        elif not stays(facts.spec, group.name):
            why = f"`{group.name}` gets new weights during the run"
        else:
            why = f"`{group.name}` trains all of its weights"
        rank = {"rank": model.lora.rank}
        copied = Change(
            op="set",
            path=f"nodes.{name}.model",
            value={"type": "copy", "of": model.with_, "lora": rank},
        )
        fixes = [Fix(title=f"Start `{name}` as a copy", changes=(copied,))]
        if group.trainable:
            adapted = Change(op="set", path=f"nodes.{group.name}.model.lora", value=rank)
            fixes.append(Fix(title=f"Train an adapter of `{group.name}`", changes=(adapted,)))
        yield found(
            "learning.adapter_base",
            f"the adapter of `{name}` is based on the weights of `{group.name}`, which change: "
            f"{why}",
            hint=(
                "give the other node `model.lora` as well, so that both use its frozen weights, or "
                "start from a copy: `model: {type: copy, of: ..., lora: ...}`"
            ),
            node=name,
            field="model.with",
            fixes=tuple(fixes),
        )


def adapters_are_taught(facts: Facts) -> Iterator[Diagnostic]:
    """An adapter that nothing teaches changes nothing."""
    for group in facts.groups.values():
        if group.trainable or getattr(facts.model(group.name), "lora", None) is None:
            continue
        yield found(
            "learning.adapter_idle",
            f"nothing trains the adapter of `{group.name}`, so its weights equal those of its base",
            severity=Severity.WARNING,
            hint="connect a teaching port, or remove `lora`",
            node=group.name,
            field="model.lora",
            fixes=(
                Fix(
                    title="Remove `lora`",
                    changes=(Change(op="remove", path=f"nodes.{group.name}.model.lora"),),
                ),
            ),
        )


def adapters_are_narrow(facts: Facts) -> Iterator[Diagnostic]:
    """A rank as large as a matrix saves nothing and can say no more than the matrix."""
    for name in facts.nodes:
        lora = getattr(facts.model(name), "lora", None)
        arch = architecture(facts, name) if lora is not None else None
        if lora is None or arch is None:
            continue
        widths = adapted_widths(arch, lora)
        layer, width = min(widths.items(), key=lambda one: one[1], default=("", lora.rank + 1))
        if lora.rank < width:
            continue
        yield found(
            "numbers.adapter_rank",
            f"an adapter of rank {lora.rank} on `{layer}` of {arch.name}, whose rank is at most "
            f"{width}: it can do no more than the whole matrix and needs more memory",
            severity=Severity.WARNING,
            hint="a rank of 8 to 64 is usual, far below the width of the model",
            node=name,
            field="model.lora.rank",
        )


RULES = (adapters_stand_on_frozen_weights, adapters_are_taught, adapters_are_narrow)
