"""`engine.log`: what the engine's processes have to say besides events, in the run folder."""

import logging
from pathlib import Path

LOG_FILE = "engine.log"


def log_into(path: Path) -> logging.Handler:
    """Add what this process logs to a file, from now on."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger("coloop").addHandler(handler)
    return handler
