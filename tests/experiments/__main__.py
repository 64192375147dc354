"""`python -m tests.experiments`: train the rows whose results are missing, then write the report.

    --preset NAME   these presets only; may be repeated, as the next two
    --arm NAME      full, shuffled, control or another arm of `table.py`
    --seed N
    --anew          also rows that another engine has trained
    --report        train nothing
    --list          rows, and which of them have results

A run takes one to four minutes of CPU time, on one thread in a process of its own. Its result is
stored in `kept/` and committed; it counts as missing once the loop changes, its arm and the run
that it begins with included.
"""

import argparse

from tests.experiments.report import write_report
from tests.experiments.rows import Outcome, Row, all_rows, engine, kept, measure


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    rows = list(all_rows())
    for name, values in (
        ("preset", {row.experiment.preset for row in rows}),
        ("arm", {row.arm for row in rows}),
        ("seed", {row.seed for row in rows}),
    ):
        kind = int if name == "seed" else str
        arguments.add_argument(f"--{name}", action="append", type=kind, choices=sorted(values))
    for flag in ("anew", "report", "list"):
        arguments.add_argument(f"--{flag}", action="store_true")
    given = arguments.parse_args()
    chosen = [row for row in rows if _is_chosen(row, given)]
    if given.list:
        for row in chosen:
            print(f"{row.name:<40} {_shown(kept(row))}")
        return 0
    for row in () if given.report else chosen:
        outcome = kept(row)
        if outcome is None or (given.anew and outcome.engine != engine()):
            print(f"{row.name:<40} ", end="", flush=True)
            print(_shown(measure(row)), flush=True)
    write_report()
    return 0


def _is_chosen(row: Row, given: argparse.Namespace) -> bool:
    return (
        row.experiment.preset in (given.preset or [row.experiment.preset])
        and row.arm in (given.arm or [row.arm])
        and row.seed in (given.seed or [row.seed])
    )


def _shown(outcome: Outcome | None) -> str:
    if outcome is None:
        return "missing"
    seconds = "" if outcome.processor_seconds is None else f", {outcome.processor_seconds:.0f} s"
    return f"{outcome.start:.3f} -> {outcome.end:.3f}{seconds}"


if __name__ == "__main__":
    raise SystemExit(main())
