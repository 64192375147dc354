"""`engine.log`: what the engine's processes have to say besides events, in the run folder. It only
watches: where the disk is full, lines are lost and nobody else stumbles."""

import logging
import sys
from contextlib import suppress
from pathlib import Path

LOG_FILE = "engine.log"


class RunLog(logging.FileHandler):
    """Appends to a file for as long as there is room."""

    def handleError(self, record: logging.LogRecord) -> None:
        """A line that could not be written is lost; other mistakes are told as ever."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def log_into(path: Path) -> logging.Handler:
    """Add what this process logs to a file, from now on."""
    handler = RunLog(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger("coloop").addHandler(handler)
    return handler
