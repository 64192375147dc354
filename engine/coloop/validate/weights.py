"""Who owns weights and who trains them: groups, optimizers, snapshots, adapters, cycles of `of` and
`with`."""

from collections.abc import Iterator

from coloop.plan.settings.facts import adapted_widths
from coloop.spec.adapters import standing_of, stays
from coloop.spec.diagnostics import Change, Diagnostic, Fix, error, warning
from coloop.spec.groups import WeightsGroup, chat_service, updates_by_member
from coloop.spec.heads import scorers_of
from coloop.spec.model import SharedModel
from coloop.spec.nodes import RewardNode, VerifierNode
from coloop.spec.rollout import CHAT
from coloop.validate import next_steps
from coloop.validate.facts import Facts, a
from coloop.validate.numerics import architecture


def groups_have_one_optimizer(facts: Facts) -> Iterator[Diagnostic]:
    for group in facts.groups.values():
        for name in group.members[1:]:
            if getattr(facts.nodes[name], "training", None) is None:
                continue
            yield error(
                "learning.second_optimizer",
                f"nodes.{name}.training",
                f"`{name}` shares the weights of `{group.name}` and has its own `training`, but "
                "shared weights have one optimizer",
                f"set it in `nodes.{group.name}.training`, or give `{name}` its own weights "
                "with `model: {type: copy, of: ...}`",
                Fix.remove("Remove `training` here", f"nodes.{name}.training"),
            )


def snapshots_do_not_train(facts: Facts) -> Iterator[Diagnostic]:
    for group in facts.groups.values():
        if group.source != "snapshot":
            continue
        for name in group.members:
            ports = facts.teaching_ports_of(name)
            has_training = getattr(facts.nodes[name], "training", None) is not None
            if not ports and not has_training:
                continue
            what = f"`{name}.{ports[0]}` is connected" if ports else "it has `training`"
            source = getattr(facts.model(group.name), "of", None)
            yield error(
                "learning.snapshot_trains",
                f"nodes.{name}.{ports[0] if ports else 'training'}",
                f"`{name}` is a snapshot, which is never trained, but {what}",
                "a `copy` starts from the same weights and can be trained",
                Fix.set(
                    f"Make {group.name} a copy",
                    f"nodes.{group.name}.model",
                    {"type": "copy", "of": source},
                ),
            )


def weights_come_from_somewhere(facts: Facts) -> Iterator[Diagnostic]:
    """`with` and `of` lead to weights and form no cycle."""
    reported: set[str] = set()
    for name in facts.nodes:
        way: list[str] = []
        here: str | None = name
        while here is not None and here in facts.nodes and here not in way:
            way.append(here)
            model = facts.model(here)
            here = getattr(model, "of", None) or getattr(model, "with_", None)
        if here is None or here not in way:
            continue
        circle = way[way.index(here) :]
        if reported.isdisjoint(circle):
            reported.update(circle)
            yield error(
                "learning.weights_circle",
                f"nodes.{circle[0]}.model",
                "weights depend on one another in a cycle: " + " -> ".join([*circle, circle[0]]),
                "one of these nodes needs its own weights (`pretrained`, `scratch` or `run`)",
            )


def learners_have_weights(facts: Facts) -> Iterator[Diagnostic]:
    """Nodes with a connected teaching port have weights."""
    for name in facts.learners:
        node = facts.nodes[name]
        if facts.model(name) is not None:
            continue
        port = facts.teaching_ports_of(name)[0]
        what = "source" if isinstance(node, RewardNode) else "method"
        value = (
            node.source.type
            if isinstance(node, RewardNode)
            else node.method
            if isinstance(node, VerifierNode)
            else node.kind
        )
        if isinstance(node, VerifierNode) and chat_service(node) is not None:
            what, value = "rollout.engine", CHAT
        yield error(
            "learning.no_weights",
            f"nodes.{name}.{port}",
            f"`{name}.{port}` is connected, but {a(node.kind)} with `{what}: {value}` has no "
            "weights",
            f"give it a model, or remove the edge into `{name}.{port}`",
        )


def trainers_have_something_to_train(facts: Facts) -> Iterator[Diagnostic]:
    """Weights with a `training` section are trained."""
    for name, node in facts.nodes.items():
        group = facts.group_of.get(name)
        if getattr(node, "training", None) is None or group is None or group.trainable:
            continue
        if facts.is_alone(name):
            continue
        if group.source == "snapshot":
            continue
        at = f"nodes.{name}.training"
        yield warning(
            "learning.nothing_to_train",
            at,
            f"`{name}` has `training`, but none of the teaching ports of its weights is connected",
            "connect a teaching port, or remove `training`: the weights are frozen",
            *(next_steps.to_lesson(facts, name) or (Fix.remove("Remove `training`", at),)),
        )


def order_is_of_one_group(facts: Facts) -> Iterator[Diagnostic]:
    """`order` lists all learners of a weights group or none, each once, and at least two."""
    order = facts.spec.schedule.order
    if any(name not in facts.group_of for name in order):
        return
    for index, name in enumerate(order):
        if name in order[:index]:
            yield error(
                "learning.order",
                f"schedule.order.{index}",
                f"`{name}` is listed twice in `order`",
                "list each role once",
            )
    for group in facts.groups.values():
        learners = [name for name in group.members if name in facts.learners]
        named = [name for name in order if name in group.members]
        if len(learners) < 2 and named:
            yield warning(
                "learning.order",
                "schedule.order",
                f"`order` names `{named[0]}`, but no other role trains its weights",
                "`order` applies to roles that share weights; other learners are independent",
            )
        missing = [name for name in learners if name not in named]
        if named and missing and len(learners) > 1:
            yield error(
                "learning.order",
                "schedule.order",
                f"`order` names {', '.join(f'`{n}`' for n in named)} but not "
                f"{', '.join(f'`{n}`' for n in missing)} on the same weights",
                "list all learning roles of the group, or none for one joint update",
            )


def frozen_weights_know_something(facts: Facts) -> Iterator[Diagnostic]:
    """Weights and score heads that are never trained do not start random."""
    for group in facts.groups.values():
        if group.trainable or all(facts.is_alone(name) for name in group.members):
            continue
        if group.source != "scratch":
            yield from _drawn_head(facts, group)
            continue
        kinds = {facts.nodes[name].kind for name in group.members}
        yield warning(
            "learning.frozen_scratch",
            f"nodes.{group.name}.model",
            f"`{group.name}` starts with random weights and is never trained: its output is noise",
            "connect one of its teaching ports, or use trained weights: `model: {type: "
            "pretrained, path: ...}`"
            + (" or `{type: snapshot, of: ...}`" if "reference" in kinds else ""),
            *next_steps.to_lesson(facts, group.name),
        )


def _drawn_head(facts: Facts, group: WeightsGroup) -> Iterator[Diagnostic]:
    """An untrained score head that none of the source weights has."""
    for name in scorers_of(facts.spec, group.members):
        if not _comes_without_head(facts, group, name):
            continue
        yield warning(
            "learning.frozen_scratch",
            f"nodes.{name}.model",
            f"`{name}` reads a score head that its initial weights do not have, and it is never "
            "trained: its output is noise",
            f"connect a teaching port of `{name}`, or use weights with a head: those of a "
            "scorer of this loop, or of an earlier run (`model: {type: run, ...}`)",
        )


def _comes_without_head(facts: Facts, group: WeightsGroup, name: str) -> bool:
    """Whether a score head starts untrained: no group that its weights come from learns a score.
    False for external weights, which may have one."""
    seen: set[str] = set()
    of: str | None = None
    while group.name not in seen:
        seen.add(group.name)
        scorers = scorers_of(facts.spec, group.members)
        if group.trainable and (of in scorers or name in scorers or len(scorers) == 1):
            return False
        of = getattr(facts.model(group.name), "of", None)
        source = facts.group_of.get(of or "")
        if source is None:
            return group.source == "scratch"
        group = source
    return False


def members_learn_as_often(facts: Facts) -> Iterator[Diagnostic]:
    """Roles that train the same weights in one stage set the same `updates`."""
    reported: set[str] = set()
    for phase in facts.phases:
        for group in facts.groups.values():
            live = [name for name in group.members if any(name == node for node, _ in phase.live)]
            updates = updates_by_member(facts.spec, live)
            if len(set(updates.values())) < 2 or group.name in reported:
                continue
            reported.add(group.name)
            last = next(
                name for name in reversed(updates) if updates[name] != next(iter(updates.values()))
            )
            paths = {name: f"schedule.learn.{name}.updates" for name in updates}
            yield error(
                "learning.updates",
                paths[last],
                " and ".join(f"`{name}` sets `updates: {count}`" for name, count in updates.items())
                + f", but they share the weights of `{group.name}` and are trained in one stage",
                "set the same value for all, or train them in different phases",
                *(
                    Fix(
                        title=f"{count} for all",
                        changes=tuple(
                            Change(op="set", path=path, value=count) for path in paths.values()
                        ),
                    )
                    for count in sorted(set(updates.values()))
                ),
            )


# Adapters: what they stand on, whether anything teaches them, and how wide they are.


def adapters_stand_on_frozen_weights(facts: Facts) -> Iterator[Diagnostic]:
    """The weights under a node's own adapter do not change during the run."""
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
        fixes = [
            Fix.set(
                f"Start `{name}` as a copy",
                f"nodes.{name}.model",
                {"type": "copy", "of": model.with_, "lora": rank},
            )
        ]
        if group.trainable:
            fixes.append(
                Fix.set(
                    f"Train an adapter of `{group.name}`", f"nodes.{group.name}.model.lora", rank
                )
            )
        yield error(
            "learning.adapter_base",
            f"nodes.{name}.model.with",
            f"the adapter of `{name}` is based on the weights of `{group.name}`, which change: "
            f"{why}",
            "give the other node `model.lora` as well, so that both use its frozen weights, or "
            "start from a copy: `model: {type: copy, of: ..., lora: ...}`",
            *fixes,
        )


def adapters_are_taught(facts: Facts) -> Iterator[Diagnostic]:
    for group in facts.groups.values():
        if group.trainable or getattr(facts.model(group.name), "lora", None) is None:
            continue
        yield warning(
            "learning.adapter_idle",
            f"nodes.{group.name}.model.lora",
            f"nothing trains the adapter of `{group.name}`, so its weights equal those of its base",
            "connect a teaching port, or remove `lora`",
            Fix.remove("Remove `lora`", f"nodes.{group.name}.model.lora"),
        )


def adapters_are_narrow(facts: Facts) -> Iterator[Diagnostic]:
    """The rank of an adapter is below that of the matrices it adapts, or it saves nothing."""
    for name in facts.nodes:
        lora = getattr(facts.model(name), "lora", None)
        arch = architecture(facts, name) if lora is not None else None
        if lora is None or arch is None:
            continue
        widths = adapted_widths(arch, lora)
        layer, width = min(widths.items(), key=lambda item: item[1], default=("", lora.rank + 1))
        if lora.rank < width:
            continue
        yield warning(
            "numbers.adapter_rank",
            f"nodes.{name}.model.lora.rank",
            f"an adapter of rank {lora.rank} on `{layer}` of {arch.name}, whose rank is at most "
            f"{width}: it can do no more than the whole matrix and needs more memory",
            "a rank of 8 to 64 is usual, far below the width of the model",
        )
