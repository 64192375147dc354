"""The presets of systems: does each rise over three seeds, and not by what chance says?

    python -m tests.bench --only proofs --write-notes      what is not trained yet, then the page
    python -m tests.bench.bench_proofs --preset dapo --preset vapo --seed 1 --arm shuffled
    python -m tests.bench.bench_proofs --anew              also what another engine has trained
    python -m tests.bench.bench_proofs --told              what is kept, and nothing is trained
    python -m tests.bench.bench_proofs --told --write-notes

Each row is a run of one to three minutes of the processor, alone in its process with one thread,
and kept in `proofs/kept`, which is committed, as soon as it ends. A row whose loop has changed
since, its control or the run that it begins with included, counts as not trained.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from statistics import fmean

from tests.bench.__main__ import BENCHES
from tests.bench.machine import ROOT, describe_machine
from tests.bench.proofs.rows import Came, Row, all_rows, engine, kept, measure
from tests.bench.results import Goal, Result, Table, keep, show, write_notes
from tests.engine.slow.proofs import ARMS, LEAST_RISE, MOST_BY_CHANCE, PROOFS, SEEDS, Proof

HEAD = (
    "preset",
    "metric",
    *(f"seed {seed}" for seed in SEEDS),
    "mean rise",
    "shuffled, seed 1",
    "its rise",
    "CPU seconds",
    "engine of commit",
)


def run() -> Result:
    for row in all_rows():
        _trained(row)
    return told()


def told() -> Result:
    """All rows that are kept, each with the engine that it was measured at."""
    found = {row.name: came for row in all_rows() if (came := kept(row)) is not None}
    shown = [proof for proof in PROOFS if _of(proof, found, "taught")]
    return Result(
        title="Systems",
        tables=(
            Table(
                title="Each metric at the start and at the end; the control assigns scores, "
                "labels or votes to other rows.",
                head=HEAD,
                rows=tuple(_cells(proof, found) for proof in shown),
            ),
        ),
        goals=tuple(goal for proof in shown for goal in _goals(proof, found)),
        data={name: came.curve for name, came in found.items()},
    )


def _of(proof: Proof, found: Mapping[str, Came], arm: str) -> list[Came]:
    names = [f"{proof.preset}-{arm}-{seed}" for seed in SEEDS]
    return [found[name] for name in names if name in found]


def _cells(proof: Proof, found: Mapping[str, Came]) -> tuple[str, ...]:
    spans = [_span(found.get(f"{proof.preset}-taught-{seed}")) for seed in SEEDS]
    taught, shuffled = _of(proof, found, "taught"), _of(proof, found, "shuffled")
    return (
        proof.preset,
        proof.reading,
        *spans,
        f"{_mean_rise(taught):+.3f}",
        _span(shuffled[0] if shuffled else None),
        f"{_mean_rise(shuffled):+.3f}" if shuffled else "–",
        _seconds(taught),
        ", ".join(dict.fromkeys(came.engine for came in taught + shuffled)),
    )


def _span(came: Came | None) -> str:
    return "–" if came is None else f"{came.start:.3f} → {came.end:.3f}"


def _seconds(rows: Sequence[Came]) -> str:
    """Of the processor, the mean of those that were written down."""
    known = [came.processor_seconds for came in rows if came.processor_seconds is not None]
    return f"{fmean(known):.0f}" if known else "–"


def _trained(row: Row, *, anew: bool = False) -> Came:
    """What it came to, trained where that is not kept; `anew` also where another engine did."""
    came = kept(row)
    is_enough = came is not None and not (anew and came.engine != engine())
    return came if came is not None and is_enough else measure(row)


def _goals(proof: Proof, found: Mapping[str, Came]) -> list[Goal]:
    taught, shuffled = _of(proof, found, "taught"), _of(proof, found, "shuffled")
    goals = [
        Goal(
            wanted=f"{proof.preset} rises by {LEAST_RISE} or more, mean of {len(SEEDS)} seeds",
            found=f"{_mean_rise(taught):+.3f} of {len(taught)}",
            is_reached=len(taught) == len(SEEDS) and _mean_rise(taught) >= LEAST_RISE,
        )
    ]
    if shuffled:
        goals.append(
            Goal(
                wanted=f"{proof.preset} rises by less than {MOST_BY_CHANCE} where shuffled",
                found=f"{_mean_rise(shuffled):+.3f}",
                is_reached=_mean_rise(shuffled) < MOST_BY_CHANCE,
            )
        )
    return goals


def _mean_rise(rows: Sequence[Came]) -> float:
    return fmean(came.rise for came in rows)


def _is_chosen(row: Row, given: argparse.Namespace) -> bool:
    return (
        row.proof.preset in (given.preset or [row.proof.preset])
        and row.arm in (given.arm or [row.arm])
        and row.seed in (given.seed or [row.seed])
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    names = tuple(proof.preset for proof in PROOFS)
    arguments.add_argument("--preset", action="append", choices=names)
    arguments.add_argument("--arm", action="append", choices=ARMS)
    arguments.add_argument("--seed", action="append", type=int, choices=SEEDS)
    arguments.add_argument("--anew", action="store_true")
    arguments.add_argument("--told", action="store_true")
    arguments.add_argument("--write-notes", action="store_true")
    given = arguments.parse_args()
    for row in () if given.told else all_rows():
        if _is_chosen(row, given):
            came = _trained(row, anew=given.anew)
            print(f"{row.name}: {_span(came)}, {_seconds([came])} CPU s", flush=True)
    if given.told:
        print(show(told()))
    if given.write_notes:
        _write_notes()
    return 0


def _write_notes() -> None:
    """What is kept, as this bench's section of the page."""
    machine = describe_machine()
    keep("proofs", told(), machine.as_dict(), machine.describe())
    write_notes(tuple(BENCHES))


if __name__ == "__main__":
    for folder in ("engine", "backend"):
        sys.path.insert(0, str(ROOT / folder))
    sys.exit(main())
