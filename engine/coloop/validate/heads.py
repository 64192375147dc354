"""What an algorithm teaches is what the node's model is read for: words, a score, labels."""

from collections.abc import Iterator
from typing import Final, get_args

from coloop.spec.algorithm import (
    PORTS_OF,
    Algorithm,
    PreferenceAlgorithm,
    RewardsAlgorithm,
)
from coloop.spec.base import Section
from coloop.spec.diagnostics import Change, Diagnostic, Fix
from coloop.spec.heads import OF_CLASSES, can_learn, classes_of, head_of, label_words, taught_at
from coloop.validate.facts import Facts, found

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
        change = Change(op="set", path=f"nodes.{name}.{field}", value={"name": names[0]})
        fixes = (Fix(title=f"Use {names[0]}", changes=(change,)),)
    return found(
        "learning.other_head",
        f"`{entry.name}` at `{name}.{port}` does not match the output of `{name}`: "
        f"{_read_for(facts, name, port)}",
        hint=f"use {proposed}" if names else "remove the edge: nothing can be learned from it",
        node=name,
        field=field,
        fixes=fixes,
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


RULES = (algorithms_fit_the_head,)
