"""One preset, one arm, one seed: trained in a process of its own, and kept so that it is not
trained again at the same state of the engine and of its loop.

.coloop/bench/proofs/<preset>-<arm>-<seed>.json   what a row came to
.coloop/bench/proofs/runs/<preset>-<seed>/        the run that another preset begins with
"""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.machine import ROOT
from tests.bench.results import STORE
from tests.bench.runs import preset_with, train
from tests.engine.slow.curves import Trained, told_by
from tests.engine.slow.proofs import ARMS, PROOFS, SEEDS, Arm, Proof

PLACE = STORE / "proofs"
LENT = {proof.earlier for proof in PROOFS} - {None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What a row came to."""

    start: float
    end: float
    curve: tuple[float, ...]
    processor_seconds: float
    engine: str
    """The last commit that changed the engine."""

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
        return PLACE / f"{self.name}.json"

    def state(self) -> str:
        """What would make it another row: the engine, its loop, and that of the run before it."""
        texts = [preset_with(self.proof.preset, self.proof.changes(self.arm, self.seed))]
        if self.proof.earlier is not None:
            texts.append(preset_with(self.proof.earlier, ()))
        loop = hashlib.sha256("\0".join(texts).encode()).hexdigest()
        return f"{_git('rev-parse', 'HEAD:engine')} {loop}"


def all_rows() -> Iterator[Row]:
    """Every row in the order in which it tells most: each preset with its control first."""
    of_one_seed = [(seed, arm, proof) for seed in SEEDS for proof in PROOFS for arm in ARMS]
    first_arms = [one for one in of_one_seed if one[1] == "taught" or one[0] == SEEDS[0]]
    for seed, arm, proof in first_arms:
        yield Row(proof=proof, arm=arm, seed=seed)


def kept(row: Row) -> Came | None:
    """What it came to at this state; None where it was not trained."""
    if not row.path.exists():
        return None
    record = json.loads(row.path.read_text(encoding="utf-8"))
    if record.pop("state") != row.state():
        return None
    return Came(**{**record, "curve": tuple(record["curve"])})


def measure(row: Row) -> Came:
    """Train it and keep what it came to."""
    proof = row.proof
    run = train(
        proof.preset,
        changes=proof.changes(row.arm, row.seed),
        earlier=None if proof.earlier is None else _lent(proof.earlier, row.seed),
        keep=_run_of(proof.preset, row.seed) if _is_lent(row) else None,
        may_run_dry=row.arm == "shuffled",
    )
    trained = Trained(readings=tuple(told_by(run.events)))
    start, end = proof.span(trained)
    came = Came(
        start=start,
        end=end,
        curve=tuple(reading.value for reading in trained.curve(proof.reading)),
        processor_seconds=run.processor_seconds,
        engine=_git("log", "-1", "--format=%h", "--", "engine"),
    )
    PLACE.mkdir(parents=True, exist_ok=True)
    record = {"state": row.state(), **asdict(came)}
    row.path.write_text(json.dumps(record, indent=1), encoding="utf-8")
    return came


def _is_lent(row: Row) -> bool:
    return row.proof.preset in LENT and row.arm == "taught"


def _lent(preset: str, seed: int) -> Path:
    """The folder of a finished run of this preset, trained where there is none at this state."""
    (proof,) = (proof for proof in PROOFS if proof.preset == preset)
    row = Row(proof=proof, arm="taught", seed=seed)
    if kept(row) is None or not _run_of(preset, seed).exists():
        measure(row)
    return _run_of(preset, seed)


def _run_of(preset: str, seed: int) -> Path:
    return PLACE / "runs" / f"{preset}-{seed}"


def _git(*command: str) -> str:
    told = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True)
    return told.stdout.strip()
