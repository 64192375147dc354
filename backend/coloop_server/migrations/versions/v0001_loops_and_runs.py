"""Loops, their versions, and runs.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "loops",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("revision", sa.String(32), nullable=False),
        sa.Column("yaml", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
    )
    op.create_table(
        "loop_versions",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column(
            "loop_id",
            sa.String(32),
            sa.ForeignKey("loops.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("revision", sa.String(32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("yaml", sa.Text(), nullable=False),
        sa.Column("saved_at", TIME, nullable=False),
        sa.UniqueConstraint("loop_id", "version", name="uq_loop_versions_version"),
    )
    op.create_index("ix_loop_versions_loop_id", "loop_versions", ["loop_id"])
    op.create_table(
        "runs",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("yaml", sa.Text(), nullable=False),
        sa.Column("spec_hash", sa.String(128)),
        sa.Column("loop_id", sa.String(32)),
        sa.Column("parent_id", sa.String(128)),
        sa.Column("resume_of", sa.String(128)),
        sa.Column("forced", sa.Boolean(), nullable=False),
        sa.Column("launcher", sa.String(32)),
        sa.Column("handle", sa.JSON()),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer()),
        sa.Column("steps_total", sa.Integer()),
        sa.Column("last_seq", sa.Integer()),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("message", sa.Text()),
        sa.Column("error", sa.JSON()),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("started_at", TIME),
        sa.Column("ended_at", TIME),
        sa.Column("heartbeat_at", TIME),
        sa.Column("stop_asked_at", TIME),
    )
    op.create_index("ix_runs_state", "runs", ["state"])
    op.create_index("ix_runs_created_at", "runs", ["created_at"])
    op.create_index("ix_runs_loop_id", "runs", ["loop_id"])


def downgrade() -> None:
    op.drop_table("runs")
    op.drop_table("loop_versions")
    op.drop_table("loops")
