"""What came up in a lane and a person should know: put there by any thread, told by the driver."""

from collections.abc import Iterator
from queue import Empty, SimpleQueue

Notice = tuple[str | None, str, str]
"""(node or none, code, message)."""


class Notices:
    """Those of one session that nobody has told yet."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Notice] = SimpleQueue()

    def put(self, node: str | None, code: str, message: str) -> None:
        self._waiting.put((node, code, message))

    def take(self) -> Iterator[Notice]:
        while True:
            try:
                yield self._waiting.get_nowait()
            except Empty:
                return
