"""Adapters, and the frozen weights that they stand on.

    actor (pretrained, lora) ─┬─ critic (shared with actor, lora)
                              └─ reference (snapshot of actor)      all three on one base, held once

The frozen weights of a group are those of its holder, the group along `with` and `of` that loads
them. Weights that change later are no base: a copy that starts with a phase or is refreshed has
weights of its own, and so has what follows it.
"""

from __future__ import annotations

from dataclasses import replace

from coloop.spec.base import as_tuple
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import owner_of, weights_groups
from coloop.spec.lean import record
from coloop.spec.model import CopyModel, Lora, Model, SharedModel, SnapshotModel
from coloop.spec.nodes import model_of


@record
class Standing:
    """An adapter and the frozen weights under it."""

    lora: Lora
    holder: str
    """The group that loads the frozen weights; the adapter's own group if no other does."""
    steps: int = 0
    """Number of `with` and `of` links from the group to the holder."""


def standing_of(spec: LoopSpec, group: str) -> Standing | None:
    """Adapter and base of a weights group; None for weights without an adapter."""
    return _standing(spec, group, frozenset())


def source_of(model: Model | None) -> str | None:
    """The node whose weights a model section starts from or builds on."""
    match model:
        case CopyModel() | SnapshotModel():
            return model.of
        case SharedModel():
            return model.with_
    return None


def stays(spec: LoopSpec, group: str) -> bool:
    """Whether a group is not a copy that gets its weights during the run, by phase or refresh."""
    model = model_of(spec.nodes[group])
    if not isinstance(model, CopyModel):
        return True
    return model.at is None and group not in refreshed(spec)


def _standing(spec: LoopSpec, group: str, seen: frozenset[str]) -> Standing | None:
    model = model_of(spec.nodes[group])
    if group in seen:
        return None
    seen |= {group}
    if isinstance(model, SnapshotModel):
        source = _owner(spec, model.of)
        if source is None or not stays(spec, source):
            return None
        followed = _standing(spec, source, seen)
        return None if followed is None else replace(followed, steps=followed.steps + 1)
    lora: Lora | None = getattr(model, "lora", None)
    if lora is None:
        return None
    source = None
    if isinstance(model, SharedModel):
        source = _owner(spec, model.with_)
    elif isinstance(model, CopyModel) and stays(spec, group):
        source = _owner(spec, model.of)
    found = None if source is None else _holder(spec, source, seen)
    holder, steps = found or (group, -1)
    return Standing(lora=lora, holder=holder, steps=steps + 1)


def _holder(spec: LoopSpec, group: str, seen: frozenset[str]) -> tuple[str, int] | None:
    """Who holds the frozen weights of a group, and how many links away; None if they may change."""
    if not stays(spec, group):
        return None
    standing = _standing(spec, group, seen)
    if standing is not None:
        return standing.holder, standing.steps
    owned = weights_groups(spec)[group]
    return None if owned.trainable or owned.source == "snapshot" else (group, 0)


def _owner(spec: LoopSpec, node: str) -> str | None:
    return owner_of(spec, node) if node in spec.nodes else None


def refreshed(spec: LoopSpec) -> set[str]:
    """Nodes that a phase or trigger refreshes."""
    doers = [item.do for _, item in spec.schedule.items()]
    doers += [trigger.do for trigger in spec.schedule.triggers]
    return {order.node for do in doers if do is not None for order in as_tuple(do.refresh)}
