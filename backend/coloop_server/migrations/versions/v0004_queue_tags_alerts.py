"""Runs have tags, a place in the queue and alerts.

Revision ID: 0004
Revises: 0003
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

COLUMNS: dict[str, tuple[sa.types.TypeEngine[Any], str]] = {
    "tags": (sa.JSON(), "[]"),
    "priority": (sa.Integer(), "0"),
    "queue_place": (sa.Integer(), "0"),
    "raised_alerts": (sa.JSON(), "[]"),
    "acknowledged": (sa.JSON(), "{}"),
}


def upgrade() -> None:
    for name, (kind, default) in COLUMNS.items():
        op.add_column("runs", sa.Column(name, kind, nullable=False, server_default=default))


def downgrade() -> None:
    with op.batch_alter_table("runs") as table:
        for name in COLUMNS:
            table.drop_column(name)
