"""Names in texts, code and fields: the incoming rows have them, and it is clear which is meant."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from coloop.errors import SpecProblem
from coloop.spec.algorithm import BradleyTerry, algorithm_paths
from coloop.spec.answers import asked_names
from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.diagnostics import Change, Diagnostic, Fix, closest, did_you_mean, error
from coloop.spec.graph import Edge, reach
from coloop.spec.lean import record
from coloop.spec.names import TASK_COLUMN, Names, returned_keys
from coloop.spec.nodes import (
    ActorNode,
    BufferNode,
    DatasetNode,
    EnvironmentNode,
    FilterNode,
    Node,
    RewardNode,
    TemplateNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.paths import find
from coloop.spec.ports import PortType
from coloop.spec.tools import OWN_CALLS
from coloop.validate.facts import Facts
from coloop.validate.references import GROUP_WORDS, named_nodes
from coloop.validate.structure import types_of
from coloop.validate.texts import (
    TextNames,
    all_code_of,
    compiled,
    names_in_function,
    names_in_text,
    texts_of,
)

RESERVED: Final[Mapping[str, frozenset[str]]] = {
    "reward": frozenset({"prompts", "completions", "completion_ids"}),
    "write": frozenset(),
    "keep": frozenset(),
}
"""By user function, its parameters that are not columns."""

SIDES: Final = frozenset({"a", "b"})
"""Names of the sides of a pair in the template of a verifier."""
NO_TEXT_READ: Final = SCORE_TO_SCORE | {"column"}


@record
class Table:
    """Rows of one origin in which a name is looked up."""

    names: Names
    extra: frozenset[str] = frozenset()
    """Further names, which the node itself defines."""
    is_one_side: bool = False
    """Whether one side of a pair is read at a time: names of both sides are not ambiguous."""

    def gives(self, name: str) -> bool:
        return name in self.extra or self.names.gives(name)

    def is_ambiguous(self, name: str) -> bool:
        if name in self.extra or self.is_one_side:
            return False
        return self.names.is_ambiguous(name)


def texts_name_columns(facts: Facts) -> Iterator[Diagnostic]:
    """Names in Jinja texts are columns or scores that every part of the rows can give."""
    for name, node in facts.nodes.items():
        tables = [] if isinstance(node, ToolNode) else tables_of_texts(facts, name, node)
        for snippet in texts_of(node) if tables else ():
            at, names = f"nodes.{name}.{snippet.field}", names_in_text(snippet.content)
            yield from _check_text(facts, at, names, tables)
            library = arriving_tables(facts, name, "library") or tables
            for word in sorted(names.columns_of_others):
                yield from _check_name(facts, at, word, library)


def tools_name_arguments(facts: Facts) -> Iterator[Diagnostic]:
    """Texts of tools name only `value` and the named groups of their calls."""
    for name, node in facts.of(ToolNode):
        known = {"value", *call_arguments(facts, name)}
        for snippet in texts_of(node):
            for word in sorted(names_in_text(snippet.content).bare - known):
                yield error(
                    "structure.unknown_column",
                    f"nodes.{name}.{snippet.field}",
                    f"`{word}` is not available here: a tool's text has `value` and the groups of "
                    "calls",
                    did_you_mean(word, sorted(known)),
                )


def functions_name_columns(facts: Facts) -> Iterator[Diagnostic]:
    """Parameters of user functions are columns or scores that some part of the rows can give."""
    for name, node in facts.nodes.items():
        tables = own_tables(facts, name)
        for snippet in all_code_of(facts, node) if tables else ():
            if snippet.function is None:
                continue
            own, at = RESERVED[snippet.function], f"nodes.{name}.{snippet.field}"
            for word in names_in_function(snippet.content, snippet.function).parameters:
                if word not in own:
                    yield from _check_name(facts, at, word, tables, what="parameter", besides=own)


def fields_name_columns(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.nodes.items():
        fields = (*_of_pairs(facts, name), *_column_fields(facts, name, node))
        for field, word, tables in fields:
            if tables and word is not None:
                yield from _check_name(facts, f"nodes.{name}.{field}", word, tables)


def missing_columns(facts: Facts) -> Iterator[tuple[str, str]]:
    """Columns that texts, functions and fields read and that rows of a dataset do not have: the
    dataset and the column."""
    for word, tables in _names_read(facts):
        owner, dot, column = word.partition(".")
        for table in tables:
            datasets = [
                name for name in table.names.exact if isinstance(facts.nodes[name], DatasetNode)
            ]
            if table.gives(word) or word in facts.nodes or not datasets:
                continue
            if not dot:
                yield datasets[0], word
            elif owner in datasets:
                yield owner, column


def _names_read(facts: Facts) -> Iterator[tuple[str, list[Table]]]:
    """Every name that a node reads, bare or `node.column`, with the rows in which it is looked up;
    a parameter is read from some of them."""
    for name, node in facts.nodes.items():
        tables = [] if isinstance(node, ToolNode) else tables_of_texts(facts, name, node)
        for snippet in texts_of(node) if tables else ():
            names = names_in_text(snippet.content)
            dotted = {word for word, _ in names.dotted} - names.alone
            for word in names.bare - dotted:
                yield word, tables
            for pair in names.dotted:
                yield ".".join(pair), tables
        own = own_tables(facts, name)
        for snippet in all_code_of(facts, node) if own else ():
            if snippet.function is not None:
                for word in names_in_function(snippet.content, snippet.function).parameters:
                    some = any(table.gives(word) for table in own)
                    if word not in RESERVED[snippet.function] and not some:
                        yield word, own
        for _, column, rows in (*_of_pairs(facts, name), *_column_fields(facts, name, node)):
            if column is not None and not any(table.gives(column) for table in rows):
                yield column, rows


def scores_are_connected(facts: Facts) -> Iterator[Diagnostic]:
    """Scorers that a node reads by name are connected to it."""
    for name, node in facts.nodes.items():
        scorers = {edge.source.node for edge in facts.walk.score_edges(name)}
        if not scorers:
            continue
        for field, word in score_fields(node):
            if word in facts.nodes and word not in scorers:
                yield error(
                    "structure.unknown_score",
                    f"nodes.{name}.{field}",
                    f"`{field}` names `{word}`, whose scores are not connected to `{name}`",
                    did_you_mean(word, sorted(scorers)),
                )


def texts_are_there_to_read(facts: Facts) -> Iterator[Diagnostic]:
    """Rows have the columns that generation, SFT, preference learning and scorers read."""
    for edge, columns in _needed_columns(facts):
        tables = [Table(names=names) for names in facts.lineage.names.of_edge(edge).values()]
        missing = [w for w in columns if not all(table.gives(w) for table in tables)]
        if missing:
            names = " and ".join(f"`{word}`" for word in missing)
            plural = "s" if len(missing) > 1 else ""
            yield error(
                "structure.unknown_column",
                facts.place(edge),
                f"`{edge.label}` has rows without the column{plural} {names}",
                f"map it in the dataset: `columns: {{{missing[0]}: ...}}`, or add it in a template",
                *mappings(facts, edge.source.node, missing),
            )
    for name, node in facts.nodes.items():
        needed = _read_of_texts(node)
        tables = own_tables(facts, name)
        if needed is None or not tables or any(table.gives(needed) for table in tables):
            continue
        yield error(
            "structure.unknown_column",
            f"nodes.{name}.{'source' if isinstance(node, RewardNode) else 'method'}",
            f"`{name}` scores texts, but its rows have no column `{needed}`",
            "connect rollouts, or add `completion` to the `columns` of a template",
        )


def checkers_come_with_tasks(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.nodes.items():
        is_rule = isinstance(node, VerifierNode) and node.method == "rule"
        is_task = isinstance(node, RewardNode) and getattr(node.source, "name", None) == "task"
        if not (is_rule or is_task):
            continue
        tables = own_tables(facts, name)
        if tables and not any(table.gives("task") for table in tables):
            yield error(
                "structure.no_task",
                f"nodes.{name}.{'method' if is_rule else 'source.name'}",
                f"`{name}` uses the checker of the rows' task, but its rows come from no task",
                "use another reward (`exact_match`, `math_equal`), or a `task` source",
            )


def names_are_not_columns(facts: Facts) -> Iterator[Diagnostic]:
    """No node has the name of a column of its rows, so that a bare name has one meaning."""
    reported: set[str] = set()
    for name in facts.nodes:
        for names in facts.lineage.names.inputs(name).values():
            nodes_here = names.scores | names.exact.keys() | {name}
            for word in sorted(nodes_here & names.bare.keys() - reported):
                reported.add(word)
                yield error(
                    "structure.name_clash",
                    f"nodes.{word if word in facts.nodes else name}",
                    f"`{word}` is both a node and a column of its rows, so `{word}` in a text "
                    "could mean either",
                    "rename the node, or map the column to another name",
                )


def _check_text(
    facts: Facts, at: str, names: TextNames, tables: list[Table]
) -> Iterator[Diagnostic]:
    for word in sorted(names.bare):
        attributes = sorted(a for n, a in names.dotted if n == word)
        is_column = any(word in t.extra or t.names.gives_column(word) for t in tables)
        if word in facts.nodes and attributes and not is_column:
            for attribute in attributes:
                yield from _check_exact(at, word, attribute, tables)
            if word not in names.alone:
                continue
        yield from _check_name(facts, at, word, tables, everywhere=True)


def _check_exact(at: str, owner: str, column: str, tables: list[Table]) -> Iterator[Diagnostic]:
    missing = [table for table in tables if not table.gives(f"{owner}.{column}")]
    if not missing:
        return
    known = {c for table in missing for c in table.names.exact.get(owner) or ()}
    dotted = sorted(
        {f"{n}.{column}" for t in missing for n, c in t.names.exact.items() if _has(c, column)}
    )
    if known:
        message = f"`{owner}` has no column `{column}` on these rows"
    elif any(owner in table.names.scores for table in tables):
        message = f"`{owner}` is a score; it has no column `{column}`"
    else:
        message = (
            f"`{owner}.{column}` is not available: these rows do not descend from rows of `{owner}`"
        )
    yield error(
        "structure.unknown_column",
        at,
        message,
        did_you_mean(f"{owner}.{column}", dotted or [f"{owner}.{c}" for c in sorted(known)]),
    )


def _check_name(
    facts: Facts,
    at: str,
    word: str,
    tables: list[Table],
    *,
    everywhere: bool = False,
    what: str = "name",
    besides: Iterable[str] = (),
) -> Iterator[Diagnostic]:
    """Check one bare or dotted name, which some table must provide, with `everywhere` every one."""
    missing = [table for table in tables if not table.gives(word)]
    if missing and (everywhere or len(missing) == len(tables)):
        offered = [*sorted(besides), *offered_names(missing)]
        owner, dot, _ = word.partition(".")
        if word in facts.nodes:
            message = f"`{word}` is a node whose score does not reach these rows"
        elif dot and owner in facts.nodes:
            message = f"`{word}` is not available here"
        elif len(missing) < len(tables):
            message = f"the {what} `{word}` is missing in some of the joined rows"
        else:
            message = f"there is no {what} `{word}`"
        yield error(
            "structure.unknown_column",
            at,
            message,
            did_you_mean(word, offered),
            *renamings(facts, at, word, offered),
        )
        return
    unclear = next((table for table in tables if table.is_ambiguous(word)), None)
    if unclear is not None:
        rows = sorted(str(level) for level in unclear.names.bare[word].rows)
        own = at.split(".")[1]
        owners = {n for n, c in unclear.names.exact.items() if _has(c, word)} - {own}
        exact = sorted(owners, key=lambda owner: (owner not in rows, owner))
        message = f"it could come from {' or '.join(f'`{row}`' for row in rows)}"
        hint = "name the node: " + " or ".join(f"`{owner}.{word}`" for owner in exact[:3])
        if unclear.extra >= SIDES:
            message = "both sides of the pair have it"
            hint = f"write `a.{word}` and `b.{word}`"
        yield error("structure.ambiguous_column", at, f"`{word}` is ambiguous: {message}", hint)


def _has(columns: frozenset[str] | None, column: str) -> bool:
    return columns is not None and column in columns


def score_fields(node: Node) -> Iterator[tuple[str, str]]:
    """Fields in which a node names scorers, with each name."""
    for field, word in named_nodes(node):
        if field.startswith(("keep.", "source.")):
            yield field, word


def _column_fields(
    facts: Facts, name: str, node: Node
) -> Iterator[tuple[str, str | None, list[Table]]]:
    own = own_tables(facts, name)
    match node:
        case RewardNode() if node.source.type == "builtin" and node.source.name != "agreement":
            column = getattr(node.source, "column", None)
            if isinstance(column, str):
                yield "source.column", column, own
        case TemplateNode() if node.each is not None:
            if node.written_columns() is not None and node.each not in node.parse:
                yield "each", node.each, own if node.code is None else []
        case FilterNode():
            for index, rule in enumerate(node.keep):
                yield f"keep.{index}.column", getattr(rule, "column", None), own
            by = node.per_group.by if node.per_group is not None else None
            if isinstance(by, str) and by not in facts.nodes and by not in GROUP_WORDS:
                yield "per_group.by", by, own
        case BufferNode():
            tables = arriving_tables(facts, name, "rows", "rollouts", "pairs", "seed")
            for field in ("weight", "unique", "key"):
                yield field, getattr(node, field), tables
        case DatasetNode() if node.unfold is not None:
            names = facts.lineage.names.at(name, "rows").values()
            yield "unfold", node.unfold, [Table(names=part) for part in names]
        case ToolNode(type="search"):
            tables = arriving_tables(facts, name, "documents")
            yield "column", node.column or "text", tables


def _of_pairs(facts: Facts, name: str) -> Iterator[tuple[str, str | None, list[Table]]]:
    for port, at, entry in algorithm_paths(facts.spec, name):
        if port == "pairs" and isinstance(entry, BradleyTerry):
            field, tables = at.split(".", 2)[2], arriving_tables(facts, name, "pairs")
            yield f"{field}.margin", entry.margin, tables
            yield f"{field}.soft", "probability" if entry.soft else None, tables


def _needed_columns(facts: Facts) -> Iterator[tuple[Edge, tuple[str, ...]]]:
    for edge in facts.walk.edges:
        target = facts.nodes[edge.target.node]
        given, _ = types_of(facts, edge)
        if edge.target.port == "prompts" and not _has_environment(facts, edge.target.node):
            yield edge, ("prompt",)
        elif edge.target.port == "demonstrations" and given is PortType.ROWS:
            if isinstance(target, ActorNode | VerifierNode):
                source = facts.nodes[edge.source.node]
                yield (
                    edge,
                    ("target",)
                    if (
                        isinstance(source, DatasetNode)
                        and "target" in source.columns
                        and "prompt" not in source.columns
                    )
                    else ("prompt", "target"),
                )
        elif given is PortType.PAIRS and isinstance(facts.nodes[edge.source.node], DatasetNode):
            yield edge, ("chosen", "rejected")


def _has_environment(facts: Facts, name: str) -> bool:
    tools = (facts.nodes[edge.source.node] for edge in facts.walk.into(name, "tools"))
    return any(isinstance(tool, ToolNode) and tool.type == "environment" for tool in tools)


def _read_of_texts(node: Node) -> str | None:
    """The column that a scorer of texts requires; None: it reads no text."""
    if isinstance(node, RewardNode) and node.source.type == "builtin":
        if node.source.name in NO_TEXT_READ:
            return None
        return "length" if node.source.name in ("length", "overlong") else "completion"
    if isinstance(node, VerifierNode) and node.method in ("rule", "vote", "implicit_prm"):
        return "completion"
    return None


# The tables in which names are looked up: what the rows that a node reads can give.


def offered_names(tables: Iterable[Table]) -> list[str]:
    offered: set[str] = set()
    for table in tables:
        offered |= table.names.bare.keys() | table.names.scores | table.extra
    return sorted(offered - {TASK_COLUMN})


TURN_NAMES: Final = frozenset({"observation", "seat", "turn", "completion"})
"""Names in the texts of an environment besides the columns of the row."""


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
    if isinstance(node, EnvironmentNode):
        # what an environment shows is not known
        return [Table(names=table.names.opened(name), extra=TURN_NAMES) for table in tables]
    if not isinstance(node, VerifierNode | RewardNode):
        return tables
    is_reward = isinstance(node, RewardNode)
    asked = asked_names(node.read) if node.read is not None else frozenset()
    sides = (frozenset({"completion", "prompt"}) if is_reward else SIDES) | asked
    tables = [replace(table, extra=table.extra | asked) for table in tables]
    compared = tables if facts.is_connected(name, "comparisons") else []
    single = [] if compared else tables
    sided = [
        Table(names=table.names, extra=sides, is_one_side=is_reward)
        for table in (*compared, *arriving_tables(facts, name, "pairs"))
    ]
    return [*single, *sided, *arriving_tables(facts, name, "labels")]


def call_arguments(facts: Facts, name: str) -> set[str]:
    """Named groups of the calls to a tool, or to a tool that it wraps."""
    groups: set[str] = set()
    for tool in reach([name], lambda tool: [e.source.node for e in facts.walk.into(tool, "tools")]):
        node = facts.nodes[tool]
        if isinstance(node, ToolNode):
            is_wrapper = bool(facts.walk.into(tool, "tools"))
            call = node.call or (None if is_wrapper else OWN_CALLS.get(node.type))
            pattern = None if call is None else compiled(call)
            groups |= pattern.groupindex.keys() if isinstance(pattern, re.Pattern) else set()
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
"""Synonyms of column names in public datasets; the first of each is coloop's own."""
MOST: Final = 2
JINJA: Final = re.compile(r"(\{\{|\{%)(.*?)(\}\}|%\})", re.DOTALL)


def likely(word: str, there: Iterable[str]) -> list[str]:
    """The columns that a word may mean, most likely first."""
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
    """Fixes that replace an unknown column in a field or text."""
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
    """Fixes that map columns of a source to the missing ones, one per guess."""
    node = facts.nodes.get(dataset)
    seen = facts.glances.get(dataset)
    if not isinstance(node, DatasetNode) or seen is None or not seen.columns:
        return ()
    guesses = {word: likely(word, seen.columns) for word in missing}
    if not all(guesses.values()):
        return ()
    return tuple(
        Fix(
            title="Use " + " and ".join(f"{own[rank]} as {word}" for word, own in guesses.items()),
            changes=tuple(
                Change(op="set", path=f"nodes.{dataset}.columns.{word}", value=own[rank])
                for word, own in guesses.items()
            ),
        )
        for rank in range(min(len(own) for own in guesses.values()))
    )


def _renamed(text: str, word: str, near: str) -> str:
    """A Jinja text with a column renamed."""
    name = re.compile(rf"(?<![\w.\"']){re.escape(word)}(?![\w\"'])")
    return JINJA.sub(lambda part: part[1] + name.sub(near, part[2]) + part[3], text)
