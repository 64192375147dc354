"""Loops, hardware and models to start from."""

from typing import Annotated

from fastapi import Path

from coloop.explain.about import About
from coloop.spec import presets
from coloop_server.dependencies import GalleryOf
from coloop_server.presets import service
from coloop_server.presets.schemas import (
    HardwareEntry,
    LoopPresetEntry,
    LoopPresetText,
    ModelEntry,
)
from coloop_server.routers import router_of

router = router_of("presets", "/presets")

PresetName = Annotated[str, Path(max_length=200)]


@router.get("/names", operation_id="listPresetNames")
def list_preset_names() -> list[str]:
    """Names of the loops alone, which costs nothing."""
    return list(presets.loop_names())


@router.get("/loops", operation_id="listLoopPresets")
def list_loop_presets(gallery: GalleryOf) -> list[LoopPresetEntry]:
    return gallery.list()


@router.get("/loops/{name}", operation_id="getLoopPreset")
def get_loop_preset(name: PresetName) -> LoopPresetText:
    return service.get_loop(name)


@router.get("/loops/{name}/about", operation_id="aboutLoopPreset")
def about_loop_preset(name: PresetName) -> About:
    """What it teaches, what its nodes do, which curves to expect, what it costs."""
    return service.about_loop(name)


@router.get("/hardware", operation_id="listHardwarePresets")
def list_hardware_presets() -> list[HardwareEntry]:
    return service.list_hardware()


@router.get("/models", operation_id="listModelPresets")
def list_model_presets() -> list[ModelEntry]:
    return service.list_models()
