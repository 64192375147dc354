"""The CPU on which open settings are decided: how many of its cores may be used, and whether it has
native bfloat16 products.

    COLOOP_CORES         cores that a loop may use; else all that the process is bound to, within
                         the quota of its control group
    ONEDNN_MAX_CPU_ISA   instruction set that oneDNN, which torch uses on CPUs, may use

What the system does not report counts as missing. Only properties of the CPU are cached, so a
process that is bound to other cores sees them.
"""

import os
import platform
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from coloop.errors import SettingInvalid
from coloop.plan.settings.measured import Measured, measured_here
from coloop.spec.lean import record
from coloop.spec.model import ComputeDtype

CORES = "COLOOP_CORES"
"""Environment variable: cores that a loop may use."""
INSTRUCTIONS = "ONEDNN_MAX_CPU_ISA"
"""Environment variable of oneDNN: its newest allowed instruction set."""
BF16_FLAGS = frozenset(("avx512_bf16", "amx_bf16"))
"""Names in Linux, for x86 CPUs."""
WITHOUT_BF16 = frozenset(
    ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI")
)
"""Values of `ONEDNN_MAX_CPU_ISA` that exclude native bfloat16 products."""
PRODUCT_SHARES = (("avx2", 0.3), ("avx", 0.15), ("asimd", 0.3), ("sse4_1", 0.08))
"""float32 products by the widest instruction set of a core, relative to AVX-512. AVX2 was measured
on an AMD EPYC: 27 to 30 GFLOPS per core for matrices of 64 to 1,536 columns; others follow from
their width."""
CPU_INFO = Path("/proc/cpuinfo")
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


@record
class Processor:
    cores: int
    has_bf16: bool
    """Whether it has instructions for bfloat16 products that may be used."""
    reason: str
    """Reason for `has_bf16`, in words."""
    product_share: float = 1.0
    """float32 products relative to a core with AVX-512."""
    name: str = ""
    """The model, as the system tells it."""


def processor_here() -> Processor:
    """The CPU as this process may use it. Raises `SettingInvalid` if `COLOOP_CORES` is not a number
    of cores."""
    has_bf16, reason = _bf16()
    return Processor(
        cores=cores_here(),
        has_bf16=has_bf16,
        reason=reason,
        product_share=_product_share(),
        name=_name(CPU_INFO),
    )


def cores_here() -> int:
    """Cores that may be used, 1 or more; see `processor_here`."""
    bound = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    there = max(1, min(bound, _quota(GROUPS) or bound))
    named = os.environ.get(CORES)
    if named is None:
        return there
    if not named.isdecimal() or int(named) < 1:
        raise SettingInvalid(
            f"{CORES} is the number of cores that a loop may use, not {named!r}; set it to 1 or "
            f"more ({CORES}=1), or unset it to use all {there} cores"
        )
    return min(int(named), there)


def _quota(groups: Path) -> int | None:
    """Whole cores in the quota of this process's control group; None without a limit."""
    try:
        lines = OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    quotas = []
    for line in lines:
        hierarchy, controllers, path = (*line.split(":", 2), "", "")[:3]
        if hierarchy == "0":
            mount, read = groups, _quota_of
        elif "cpu" in controllers.split(","):
            mount, read = groups / controllers, _older_quota_of
        else:
            continue
        inner = mount / path.lstrip("/")
        for folder in dict.fromkeys((inner, *inner.parents)):
            if folder == mount or mount in folder.parents:
                quotas.append(read(folder))
    limits = [limit for limit in quotas if limit is not None]
    return max(1, int(min(limits))) if limits else None


def _quota_of(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()[:2]
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _older_quota_of(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text(encoding="utf-8"))
        period = int((folder / "cpu.cfs_period_us").read_text(encoding="utf-8"))
        return quota / period if quota > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _bf16() -> tuple[bool, str]:
    there = BF16_FLAGS & _flags(CPU_INFO)
    if not there:
        return False, "this processor has no instructions for products in bfloat16"
    allowed = os.environ.get(INSTRUCTIONS, "").upper()
    if allowed in WITHOUT_BF16:
        return False, f"{INSTRUCTIONS}={allowed} excludes the instructions for bfloat16"
    names = " and ".join(sorted(flag.upper() for flag in there))
    return True, f"this processor has instructions for it ({names})"


def _product_share() -> float:
    """Speed of the widest allowed instructions for float32 products."""
    flags = _flags(CPU_INFO)
    allowed = os.environ.get(INSTRUCTIONS, "").upper()
    if not flags or (
        "avx512f" in flags and not allowed.startswith(("SSE", "AVX2")) and allowed != "AVX"
    ):
        return 1.0
    return next((share for flag, share in PRODUCT_SHARES if flag in flags), 1.0)


@cache
def _flags(file: Path) -> frozenset[str]:
    """Instruction sets of the first core, as Linux lists them."""
    return frozenset(_told(file, "flags").split())


@cache
def _name(file: Path) -> str:
    """Model of the first core; of several models with one name, family and number as well."""
    told = " ".join(_told(file, "model name").split()) or platform.machine()
    numbers = [_told(file, field) for field in ("cpu family", "model", "stepping")]
    return f"{told} ({'/'.join(numbers)})" if all(numbers) else told


def _told(file: Path, field: str) -> str:
    """A field of the first core; empty if the system does not tell it."""
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() == field:
                    return value.strip()
    except OSError:
        pass
    return ""


GPU_DRIVER = Path("/dev/nvidiactl")
"""Exists on machines with an NVIDIA GPU and driver."""


@record
class Begun:
    """Conditions at the start of a run that affect its results. They stay in force on any machine
    where the loop leaves the settings open."""

    dtypes: tuple[tuple[str, ComputeDtype], ...]
    workers: int | None = None
    """Processes of a loop without pools."""


@record
class Conditions:
    """Cores and bfloat16 support that open settings depend on."""

    processor: Processor
    threads: int | None = None
    """Requested threads for all pools together."""
    begun: Begun | None = None
    lacks_vllm: bool = False
    """Whether the machine has GPUs but no vLLM. A machine without GPUs says nothing about the one
    that would run a GPU loop."""
    measured: Measured | None = None
    """Stage times of earlier runs here; None: predictions are not corrected."""


def conditions_here() -> Conditions:
    lacks_vllm = GPU_DRIVER.exists() and find_spec("vllm") is None
    return Conditions(processor=processor_here(), lacks_vllm=lacks_vllm, measured=measured_here())
