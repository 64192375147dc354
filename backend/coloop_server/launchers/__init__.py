"""Launchers start the processes of runs. Settings choose the launcher of new runs; a run in
progress keeps its own."""

import importlib.util

from coloop_server.launchers.on_own_ray import OwnRayLauncher
from coloop_server.launchers.process import ProcessLauncher
from coloop_server.launchers.ray_job import RayJobLauncher
from coloop_server.settings import Settings

Launcher = ProcessLauncher | RayJobLauncher


def has_ray() -> bool:
    """Whether Ray is installed, without importing it."""
    return importlib.util.find_spec("ray") is not None


def default_launcher(settings: Settings) -> str:
    if settings.launcher == "process" or (settings.launcher == "auto" and not has_ray()):
        return "process"
    return "own_ray" if settings.ray_address is None else "ray_job"


def build_launchers(settings: Settings) -> dict[str, Launcher]:
    return {
        "process": ProcessLauncher(settings),
        "own_ray": OwnRayLauncher(settings),
        "ray_job": RayJobLauncher(settings),
    }
