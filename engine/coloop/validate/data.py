"""Files that a loop names: they exist, can be read and contain what the loop reads."""

import json
import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from coloop.data.files.compressed import RowProblem
from coloop.data.files.files import start_of
from coloop.spec.base import texts_in
from coloop.spec.builtins import JsonSchema
from coloop.spec.data import LINED, FileFormat, FileSource, InlineSource, unknown_format
from coloop.spec.diagnostics import Diagnostic, Fix, did_you_mean, error
from coloop.spec.names import own_columns
from coloop.spec.nodes import DatasetNode, RewardNode, ToolNode
from coloop.validate.facts import Facts, corrections
from coloop.validate.sources import (
    Glance,
    PlacedRows,
    ProblemIn,
    Values,
    glance_at,
    glance_at_rows,
    problem_of_rows,
)

PUT_THERE: Final = "put it there, or use its absolute path"
ADD_ROWS: Final = "add at least one row"


def sources_have_rows(facts: Facts) -> Iterator[Diagnostic]:
    """Dataset files exist, can be read and are not empty; inline sources have rows."""
    for name, node in facts.of(DatasetNode):
        if isinstance(node.source, InlineSource) and not node.source.rows:
            at = f"nodes.{name}.source.rows"
            yield error("data.empty", at, "the source has no rows", ADD_ROWS)
        if isinstance(node.source, FileSource):
            yield from _check_file(facts, f"nodes.{name}.source", node.source)


def sources_have_the_mapped_columns(facts: Facts) -> Iterator[Diagnostic]:
    for name, node in facts.of(DatasetNode):
        seen = _look_at(facts, node)
        if seen is None or seen.columns is None:
            continue
        for column, own in node.columns.items():
            at = f"nodes.{name}.columns.{column}"
            if (lack := seen.lacking.get(own)) is not None:
                yield error(
                    "data.missing_column",
                    at,
                    f"{lack.rows:,} of {seen.rows:,} rows have no column `{own}` for "
                    f"`{column}`{lack.first}",
                    "a mapped column must be in every row",
                )
            if own not in seen.columns and own.partition(".")[0] not in seen.columns:
                there = sorted(seen.columns)
                yield error(
                    "data.missing_column",
                    at,
                    f"the source has no column `{own}` for `{column}`",
                    did_you_mean(own, there),
                    *corrections(at, own, there, "Use {}"),
                )


def sources_hold_what_their_columns_can(facts: Facts) -> Iterator[Diagnostic]:
    """Values suit their columns: prompts are texts or chats, margins numbers, texts Unicode."""
    for name, node in facts.of(DatasetNode):
        problem = first_problem(facts, node, Values(tuple(node.columns.items()), node.unfold))
        if problem is not None:
            yield error(
                "data.unreadable",
                f"nodes.{name}.source.{'path' if isinstance(node.source, FileSource) else 'rows'}",
                problem,
                "change the row, or map the right column with `columns`",
            )


def first_problem(facts: Facts, node: DatasetNode, problem_in: ProblemIn) -> str | None:
    """The first problem in the rows of a dataset; None also if they cannot be read here."""
    source = node.source
    if not isinstance(source, FileSource | InlineSource):
        return None
    if isinstance(source, FileSource) and facts.local(source.path) is None:
        return None
    return problem_of_rows(source, facts.root or Path(), problem_in)


def other_files_exist(facts: Facts) -> Iterator[Diagnostic]:
    """Code files and model folders that are named by a path exist."""
    for at, path, what in _named_paths(facts):
        local = facts.local(path)
        if local is None or what == "data":
            continue
        if (
            what == "model"
            and (path.startswith(("./", "/", "~")) or ".." in Path(path).parts)
            and not os.path.isdir(local)
        ):
            message = f"model folder `{path}` not found{_where(facts, path)}"
            yield error("data.missing_file", at, message, PUT_THERE)
        elif what == "code" and not os.path.isfile(local):
            message = f"file `{path}` not found{_where(facts, path)}"
            yield error("data.missing_file", at, message, PUT_THERE)


def _named_paths(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Every path in a loop: its field, the path, and `data`, `code` or `model`."""
    kinds = {"source.path": "data", "model.path": "model"}
    for name, node in facts.nodes.items():
        for field, path, marks in texts_in(node):
            if marks.get("x-widget") == "path":
                yield f"nodes.{name}.{field}", path, kinds.get(field, "code")


def _check_file(facts: Facts, section: str, source: FileSource) -> Iterator[Diagnostic]:
    at, form = f"{section}.path", f"{section}.format"
    local = facts.local(source.path)
    if source.written_as != "text" and local is not None and os.path.isdir(local):
        yield error(
            "data.unknown_format",
            at,
            f"`{source.path}` is a folder",
            "set `source.format` to `text` if each file in it is a row, or name one file",
            Fix.set("Read each file as a row", form, "text"),
        )
        return
    if source.written_as is None:
        yield error("data.unknown_format", at, f"`{source.path}` {unknown_format(source)}")
        return
    if facts.root is None:
        return
    glance = glance_at(source, facts.root)
    if glance.is_missing:
        near = _files_beside(facts.root / source.path)
        yield error(
            "data.missing_file",
            at,
            f"file `{source.path}` not found{_where(facts, source.path)}",
            did_you_mean(Path(source.path).name, near) or PUT_THERE,
        )
    elif glance.is_empty:
        yield error("data.empty", at, f"`{source.path}` has no rows", ADD_ROWS)
    elif glance.problem is not None:
        hint, other = remedy(source, facts.root)
        yield error(
            "data.unreadable",
            at,
            f"`{source.path}` cannot be read as {source.written_as}: {glance.problem}",
            hint,
            *([Fix.set(f"Read it as {other}", form, other)] if other else []),
        )


def _look_at(facts: Facts, node: DatasetNode) -> Glance | None:
    source = node.source
    if isinstance(source, InlineSource):
        return glance_at_rows(source.rows)
    if source.type == "task":
        return Glance(columns=own_columns(source), is_whole=True)
    if isinstance(source, FileSource) and facts.root is not None and source.written_as is not None:
        return glance_at(source, facts.root)
    return None


def _where(facts: Facts, path: str) -> str:
    """Part of a message: the folder against which a relative path is resolved."""
    is_whole = Path(os.path.expanduser(path)).is_absolute()
    return "" if is_whole or facts.root is None else f" in {facts.root.absolute()}"


def _files_beside(path: Path) -> list[str]:
    try:
        return sorted(os.listdir(path.parent))[:200]
    except OSError:
        return []


# What to do about a file that cannot be read in its format: it is written in another one, its
# text is encoded otherwise, or a row breaks the rules of the format.

FORMS: Final[Mapping[FileFormat, str]] = {
    "jsonl": "each line must be a JSON object",
    "json": "the file must be a list of JSON objects, or have an object per line",
    "csv": (
        "the first line must name the columns, each row must have as many values, and a quote "
        'inside a quoted value must be doubled: `"7"" pipe"`'
    ),
    "tsv": (
        "the first line must name the columns, and each row must have as many values, separated by "
        "tabs"
    ),
    "parquet": "the file is incomplete; download or write it again",
    "text": "use a folder of UTF-8 texts, or one such text",
}
"""What a valid file of each format looks like."""

START_BYTES: Final = 64 * 1024


def remedy(source: FileSource, root: Path) -> tuple[str, FileFormat | None]:
    """A short hint, and the format that the file's start looks like."""
    start = _start(source, root)
    for form in _likely(start):
        if form != source.written_as:
            glance = glance_at(source.model_copy(update={"format": form}), root)
            if glance.problem is None and glance.columns:
                return f"it can be read as {form}", form
    if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "the file is encoded as UTF-16; save it as UTF-8", None
    if source.written_as in LINED and not _is_utf8(start):
        return "the file is not encoded as UTF-8; save it as UTF-8", None
    assert source.written_as is not None, source
    return FORMS[source.written_as], None


def _start(source: FileSource, root: Path) -> bytes:
    try:
        return start_of(root / os.path.expanduser(source.path), START_BYTES).data
    except (OSError, ValueError, RowProblem):
        return b""


def _likely(start: bytes) -> Iterator[FileFormat]:
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"PAR1"):
        yield "parquet"
    if text.startswith((b"{", b"[")):
        yield "jsonl"
        yield "json"
    elif text and b"\0" not in text:
        header = text.partition(b"\n")[0]
        if b"\t" in header:
            yield "tsv"
        if b"," in header:
            yield "csv"


def _is_utf8(start: bytes) -> bool:
    try:
        start.decode()
    except UnicodeDecodeError as error:
        # The last character may be cut.
        return len(start) - error.start < 4
    return True


# JSON schemas by which rewards judge, those of a node and those in rows: can they be read.

MOST_SCHEMAS: Final = 500
"""Maximum distinct schemas of one source that are checked here; others when they are used."""
HINT: Final = "an unknown keyword would accept everything"


def schemas_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """The JSON schemas of a reward use only known keywords and formats."""
    for name, node in facts.nodes.items():
        source = node.source if isinstance(node, RewardNode) else None
        if not isinstance(source, JsonSchema):
            continue
        if source.column is not None:
            yield from _check_rows(facts, name, source.column)
        elif source.shape is not None:
            problem = _problem_of(source.shape)
            if problem is not None:
                yield error("data.schema", f"nodes.{name}.source.shape", problem, HINT)


def _check_rows(facts: Facts, reward: str, column: str) -> Iterator[Diagnostic]:
    for name, node in _origins(facts, reward, column):
        schemas = _Schemas(node.columns.get(column, column), node.unfold == column)
        problem = first_problem(facts, node, schemas)
        if problem is not None:
            yield error(
                "data.schema",
                f"nodes.{name}.source.{'path' if isinstance(node.source, FileSource) else 'rows'}",
                f"{problem}; `{reward}` uses this schema",
                HINT,
            )


def _origins(facts: Facts, reward: str, column: str) -> Iterator[tuple[str, DatasetNode]]:
    """Datasets whose column a reward reads unchanged."""
    seen: set[str] = set()
    for names in facts.lineage.names.inputs(reward).values():
        writers = {
            writer: facts.nodes[writer]
            for writer, columns in names.exact.items()
            if (columns is None or column in columns)
            and not isinstance(facts.nodes.get(writer), ToolNode | None)
        }
        if all(isinstance(node, DatasetNode) for node in writers.values()):
            for name, node in writers.items():
                if isinstance(node, DatasetNode) and name not in seen:
                    seen.add(name)
                    yield name, node


@dataclass(frozen=True, slots=True)
class _Schemas:
    column: str
    is_listed: bool
    """Whether the column is a list with one entry per unfolded row."""

    def __call__(self, rows: PlacedRows) -> str | None:
        seen: set[str] = set()
        for where, row in rows:
            value = row.get(self.column)
            entries = value if self.is_listed and isinstance(value, list) else [value]
            for schema in entries:
                if schema is None:
                    continue  # a row without one is told when it is judged
                text = schema if isinstance(schema, str) else json.dumps(schema, default=str)
                seen.add(text)
                if len(seen) > MOST_SCHEMAS:
                    return None
                if (problem := _problem_in_text(text)) is not None:
                    return f"{where}: the JSON schema in `{self.column}` is invalid: {problem}"
        return None


@lru_cache(maxsize=4096)
def _problem_in_text(text: str) -> str | None:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        return f"it is not JSON: {text!r:.80}"
    if not isinstance(schema, Mapping | bool):
        return f"a schema must be an object, not {text:.80}"
    return _problem_of(schema)


def _problem_of(schema: Any) -> str | None:
    # A check of a loop without a schema does without the library.
    from coloop.data.json_schemas import schema_problem

    return schema_problem(schema)
