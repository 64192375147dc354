"""How far the running call of a worker is, and whether it is to be given up; another thread reads
it."""

import threading

from coloop.workers.training import Hooks


class CallProgress:
    """Of one worker, whose calls come one by one."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()
        """Set where the running call is to be given up."""
        self.now = (0, 0, "")
        """Done, of how many, of what."""
        self.others = 0
        """Texts of the running call that other ranks write."""

    def begin(self) -> None:
        """A call begins."""
        self.interrupted.clear()
        self.now = (0, 0, "")

    @property
    def hooks(self) -> Hooks:
        """For what learns or scores."""
        return Hooks(progress=self._count_rows, should_stop=self.interrupted.is_set)

    def count_texts(self, *, rows_done: int, rows_total: int, tokens_done: int) -> None:
        """For what writes; see `coloop.workers.rollout.Progress`."""
        del tokens_done
        self.now = (rows_done, rows_total + self.others, "rows")

    def _count_rows(self, done: int, total: int) -> None:
        self.now = (done, total, "rows")
