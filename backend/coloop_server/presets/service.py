"""Presets as the page shows them."""

from dataclasses import asdict

from coloop.errors import PresetNotFound
from coloop.explain.about import About, about
from coloop.spec import presets
from coloop_server import language
from coloop_server.errors import NotFound
from coloop_server.presets.schemas import HardwareEntry, LoopPresetText, ModelEntry


def get_loop(name: str) -> LoopPresetText:
    try:
        text = presets.load_loop_text(name)
    except PresetNotFound as error:
        raise NotFound(error.code, str(error)) from error
    return LoopPresetText(name=name, yaml=text, spec=language.document(text))


def about_loop(name: str) -> About:
    try:
        return about(name)
    except PresetNotFound as error:
        raise NotFound(error.code, str(error)) from error


def list_hardware() -> list[HardwareEntry]:
    found = map(presets.hardware, presets.list_hardware())
    return [HardwareEntry.model_validate(preset) for preset in found]


def list_models() -> list[ModelEntry]:
    found = map(presets.model, presets.list_models())
    return [ModelEntry.model_validate(asdict(preset)) for preset in found]
