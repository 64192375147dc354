"""Checkers of formal languages, by the name that `checker` takes: each a file of its own that needs
nothing but Python, so that it runs in the limited process like code of the user."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
CHECKERS: Final = ("proof",)


def source_of(checker: str) -> str:
    """The code of a checker; it defines `reward(prompts, completions, **columns)`."""
    return (FOLDER / f"{checker}.py").read_text(encoding="utf-8")
