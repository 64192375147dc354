"""Whether a model can be trained on a machine, by the estimate of a small loop with it."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from coloop.errors import ColoopError
from coloop.plan.cost import explain
from coloop.spec import presets
from coloop.spec.diagnostics import Change
from coloop.spec.io import parse
from coloop.spec.lean import record
from coloop.spec.placement import Hardware

SMI_SECONDS: Final = 10
TOKENS: Final = 512
"""Of a completion in the loop that is estimated."""
PROMPTS: Final = 4
"""Of a step, with eight completions to each."""
LORA: Final = {"rank": 16, "alpha": 32}
WAYS: Final = {"full": "all weights", "lora": "LoRA adapter"}


@record
class Fit:
    """One way of training on one machine, by GRPO with completions of up to `TOKENS` tokens."""

    way: str
    """A key of `WAYS`."""
    fits: bool | None
    """None: not known."""
    peak_bytes: int | None
    """Of the fullest GPU, or of the fullest process without GPUs."""
    usable_bytes: int
    reason: str | None


def fits(config: Mapping[str, Any], hardware: Mapping[str, Any]) -> tuple[Fit, ...]:
    """Each way of training a model with this config on hardware as a loop has it. Raises
    `ColoopError` if there is no such hardware."""
    with tempfile.TemporaryDirectory(prefix="coloop-fits-") as folder:
        file = Path(folder) / "model" / "config.json"
        file.parent.mkdir()
        file.write_text(json.dumps(dict(config)), encoding="utf-8")
        return tuple(_fit(way, hardware, Path(folder)) for way in WAYS)


def _fit(way: str, hardware: Mapping[str, Any], root: Path) -> Fit:
    model: dict[str, Any] = {"type": "pretrained", "path": "./model"}
    if way == "lora":
        model["lora"] = LORA
    text = presets.patched(
        presets.load_new_text("online"),
        [
            Change(op="set", path="nodes.actor.model", value=model),
            Change(op="set", path="nodes.actor.rollout.max_new_tokens", value=TOKENS),
            Change(op="set", path="nodes.problems.rows_per_step", value=PROMPTS),
            Change(op="set", path="nodes.held_out.rows_per_step", value=PROMPTS),
            Change(op="set", path="schedule", value={"steps": 1}),
            Change(op="set", path="hardware", value=dict(hardware)),
        ],
    )
    parsed = parse(text)
    if parsed.spec is None:
        raise ColoopError(parsed.diagnostics[0].describe())
    estimate = explain(parsed.spec, root=root).estimate
    fullest = max(estimate.gpus, key=lambda gpu: gpu.peak_bytes or 0)
    verdicts = {gpu.fits for gpu in estimate.gpus}
    return Fit(
        way=way,
        fits=False if False in verdicts else None if None in verdicts else True,
        peak_bytes=fullest.peak_bytes,
        usable_bytes=fullest.usable_bytes,
        reason=fullest.reason,
    )


@record
class HereGpu:
    """A GPU of this machine, as its driver names it."""

    name: str
    memory_bytes: int
    driver: str


def gpus_here() -> list[HereGpu]:
    """The GPUs of this machine; none where there is no `nvidia-smi`."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = "--query-gpu=name,memory.total,driver_version"
    try:
        answer = subprocess.run(
            [program, query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=SMI_SECONDS,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    gpus = []
    for line in answer.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 3 and parts[1].isdigit():
            size = int(parts[1]) * 2**20
            gpus.append(HereGpu(name=parts[0], memory_bytes=size, driver=parts[2]))
    return gpus


@lru_cache(maxsize=1)
def hardware_here() -> dict[str, Any]:
    """The `hardware` section of a loop for this machine; a GPU that is not known by name counts as
    the known one with the next smaller memory."""
    gpus = gpus_here()
    if not gpus:
        return {"preset": "cpu"}
    name = gpu_named(gpus[0].name, min(gpu.memory_bytes for gpu in gpus))
    return {"nodes": 1, "gpus_per_node": len(gpus), "gpu": name}


def gpu_named(name: str, memory_bytes: int) -> str:
    """The known GPU that a driver's name means, such as `NVIDIA H100 80GB HBM3`."""
    words = set(re.split(r"[\s-]+", name.upper()))
    known = {gpu: presets.gpu_facts(gpu).capacity_bytes for gpu in presets.list_gpus()}

    def distance(gpu: str) -> tuple[bool, bool, float]:
        own = re.sub(r"-\d+GB$", "", gpu.upper()).split("-")
        is_larger = known[gpu] > memory_bytes * 1.05
        return not set(own) <= words, is_larger, abs(known[gpu] - memory_bytes)

    return min(known, key=distance)


def hardware_words(hardware: Mapping[str, Any]) -> str:
    """Hardware as people name it; raises `ColoopError` if there is none like it."""
    try:
        return presets.hardware_of(Hardware.model_validate(dict(hardware))).title
    except ValueError as error:
        raise ColoopError(f"hardware: {str(error).splitlines()[0]}") from error
