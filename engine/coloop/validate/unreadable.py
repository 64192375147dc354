"""What to do about a file that cannot be read in its format: it is written in another one, its
text is encoded otherwise, or a row breaks the rules of the format.
"""

import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from coloop.data.files import RowProblem, start_of
from coloop.spec.data import LINED, FileFormat, FileSource
from coloop.validate.sources import glance_at

RULES: Final[Mapping[FileFormat, str]] = {
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
    return RULES[source.written_as], None


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
