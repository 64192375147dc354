"""Presets as the page shows them."""

import shutil
from dataclasses import asdict
from functools import lru_cache

from coloop import presets
from coloop.errors import PresetNotFound
from coloop_server import language
from coloop_server.errors import NotFound
from coloop_server.presets.schemas import (
    HardwareEntry,
    LoopPresetEntry,
    LoopPresetText,
    ModelEntry,
)


def list_loops() -> list[LoopPresetEntry]:
    return [
        LoopPresetEntry(
            name=preset.name,
            title=preset.title,
            description=preset.description,
            tags=list(preset.tags),
            runnable_here=is_runnable_here(preset.name, preset.path.stat().st_mtime_ns),
        )
        for preset in presets.list_loops()
    ]


def get_loop(name: str) -> LoopPresetText:
    try:
        text = presets.load_loop_text(name)
    except PresetNotFound as error:
        raise NotFound(error.code, str(error)) from error
    return LoopPresetText(name=name, yaml=text, spec=language.document(text))


def list_hardware() -> list[HardwareEntry]:
    found = map(presets.hardware, presets.list_hardware())
    return [HardwareEntry.model_validate(preset) for preset in found]


def list_models() -> list[ModelEntry]:
    found = map(presets.model, presets.list_models())
    return [ModelEntry.model_validate(asdict(preset)) for preset in found]


@lru_cache(maxsize=256)
def is_runnable_here(name: str, stamp: int) -> bool:
    """Whether the plan takes the loop and its GPUs are here; `stamp` renews the answer."""
    text = presets.load_loop_text(name)
    if not language.is_runnable(text):
        return False
    hardware = language.require_spec(text).hardware
    needs_gpus = hardware.gpu is not None or presets.hardware(hardware.preset or "cpu").gpus > 0
    return not needs_gpus or shutil.which("nvidia-smi") is not None
