"""`engine.log`: the log of the engine's processes. On a full disk lines are lost."""

import logging
import sys
from contextlib import suppress
from pathlib import Path

LOG_FILE = "engine.log"


class RunLog(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def log_into(path: Path) -> logging.Handler:
    handler = RunLog(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger("coloop").addHandler(handler)
    return handler
