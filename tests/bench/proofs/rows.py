"""One preset, one arm, one seed: trained in a process of its own, and kept for as long as its loop
stays as it is.

tests/bench/proofs/kept/<preset>-<arm>-<seed>.json      what a row came to; committed
.coloop/bench/proofs/runs/<preset>-<seed>-<its loop>/   the run that another preset begins with
"""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.machine import ROOT
from tests.bench.results import STORE
from tests.bench.runs import preset_with, train
from tests.engine.slow.curves import Trained, told_by
from tests.engine.slow.proofs import ARMS, PROOFS, SEEDS, Arm, Proof

from coloop.spec.io import content_hash, parse, require

KEPT = Path(__file__).with_name("kept")
RUNS = STORE / "proofs" / "runs"
LENT = {proof.earlier for proof in PROOFS} - {None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What a row came to."""

    loop: str
    """Hash of what was trained and read, as `Row.loop` says it."""
    start: float
    end: float
    curve: tuple[float, ...]
    """All of its readings; none where only start and end were written down."""
    processor_seconds: float | None
    """None where they were not written down."""
    engine: str
    """The last commit that changed the engine, and whether it was changed since."""
    date: str

    @property
    def rise(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    proof: Proof
    arm: Arm
    seed: int

    @property
    def name(self) -> str:
        return f"{self.proof.preset}-{self.arm}-{self.seed}"

    @property
    def path(self) -> Path:
        return KEPT / f"{self.name}.json"

    @property
    def run_folder(self) -> Path:
        """Where its run is kept if another preset begins with it."""
        return RUNS / f"{self.proof.preset}-{self.seed}-{self.loop()[:12]}"

    def loop(self) -> str:
        """Hash of its loop as edited, of that of the run before it, and of what is read; comments
        and notes do not count."""
        proof = self.proof
        texts = [preset_with(proof.preset, proof.changes(self.arm, self.seed))]
        if proof.earlier is not None:
            texts.append(preset_with(proof.earlier, ()))
        loops = [content_hash(require(parse(text))) for text in texts]
        told = "\0".join([*loops, proof.phase, proof.reading, str(proof.start)])
        return hashlib.sha256(told.encode()).hexdigest()


def all_rows() -> Iterator[Row]:
    """Every row in the order in which it tells most: each preset with its control first."""
    of_one_seed = [(seed, arm, proof) for seed in SEEDS for proof in PROOFS for arm in ARMS]
    first_arms = [one for one in of_one_seed if one[1] == "taught" or one[0] == SEEDS[0]]
    for seed, arm, proof in first_arms:
        yield Row(proof=proof, arm=arm, seed=seed)


def kept(row: Row) -> Came | None:
    """What it came to, at whichever engine; None where its loop was not trained as it is now."""
    if not row.path.exists():
        return None
    record = json.loads(row.path.read_text(encoding="utf-8"))
    came = Came(**{**record, "curve": tuple(record["curve"])})
    return came if came.loop == row.loop() else None


def measure(row: Row) -> Came:
    """Train it and keep what it came to."""
    proof, loop, trainer = row.proof, row.loop(), engine()
    run = train(
        proof.preset,
        changes=proof.changes(row.arm, row.seed),
        earlier=None if proof.earlier is None else _lent(proof.earlier, row.seed),
        keep=row.run_folder if _is_lent(row) else None,
        may_run_dry=row.arm == "shuffled",
    )
    trained = Trained(readings=tuple(told_by(run.events)))
    start, end = proof.span(trained)
    came = Came(
        loop=loop,
        start=start,
        end=end,
        curve=tuple(reading.value for reading in trained.curve(proof.reading)),
        processor_seconds=run.processor_seconds,
        engine=trainer,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )
    KEPT.mkdir(exist_ok=True)
    row.path.write_text(json.dumps(asdict(came)) + "\n", encoding="utf-8")
    return came


def engine() -> str:
    """The state of the engine: its last commit, `-dirty` where files differ from it."""
    is_changed = _git("status", "--porcelain", "--", "engine") != ""
    return _git("log", "-1", "--format=%h", "--", "engine") + ("-dirty" if is_changed else "")


def _is_lent(row: Row) -> bool:
    return row.proof.preset in LENT and row.arm == "taught"


def _lent(preset: str, seed: int) -> Path:
    """The folder of a finished run of this preset, trained where there is none of its loop."""
    (proof,) = (proof for proof in PROOFS if proof.preset == preset)
    row = Row(proof=proof, arm="taught", seed=seed)
    if not row.run_folder.exists():
        measure(row)
    return row.run_folder


def _git(*command: str) -> str:
    told = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
    return told.stdout.strip()
