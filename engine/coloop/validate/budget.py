"""Whether the loop fits into memory, as `estimate` predicts it: a warning that a person may
overrule."""

from collections.abc import Iterator
from pathlib import Path

from coloop.diagnostics import Diagnostic, Severity
from coloop.estimate import Estimate, estimate
from coloop.spec.graph import LoopSpec
from coloop.validate.facts import found

GIB = 2**30


def memory_is_enough(
    spec: LoopSpec, root: Path | None, known: Estimate | None
) -> Iterator[Diagnostic]:
    """No GPU needs more than the budget allows; one finding for each pool."""
    prediction = known if known is not None else estimate(spec, root=root)
    reported: set[str] = set()
    for gpu in prediction.gpus:
        if gpu.fits or gpu.pool in reported:
            continue
        reported.add(gpu.pool)
        largest = sorted(gpu.parts, key=lambda part: -part.bytes)
        resident = [part for part in largest if gpu.peak_stage in part.stages][:2]
        held = " and ".join(f"{part.part} of `{part.node}`" for part in resident)
        yield found(
            "memory.over_budget",
            f"the pool `{gpu.pool}` needs {_gib(gpu.peak_bytes)} of {_gib(gpu.usable_bytes)} in "
            f"`{gpu.peak_stage}`" + (f", most for {held}" if held else ""),
            severity=Severity.WARNING,
            hint="smaller micro-batches, sharding, offload or more GPUs; `run` wants `--force`",
            field=f"hardware.pools.{gpu.pool}" if gpu.pool in spec.hardware.pools else "hardware",
        )


def _gib(count: int) -> str:
    return f"{count / GIB:.1f} GiB"
