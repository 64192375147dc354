"""What learners learn with: algorithms, and the log-probs, values and rows that these read."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from coloop.plan.settings.facts import config_in, origin_of
from coloop.plan.settings.families import dropout_in
from coloop.spec.algorithm import (
    PORTS_OF,
    Algorithm,
    ImplicitPrm,
    PreferenceAlgorithm,
    RewardsAlgorithm,
    algorithm_paths,
    reads,
    reference_edges,
)
from coloop.spec.base import Section
from coloop.spec.diagnostics import Diagnostic, Fix, Severity, error, notice, warning
from coloop.spec.heads import OF_CLASSES, can_learn, classes_of, head_of, label_words, taught_at
from coloop.spec.model import PretrainedModel
from coloop.spec.nodes import (
    ActorNode,
    EvaluateNode,
    FilterNode,
    PairsNode,
    RewardNode,
    VerifierNode,
)
from coloop.validate import next_steps
from coloop.validate.facts import Facts
from coloop.validate.groups import completions_path, groups_of_one, stretches
from coloop.validate.next_steps import is_short

DEFAULT_ALGORITHMS: Final[Mapping[tuple[str, str], str]] = {
    ("actor", "rewards"): "grpo",
    ("actor", "demonstrations"): "sft",
    ("actor", "pairs"): "dpo",
    ("actor", "reference"): "opd",
    ("critic", "returns"): "value",
    ("critic", "labels"): "regression",
    ("reward", "pairs"): "bradley_terry",
    ("reward", "labels"): "outcome",
    ("verifier", "labels"): "label_ce",
    ("verifier", "rewards"): "grpo",
    ("verifier", "demonstrations"): "sft",
    ("verifier", "pairs"): "dpo",
}
"""Default that a fix writes for a teaching port without an algorithm."""

MISSING_CODES: Final = {
    "reference": "learning.missing_reference",
    "values": "learning.missing_values",
    "prior": "learning.missing_prior",
}


def teaching_ports_have_algorithms(facts: Facts) -> Iterator[Diagnostic]:
    for name in facts.learners:
        node = facts.nodes[name]
        if facts.model(name) is None:
            continue
        for port in facts.teaching_ports_of(name):
            if facts.algorithms(name, port):
                continue
            section: Any = getattr(node, "algorithm", None)
            has = ""
            if is_short(section):
                ports = " and ".join(f"`{served}`" for served in PORTS_OF[type(section)])
                has = f" (`{section.name}` works at {ports})"
            wanted = _default_algorithm(facts, name, port)
            yield error(
                "learning.no_algorithm",
                f"nodes.{name}.algorithm",
                f"`{name}.{port}` is connected, but `{name}` has no algorithm for it{has}",
                f"e.g. `algorithm: {{{port}: {{name: {wanted}}}}}`",
                _algorithm_fix(facts, name, port, wanted),
            )


def algorithms_have_teaching_ports(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.nodes.items():
        section: Any = getattr(node, "algorithm", None)
        if section is None or facts.is_alone(name):
            continue
        unused = [f"`{port}`" for port in next_steps.untaught_ports(facts, name)]
        if unused:
            ports = (" and " if is_short(section) else ", ").join(unused)
            yield warning(
                "learning.algorithm_unused",
                f"nodes.{name}.algorithm",
                f"`{name}` has an algorithm for {ports}, but nothing is connected there",
                "connect the port, or remove the algorithm",
                *next_steps.to_lesson(facts, name),
            )


def what_algorithms_read_is_connected(facts: Facts) -> Iterator[Diagnostic]:
    """KL has a `reference`, GAE has `values`, and an implicit PRM its `prior`."""
    for name in facts.learners:
        for port in facts.teaching_ports_of(name):
            for algorithm in facts.algorithms(name, port):
                if not fits(facts, name, port, algorithm):
                    continue
                for wanted in sorted(reads(algorithm)):
                    if not facts.is_connected(name, wanted):
                        yield _missing_input(facts, name, port, algorithm, wanted)


def references_cover_the_rows(facts: Facts) -> Iterator[Diagnostic]:
    """A learner's reference and critic see the rows that it is trained on."""
    for name in facts.learners:
        for wanted, code in (
            ("reference", "learning.reference_elsewhere"),
            ("values", "learning.values_elsewhere"),
        ):
            for port in facts.teaching_ports_of(name):
                if wanted not in facts.read_by(name, port):
                    continue
                edges = facts.walk.into(name, wanted)
                if wanted == "reference":
                    read = reference_edges(facts.spec, name, port)
                    edges = [edge for edge in edges if edge in read]
                given = facts.levels_of(edges)
                if not given:
                    continue
                is_rewarded = port == "rewards"
                taught = () if is_rewarded else facts.walk.into(name, port)
                rows = facts.rewarded_levels(name) if is_rewarded else facts.levels_of(taught)
                unseen = rows.difference(given)
                if unseen:
                    source = edges[0].source.node
                    is_partly_seen = unseen != rows
                    these = "some of those rows" if is_partly_seen else "none of those rows"
                    names = ", ".join(sorted(f"`{level}`" for level in unseen))
                    yield error(
                        "learning.partly_seen" if is_partly_seen else code,
                        f"nodes.{name}.{wanted}",
                        f"`{name}.{port}` uses `{source}` at `{wanted}`, but `{source}` sees "
                        f"{these}: rows of {names} are left out of the update",
                        f"connect the rows of `{port}` to `{source}` as well",
                        severity=Severity.WARNING if is_partly_seen else Severity.ERROR,
                    )


def references_are_read(facts: Facts) -> Iterator[Diagnostic]:
    """Every connected reference or critic is read by some algorithm; else it only costs time."""
    for name, node in facts.nodes.items():
        if not isinstance(node, ActorNode | VerifierNode):
            continue
        ports = facts.teaching_ports_of(name)
        needs = {need for port in ports for need in facts.read_by(name, port)}
        for wanted, without in (("reference", "no `kl`"), ("values", "no `gae`")):
            for edge in facts.walk.into(name, wanted):
                if wanted not in needs and ports and not facts.spec.graph.teaches(edge):
                    yield warning(
                        "learning.unread_input",
                        facts.place(edge),
                        f"`{edge.label}` is not used: the algorithms of `{name}` have {without}",
                        "set `kl` to keep the policy close to its reference"
                        if wanted == "reference"
                        else "PPO and VAPO use values; other algorithms have their own baseline",
                    )


def one_coefficient_follows(facts: Facts) -> Iterator[Diagnostic]:
    """At most one algorithm of a learner adapts its KL coefficient, because there is one metric."""
    for name in dict.fromkeys(name for name, _ in facts.rewards):
        entries = [full for other, full in facts.rewards if other == name]
        follows = [
            index
            for index, full in enumerate(entries)
            if full.kl is not None and full.kl.target is not None
        ]
        if len(follows) > 1:
            field = f"algorithm.rewards.{follows[1]}.kl.target"
            yield error(
                "structure.conflict",
                f"nodes.{name}.{field}",
                f"{len(follows)} algorithms of `{name}.rewards` have a `kl.target`, so one metric "
                f"(`{name}.kl/coefficient`) would stand for {len(follows)} coefficients",
                "keep `target` in only one of them: the others keep their `coefficient`",
                Fix.remove(f"Remove `{field}`", f"nodes.{name}.{field}"),
            )


def _missing_input(
    facts: Facts, name: str, port: str, algorithm: Algorithm, wanted: str
) -> Diagnostic:
    because, kl_fixes = f"`{algorithm.name}` at `{port}`", list[Fix]()
    match algorithm:
        case RewardsAlgorithm() if wanted == "reference":
            because, hint = f"`kl` of `{port}`", "connect a reference, or set `kl: null`"
            paths = [at for _, at, entry in algorithm_paths(facts.spec, name) if entry is algorithm]
            kl_fixes = [Fix.set("Remove `kl`", f"{at}.kl", None) for at in paths[:1]]
        case RewardsAlgorithm():
            hint = "connect a critic, or use an algorithm with its own baseline (grpo, rloo)"
        case PreferenceAlgorithm():
            hint = "connect a reference (a snapshot of the initial weights), or use orpo or simpo"
        case ImplicitPrm():
            hint = "connect a reference to `prior`"
        case _:
            hint = f"connect `{name}.{wanted}`"
    return error(
        MISSING_CODES[wanted],
        f"nodes.{name}.{wanted}",
        f"{because} needs `{name}.{wanted}`, but nothing is connected there",
        hint,
        *next_steps.to_input(facts, name, wanted),
        *kl_fixes,
    )


def _default_algorithm(facts: Facts, name: str, port: str) -> str:
    node = facts.nodes[name]
    if isinstance(node, VerifierNode):
        if port == "labels" and node.method == "implicit_prm":
            return "implicit_prm"
        if port == "labels" and node.method == "discriminative":
            return "outcome"
        if port == "pairs" and node.method == "discriminative":
            return "label_ce" if node.read.labels else "bradley_terry"
    return DEFAULT_ALGORITHMS[node.kind, port]


def _algorithm_fix(facts: Facts, name: str, port: str, wanted: str) -> Fix:
    title, at = f"Add {wanted} for {port}", f"nodes.{name}.algorithm"
    section: Any = getattr(facts.nodes[name], "algorithm", None)
    if is_short(section):
        written = section.model_dump(by_alias=True, exclude_unset=True)
        ports = [p for p in PORTS_OF[type(section)] if p in facts.teaching_ports_of(name)]
        value: dict[str, object] = dict.fromkeys(ports, written)
        return Fix.set(title, at, {**value, port: {"name": wanted}})
    return Fix.set(title, f"{at}.{port}", {"name": wanted})


# What an algorithm teaches is what the node's model is read for: words, a score, labels.

READ_AS: Final = {
    "log_probs": "its tokens",
    "values": "a value per token",
    "scores": "one score per text",
    "steps": "a score per step",
    "choices": "the probability of its labels",
}
FIRST: Final[dict[type[Section], str]] = {RewardsAlgorithm: "grpo", PreferenceAlgorithm: "dpo"}
"""Example in hints, for algorithms with several names."""


def algorithms_fit_the_head(facts: Facts) -> Iterator[Diagnostic]:
    """Algorithms match the model's output: its tokens, a score, or several classes."""
    for name in facts.learners:
        if facts.model(name) is None:
            continue
        for port in facts.teaching_ports_of(name):
            entries = facts.algorithms(name, port)
            for entry in entries:
                if not fits(facts, name, port, entry):
                    yield _unfit(facts, name, port, entry, alone=len(entries) == 1)


def fits(facts: Facts, name: str, port: str, entry: Algorithm) -> bool:
    """Whether the node's model can be trained with an algorithm."""
    return can_learn(facts.nodes[name], port, type(entry), classes=classes_of(facts.spec, name))


def _unfit(facts: Facts, name: str, port: str, entry: Algorithm, *, alone: bool) -> Diagnostic:
    field = f"algorithm.{port}"
    names = _fitting(facts, name, port)
    proposed = " or ".join(f"`{fitting}`" for fitting in names)
    fixes: tuple[Fix, ...] = ()
    if alone and len(names) == 1:
        fixes = (Fix.set(f"Use {names[0]}", f"nodes.{name}.{field}", {"name": names[0]}),)
    return error(
        "learning.other_head",
        f"nodes.{name}.{field}",
        f"`{entry.name}` at `{name}.{port}` does not match the output of `{name}`: "
        f"{_read_for(facts, name, port)}",
        f"use {proposed}" if names else "remove the edge: nothing can be learned from it",
        *fixes,
    )


def _read_for(facts: Facts, name: str, port: str) -> str:
    readings, classes = sorted(taught_at(facts.nodes[name], port)), classes_of(facts.spec, name)
    if readings == ["scores"] and classes > 1:
        return f"{classes} labels (`read.labels`)"
    return " and ".join(READ_AS[reading] for reading in readings)


def _fitting(facts: Facts, name: str, port: str) -> list[str]:
    """Names of algorithms that suit the port."""
    node, classes = facts.nodes[name], classes_of(facts.spec, name)
    has_labels = label_words(facts.spec, name) is not None
    return [
        FIRST.get(algorithm) or get_args(algorithm.model_fields["name"].annotation)[0]
        for algorithm, ports in PORTS_OF.items()
        if port in ports
        and can_learn(node, port, algorithm, classes=classes)
        and (has_labels or head_of(node) == "words" or not issubclass(algorithm, OF_CLASSES))
    ]


# Rows, groups and companions of what is learned.


def own_rollouts_are_written(facts: Facts) -> Iterator[Diagnostic]:
    for name in facts.learners:
        if not facts.walk.into(name, "rewards"):
            continue
        node = facts.nodes[name]
        if not facts.lineage.writes(name):
            yield error(
                "learning.no_own_rollouts",
                f"nodes.{name}.rewards",
                f"`{name}` learns from rewards of its own generations, but it generates nothing",
                "only `method: generative` with a `rollout` generates texts",
            )
        elif node.kind == "actor" and not facts.is_connected(name, "prompts"):
            called = facts.walk.callers.get(name) or facts.walk.driven.get(name)
            if not called and not facts.is_used(name, "rollouts"):
                yield error(
                    "structure.missing_edge",
                    f"nodes.{name}.prompts",
                    f"`{name}` learns from rewards of its own generations, but it gets no prompts",
                    f"connect rows with a `prompt` to `{name}.prompts`",
                    *next_steps.to_input(facts, name, "prompts"),
                )


def greedy_baselines_have_greedy_rows(facts: Facts) -> Iterator[Diagnostic]:
    for name, full in facts.rewards:
        rollout = facts.rollout(name)
        if full.needs_greedy and rollout is not None and not rollout.greedy_extra:
            yield error(
                "learning.no_greedy_row",
                f"nodes.{name}.rollout.greedy_extra",
                f"`{full.name}` compares with the greedy completion, but `{name}` generates none",
                "set `rollout.greedy_extra: true`",
                Fix.set("Generate a greedy completion", f"nodes.{name}.rollout.greedy_extra", True),
            )
        elif full.needs_greedy and (buffers := facts.buffers_in(facts.rewarded_levels(name))):
            yield error(
                "learning.no_greedy_row",
                f"nodes.{name}.rewards",
                f"`{full.name}` compares with the greedy completion of the same prompt, but rows "
                f"from `{buffers[0]}` have none: it was generated in another step",
                f"reward what `{name}` generates in the same step, or use an algorithm with "
                "another baseline (grpo, rloo)",
            )


def groups_are_large_enough(facts: Facts) -> Iterator[Diagnostic]:
    for name, full in facts.rewards:
        if not full.needs_group or full.allow_group_of_one or full.off_policy is not None:
            continue
        for phase in stretches(facts):
            if (name, "rewards") not in phase.live:
                continue
            group = groups_of_one(facts, name, phase)
            if group is None:
                continue
            path = completions_path(name)
            is_own = group.field == "rollout.completions_per_prompt" and path not in phase.overrides
            fix = Fix.set("Generate 8 completions", path, 8)
            yield error(
                "learning.group_of_one",
                f"nodes.{name}.{group.field}",
                f"`{full.name}` compares the rows of a group, but in {phase.label} every group of "
                f"`{name}` has one row: {group.reason}",
                group.hint,
                *((fix,) if is_own else ()),
                severity=phase.severity,
            )
            break


def pairs_have_two_sides(facts: Facts) -> Iterator[Diagnostic]:
    """Pairs are made of two completions of one prompt."""
    for name, node in facts.of(PairsNode):
        if node.method in ("direct", "relabel"):
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
            below = facts.walk.downstream(name)
            if any(probe in below and (e.samples or 1) > 1 for probe, e in facts.of(EvaluateNode)):
                continue
            yield error(
                "learning.no_pairs",
                f"nodes.{name}.rollouts",
                f"`{name}` pairs completions of one prompt, but `{writer}` generates only one",
                "generate at least 2 completions, or use `method: direct`",
                Fix.set("Generate 2 completions", path, 2),
            )


def references_stand_still(facts: Facts) -> Iterator[Diagnostic]:
    """A reference does not share the weights that are trained against it."""
    for name in facts.learners:
        for edge in facts.walk.into(name, "reference"):
            group, reference = facts.group_of.get(name), edge.source.node
            if group is None or reference not in group.members:
                continue
            if facts.is_connected(reference, "prompts"):
                continue  # the same weights under another prompt
            yield warning(
                "learning.reference_follows",
                f"nodes.{edge.source.node}.model",
                f"`{edge.source.node}` shares the weights of `{name}`, so the two never differ and "
                "the reference has no effect",
                "make it a snapshot",
                Fix.set(
                    "Make it a snapshot",
                    f"nodes.{edge.source.node}.model",
                    {"type": "snapshot", "of": group.name, "refresh": "never"},
                ),
            )


def class_weights_have_a_scorer(facts: Facts) -> Iterator[Diagnostic]:
    for name in facts.learners:
        weights = getattr(getattr(facts.nodes[name], "credit", None), "class_weights", None)
        if weights is None or weights.by not in facts.nodes:
            continue
        sources = [edge.source.node for edge in facts.walk.into(name, "rewards")]
        if sources and weights.by not in facts.whence(*sources):
            yield error(
                "learning.class_weights_scorer",
                f"nodes.{name}.credit.class_weights.by",
                f"`credit.class_weights.by` names `{weights.by}`, which does not contribute to the "
                f"rewards of `{name}`",
                "name a scorer upstream of its rewards",
            )


def curricula_have_a_scorer(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.nodes.items():
        curriculum = getattr(node, "curriculum", None)
        if curriculum is None or curriculum.by not in facts.nodes:
            continue
        if name not in facts.walk.upstream(curriculum.by):
            yield error(
                "learning.curriculum_scorer",
                f"nodes.{name}.curriculum.by",
                f"`curriculum.by` names `{curriculum.by}`, which scores nothing that comes from "
                f"`{name}`",
                "name a scorer of completions of its rows",
            )


def some_edge_counts(facts: Facts) -> Iterator[Diagnostic]:
    for node, port in sorted(facts.teaching_ports):
        edges = facts.walk.into(node, port)
        if edges and all(facts.is_dead(edge) for edge in edges):
            yield error(
                "learning.every_weight_zero",
                f"nodes.{node}.{port}",
                f"every edge into `{node}.{port}` has weight 0, so nothing is learned there",
                "give one of them a weight, or remove them",
                Fix.set(f"Give {edges[0].label} weight 1", f"{facts.place(edges[0])}.weight", 1.0),
            )
            continue
        for phase in facts.phases:
            is_live = bool(edges) and (node, port) in phase.live
            if is_live and all(facts.is_dead(edge, phase) for edge in edges):
                yield error(
                    "learning.every_weight_zero",
                    f"{phase.path}.learn",
                    f"{phase.label} learns at `{node}.{port}`, but every edge there has weight 0",
                    "give an edge a weight, or remove the port from `learn`",
                )


def cut_rows_have_no_other_reward(facts: Facts) -> Iterator[Diagnostic]:
    """Rows that a filter drops on the way to one reward get no other reward."""
    for name, _ in facts.rewards:
        credit = getattr(facts.nodes[name], "credit", None)
        if credit is None or credit.missing == "skip_row":
            continue
        edges = [e for e in facts.alive(name, "rewards") if not facts.is_of_others(name, e)]
        below = facts.walk.downstream(name)
        ways = {edge.key: facts.walk.upstream(edge.source.node) & below for edge in edges}
        cuts = {cut for cut, node in facts.of(FilterNode) if node.keep or node.per_group}
        for cut in sorted(cuts & set().union(*ways.values())):
            around = [edge for edge in edges if ways[edge.key] and cut not in ways[edge.key]]
            if not around:
                continue
            labels = " and ".join(f"`{edge.label}`" for edge in around)
            yield notice(
                "learning.cut_rows",
                f"nodes.{name}.credit.missing",
                f"rows that `{cut}` filters out are still trained on, with {labels} only, which "
                f"{('goes' if len(around) == 1 else 'go')} around it",
                f"score the output of `{cut}`, or leave such rows out of the update with "
                "`credit.missing: skip_row`",
                Fix.set("Skip such rows", f"nodes.{name}.credit.missing", "skip_row"),
            )


def dropout_is_for_texts(facts: Facts) -> Iterator[Diagnostic]:
    """A model's dropout is off unless it learns only from demonstrations: say so if it has any."""
    for group in facts.groups.values():
        training = facts.training(group.name)
        origin = origin_of(facts.spec, group.name)
        model = facts.model(group.name)
        begins = facts.model(origin) if origin is not None else None
        shares: dict[str, float] = {}
        if isinstance(begins, PretrainedModel):
            shares = dropout_in(config_in(begins.path, facts.root) or {})
        if (lora := getattr(model, "lora", None)) is not None and lora.dropout:
            shares["lora.dropout"] = lora.dropout
        ports = [port for member in group.members for port in facts.teaching_ports_of(member)]
        if not shares or training is None or training.dropout is not None:
            continue
        if all(port == "demonstrations" for port in ports):
            continue
        shown = ", ".join(f"{name} {value:g}" for name, value in sorted(shares.items()))
        yield notice(
            "learning.dropout",
            f"nodes.{group.name}.training.dropout",
            f"`{group.name}` has dropout ({shown}), which is off unless it learns only from "
            "`demonstrations`: its log-probs are compared with those of texts generated without "
            "dropout",
            "`training.dropout: true` keeps it on, `false` turns it off for demonstrations as well",
        )


def companions_are_there(facts: Facts) -> Iterator[Diagnostic]:
    """Algorithms published with a filter, a penalty or pairs of own texts are used with these."""
    for name, full in facts.rewards:
        above = facts.walk.upstream(*(e.source.node for e in facts.walk.into(name, "rewards")))
        sections = [facts.nodes[other] for other in above]
        filters = [node for node in sections if isinstance(node, FilterNode)]
        rules = {rule.rule for node in filters for rule in node.keep}
        scorers = [node.source for node in sections if isinstance(node, RewardNode)]
        if full.family == "dapo" and not rules & {"nonzero_variance", "accuracy_band"}:
            hint = "a filter with `nonzero_variance` and `fill`"
            yield _no_companion(name, full.name, "dynamic sampling", hint)
        if full.family == "dapo" and all(getattr(s, "name", "") != "overlong" for s in scorers):
            yield _no_companion(name, full.name, "overlong shaping", "a reward `overlong`")
        if full.family == "pf_ppo" and all(node.resample is None for node in filters):
            yield notice(
                "learning.companion",
                f"nodes.{name}.algorithm",
                f"`{full.name}` is published together with resampling rows by their scores; this "
                "loop does not resample",
                f"add a filter with `resample` between `{name}` and its rewards; without it "
                "this is `ppo`",
            )
        if full.family == "gdpo" and len(facts.walk.into(name, "rewards")) == 1:
            yield notice(
                "learning.companion",
                f"nodes.{name}.algorithm",
                f"`{full.name}` compares several rewards one by one, but `{name}` has a single one",
                f"connect each reward to `{name}.rewards` by an edge of its own; with a single one "
                "this is `grpo`, normalized once more over the batch",
            )
    for name in facts.learners:
        givers = [edge.source.node for edge in facts.walk.into(name, "pairs")]
        is_online = any(entry.name == "online_dpo" for entry in facts.algorithms(name, "pairs"))
        if givers and is_online and name not in facts.walk.upstream(*givers):
            yield notice(
                "learning.companion",
                f"nodes.{name}.algorithm",
                "`online_dpo` is published with pairs of the policy's own texts, but the pairs of "
                f"`{name}` do not come from its rollouts",
                f"connect `{name}.rollouts` to the node that makes the pairs; with other pairs "
                "this is `dpo`",
            )


def _no_companion(name: str, algorithm: str, what: str, hint: str) -> Diagnostic:
    return notice(
        "learning.companion",
        f"nodes.{name}.algorithm",
        f"`{algorithm}` is published together with {what}, which this loop does not have",
        f"add {hint} between `{name}` and its rewards",
    )
