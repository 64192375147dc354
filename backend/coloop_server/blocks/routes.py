"""Building blocks over HTTP."""

import secrets
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Path

from coloop.spec import blocks
from coloop.spec.text.emit import to_yaml
from coloop.spec.text.reader import data_of
from coloop_server.blocks import repository
from coloop_server.blocks.schemas import Block, BlockParts, NewBlock
from coloop_server.database.tables import BlockRow
from coloop_server.dependencies import SessionOf
from coloop_server.errors import router_of

router = router_of("blocks", "/blocks")

BlockId = Annotated[str, Path(max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]


@router.get("", operation_id="listBlocks")
def list_blocks(session: SessionOf) -> list[Block]:
    """Blocks that ship with coloop, then those that were saved here; each by title."""
    own = [own_block(row) for row in repository.list_blocks(session)]
    return [*map(shipped_block, blocks.list_blocks()), *own]


@router.post("", operation_id="saveBlock", status_code=201)
def save_block(body: NewBlock, session: SessionOf) -> Block:
    """Save a part of a loop as a block of one's own."""
    row = BlockRow(
        id=secrets.token_hex(8),
        title=body.title.strip(),
        description=body.description,
        yaml=to_yaml(body.model_dump(include=set(BlockParts.model_fields))),
        created_at=datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return own_block(row)


@router.delete("/{block_id}", operation_id="deleteBlock", status_code=204)
def delete_block(block_id: BlockId, session: SessionOf) -> None:
    """Delete a block that was saved here. Loops into which it was inserted do not change."""
    session.delete(repository.get_block(session, block_id))


def shipped_block(block: blocks.Block) -> Block:
    return Block(
        id=block.name,
        title=block.title,
        description=block.description,
        is_own=False,
        tags=list(block.tags),
        open=dict(block.open),
        nodes=dict(block.nodes),
        edges=list(block.edges),
        layout={},
    )


def own_block(row: BlockRow) -> Block:
    return Block(
        id=row.id,
        title=row.title,
        description=row.description,
        is_own=True,
        tags=[],
        **data_of(row.yaml),
    )
