"""Rows from outside and rows that stay: dataset sources and the buffer's fields."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import PurePath
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from coloop.spec.base import (
    MOST,
    NodeId,
    Number,
    PlainValue,
    Section,
    Text,
    Whole,
    problem,
    setting,
)
from coloop.spec.tasks import TaskSource


class DifficultyBand(Section):
    """Rows of a curriculum with similar scores."""

    up_to: Number = setting()
    """Largest mean score of its rows; rows above all bands belong to the last."""
    weight: Number = setting(1.0, ge=0)
    """Chance of its rows to be drawn, relative to 1 for rows that were never scored; 0: only where
    the others are too few."""


class Curriculum(Section):
    """Draw rows by how difficult they have been."""

    by: NodeId = setting(widget="scorer")
    """The scorer that measures the difficulty: a row's mean over its completions."""
    bands: tuple[DifficultyBand, ...] = setting(
        default_factory=lambda: (
            DifficultyBand(up_to=0.25, weight=0.2),
            DifficultyBand(up_to=0.75, weight=1.0),
            DifficultyBand(up_to=1.0, weight=0.2),
        ),
        min_length=1,
        max_length=32,
    )
    """From hard to easy, with rising `up_to`."""
    ema: Number = setting(0.0, ge=0, lt=1, level="advanced")
    """Share of a row's old mean that is kept when it is scored again; 0: its latest scores
    count."""

    @model_validator(mode="after")
    def _bands_rise(self) -> Self:
        bounds = [band.up_to for band in self.bands]
        for index, (low, high) in enumerate(pairwise(bounds)):
            if high <= low:
                raise problem(
                    "bad_value",
                    f"`up_to` must rise from band to band, but {high:g} follows {low:g}",
                    field=f"bands.{index + 1}.up_to",
                )
        if not any(band.weight for band in self.bands):
            raise problem("bad_value", "a band needs a `weight` above 0", field="bands")
        return self


FileFormat = Literal["jsonl", "json", "parquet", "csv", "tsv", "text"]
FORMATS: Final[Mapping[str, FileFormat]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "text",
    ".md": "text",
}
"""Which format a suffix means."""
LINED: Final[frozenset[FileFormat]] = frozenset({"jsonl", "json", "csv", "tsv"})
"""Formats whose rows stand in lines; these may be compressed."""
COMPRESSIONS: Final = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of compressed files, behind that of the format."""


def compression_of(path: PurePath | str) -> str | None:
    suffix = PurePath(path).suffix.lower()
    return suffix if suffix in COMPRESSIONS else None


class FileSource(Section):
    """Rows of a local file, or of a folder of documents."""

    type: Literal["file"]
    """Rows of a local file, or of a folder of documents."""
    path: Text = setting(widget="path", hot=True)
    """The file or folder, relative to the folder of the loop."""
    format: FileFormat | None = setting(None, level="advanced")
    """Format of the file; null: by its extension, ignoring one such as `.gz`. For a folder, `text`:
    each file in it is a row with `text`, `title` and `path`."""

    @property
    def written_as(self) -> FileFormat | None:
        """The format of the file; None if not known, or if it cannot be read compressed."""
        path = PurePath(self.path)
        if compression_of(path) is not None:
            path = path.with_suffix("")
        format_ = self.format or FORMATS.get(path.suffix.lower())
        if compression_of(self.path) is not None and format_ not in LINED:
            return None
        return format_


def unknown_format(source: FileSource) -> str:
    """Message for a source of unknown format: what was found and how to fix it."""
    path = PurePath(source.path)
    if (suffix := compression_of(path)) is not None:
        inner = source.format or path.with_suffix("").suffix
        if inner in ("", None) or inner not in (*FORMATS, *FORMATS.values()):
            known = "/".join(name for name in FORMATS if FORMATS[name] in LINED)
            return f"is compressed and has no suffix {known} before {suffix}; set `source.format`"
        return f"is compressed, but {inner} cannot be read compressed; decompress it"
    known = ", ".join(FORMATS)
    return (
        f"has the suffix {path.suffix!r}, known are {known}; set `source.format`: "
        f"{', '.join(f'`{name}`' for name in dict.fromkeys(FORMATS.values()))}"
    )


class HubSource(Section):
    """Rows of a dataset on the Hugging Face Hub."""

    type: Literal["hub"]
    """Rows of a dataset on the Hugging Face Hub."""
    path: Text = setting()
    """Id of the dataset, e.g. `openai/gsm8k`."""
    name: Text | None = setting(None, title="Configuration")
    """Configuration of the dataset, if it has several."""
    split: Text = setting("train", hot=True)
    """Split of the dataset."""
    revision: Text | None = setting(None, level="expert")
    """Branch, tag or commit."""


class InlineSource(Section):
    """Rows written in the loop itself."""

    type: Literal["inline"]
    """Rows written in the loop itself."""
    rows: tuple[dict[str, PlainValue], ...] = setting(widget="text", hot=True)
    """Each row maps columns to values."""


Source = Annotated[TaskSource | FileSource | HubSource | InlineSource, Field(discriminator="type")]


class RowTokens(Section):
    """How long rows are, prompt and target together."""

    mean: Number = setting(gt=0, le=MOST, unit="tokens")
    """Mean length of a row."""
    max: Whole = setting(ge=1, unit="tokens")
    """Length of the longest row."""

    @model_validator(mode="after")
    def _mean_is_no_maximum(self) -> Self:
        if self.mean > self.max:
            raise problem(
                "out_of_range",
                f"found {self.mean:g}; at most `max: {self.max}` is expected",
                field="mean",
            )
        return self


class BufferBalance(Section):
    """The same number of rows of each class."""

    by: NodeId = setting(widget="scorer")
    """A scorer in the rows' lineage whose score is the class."""


class BufferClear(Section):
    """Empty the buffer periodically."""

    every: Whole = setting(ge=1, hot=True, unit="steps")
    """Steps between two clearings."""
