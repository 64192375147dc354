"""Which isolation the Python of a loop has on this machine."""

from pydantic import BaseModel, ConfigDict

from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import available_isolation
from coloop.sandbox.words import WORDS
from coloop_server.routers import router_of

router = router_of("health")


class SandboxState(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    isolation: Isolation
    """The strongest that this machine gives."""
    holds: str
    """What code of a loop cannot do."""
    remains: str
    """What it still can."""
    reason: str
    """Why stronger ones do not stand; empty where the strongest does."""


@router.get("/sandbox", operation_id="getSandbox")
def get_sandbox() -> SandboxState:
    here = available_isolation()
    words = WORDS[here.isolation]
    return SandboxState(
        isolation=here.isolation, holds=words.holds, remains=words.remains, reason=here.reason
    )
