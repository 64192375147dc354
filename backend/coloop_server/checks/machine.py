"""What a loop's hardware wants, and what there is where runs go."""

import shutil
import subprocess
from functools import lru_cache

from coloop.plan.settings.machine import Machine
from coloop_server.settings import Settings

ASK_SECONDS = 10


def missing_here(machine: Machine, settings: Settings) -> str | None:
    """Why a run would not find its GPUs; None where it would, or where runs go to a cluster of
    which nothing is known here."""
    wanted = sum(pool.gpus for pool in machine.pools.values())
    if not wanted or settings.ray_address:
        return None
    here = gpus_here()
    if wanted <= here:
        return None
    there = "no GPU" if here == 0 else f"{here} GPU" + ("s" if here > 1 else "")
    wants = f"{wanted} GPU" + ("s" if wanted > 1 else "")
    return f"The loop needs {wants} ({machine.preset.title}), and this machine has {there}."


@lru_cache(maxsize=1)
def gpus_here() -> int:
    """GPUs of this machine, as their driver lists them."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        listed = subprocess.run(
            [program, "--list-gpus"],
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())
