"""A version of a loop belongs to an edit session; the column had another name.

Revision ID: 0005
Revises: 0004
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.alter_column("loop_versions", "sitting", new_column_name="edit_session")


def downgrade() -> None:
    op.alter_column("loop_versions", "edit_session", new_column_name="sitting")
