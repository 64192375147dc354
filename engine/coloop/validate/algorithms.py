"""Algorithms at teaching ports, and what they read besides: references, values, priors."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from coloop.spec.algorithm import (
    PORTS_OF,
    Algorithm,
    ImplicitPrm,
    PreferenceAlgorithm,
    RewardsAlgorithm,
    algorithm_paths,
    reads,
)
from coloop.spec.base import Section
from coloop.spec.diagnostics import Diagnostic, Fix, Severity, error, warning
from coloop.spec.heads import OF_CLASSES, can_learn, classes_of, head_of, label_words, taught_at
from coloop.spec.lineage import Levels
from coloop.spec.nodes import ActorNode, VerifierNode
from coloop.validate import next_steps
from coloop.validate.facts import Facts
from coloop.validate.next_steps import is_short

DEFAULT_ALGORITHMS: Final[Mapping[tuple[str, str], str]] = {
    ("actor", "rewards"): "grpo",
    ("actor", "demonstrations"): "sft",
    ("actor", "pairs"): "dpo",
    ("critic", "returns"): "value",
    ("critic", "labels"): "regression",
    ("reward", "pairs"): "bradley_terry",
    ("reward", "labels"): "outcome",
    ("verifier", "labels"): "label_ce",
    ("verifier", "rewards"): "grpo",
    ("verifier", "demonstrations"): "sft",
    ("verifier", "pairs"): "dpo",
}
"""What a fix proposes for a teaching port without an algorithm."""

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
                ports = " and ".join(f"`{one}`" for one in PORTS_OF[type(section)])
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
    """A pull towards a reference has one, GAE has values, an implicit PRM its prior."""
    for name in facts.learners:
        for port in facts.teaching_ports_of(name):
            for algorithm in facts.algorithms(name, port):
                if not fits(facts, name, port, algorithm):
                    continue
                for wanted in sorted(reads(algorithm)):
                    if not facts.is_connected(name, wanted):
                        yield _missing_input(facts, name, port, algorithm, wanted)


def references_cover_the_rows(facts: Facts) -> Iterator[Diagnostic]:
    """The log-probs and values at a learner are of rows that it learns."""
    for name in facts.learners:
        for wanted, code in (
            ("reference", "learning.reference_elsewhere"),
            ("values", "learning.values_elsewhere"),
        ):
            given = [
                lv for e in facts.walk.into(name, wanted) for lv in facts.lineage.edge_levels(e)
            ]
            if not given:
                continue
            for port in facts.teaching_ports_of(name):
                if wanted not in facts.read_by(name, port):
                    continue
                rows = _taught_levels(facts, name, port)
                unseen = rows.difference(given)
                if unseen:
                    source = facts.walk.into(name, wanted)[0].source.node
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
    """A reference or critic that no algorithm reads costs time for nothing."""
    for name, node in facts.nodes.items():
        if not isinstance(node, ActorNode | VerifierNode):
            continue
        ports = facts.teaching_ports_of(name)
        needs = {need for port in ports for need in facts.read_by(name, port)}
        for wanted, without in (("reference", "no `kl`"), ("values", "no `gae`")):
            for edge in facts.walk.into(name, wanted):
                if wanted not in needs and facts.teaching_ports_of(name):
                    yield warning(
                        "learning.unread_input",
                        facts.place(edge),
                        f"`{edge.label}` is not used: the algorithms of `{name}` have {without}",
                        "set `kl` to keep the policy close to its reference"
                        if wanted == "reference"
                        else "PPO and VAPO use values; other algorithms have their own baseline",
                    )


def _taught_levels(facts: Facts, name: str, port: str) -> Levels:
    if port == "rewards":
        return facts.rewarded_levels(name)
    edges = facts.walk.into(name, port)
    return frozenset(level for edge in edges for level in facts.lineage.edge_levels(edge))


def one_coefficient_follows(facts: Facts) -> Iterator[Diagnostic]:
    """At most one algorithm of a learner has a KL coefficient that follows a target: it is one
    metric."""
    for name in dict.fromkeys(name for name, _ in facts.rewards):
        entries = [full for other, full in facts.rewards if other == name]
        follows = [
            place
            for place, full in enumerate(entries)
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
            paths = [at for _, at, one in algorithm_paths(facts.spec, name) if one is algorithm]
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
"""What a model is read for, in words."""
FIRST: Final[dict[type[Section], str]] = {RewardsAlgorithm: "grpo", PreferenceAlgorithm: "dpo"}
"""Of algorithms with many names, the one that a hint gives as an example."""


def algorithms_fit_the_head(facts: Facts) -> Iterator[Diagnostic]:
    """No scorer learns words, no judge in words a score, no head of several classes one score."""
    for name in facts.learners:
        if facts.model(name) is None:
            continue
        for port in facts.teaching_ports_of(name):
            entries = facts.algorithms(name, port)
            for entry in entries:
                if not fits(facts, name, port, entry):
                    yield _unfit(facts, name, port, entry, alone=len(entries) == 1)


def fits(facts: Facts, name: str, port: str, entry: Algorithm) -> bool:
    """Whether an algorithm finds in the node's model what it teaches."""
    return can_learn(facts.nodes[name], port, type(entry), classes=classes_of(facts.spec, name))


def _unfit(facts: Facts, name: str, port: str, entry: Algorithm, *, alone: bool) -> Diagnostic:
    field = f"algorithm.{port}"
    names = _fitting(facts, name, port)
    proposed = " or ".join(f"`{one}`" for one in names)
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
    """Names of algorithms that the port could have; those of labels where it has labels."""
    node, classes = facts.nodes[name], classes_of(facts.spec, name)
    has_labels = label_words(facts.spec, name) is not None
    return [
        FIRST.get(algorithm) or get_args(algorithm.model_fields["name"].annotation)[0]
        for algorithm, ports in PORTS_OF.items()
        if port in ports
        and can_learn(node, port, algorithm, classes=classes)
        and (has_labels or head_of(node) == "words" or not issubclass(algorithm, OF_CLASSES))
    ]
