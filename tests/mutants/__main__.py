"""Wrong programs, and which test notices each.

    python -m tests.mutants draw                       # writes drawn.json; only if it is to change
    python -m tests.mutants run --room checks          # fast tests of its package
    python -m tests.mutants run --tests far            # of those that lived, the room's other ones
    python -m tests.mutants run --tests slow           # of those that lived, the tests left to slow
    python -m tests.mutants table                      # the table of tests/README.md

`run` goes on where it stopped: what was found stands in `results.json`.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.mutants import drawn, judges, tree
from tests.mutants.drawn import Mutant
from tests.mutants.judges import Verdict
from tests.mutants.places import SEED

RESULTS = Path(__file__).parent / "results.json"
MARKS = {
    "near": "not slow and not network",
    "far": "not slow and not network",
    "slow": "slow and not network and not gpu",
}
PROOFS = "tests/engine/slow"
"""Training proofs, minutes each: no mutant waits for them."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("draw")
    commands.add_parser("table")
    run = commands.add_parser("run")
    run.add_argument("--room", action="append", choices=drawn.ROOMS)
    run.add_argument("--tests", choices=MARKS, default="near")
    run.add_argument("--again", action="store_true", help="also those that have a result")
    run.add_argument("--minutes", type=float, default=float("inf"))
    run.add_argument("--id", action="append", type=int)
    options = parser.parse_args()
    if options.command == "draw":
        drawn.write(drawn.draw())
    elif options.command == "table":
        print(table())
    else:
        _run(options)


def _run(options: argparse.Namespace) -> None:
    judges.preload()
    until = time.monotonic() + options.minutes * 60
    with tree.copied() as copy:
        mutants = drawn.read()
        # What was run when it stops is a sample of all.
        random.Random(SEED).shuffle(mutants)
        for mutant in mutants:
            if time.monotonic() > until:
                break
            if options.room and mutant.room not in options.room:
                continue
            if options.id and mutant.id not in options.id:
                continue
            known = read_results().get(str(mutant.id), {})
            if not options.again and not _is_asked(known, options.tests):
                continue
            verdict = _judge(copy, mutant, options.tests)
            results = read_results()
            results.setdefault(str(mutant.id), {})[options.tests] = verdict
            _write_results(results)
            print(mutant.id, mutant.room, verdict, file=sys.stderr, flush=True)


def _is_asked(known: dict[str, Any], tests: str) -> bool:
    """Whether these tests have a say: nobody did away with the mutant, and they were not asked."""
    return tests not in known and not any(said.get("killed_by") for said in known.values())


def _judge(copy: Path, mutant: Mutant, tests: str) -> dict[str, Any]:
    with tree.wrong(copy, mutant) as is_there:
        if not is_there:
            return {"gone": True}
        room = drawn.room_of(mutant)
        if mutant.room == "page commands":
            verdict = judges.ask_page(copy, ["tests/document"] if tests == "near" else [])
        else:
            first, rest = nearest_first(copy, (*room.near, *room.far), mutant)
            groups = {"near": first, "far": rest, "slow": [*first, *rest]}[tests]
            verdict = Verdict(None, 0.0)
            for files in groups:
                said = judges.ask_python(copy, files, MARKS[tests])
                verdict = Verdict(said.killed_by, round(verdict.seconds + said.seconds, 1))
                if verdict.killed_by:
                    break
        return {"killed_by": verdict.killed_by, "seconds": verdict.seconds}


def nearest_first(
    copy: Path, tests: tuple[str, ...], mutant: Mutant
) -> tuple[list[list[str]], list[list[str]]]:
    """Files of tests, to be asked group by group.

    Returns:
        Those that are named like the mutant's file and those of its package; then the other
        folders of the room.
    """
    words = {word.rstrip("s") for word in Path(mutant.file).stem.strip("_").split("_")}
    named: list[str] = []
    own, others = [], []
    for name in tests:
        place = copy / name
        found = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
        files = [str(path.relative_to(copy)) for path in found]
        files = [file for file in files if not file.startswith(PROOFS)]
        alike = [
            file
            for file in files
            if words & {part.rstrip("s") for part in Path(file).stem.split("_")[1:]}
        ]
        named += alike
        rest = [file for file in files if file not in alike]
        is_own = name == tests[0] or place.name in Path(mutant.file).parts
        (own if is_own else others).append(rest)
    return [group for group in (named, *own) if group], [group for group in others if group]


def table() -> str:
    """The mutants that were run and who killed them, in Markdown."""
    results = read_results()
    lines = ["| | place | change | killed by |", "|---|---|---|---|"]
    rooms: dict[str, Counter[str]] = {}
    for mutant in drawn.read():
        fate, killer = fate_of(results.get(str(mutant.id), {}))
        rooms.setdefault(mutant.room, Counter())[fate] += 1
        if fate == "not run":
            continue
        change = f"{mutant.operator}: `{_short(mutant.before)}` → `{_short(mutant.after)}`"
        place = f"`{Path(mutant.file).name}` {mutant.where}"
        lines.append(f"| {mutant.id} | {place} | {change} | {killer} |")
    fates = ("killed", "killed by slow tests only", "lived", "gone", "not run")
    counts = [f"| room | {' | '.join(fates)} |", "|---" * (len(fates) + 1) + "|"]
    for room, found in rooms.items():
        counts.append(f"| {room} | {' | '.join(str(found[fate]) for fate in fates)} |")
    return "\n".join([*counts, "", *lines])


def fate_of(said: dict[str, Any]) -> tuple[str, str]:
    """What became of a mutant, and the cell of its row that says so."""
    if not said:
        return "not run", "not run"
    if any(one.get("gone") for one in said.values()):
        return "gone", "line gone"
    for tests, one in said.items():
        if one["killed_by"]:
            name = one["killed_by"].removeprefix("tests/").partition("[")[0]
            slow = tests == "slow"
            return "killed by slow tests only" if slow else "killed", f"`{name}`{' (slow)' * slow}"
    return "lived", f"lived ({', '.join(said)})"


def _short(text: str) -> str:
    words = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return words if len(words) <= 48 else f"{words[:45]}..."


def read_results() -> dict[str, dict[str, Any]]:
    if not RESULTS.exists():
        return {}
    found: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def _write_results(results: dict[str, dict[str, Any]]) -> None:
    rows = ",\n".join(
        f'"{number}": {json.dumps(results[number])}' for number in sorted(results, key=int)
    )
    beside = RESULTS.with_suffix(".new")
    beside.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    beside.replace(RESULTS)


if __name__ == "__main__":
    main()
