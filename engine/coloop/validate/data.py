"""Files that a loop names: are they there, and do they have what the loop reads."""

import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from coloop.data.files import RowProblem, start_of
from coloop.spec.data import LINED, FileFormat, FileSource, InlineSource, unknown_format
from coloop.spec.diagnostics import Change, Diagnostic, Fix, closest, did_you_mean
from coloop.spec.names import own_columns
from coloop.spec.nodes import DatasetNode, RewardNode, ToolNode
from coloop.spec.reward import PythonSource
from coloop.validate.facts import Facts, found
from coloop.validate.sources import Glance, glance_at, glance_at_rows, value_problem

PUT_THERE: Final = "put it there, or use its absolute path"


def sources_have_rows(facts: Facts) -> Iterator[Diagnostic]:
    """Dataset files exist, can be read and are not empty; inline sources have rows."""
    for name, node in facts.nodes.items():
        if not isinstance(node, DatasetNode):
            continue
        if isinstance(node.source, InlineSource) and not node.source.rows:
            yield _problem("data.empty", name, "source.rows", "the source has no rows")
        if isinstance(node.source, FileSource):
            yield from _check_file(facts, name, node, node.source)


def sources_have_the_mapped_columns(facts: Facts) -> Iterator[Diagnostic]:
    """Columns that a dataset maps are in its source."""
    for name, node in facts.nodes.items():
        if not isinstance(node, DatasetNode):
            continue
        seen = _look_at(facts, node)
        if seen is None or seen.columns is None:
            continue
        there = seen.columns
        for column, own in node.columns.items():
            if (lack := seen.lacking.get(own)) is not None:
                first = "" if lack.line is None else f", first in line {lack.line}"
                yield found(
                    "data.missing_column",
                    f"{lack.rows:,} of {seen.rows:,} rows have no column `{own}` for "
                    f"`{column}`{first}",
                    hint="a mapped column must be in every row",
                    node=name,
                    field=f"columns.{column}",
                )
            if own in there:
                continue
            path = f"nodes.{name}.columns.{column}"
            yield found(
                "data.missing_column",
                f"the source has no column `{own}` for `{column}`",
                hint=did_you_mean(own, sorted(there)),
                node=name,
                field=f"columns.{column}",
                fixes=tuple(
                    Fix(title=f"Use {near}", changes=(Change(op="set", path=path, value=near),))
                    for near in closest(own, sorted(there), limit=1)
                ),
            )


def sources_hold_what_their_columns_can(facts: Facts) -> Iterator[Diagnostic]:
    """Prompts are texts or chats, margins numbers, and texts whole characters."""
    for name, node in facts.nodes.items():
        source = node.source if isinstance(node, DatasetNode) else None
        if not isinstance(node, DatasetNode) or not isinstance(source, FileSource | InlineSource):
            continue
        if isinstance(source, FileSource) and (facts.root is None or facts.is_outside(source.path)):
            continue
        problem = value_problem(source, node.columns, node.unfold, facts.root or Path())
        if problem is not None:
            yield found(
                "data.unreadable",
                problem,
                hint="change the row, or map the right column with `columns`",
                node=name,
                field="source.path" if isinstance(source, FileSource) else "source.rows",
            )


def other_files_exist(facts: Facts) -> Iterator[Diagnostic]:
    """Files of code and folders of models that are named by a path are there."""
    if facts.root is None:
        return
    for path in _named_paths(facts):
        if path.what == "data" or facts.is_outside(path.path):
            continue
        place = facts.root / os.path.expanduser(path.path)
        if path.what == "model" and _looks_local(path.path) and not _is_folder(place):
            message = f"model folder `{path.path}` not found{_where(facts, path.path)}"
            yield _problem("data.missing_file", path.node, path.field, message)
        elif path.what == "code" and not _is_file(place):
            message = f"file `{path.path}` not found{_where(facts, path.path)}"
            yield _problem("data.missing_file", path.node, path.field, message)


def paths_stay_inside(facts: Facts) -> Iterator[Diagnostic]:
    """In a confined check no path leads out of the loop's folder, nor what a folder holds."""
    for path in _named_paths(facts):
        if (what := facts.leading_out(path.path)) is not None:
            message = f"{what} leads outside of {facts.root}, the folder that loops may read"
            yield _problem("data.outside", path.node, path.field, message)


@dataclass(frozen=True, slots=True)
class _NamedPath:
    node: str
    field: str
    path: str
    what: Literal["data", "code", "model"]


def _named_paths(facts: Facts) -> Iterator[_NamedPath]:
    for name, node in facts.nodes.items():
        if isinstance(node, DatasetNode) and isinstance(node.source, FileSource):
            yield _NamedPath(name, "source.path", node.source.path, "data")
        code = None
        if isinstance(node, RewardNode) and isinstance(node.source, PythonSource):
            code = ("source.file", node.source.file)
        elif isinstance(node, ToolNode):
            code = ("file", node.file)
        if code is not None and code[1] is not None:
            yield _NamedPath(name, code[0], code[1], "code")
        model: Any = facts.model(name)
        if (path := getattr(model, "path", None)) is not None:
            yield _NamedPath(name, "model.path", path, "model")


def _names_a_folder(facts: Facts, path: str) -> bool:
    if facts.root is None or facts.is_outside(path):
        return False
    return _is_folder(facts.root / os.path.expanduser(path))


def _check_file(
    facts: Facts, name: str, node: DatasetNode, source: FileSource
) -> Iterator[Diagnostic]:
    if source.written_as != "text" and _names_a_folder(facts, source.path):
        change = Change(op="set", path=f"nodes.{name}.source.format", value="text")
        yield found(
            "data.unknown_format",
            f"`{source.path}` is a folder",
            hint="set `source.format` to `text` if each file in it is a row, or name one file",
            node=name,
            field="source.path",
            fixes=(Fix(title="Read each file as a row", changes=(change,)),),
        )
        return
    if source.written_as is None:
        yield found(
            "data.unknown_format",
            f"`{source.path}` {unknown_format(source)}",
            node=name,
            field="source.path",
        )
        return
    if facts.root is None:
        return
    glance = glance_at(source, facts.root, is_confined=facts.is_confined)
    if glance.is_missing:
        near = _files_beside(facts.root / source.path)
        yield found(
            "data.missing_file",
            f"file `{source.path}` not found{_where(facts, source.path)}",
            hint=did_you_mean(Path(source.path).name, near) or PUT_THERE,
            node=name,
            field="source.path",
        )
    elif glance.is_empty:
        yield _problem("data.empty", name, "source.path", f"`{source.path}` has no rows")
    elif glance.problem is not None:
        hint, form = remedy(source, facts.root)
        change = Change(op="set", path=f"nodes.{name}.source.format", value=form)
        yield found(
            "data.unreadable",
            f"`{source.path}` cannot be read as {source.written_as}: {glance.problem}",
            hint=hint,
            node=name,
            field="source.path",
            fixes=(Fix(title=f"Read it as {form}", changes=(change,)),) if form else (),
        )


def _look_at(facts: Facts, node: DatasetNode) -> Glance | None:
    source = node.source
    if isinstance(source, InlineSource):
        return glance_at_rows(source.rows)
    if source.type == "task":
        return Glance(columns=own_columns(source), is_whole=True)
    if isinstance(source, FileSource) and facts.root is not None and source.written_as is not None:
        return glance_at(source, facts.root, is_confined=facts.is_confined)
    return None


def _where(facts: Facts, path: str) -> str:
    """The folder in which a relative path was looked up."""
    is_whole = Path(os.path.expanduser(path)).is_absolute()
    return "" if is_whole or facts.root is None else f" in {facts.root.absolute()}"


def _problem(code: str, node: str, field: str, message: str) -> Diagnostic:
    hints = {
        "data.missing_file": PUT_THERE,
        "data.empty": "add at least one row",
        "data.outside": "put the file into the loop's folder and use its path from there",
    }
    return found(code, message, hint=hints[code], node=node, field=field)


def _looks_local(path: str) -> bool:
    return path.startswith(("./", "/", "~")) or ".." in Path(path).parts


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.expanduser().is_dir()
    except (OSError, RuntimeError):
        return False


def _files_beside(path: Path) -> list[str]:
    try:
        return sorted(item.name for item in path.parent.iterdir())[:200]
    except OSError:
        return []


RULES = (
    sources_have_rows,
    sources_have_the_mapped_columns,
    sources_hold_what_their_columns_can,
    other_files_exist,
    paths_stay_inside,
)


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
"""What holds of a file in each format."""

START_BYTES: Final = 64 * 1024


def remedy(source: FileSource, root: Path) -> tuple[str, FileFormat | None]:
    """In a few words, with the format that does read the file, where its start looks like it;
    `source.written_as` is known."""
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
