"""Building blocks: parts of a loop that are inserted as a whole.

A block is a file `presets/blocks/NAME.yaml`: nodes with their settings and the edges among them, as
in a loop, besides `title`, `description`, `tags` and `open`. `open` maps an input or an output
(`node.port`) at which the block is joined with the rest of a loop to what is expected there.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from coloop.spec.lean import record
from coloop.spec.presets import block_names, load_block_text
from coloop.spec.text.reader import data_of

CO_TRAINING: Final = "co-training"
"""Tag of a block in which several models learn from each other; other tags are modes."""
PARTS: Final = ("title", "description", "tags", "open", "nodes", "edges")


@record
class Block:
    name: str
    title: str
    description: str
    tags: tuple[str, ...]
    """Modes in which it is offered first, and `co-training`."""
    open: Mapping[str, str]
    """What is expected at each port (`node.port`) at which it is joined."""
    nodes: Mapping[str, Any]
    edges: tuple[Any, ...]


def list_blocks() -> tuple[Block, ...]:
    """The blocks that ship with coloop, in the order of their titles."""
    return tuple(sorted(map(load_block, block_names()), key=lambda block: block.title.casefold()))


@lru_cache(maxsize=64)
def load_block(name: str) -> Block:
    """A block by the name of its file; raises `PresetNotFound` with the nearest names."""
    data = data_of(load_block_text(name))
    if (odd := sorted(data.keys() - set(PARTS))) or not data.get("nodes"):
        raise ValueError(f"block {name!r}: {odd or 'no nodes'}; a block has {', '.join(PARTS)}")
    return Block(
        name=name,
        title=data["title"],
        description=data["description"],
        tags=tuple(data["tags"]),
        open=dict(data.get("open", {})),
        nodes=data["nodes"],
        edges=tuple(data.get("edges", ())),
    )
