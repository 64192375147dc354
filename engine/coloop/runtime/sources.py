"""What the timeline asks of datasets and buffers: how long a pass is, and whether a buffer is
full."""

from collections.abc import Mapping

from coloop.roles.buffer import BufferRole
from coloop.roles.dataset import DatasetRole
from coloop.roles.protocol import Role


class RunSources:
    """Answers from the roles of a run."""

    def __init__(self) -> None:
        self.roles: Mapping[str, Role] = {}

    def steps_for_epochs(self, node: str, epochs: float) -> int:
        role = self.roles[node]
        assert isinstance(role, DatasetRole | BufferRole)
        return role.steps_for_epochs(epochs)

    def is_full(self, buffer: str) -> bool:
        role = self.roles[buffer]
        assert isinstance(role, BufferRole)
        return role.is_full
