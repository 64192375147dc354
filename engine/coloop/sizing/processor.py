"""The processor of this machine: what a loop without GPU is decided by.

A plan that is made on another machine than the run's names this one in its reasons; the run makes
its own plan.
"""

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from coloop.spec.dtypes import Default, default_of

BFLOAT16_FLAGS = {"amx_bf16": "AMX", "avx512_bf16": "AVX-512 BF16"}
"""Names of the instructions that multiply bfloat16, as Linux has them; the strongest first."""
BFLOAT16_FROM_PARAMETERS = 1_000_000
"""Smaller models spend their time around the matrix products; there bfloat16 gains nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """What one machine's processor can do."""

    cores: int
    bfloat16: str | None
    """The instructions that multiply bfloat16; None: it has none, bfloat16 is slower than
    float32."""


@cache
def this_processor() -> Processor:
    """The machine at hand."""
    flags = _flags()
    return Processor(
        cores=os.cpu_count() or 1,
        bfloat16=next((name for flag, name in BFLOAT16_FLAGS.items() if flag in flags), None),
    )


def _flags() -> frozenset[str]:
    """Instruction sets that Linux names; elsewhere none is known."""
    facts = Path("/proc/cpuinfo")
    if platform.machine() not in ("x86_64", "AMD64") or not facts.exists():
        return frozenset()
    for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return frozenset(value.split())
    return frozenset()


def default_on(processor: Processor, parameters: int) -> Default:
    """What weights of so many parameters train in where nobody says it."""
    if parameters < BFLOAT16_FROM_PARAMETERS:
        return default_of(has_gpu=False)
    if processor.bfloat16 is None:
        reason = "float32: this processor has no instructions for bfloat16"
        return Default(dtype="float32", reason=reason)
    return Default(
        dtype="bfloat16",
        reason=f"bfloat16: this processor multiplies it by {processor.bfloat16}",
    )
