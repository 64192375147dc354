"""What one preview may take, as the service tells it to the process that does it."""

import json
from dataclasses import asdict, dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    seconds: float = 60.0
    """From its start to its end."""
    memory_bytes: int = 4096 * MIB
    cpu_seconds: int = 120
    file_bytes: int = 256 * MIB
    answer_bytes: int = 16 * MIB


SHORT = Limits()
"""Of what reads rows and scores them."""
ROLLOUT = Limits(seconds=240.0, cpu_seconds=480, memory_bytes=8192 * MIB)
"""Of what asks models."""


def order_of(limits: Limits) -> bytes:
    return json.dumps(asdict(limits)).encode()


def read_order(text: bytes) -> Limits:
    return Limits(**json.loads(text))
