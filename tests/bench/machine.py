"""What the numbers were measured on: processor, memory, load, versions, commit."""

import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "transformers", "ray")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine at one moment."""

    processor: str
    cores: int
    memory_gib: int
    load: float
    """Processes that wanted a core over the last minute, when the bench began."""
    system: str
    versions: str
    commit: str
    at: str

    def describe(self) -> str:
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gib} GiB, {self.system}; "
            f"{self.versions}; commit {self.commit}, {self.at}; load before {self.load:.1f}"
        )

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def describe_machine() -> Machine:
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        load=os.getloadavg()[0],
        system=f"{platform.system()} {platform.machine()}",
        versions=", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {_version(p)}" for p in PACKAGES)]
        ),
        commit=_commit(),
        at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _processor() -> str:
    name, detail = platform.processor() or platform.machine(), ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        first = info.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        facts = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in first}
        name = facts.get("model name", name)
        if "amx_tile" in facts.get("flags", ""):
            detail = " with AMX"
        elif "avx512f" in facts.get("flags", ""):
            detail = " with AVX-512"
    return name + detail


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    return told.stdout.strip() or "unknown"
