"""Whether the server is up, and what it can do: for load balancers, containers and the page."""

from importlib.metadata import PackageNotFoundError, version

from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import WORDS, available_isolation
from coloop_server.dependencies import SettingsOf
from coloop_server.errors import router_of
from coloop_server.launchers import default_launcher, has_ray
from coloop_server.schemas import Output

router = router_of("health")


class Health(Output):
    ok: bool
    version: str
    ray: bool
    """Whether Ray is installed."""
    launcher: str
    """How this server starts runs: `process` or `ray_job`."""


class SandboxState(Output):
    """How well this server isolates the Python code of loops."""

    isolation: Isolation
    """Strongest isolation that this machine supports."""
    holds: str
    """How it restricts a loop's code, in words."""
    remains: str
    """What the code can still do, in words."""
    reason: str
    """Why stronger isolation does not work here; empty if it is the strongest."""


@router.get("/health", operation_id="getHealth")
async def get_health(settings: SettingsOf) -> Health:
    """Whether the server is up. It answers even if all worker threads are busy."""
    return Health(
        ok=True, version=own_version(), ray=has_ray(), launcher=default_launcher(settings)
    )


@router.get("/sandbox", operation_id="getSandbox")
def get_sandbox() -> SandboxState:
    """How well this server isolates the Python code of loops."""
    here = available_isolation()
    words = WORDS[here.isolation]
    return SandboxState(
        isolation=here.isolation, holds=words.holds, remains=words.remains, reason=here.reason
    )


def own_version() -> str:
    try:
        return version("coloop")
    except PackageNotFoundError:
        return "0"
