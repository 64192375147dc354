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
    """How runs are started here: `process` or `ray_job`."""


class SandboxState(Output):
    isolation: Isolation
    """The strongest that this machine has."""
    holds: str
    """What code of a loop cannot do."""
    remains: str
    """What it still can."""
    reason: str
    """Why stronger ones do not work; empty where the strongest does."""


@router.get("/health", operation_id="getHealth")
async def get_health(settings: SettingsOf) -> Health:
    """Needs no thread: whatever else keeps the server busy, it answers."""
    return Health(
        ok=True, version=own_version(), ray=has_ray(), launcher=default_launcher(settings)
    )


@router.get("/sandbox", operation_id="getSandbox")
def get_sandbox() -> SandboxState:
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
