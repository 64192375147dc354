"""A route for load balancers, containers and the page's first question."""

from importlib.metadata import PackageNotFoundError, version

from pydantic import BaseModel, ConfigDict

from coloop_server.dependencies import SettingsOf
from coloop_server.launchers import default_launcher, has_ray
from coloop_server.routers import router_of

router = router_of("health")


class Health(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    ok: bool
    version: str
    ray: bool
    """Whether Ray is installed."""
    launcher: str
    """How runs are started here: `process` or `ray_job`."""


@router.get("/health", operation_id="getHealth")
async def get_health(settings: SettingsOf) -> Health:
    """Needs no thread: whatever else keeps the server busy, it answers."""
    return Health(
        ok=True, version=own_version(), ray=has_ray(), launcher=default_launcher(settings)
    )


def own_version() -> str:
    try:
        return version("coloop")
    except PackageNotFoundError:
        return "0"
