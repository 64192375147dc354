"""Names of runs: the loop's name, the time, and four random digits."""

import secrets
from datetime import UTC, datetime


def new_run_id(name: str) -> str:
    """A name that no other run has."""
    return f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
