"""Versions say why they were kept, runs say which version they ran, and one server owns it all.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("runs", sa.Column("loop_version", sa.Integer()))
    op.add_column("loop_versions", sa.Column("label", sa.Text()))
    op.add_column("loop_versions", sa.Column("restored_from", sa.Integer()))
    op.add_column("loop_versions", sa.Column("reason", sa.String(16)))
    op.add_column("loop_versions", sa.Column("sitting", sa.String(64)))
    op.add_column("loop_versions", sa.Column("started_at", TIME))
    op.execute("UPDATE loop_versions SET started_at = saved_at")
    op.execute(
        "UPDATE loop_versions SET reason = CASE WHEN version = 1 THEN 'created' ELSE 'edited' END"
    )
    with op.batch_alter_table("loop_versions") as table:
        table.alter_column("reason", existing_type=sa.String(16), nullable=False)
        table.alter_column("started_at", existing_type=TIME, nullable=False)
    op.create_table(
        "servers",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("folder_id", sa.String(32), nullable=False),
        sa.Column("token", sa.String(32), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("beat_at", TIME, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("servers")
    with op.batch_alter_table("loop_versions") as table:
        for column in ("label", "restored_from", "reason", "sitting", "started_at"):
            table.drop_column(column)
    with op.batch_alter_table("runs") as table:
        table.drop_column("loop_version")
