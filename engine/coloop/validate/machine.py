"""The machine that a loop names: its preset, and the pools on it."""

from coloop.errors import PresetNotFound
from coloop.spec import presets
from coloop.spec.placement import Hardware
from coloop.spec.presets import HardwarePreset

MAIN_POOL = "main"
"""The pool over everything, where a loop names none."""


def hardware_of(section: Hardware) -> HardwarePreset | None:
    """The machine in force, or nothing where its name is unknown."""
    try:
        if section.gpu is not None:
            return presets.custom_hardware(
                nodes=section.nodes or 1,
                gpus_per_node=section.gpus_per_node or 1,
                gpu=section.gpu,
            )
        return presets.hardware(section.preset_name or "cpu")
    except PresetNotFound:
        return None
