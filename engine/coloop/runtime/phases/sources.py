"""What the timeline asks of datasets and buffers: how long a pass is, and whether a buffer is
full."""

from collections.abc import Callable, Mapping

from coloop.runtime.roles.buffer import BufferRole
from coloop.runtime.roles.dataset import DatasetRole
from coloop.runtime.roles.protocol import Context, Role


class RunSources:
    """Answers from the roles of a run."""

    def __init__(self, roles: Mapping[str, Role], now: Callable[[], Context]) -> None:
        """
        Args:
            now: the loop with the values of the moment at which it is asked.
        """
        self._roles = roles
        self._now = now

    def steps_for_epochs(self, node: str, epochs: float) -> int:
        role = self._roles[node]
        assert isinstance(role, DatasetRole | BufferRole)
        return role.steps_for_epochs(epochs, self._now())

    def is_full(self, buffer: str) -> bool:
        role = self._roles[buffer]
        assert isinstance(role, BufferRole)
        return role.is_full(self._now())
