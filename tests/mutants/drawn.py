"""The mutants: drawn once by a seed, kept in `drawn.json`, found again wherever their code stands.

A mutant is known by the function that it stands in, the line, and which of the same changes in that
function it is. So it is found again after its file was moved or other lines of it were changed; one
whose line was changed is gone.
"""

import json
import random
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutants import page_source, python_source
from tests.mutants.places import ROOMS, ROOT, SEED, Room, sources
from tests.mutants.python_source import Mutation

DRAWN = Path(__file__).parent / "drawn.json"
PER_FUNCTION = 2
PACKAGES = ("engine/coloop", "backend/coloop_server", "frontend/src/state")


@dataclass(frozen=True)
class Mutant:
    """One wrong program.

    Attributes:
        file: where it stood when it was drawn, from the root of the checkout.
        nth: which it is of the changes in that function with this operator and line.
    """

    id: int
    room: str
    file: str
    where: str
    operator: str
    before: str
    after: str
    line: str
    nth: int


def draw() -> list[Mutant]:
    """As many mutants of each room as it is to have, at most two of a function."""
    chosen: list[Mutant] = []
    for name, room in ROOMS.items():
        places = [
            (str(path.relative_to(ROOT)), change, nth)
            for path in sources(room)
            for change, nth in numbered(path.read_text(encoding="utf-8"), path.suffix)
        ]
        random.Random(f"{SEED} {name}").shuffle(places)
        taken: Counter[tuple[str, str]] = Counter()
        picked = []
        for file, change, nth in places:
            if len(picked) < room.count and taken[file, change.where] < PER_FUNCTION:
                taken[file, change.where] += 1
                picked.append((file, change, nth))
        assert len(picked) == room.count, f"{name} has places for {len(picked)} mutants only"
        for file, change, nth in sorted(picked, key=lambda place: (place[0], place[1].start)):
            texts = (change.operator, change.before, change.after, change.line)
            chosen.append(Mutant(len(chosen) + 1, name, file, change.where, *texts, nth))
    return chosen


def numbered(source: str, suffix: str) -> list[tuple[Mutation, int]]:
    """The changes of a source, each with its place among those that are named alike."""
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for change in (page_source if suffix == ".ts" else python_source).mutations(source):
        key = (change.where, change.operator, change.line, change.before)
        found.append((change, seen[key]))
        seen[key] += 1
    return found


def locate(mutant: Mutant, root: Path) -> tuple[Path, Mutation] | None:
    """Where a mutant stands now; None where its line is gone.

    The file of its draw is read first, then files of that name, then all others of its language.
    """
    drawn = root / mutant.file
    others = [path for package in PACKAGES for path in (root / package).rglob(f"*{drawn.suffix}")]
    others.sort(key=lambda path: (path.name != drawn.name, str(path)))
    for path in [drawn, *others]:
        if not path.exists():
            continue
        source = path.read_text(encoding="utf-8")
        if mutant.line not in source:
            continue
        for change, nth in numbered(source, path.suffix):
            named = (change.where, change.operator, change.line, change.before, nth)
            if named == (mutant.where, mutant.operator, mutant.line, mutant.before, mutant.nth):
                return path, change
    return None


def mutated(source: str, change: Mutation) -> str:
    """The source with that one change."""
    text = source.encode()
    return (text[: change.start] + change.after.encode() + text[change.end :]).decode()


def write(mutants: list[Mutant]) -> None:
    rows = ",\n".join(json.dumps(asdict(mutant), ensure_ascii=False) for mutant in mutants)
    DRAWN.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


def read() -> list[Mutant]:
    return [Mutant(**row) for row in json.loads(DRAWN.read_text(encoding="utf-8"))]


def room_of(mutant: Mutant) -> Room:
    return ROOMS[mutant.room]
