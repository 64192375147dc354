"""Files of other frameworks: what they are, and the settings in them. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from coloop.errors import ImportRefused
from coloop.interop.settings import Given
from coloop.interop.shell import Word
from coloop.interop.values import flattened, lines_of
from coloop.spec.lean import record

MOST_BYTES: Final = 1024 * 1024
MOST_OF_A_REWARD: Final = 256 * 1024


@record
class File:
    """A text, taken apart: a command, a mapping, or Python source."""

    text: str
    name: str = ""
    words: Sequence[Word] | None = None
    """Arguments of a command, after the program."""
    program: str = ""
    """What the command starts: a module or a script."""
    launcher: Mapping[str, str] = field(default_factory=dict)
    """Options of `accelerate launch`, `torchrun` or `deepspeed` before the program."""
    data: Mapping[str, Any] | None = None

    def given(self) -> Iterator[Given]:
        """Settings of a mapping by dotted names, with lines."""
        assert self.data is not None
        yield from lines_of(self.text, flattened(self.data))


@record
class Source:
    """Where a text is from, and what is known beside it."""

    root: Path | None = None
    """Folder in which files that the text names are looked up; None: nowhere."""
    gpu: str | None = None
    """Kind of the GPUs; None: assumed."""
    gpus: int | None = None
    """Number of processes, for frameworks whose files do not say it."""

    def read(self, path: str) -> str | None:
        """The text of a file that the configuration names, inside its folder; None if it is not
        there."""
        if self.root is None:
            return None
        root = self.root.resolve()
        file = (root / Path(path).expanduser()).resolve()
        if not file.is_relative_to(root) or not file.is_file():
            return None
        if file.stat().st_size > MOST_OF_A_REWARD:
            return None
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def missing(self, path: str) -> str:
        where = "in the folder of the configuration" if self.root else "in what was pasted"
        return (
            f"the reward in `{path}` is not there {where}: put the file beside the loop with "
            "`def reward(prompts, completions, **columns)`, or choose another reward"
        )


def decoded(raw: bytes, name: str) -> str:
    """The text of a file; raises where it is none, or megabytes."""
    if len(raw) > MOST_BYTES:
        raise ImportRefused(
            f"{name} is larger than {MOST_BYTES // 2**20} MiB, which no configuration is: give the "
            "script or the file with the settings alone"
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ImportRefused(
            f"{name} is not text (byte {error.start}): give a script, a command, YAML or TOML"
        ) from error
    if "\0" in text:
        raise ImportRefused(f"{name} is not text: give a script, a command, YAML or TOML")
    return text
