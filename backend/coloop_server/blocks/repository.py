"""The SQL of blocks that users saved."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from coloop_server.database.tables import BlockRow
from coloop_server.errors import NotFound


def list_blocks(session: Session) -> Sequence[BlockRow]:
    query = select(BlockRow).order_by(func.lower(BlockRow.title), BlockRow.id)
    return session.scalars(query).all()


def get_block(session: Session, block_id: str) -> BlockRow:
    row = session.get(BlockRow, block_id)
    if row is None:
        raise NotFound("block.not_found", f"there is no block {block_id!r} that was saved here")
    return row
