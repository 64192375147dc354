"""Names in texts, code and fields: can the rows that come in give them, and is it clear which is
meant."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from coloop.spec.algorithm import PORTS_OF, BradleyTerry
from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.diagnostics import Diagnostic, did_you_mean
from coloop.spec.graph import Edge
from coloop.spec.nodes import (
    ActorNode,
    BufferNode,
    DatasetNode,
    FilterNode,
    Node,
    RewardNode,
    TemplateNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.ports import PortType
from coloop.validate.edges import types_of
from coloop.validate.facts import Facts, found
from coloop.validate.tables import (
    Table,
    arriving_tables,
    call_arguments,
    mappings,
    offered_names,
    own_tables,
    renamings,
    tables_of_texts,
)
from coloop.validate.text_names import TextNames, names_in_function, names_in_text
from coloop.validate.texts import code_files_of, codes_of, texts_of

RESERVED: Final[Mapping[str, frozenset[str]]] = {
    "reward": frozenset({"prompts", "completions", "completion_ids"}),
    "write": frozenset(),
    "keep": frozenset(),
}
"""Parameters of the loop's functions that are no columns."""

NO_TEXT_READ: Final = SCORE_TO_SCORE | {"column"}
"""Built-in rewards that read no completion."""


def texts_name_columns(facts: Facts) -> Iterator[Diagnostic]:
    """Names in Jinja texts are columns or scores that every part of the rows can give."""
    for name, node in facts.nodes.items():
        tables = tables_of_texts(facts, name, node)
        if not tables:
            continue
        for place in texts_of(node):
            if isinstance(node, ToolNode):
                continue
            names = names_in_text(place.content)
            yield from _check_text(facts, name, place.field, names, tables)
            yield from _check_others(facts, name, place.field, names, tables)


def tools_name_arguments(facts: Facts) -> Iterator[Diagnostic]:
    """Texts of tools name the answer, and the groups of the calls that they answer."""
    for name, node in facts.nodes.items():
        if not isinstance(node, ToolNode):
            continue
        known = {"value", *call_arguments(facts, name)}
        for place in texts_of(node):
            for word in sorted(names_in_text(place.content).bare - known):
                yield found(
                    "structure.unknown_column",
                    f"`{word}` is not available here: a tool's text has `value` and the groups of "
                    "calls",
                    hint=did_you_mean(word, sorted(known)),
                    node=name,
                    field=place.field,
                )


def functions_name_columns(facts: Facts) -> Iterator[Diagnostic]:
    """Parameters of user functions are columns or scores that some part of the rows can give."""
    for name, node in facts.nodes.items():
        tables = own_tables(facts, name)
        if not tables:
            continue
        for place in (*codes_of(node), *code_files_of(facts, node)):
            function = place.function
            if function is None:
                continue
            asked = names_in_function(place.content, function).parameters
            for word in asked:
                if word in RESERVED[function]:
                    continue
                yield from _check_name(
                    facts,
                    name,
                    place.field,
                    word,
                    tables,
                    everywhere=False,
                    what="parameter",
                    besides=RESERVED[function],
                )


def fields_name_columns(facts: Facts) -> Iterator[Diagnostic]:
    """Fields that name columns name ones that are there."""
    for name, node in facts.nodes.items():
        for field, column in _of_pairs(facts, name):
            tables = arriving_tables(facts, name, ("pairs",))
            if tables:
                yield from _check_name(facts, name, field, column, tables, everywhere=False)
        own = own_tables(facts, name)
        for field, word, tables in _column_fields(facts, name, node, own):
            if tables and word is not None:
                yield from _check_name(facts, name, field, word, tables, everywhere=False)


def scores_are_connected(facts: Facts) -> Iterator[Diagnostic]:
    """Scorers that a node reads by name are connected to it: a filter's or buffer's scores have the
    name of the node that brings them."""
    for name, node in facts.nodes.items():
        scorers = {edge.source.node for edge in facts.walk.score_edges(name)}
        if not scorers:
            continue
        for field, word in score_fields(node):
            if word in facts.nodes and word not in scorers:
                yield found(
                    "structure.unknown_score",
                    f"`{field}` names `{word}`, whose scores are not connected to `{name}`",
                    hint=did_you_mean(word, sorted(scorers)),
                    node=name,
                    field=field,
                )


def texts_are_there_to_read(facts: Facts) -> Iterator[Diagnostic]:
    """What is scored, written after or imitated is a column of the rows."""
    for edge, columns in _needed_columns(facts):
        tables = [Table(names=names) for names in facts.lineage.names.of_edge(edge).values()]
        missing = [w for w in columns if not all(table.gives(w) for table in tables)]
        if missing:
            names = " and ".join(f"`{word}`" for word in missing)
            plural = "s" if len(missing) > 1 else ""
            yield found(
                "structure.unknown_column",
                f"`{edge.label}` has rows without the column{plural} {names}",
                hint=_map_hint(missing[0]),
                field=facts.place(edge),
                fixes=mappings(facts, edge.source.node, missing),
            )
    for name, node in facts.nodes.items():
        needed = _read_of_texts(node)
        tables = own_tables(facts, name)
        if needed is None or not tables or any(table.gives(needed) for table in tables):
            continue
        yield found(
            "structure.unknown_column",
            f"`{name}` scores texts, but its rows have no column `{needed}`",
            hint="connect rollouts, or add `completion` to the `columns` of a template",
            node=name,
            field="source" if isinstance(node, RewardNode) else "method",
        )


def checkers_come_with_tasks(facts: Facts) -> Iterator[Diagnostic]:
    """The checker of a task scores only rows that a task made."""
    for name, node in facts.nodes.items():
        is_rule = isinstance(node, VerifierNode) and node.method == "rule"
        is_task = isinstance(node, RewardNode) and getattr(node.source, "name", None) == "task"
        if not (is_rule or is_task):
            continue
        tables = own_tables(facts, name)
        if tables and not any(table.gives("task") for table in tables):
            yield found(
                "structure.no_task",
                f"`{name}` uses the checker of the rows' task, but its rows come from no task",
                hint="use another reward (`exact_match`, `math_equal`), or a `task` source",
                node=name,
                field="method" if is_rule else "source.name",
            )


def names_are_not_columns(facts: Facts) -> Iterator[Diagnostic]:
    """No node is called like a column of its lineage, so that a bare name means one thing."""
    reported: set[str] = set()
    for name in facts.nodes:
        for names in facts.lineage.names.inputs(name).values():
            nodes_here = names.scores | names.exact.keys() | {name}
            for word in sorted(nodes_here & names.bare.keys() - reported):
                reported.add(word)
                yield found(
                    "structure.name_clash",
                    f"`{word}` is both a node and a column of its rows, so `{word}` in a text "
                    "could "
                    "mean either",
                    hint="rename the node, or map the column to another name",
                    node=word if word in facts.nodes else name,
                )


def _check_text(
    facts: Facts, node: str, field: str, names: TextNames, tables: list[Table]
) -> Iterator[Diagnostic]:
    for word in sorted(names.bare):
        attributes = sorted(a for n, a in names.dotted if n == word)
        is_column = any(word in t.extra or t.names.gives_column(word) for t in tables)
        if word in facts.nodes and attributes and not is_column:
            for attribute in attributes:
                yield from _check_exact(facts, node, field, word, attribute, tables)
            if word not in names.alone:
                continue
        yield from _check_name(facts, node, field, word, tables, everywhere=True)


def _check_others(
    facts: Facts, node: str, field: str, names: TextNames, tables: list[Table]
) -> Iterator[Diagnostic]:
    library = [
        Table(names=part)
        for edge in facts.walk.into(node, "library")
        for part in facts.lineage.names.of_edge(edge).values()
    ]
    for word in sorted(names.columns_of_others):
        yield from _check_name(facts, node, field, word, library or tables, everywhere=False)


def _check_exact(
    facts: Facts, node: str, field: str, owner: str, column: str, tables: list[Table]
) -> Iterator[Diagnostic]:
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
    yield found(
        "structure.unknown_column",
        message,
        hint=did_you_mean(f"{owner}.{column}", dotted or [f"{owner}.{c}" for c in sorted(known)]),
        node=node,
        field=field,
    )


def _check_name(
    facts: Facts,
    node: str,
    field: str,
    word: str,
    tables: list[Table],
    *,
    everywhere: bool,
    what: str = "name",
    besides: Iterable[str] = (),
) -> Iterator[Diagnostic]:
    """One bare or dotted name in tables of which every one, or at least one, must give it."""
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
        yield found(
            "structure.unknown_column",
            message,
            hint=did_you_mean(word, offered),
            node=node,
            field=field,
            fixes=renamings(facts, node, field, word, offered),
        )
        return
    unclear = next((table for table in tables if table.is_ambiguous(word)), None)
    if unclear is not None:
        rows = sorted(str(level) for level in unclear.names.bare[word].rows)
        owners = {n for n, c in unclear.names.exact.items() if _has(c, word)} - {node}
        exact = sorted(owners, key=lambda owner: (owner not in rows, owner))
        yield found(
            "structure.ambiguous_column",
            f"`{word}` is ambiguous: it could come from {' or '.join(f'`{row}`' for row in rows)}",
            hint="name the node: " + " or ".join(f"`{owner}.{word}`" for owner in exact[:3]),
            node=node,
            field=field,
        )


def _has(columns: frozenset[str] | None, column: str) -> bool:
    return columns is not None and column in columns


def _map_hint(word: str) -> str:
    return f"map it in the dataset: `columns: {{{word}: ...}}`, or add it in a template"


def score_fields(node: Node) -> Iterator[tuple[str, str]]:
    """Fields in which a node names scorers, each with a name."""
    if isinstance(node, FilterNode):
        for index, rule in enumerate(node.keep):
            of = getattr(rule, "of", None)
            if of is not None:
                yield f"keep.{index}.of", of
    if isinstance(node, RewardNode) and node.source.type == "builtin":
        match node.source.name:
            case "agreement":
                for index, word in enumerate(node.source.columns):
                    yield f"source.columns.{index}", word
            case "gate":
                yield "source.value", node.source.value
                yield "source.by", node.source.by
            case "weighted":
                for word in node.source.weights:
                    yield f"source.weights.{word}", word


def _column_fields(
    facts: Facts, name: str, node: Node, own: list[Table]
) -> Iterator[tuple[str, str | None, list[Table]]]:
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
            if isinstance(by, str) and by not in facts.nodes and by not in _GROUP_WORDS:
                yield "per_group.by", by, own
        case BufferNode():
            tables = arriving_tables(facts, name, ("rows", "rollouts", "pairs", "seed"))
            for field in ("weight", "unique", "key"):
                yield field, getattr(node, field), tables
        case DatasetNode() if node.unfold is not None:
            names = facts.lineage.names.at(name, "rows").values()
            yield "unfold", node.unfold, [Table(names=part) for part in names]
        case ToolNode(type="search"):
            tables = arriving_tables(facts, name, ("documents",))
            yield "column", node.column or "text", tables


def _of_pairs(facts: Facts, name: str) -> Iterator[tuple[str, str]]:
    """Columns of pairs that algorithms read."""
    section = getattr(facts.nodes[name], "algorithm", None)
    place = "algorithm" if type(section) in PORTS_OF else "algorithm.pairs"
    for entry in facts.algorithms(name, "pairs"):
        if isinstance(entry, BradleyTerry) and entry.margin is not None:
            yield f"{place}.margin", entry.margin
        if isinstance(entry, BradleyTerry) and entry.soft:
            yield f"{place}.soft", "probability"


_GROUP_WORDS: Final = frozenset({"prompt", "role", "round"})


def _needed_columns(facts: Facts) -> Iterator[tuple[Edge, tuple[str, ...]]]:
    """Edges whose rows must have certain columns."""
    for edge in facts.walk.edges:
        target = facts.nodes[edge.target.node]
        given, _ = types_of(facts, edge)
        if edge.target.port == "prompts" and not _has_environment(facts, edge.target.node):
            yield edge, ("prompt",)
        elif edge.target.port == "demonstrations" and given is PortType.ROWS:
            if isinstance(target, ActorNode | VerifierNode):
                source = facts.nodes[edge.source.node]
                yield edge, ("target",) if _brings_chats(source) else ("prompt", "target")
        elif given is PortType.PAIRS and isinstance(facts.nodes[edge.source.node], DatasetNode):
            yield edge, ("chosen", "rejected")


def _brings_chats(node: Node) -> bool:
    """Whether a dataset maps a `target` and no `prompt`: then its targets are whole chats."""
    return (
        isinstance(node, DatasetNode) and "target" in node.columns and "prompt" not in node.columns
    )


def _has_environment(facts: Facts, name: str) -> bool:
    tools = (facts.nodes[edge.source.node] for edge in facts.walk.into(name, "tools"))
    return any(isinstance(tool, ToolNode) and tool.type == "environment" for tool in tools)


def _read_of_texts(node: Node) -> str | None:
    """The column of a text that a scorer cannot do without."""
    if isinstance(node, RewardNode) and node.source.type == "builtin":
        if node.source.name in NO_TEXT_READ:
            return None
        return "length" if node.source.name in ("length", "overlong") else "completion"
    if isinstance(node, VerifierNode) and node.method in ("rule", "vote", "implicit_prm"):
        return "completion"
    return None


RULES = (
    texts_name_columns,
    tools_name_arguments,
    functions_name_columns,
    fields_name_columns,
    scores_are_connected,
    texts_are_there_to_read,
    checkers_come_with_tasks,
    names_are_not_columns,
)
