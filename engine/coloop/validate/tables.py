"""The tables in which names are looked up: what the rows that a node reads can give."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from coloop.errors import SpecProblem
from coloop.spec.diagnostics import Change, Fix, closest
from coloop.spec.graph import reach
from coloop.spec.names import TASK_COLUMN, Names, returned_keys
from coloop.spec.nodes import DatasetNode, Node, RewardNode, TemplateNode, ToolNode, VerifierNode
from coloop.spec.paths import find
from coloop.spec.tools import OWN_CALLS
from coloop.validate.facts import Facts
from coloop.validate.texts import regex_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one origin that a name must be found in."""

    names: Names
    extra: frozenset[str] = frozenset()
    """Names that are there besides: what the node itself sets before."""
    is_one_side: bool = False
    """A side of a pair alone: names of both sides are not ambiguous there."""

    def gives(self, name: str) -> bool:
        return name in self.extra or self.names.gives(name)

    def is_ambiguous(self, name: str) -> bool:
        if name in self.extra or self.is_one_side:
            return False
        return self.names.is_ambiguous(name)


def offered_names(tables: Iterable[Table]) -> list[str]:
    offered: set[str] = set()
    for table in tables:
        offered |= table.names.bare.keys() | table.names.scores | table.extra
    return sorted(offered - {TASK_COLUMN})


def own_tables(facts: Facts, name: str) -> list[Table]:
    if name in facts.walk.stuck:
        return []
    return [Table(names=names) for names in facts.lineage.names.inputs(name).values()]


def tables_of_texts(facts: Facts, name: str, node: Node) -> list[Table]:
    tables = own_tables(facts, name)
    if isinstance(node, TemplateNode):
        extra = frozenset({*node.parse, *node.default})
        if node.code is not None:
            extra |= returned_keys(node.code) or frozenset()
        return [Table(names=table.names, extra=extra) for table in tables]
    if not isinstance(node, VerifierNode | RewardNode):
        return tables
    is_reward = isinstance(node, RewardNode)
    sides = frozenset({"completion", "prompt"} if is_reward else {"a", "b"})
    compared = tables if facts.is_connected(name, "comparisons") else []
    single = [] if compared else tables
    sided = [
        Table(names=table.names, extra=sides, is_one_side=is_reward)
        for table in (*compared, *arriving_tables(facts, name, "pairs"))
    ]
    return [*single, *sided, *arriving_tables(facts, name, "labels")]


def call_arguments(facts: Facts, name: str) -> set[str]:
    """Groups of the calls that a tool, or a tool that it wraps, answers."""
    groups: set[str] = set()
    for tool in reach([name], lambda tool: [e.source.node for e in facts.walk.into(tool, "tools")]):
        node = facts.nodes[tool]
        if isinstance(node, ToolNode):
            is_wrapper = bool(facts.walk.into(tool, "tools"))
            call = node.call or (None if is_wrapper else OWN_CALLS.get(node.type))
            groups |= regex_groups(call) if call is not None else frozenset()
    return groups


def arriving_tables(facts: Facts, name: str, *ports: str) -> list[Table]:
    return [
        Table(names=names)
        for edge in facts.walk.into(name, *ports)
        for names in facts.lineage.names.of_edge(edge).values()
    ]


# Which of the columns that are there may be meant by one that is not: by its spelling, or because
# datasets call the same thing so. What is proposed is tried before it is offered (`tried`).

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


def renamings(facts: Facts, path: str, word: str, offered: Iterable[str]) -> tuple[Fix, ...]:
    """Fixes that name another column where a field or a text names one that is not there."""
    try:
        written = find(facts.spec, path).value
    except SpecProblem:
        return ()
    if not isinstance(written, str):
        return ()
    values = {
        near: near if written == word else _renamed(written, word, near)
        for near in likely(word, offered)
    }
    return tuple(
        Fix.set(f"Use {near}", path, value) for near, value in values.items() if value != written
    )


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
