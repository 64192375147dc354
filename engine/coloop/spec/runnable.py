"""What of the language the engine runs; the rest can be drawn, checked and planned, not run yet.

One table for the catalog, the compiler and the docs; the compiler says which places of a loop are
not in it.
"""

from __future__ import annotations

from coloop.spec.algorithms.registry import families, family_of
from coloop.spec.nodes import NODE_CLASSES

RUNNABLE_KINDS = frozenset(kind for kind, node in NODE_CLASSES.items() if node.about.runs)
RUNNABLE_ALGORITHMS = frozenset(record.name for record in families() if record.recipe is not None)
RUNNABLE_REWARD_SOURCES = frozenset({"builtin", "python", "model", "remote"})
RUNNABLE_ENGINES = frozenset({"torch", "vllm", "remote"})
RUNNABLE_BACKENDS = frozenset({"single", "fsdp2", "deepspeed"})


def is_runnable_algorithm(name: str) -> bool:
    """Whether recipes for this algorithm, or the family of this preset, are there."""
    return family_of(name) in RUNNABLE_ALGORITHMS
