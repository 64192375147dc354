"""Seeds from names: `run.seed`, node, step and row decide every random draw, so the result depends
neither on process counts nor on the order of arrival."""

import hashlib


def derive_seed(seed: int, *names: object) -> int:
    """A 63-bit seed for the thing that these names name."""
    text = "\x1f".join(str(name) for name in (seed, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
