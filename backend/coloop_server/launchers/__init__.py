"""Launchers: how a run gets a process. A registry of two, chosen by the settings."""

import importlib.util

from coloop_server.launchers.on_own_ray import OwnRayLauncher
from coloop_server.launchers.process import ProcessLauncher
from coloop_server.launchers.protocol import Launcher
from coloop_server.launchers.ray_job import RayJobLauncher
from coloop_server.settings import Settings


def has_ray() -> bool:
    """Whether Ray is installed, without importing it."""
    return importlib.util.find_spec("ray") is not None


def default_launcher(settings: Settings) -> str:
    if settings.launcher != "auto":
        return settings.launcher
    return "ray_job" if has_ray() else "process"


def build_launchers(settings: Settings) -> dict[str, Launcher]:
    on_ray = OwnRayLauncher if settings.ray_address is None else RayJobLauncher
    return {"process": ProcessLauncher(settings), "ray_job": on_ray(settings)}
