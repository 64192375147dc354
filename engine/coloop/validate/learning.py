"""What learners learn with: algorithms, and the log-probs, values and rows that these read."""

from collections.abc import Iterator

from coloop.plan.settings.facts import config_in, origin_of
from coloop.plan.settings.families import dropout_in
from coloop.spec.diagnostics import Change, Diagnostic, Fix, Severity
from coloop.spec.model import PretrainedModel
from coloop.spec.nodes import EvaluateNode, FilterNode, Node, PairsNode, RewardNode
from coloop.validate import next_steps
from coloop.validate.facts import Facts, found
from coloop.validate.groups import completions_path, smallest_groups, stretches


def own_rollouts_are_written(facts: Facts) -> Iterator[Diagnostic]:
    """Rewards are of own rollouts, so the learner writes some."""
    for name in facts.learners:
        if not facts.walk.into(name, "rewards"):
            continue
        node = facts.nodes[name]
        if not facts.lineage.writes(name):
            yield found(
                "learning.no_own_rollouts",
                f"`{name}` learns from rewards of its own generations, but it generates nothing",
                hint="only `method: generative` with a `rollout` generates texts",
                node=name,
                field="rewards",
            )
        elif node.kind == "actor" and not facts.is_connected(name, "prompts"):
            called = facts.walk.callers.get(name) or facts.walk.driven.get(name)
            if not called and not facts.is_used(name, "rollouts"):
                yield found(
                    "structure.missing_edge",
                    f"`{name}` learns from rewards of its own generations, but it gets no prompts",
                    hint=f"connect rows with a `prompt` to `{name}.prompts`",
                    node=name,
                    field="prompts",
                    fixes=next_steps.to_input(facts, name, "prompts"),
                )


def greedy_baselines_have_greedy_rows(facts: Facts) -> Iterator[Diagnostic]:
    """A greedy baseline needs the greedy answer."""
    for name, full in facts.rewards:
        rollout = facts.rollout(name)
        if full.needs_greedy and rollout is not None and not rollout.greedy_extra:
            change = Change(op="set", path=f"nodes.{name}.rollout.greedy_extra", value=True)
            yield found(
                "learning.no_greedy_row",
                f"`{full.name}` compares with the greedy completion, but `{name}` generates none",
                hint="set `rollout.greedy_extra: true`",
                node=name,
                field="rollout.greedy_extra",
                fixes=(Fix(title="Generate a greedy completion", changes=(change,)),),
            )
        elif full.needs_greedy and (buffers := facts.buffers_in(facts.rewarded_levels(name))):
            yield found(
                "learning.no_greedy_row",
                f"`{full.name}` compares with the greedy completion of the same prompt, but rows "
                f"from `{buffers[0]}` have none: it was generated in another step",
                hint=(
                    f"reward what `{name}` generates in the same step, or use an algorithm with "
                    "another baseline (grpo, rloo)"
                ),
                node=name,
                field="rewards",
            )


def groups_are_large_enough(facts: Facts) -> Iterator[Diagnostic]:
    """An estimator that compares rows of a group gets more than one of them."""
    for name, full in facts.rewards:
        if not full.needs_group or full.allow_group_of_one or full.off_policy is not None:
            continue
        for phase in stretches(facts):
            if (name, "rewards") not in phase.live:
                continue
            group = smallest_groups(facts, name, phase)
            if group is None or group.rows > 1:
                continue
            path = completions_path(name)
            is_own = group.field == "rollout.completions_per_prompt" and path not in phase.overrides
            fix = Fix(
                title=("Generate 8 completions"), changes=(Change(op="set", path=path, value=8),)
            )
            yield found(
                "learning.group_of_one",
                f"`{full.name}` compares the rows of a group, but in {phase.label} every group of "
                f"`{name}` has one row: {group.reason}",
                severity=phase.severity,
                hint=group.hint,
                node=name,
                field=group.field,
                fixes=(fix,) if is_own else (),
            )
            break


def pairs_have_two_sides(facts: Facts) -> Iterator[Diagnostic]:
    """Pairs are made of two completions of one prompt."""
    for name, node in facts.nodes.items():
        if not isinstance(node, PairsNode) or node.method in ("direct", "relabel"):
            continue
        for edge in facts.walk.into(name, "rollouts"):
            levels = facts.lineage.edge_levels(edge)
            writers = {writer for level in levels for writer in facts.lineage.writers(level)}
            sections = [facts.rollout(writer) for writer in sorted(writers)]
            if not sections or any(s is None or s.completions_per_prompt > 1 for s in sections):
                continue
            writer = sorted(writers)[0]
            path = f"nodes.{writer}.rollout.completions_per_prompt"
            moved = any(path in phase.overrides for phase in facts.phases)
            if moved or path in facts.moved_paths or facts.lineage.region_of(writer) is not None:
                continue
            if any(_draws_samples(facts.nodes[n]) for n in facts.walk.downstream(name)):
                continue
            change = Change(op="set", path=path, value=2)
            yield found(
                "learning.no_pairs",
                f"`{name}` pairs completions of one prompt, but `{writer}` generates only one",
                hint="generate at least 2 completions, or use `method: direct`",
                node=name,
                field="rollouts",
                fixes=(Fix(title="Generate 2 completions", changes=(change,)),),
            )


def references_stand_still(facts: Facts) -> Iterator[Diagnostic]:
    """A reference is not the very weights that are held to it."""
    for name in facts.learners:
        for edge in facts.walk.into(name, "reference"):
            group = facts.group_of.get(name)
            if group is None or edge.source.node not in group.members:
                continue
            change = Change(
                op="set",
                path=f"nodes.{edge.source.node}.model",
                value={"type": "snapshot", "of": group.name, "refresh": "never"},
            )
            yield found(
                "learning.reference_follows",
                f"`{edge.source.node}` shares the weights of `{name}`, so the two never differ and "
                "the reference has no effect",
                severity=Severity.WARNING,
                hint="make it a snapshot",
                node=edge.source.node,
                field="model",
                fixes=(Fix(title="Make it a snapshot", changes=(change,)),),
            )


def class_weights_have_a_scorer(facts: Facts) -> Iterator[Diagnostic]:
    """Class weights are taken by a scorer upstream of the learner's rewards."""
    for name in facts.learners:
        weights = getattr(getattr(facts.nodes[name], "credit", None), "class_weights", None)
        if weights is None or weights.by not in facts.nodes:
            continue
        sources = [edge.source.node for edge in facts.walk.into(name, "rewards")]
        if sources and weights.by not in facts.whence(*sources):
            yield found(
                "learning.class_weights_scorer",
                f"`credit.class_weights.by` names `{weights.by}`, which does not contribute to the "
                f"rewards of `{name}`",
                hint="name a scorer upstream of its rewards",
                node=name,
                field="credit.class_weights.by",
            )


def some_edge_counts(facts: Facts) -> Iterator[Diagnostic]:
    """A live teaching port has an edge whose weight is not 0."""
    for node, port in sorted(facts.teaching_ports):
        edges = facts.walk.into(node, port)
        if edges and all(facts.is_dead(edge) for edge in edges):
            change = Change(op="set", path=f"{facts.place(edges[0])}.weight", value=1.0)
            yield found(
                "learning.every_weight_zero",
                f"every edge into `{node}.{port}` has weight 0, so nothing is learned there",
                hint="give one of them a weight, or remove them",
                node=node,
                field=port,
                fixes=(Fix(title=f"Give {edges[0].label} weight 1", changes=(change,)),),
            )
            continue
        for phase in facts.phases:
            is_live = bool(edges) and (node, port) in phase.live
            if is_live and all(facts.is_dead(edge, phase) for edge in edges):
                yield found(
                    "learning.every_weight_zero",
                    f"{phase.label} learns at `{node}.{port}`, but every edge there has weight 0",
                    hint="give an edge a weight, or remove the port from `learn`",
                    field=f"{phase.path}.learn",
                )


def cut_rows_have_no_other_reward(facts: Facts) -> Iterator[Diagnostic]:
    """What a filter on the way of one reward cuts has no score of another."""
    for name, _ in facts.rewards:
        credit = getattr(facts.nodes[name], "credit", None)
        if credit is None or credit.missing == "skip_row":
            continue
        edges = [edge for edge in facts.walk.into(name, "rewards") if not facts.is_dead(edge)]
        below = facts.walk.downstream(name)
        ways = {edge.key: facts.walk.upstream(edge.source.node) & below for edge in edges}
        for cut in sorted(n for n in set().union(*ways.values()) if _cuts(facts.nodes[n])):
            around = [edge for edge in edges if ways[edge.key] and cut not in ways[edge.key]]
            if not around:
                continue
            labels = " and ".join(f"`{edge.label}`" for edge in around)
            change = Change(op="set", path=f"nodes.{name}.credit.missing", value="skip_row")
            yield found(
                "learning.cut_rows",
                f"rows that `{cut}` filters out are still trained on, with {labels} only, which "
                f"{('goes' if len(around) == 1 else 'go')} around it",
                severity=Severity.HINT,
                hint=(
                    f"score the output of `{cut}`, or leave such rows out of the update with "
                    "`credit.missing: skip_row`"
                ),
                node=name,
                field="credit.missing",
                fixes=(Fix(title="Skip such rows", changes=(change,)),),
            )


def _cuts(node: Node) -> bool:
    """Whether a filter takes rows away."""
    return isinstance(node, FilterNode) and bool(node.keep or node.per_group)


def dropout_is_for_texts(facts: Facts) -> Iterator[Diagnostic]:
    """What is compared with other log-probs is learned without dropout, unless the loop says so."""
    for group in facts.groups.values():
        training = facts.training(group.name)
        origin = origin_of(facts.spec, group.name)
        model = facts.model(group.name)
        begins = facts.model(origin) if origin is not None else None
        shares: dict[str, float] = {}
        if isinstance(begins, PretrainedModel) and not facts.is_outside(begins.path):
            shares = dropout_in(config_in(begins.path, facts.root) or {})
        if (lora := getattr(model, "lora", None)) is not None and lora.dropout:
            shares["lora.dropout"] = lora.dropout
        ports = [port for one in group.members for port in facts.teaching_ports_of(one)]
        if not shares or training is None or training.dropout is not None:
            continue
        if all(port == "demonstrations" for port in ports):
            continue
        told = ", ".join(f"{name} {value:g}" for name, value in sorted(shares.items()))
        yield found(
            "learning.dropout",
            f"`{group.name}` has dropout ({told}), which is off unless it learns only from "
            "`demonstrations`: its log-probs are compared with those of texts generated without "
            "dropout",
            severity=Severity.HINT,
            hint=(
                "`training.dropout: true` keeps it on, `false` turns it off for demonstrations as "
                "well"
            ),
            node=group.name,
            field="training.dropout",
        )


def companions_are_there(facts: Facts) -> Iterator[Diagnostic]:
    """Algorithms that are known together with a filter or a penalty have it."""
    yield from _drawn_again(facts)
    yield from _pairs_of_own_texts(facts)
    for name, full in facts.rewards:
        if full.family != "dapo":
            continue
        above = facts.walk.upstream(*(e.source.node for e in facts.walk.into(name, "rewards")))
        sections = [facts.nodes[other] for other in above]
        has_filter = any(
            isinstance(node, FilterNode)
            and any(rule.rule in ("nonzero_variance", "accuracy_band") for rule in node.keep)
            for node in sections
        )
        has_overlong = any(
            isinstance(node, RewardNode) and getattr(node.source, "name", None) == "overlong"
            for node in sections
        )
        for is_there, what, hint in (
            (has_filter, "dynamic sampling", "a filter with `nonzero_variance` and `fill`"),
            (has_overlong, "overlong shaping", "a reward `overlong`"),
        ):
            if not is_there:
                yield found(
                    "learning.companion",
                    f"`{full.name}` is published together with {what}, which this loop does not "
                    "have",
                    severity=Severity.HINT,
                    hint=f"add {hint} between `{name}` and its rewards",
                    node=name,
                    field="algorithm",
                )


def _drawn_again(facts: Facts) -> Iterator[Diagnostic]:
    """Rows of PF-PPO are drawn again by their scores."""
    for name, full in facts.rewards:
        above = facts.walk.upstream(*(e.source.node for e in facts.walk.into(name, "rewards")))
        sections = [facts.nodes[other] for other in above]
        is_drawn = any(isinstance(one, FilterNode) and one.resample is not None for one in sections)
        if full.family == "pf_ppo" and not is_drawn:
            yield found(
                "learning.companion",
                f"`{full.name}` is published together with resampling rows by their scores; this "
                "loop does not resample",
                severity=Severity.HINT,
                hint=f"add a filter with `resample` between `{name}` and its rewards; without it "
                "this is `ppo`",
                node=name,
                field="algorithm",
            )


def _pairs_of_own_texts(facts: Facts) -> Iterator[Diagnostic]:
    """Pairs of online DPO are of what the policy writes."""
    for name in facts.learners:
        algorithms = facts.algorithms(name, "pairs")
        edges = [*facts.walk.into(name, "pairs")]
        if not edges or not any(getattr(one, "name", None) == "online_dpo" for one in algorithms):
            continue
        if name not in facts.walk.upstream(*(edge.source.node for edge in edges)):
            yield found(
                "learning.companion",
                "`online_dpo` is published with pairs of the policy's own texts, but the pairs of "
                f"`{name}` do not come from its rollouts",
                severity=Severity.HINT,
                hint=(
                    f"connect `{name}.rollouts` to the node that makes the pairs; with other pairs "
                    "this is `dpo`"
                ),
                node=name,
                field="algorithm",
            )


def _draws_samples(node: Node) -> bool:
    """Whether a probe lets writers write more than their rollout says."""
    return isinstance(node, EvaluateNode) and (node.samples or 1) > 1


RULES = (
    own_rollouts_are_written,
    greedy_baselines_have_greedy_rows,
    groups_are_large_enough,
    pairs_have_two_sides,
    references_stand_still,
    class_weights_have_a_scorer,
    some_edge_counts,
    cut_rows_have_no_other_reward,
    companions_are_there,
    dropout_is_for_texts,
)
