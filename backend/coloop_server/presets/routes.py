"""Presets of loops, hardware and models."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path

from coloop.errors import PresetNotFound
from coloop.explain.about import About, about
from coloop.spec import presets
from coloop_server import language
from coloop_server.dependencies import GalleryOf
from coloop_server.errors import NotFound, router_of
from coloop_server.presets.schemas import (
    HardwareEntry,
    LoopPresetEntry,
    LoopPresetText,
    ModelEntry,
)

router = router_of("presets", "/presets")

PresetName = Annotated[str, Path(max_length=200)]


@router.get("/names", operation_id="listPresetNames")
def list_preset_names() -> list[str]:
    """Names of the loop presets; the cheapest way to list them."""
    return list(presets.loop_names())


@router.get("/loops", operation_id="listLoopPresets")
def list_loop_presets(gallery: GalleryOf) -> list[LoopPresetEntry]:
    return gallery.list()


@router.get("/loops/{name}", operation_id="getLoopPreset")
def get_loop_preset(name: PresetName) -> LoopPresetText:
    try:
        text = presets.load_loop_text(name)
    except PresetNotFound as error:
        raise NotFound(error.code, str(error)) from error
    return LoopPresetText(name=name, yaml=text, spec=language.document(text))


@router.get("/loops/{name}/about", operation_id="aboutLoopPreset")
def about_loop_preset(name: PresetName) -> About:
    """What a preset teaches, what its nodes do, which curves to expect and what it costs."""
    try:
        return about(name)
    except PresetNotFound as error:
        raise NotFound(error.code, str(error)) from error


@router.get("/hardware", operation_id="listHardwarePresets")
def list_hardware_presets() -> list[HardwareEntry]:
    hardware = map(presets.hardware, presets.list_hardware())
    return [HardwareEntry.model_validate(preset) for preset in hardware]


@router.get("/models", operation_id="listModelPresets")
def list_model_presets() -> list[ModelEntry]:
    models = map(presets.model, presets.list_models())
    return [ModelEntry.model_validate(asdict(preset)) for preset in models]
