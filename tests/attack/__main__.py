"""Runs the whole attack suite and writes its table: `make test-attack`.

A test says what it tried by `record_property("tried", n)` and what came through by
`record_property("through", n)`; the table adds them up, file by file. With `ATTACK=--write-notes`
the table of `docs/security-reviews.md` is replaced.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security-reviews.md"
BEGIN, END = "<!-- attack table -->\n", "<!-- end of attack table -->\n"


@dataclass
class Line:
    """What one file of attacks came to."""

    tried: int = 0
    through: int = 0
    tests: int = 0
    failed: int = 0
    seconds: float = 0.0
    skipped: list[str] = field(default_factory=list)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write-notes", action="store_true")
    arguments.add_argument(
        "--reports",
        nargs="+",
        type=Path,
        help="tables of JUnit that pytest wrote before, instead of a run now",
    )
    given = arguments.parse_args()
    code, lines = (0, read(given.reports)) if given.reports else run()
    shown = table(lines)
    sys.stdout.write(f"\n{shown}")
    if given.write_notes:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        PAGE.write_text(before + BEGIN + shown + END + rest.partition(END)[2], encoding="utf-8")
    sys.exit(code)


def run() -> tuple[int, dict[str, Line]]:
    """All attacks, now: pytest's exit code and what they came to."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "attack.xml"
        code = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-m", "attack", "tests"),
                f"--junitxml={report}",
                *("-o", "junit_family=xunit1"),
            ],
            cwd=ROOT,
        ).returncode
        return code, read([report])


def read(reports: Sequence[Path]) -> dict[str, Line]:
    """By file of attacks, what its tests told."""
    lines: dict[str, Line] = {}
    for case in (one for path in reports for one in ElementTree.parse(path).iter("testcase")):
        name = case.get("classname", "").rpartition(".")[2].removeprefix("test_")
        line = lines.setdefault(name, Line())
        told = {one.get("name"): int(one.get("value", "0")) for one in case.iter("property")}
        line.tests += 1
        line.failed += any(case.find(kind) is not None for kind in ("failure", "error"))
        line.seconds += float(case.get("time", "0"))
        line.tried += told.get("tried", 1)
        line.through += told.get("through", 0)
        skipped = case.find("skipped")
        if skipped is not None:
            line.skipped.append(skipped.get("message", ""))
    return lines


def table(lines: dict[str, Line]) -> str:
    head = "| attacks | tried | succeeded | tests | failed | skipped | seconds |"
    rows = [
        f"| {name} | {line.tried} | {line.through} | {line.tests} | {line.failed} "
        f"| {len(line.skipped)} | {line.seconds:.0f} |"
        for name, line in sorted(lines.items())
    ]
    return "\n".join([where(), "", head, "|---|---|---|---|---|---|---|", *rows, ""]) + "\n"


def where() -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    user = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    return f"{day}, commit {commit or 'unknown'}, Linux {platform.release()}, as {user}."


if __name__ == "__main__":
    main()
