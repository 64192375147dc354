"""Tells which wall stands around Python of a loop here."""

from pydantic import BaseModel, ConfigDict

from coloop.sandbox.inside.walls import Wall
from coloop.sandbox.process import wall_here
from coloop.sandbox.words import WORDS
from coloop_server.routers import router_of

router = router_of("health")


class SandboxState(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    wall: Wall
    """The strongest that this machine gives."""
    holds: str
    """What code of a loop cannot do."""
    remains: str
    """What it still can."""
    reason: str
    """Why stronger ones do not stand; empty where the strongest does."""


@router.get("/sandbox", operation_id="getSandbox")
def get_sandbox() -> SandboxState:
    here = wall_here()
    words = WORDS[here.wall]
    return SandboxState(
        wall=here.wall, holds=words.holds, remains=words.remains, reason=here.reason
    )
