"""Seeds of random draws, from `run.seed`, node, step and row, so that results do not depend on the
number of processes or the order of arrival."""

import hashlib


def derive_seed(seed: int, *names: object) -> int:
    """A 63-bit seed for these names."""
    text = "\x1f".join(str(name) for name in (seed, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
