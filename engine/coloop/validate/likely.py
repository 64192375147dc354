"""Which of the columns that are there may be meant by one that is not: by its spelling, or because
datasets call the same thing so. What is proposed is tried before it is offered (`tried`)."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from coloop.errors import SpecProblem
from coloop.spec.diagnostics import Change, Fix, closest
from coloop.spec.nodes import DatasetNode
from coloop.spec.paths import find
from coloop.validate.facts import Facts

SAME: Final[Sequence[tuple[str, ...]]] = (
    ("prompt", "question", "problem", "instruction", "query", "input", "text", "messages"),
    ("target", "completion", "response", "output", "solution", "answer", "chosen"),
    ("answer", "label", "ground_truth", "gold", "final_answer", "target", "solution"),
    ("chosen", "preferred", "accepted"),
    ("rejected", "dispreferred", "refused"),
)
"""Names that public datasets have for one thing; the first is the language's own."""
MOST: Final = 2
JINJA: Final = re.compile(r"(\{\{|\{%)(.*?)(\}\}|%\})", re.DOTALL)


def likely(word: str, there: Iterable[str]) -> list[str]:
    """The columns that may be meant, the likeliest first."""
    names = sorted({str(name) for name in there} - {word})
    lowered = {name.lower(): name for name in names}
    alike = [
        lowered[other]
        for same in SAME
        if word.lower() in same
        for other in same
        if other in lowered
    ]
    return list(dict.fromkeys([*closest(word, names, limit=MOST), *alike]))[:MOST]


def renamings(
    facts: Facts, node: str, field: str, word: str, offered: Iterable[str]
) -> tuple[Fix, ...]:
    """Fixes that name another column where a field or a text names one that is not there."""
    path = f"nodes.{node}.{field}"
    try:
        written = find(facts.spec, path).value
    except SpecProblem:
        return ()
    if not isinstance(written, str):
        return ()
    found = []
    for near in likely(word, offered):
        value = near if written == word else _renamed(written, word, near)
        if value != written:
            change = Change(op="set", path=path, value=value)
            found.append(Fix(title=f"Use {near}", changes=(change,)))
    return tuple(found)


def mappings(facts: Facts, dataset: str, missing: Iterable[str]) -> tuple[Fix, ...]:
    """Fixes that map columns of a source to those that are missing, one for each guess."""
    node = facts.nodes.get(dataset)
    seen = facts.glances.get(dataset)
    if not isinstance(node, DatasetNode) or seen is None or not seen.columns:
        return ()
    guesses = {word: likely(word, seen.columns) for word in missing}
    if not all(guesses.values()):
        return ()
    return tuple(
        Fix(
            title="Use " + " and ".join(f"{own[place]} as {word}" for word, own in guesses.items()),
            changes=tuple(
                Change(op="set", path=f"nodes.{dataset}.columns.{word}", value=own[place])
                for word, own in guesses.items()
            ),
        )
        for place in range(min(len(own) for own in guesses.values()))
    )


def _renamed(text: str, word: str, near: str) -> str:
    """A Jinja text that reads another column."""
    name = re.compile(rf"(?<![\w.\"']){re.escape(word)}(?![\w\"'])")
    return JINJA.sub(lambda part: part[1] + name.sub(near, part[2]) + part[3], text)
