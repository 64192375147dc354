"""A copy of the checkout in which mutants are put and taken out again."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

from tests.mutants.drawn import Mutant, locate, mutated
from tests.mutants.places import ROOT

LINKED = ("frontend/node_modules",)
COPIED = ("backend/coloop_server/_static",)


@contextmanager
def copied() -> Iterator[Path]:
    """The checkout as it stands, with what is not committed, in a folder that goes at the end."""
    with tempfile.TemporaryDirectory(prefix="coloop-mutants-") as place:
        tree = Path(place)
        listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout
        for name in filter(None, names.decode().split("\0")):
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        for name in LINKED:
            if (ROOT / name).exists():
                (tree / name).symlink_to((ROOT / name).resolve())
        for name in COPIED:
            if (ROOT / name).exists():
                shutil.copytree(ROOT / name, tree / name)
        yield tree


@contextmanager
def wrong(tree: Path, mutant: Mutant) -> Iterator[bool]:
    """A mutant in the copy; False where its line is gone."""
    place = locate(mutant, tree)
    if place is None:
        yield False
        return
    path, change = place
    source = path.read_text(encoding="utf-8")
    try:
        _write(path, mutated(source, change))
        yield True
    finally:
        _write(path, source)


def _write(path: Path, source: str) -> None:
    """A source of which no compiled form is left: one of the same size and second would pass."""
    path.write_text(source, encoding="utf-8")
    if path.suffix == ".py":
        for compiled in Path(cache_from_source(path)).parent.glob(f"{path.stem}.*"):
            os.unlink(compiled)
