"""Requests and responses of the loop routes."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from coloop_server.checks.schemas import CheckResult
from coloop_server.schemas import MAX_YAML, Input, Output

MAX_NAME = 200


class LoopText(Input):
    yaml: str = Field(max_length=MAX_YAML)
    """The loop as text. It may be a draft with errors, but must be valid YAML."""
    name: str | None = Field(default=None, max_length=MAX_NAME)
    """Name of the saved loop; null: the name in the text."""
    edit_session: str | None = Field(default=None, max_length=64)
    """Id of an editing session, e.g. of a browser tab. Saves of one session within some time are
    one version; without an id, each save is a version."""


class LoopSummary(Output):
    id: str
    name: str
    version: int
    """Number of the newest version. Saves of one editing session are one version."""
    revision: str
    """Identifies this saved state; send it as `If-Match` with the next save."""
    created_at: datetime
    updated_at: datetime


class LoopHit(Output):
    """A search result: a loop with a matching name, or a matching node of a loop."""

    loop: str
    """Id of the loop."""
    loop_name: str
    node: str | None
    """Matching node; null if the loop's name matches."""
    kind: str | None
    """Kind of the node; null without a node."""
    model: str | None
    """Model that the node names; null if there is none."""


class Loop(LoopSummary):
    yaml: str
    spec: dict[str, Any] | None
    """The loop as data, with the keys of the YAML, also for a draft with errors; null if the text
    cannot be read at all."""


class EditDocument(Input):
    base: str | None = Field(max_length=100)
    """Revision that was edited; null: create a new loop with this id."""
    yaml: str = Field(max_length=MAX_YAML)
    """The loop as text, before the edit if `spec` is given."""
    spec: dict[str, Any] | None = None
    """The edited loop as data. `yaml` is changed to match it, and keeps comments and number formats
    elsewhere. Null: `yaml` is saved as it is."""
    strict: bool = False
    """Whether to refuse a draft with fields that cannot be read, instead of saving it."""
    edit_session: str | None = Field(default=None, max_length=64)
    """Id of an editing session, e.g. of a browser tab. Saves of one session within some time are
    one version; without an id, each save is a version."""


class WrittenDocument(Output):
    yaml: str
    """The text as it was saved; in a conflict, as it would have been saved."""
    spec: dict[str, Any] | None
    """The text as data; null if the request had `spec`."""
    check: CheckResult
    """Result of `POST /api/check` for this text."""


class SavedDocument(WrittenDocument):
    revision: str
    """Identifies the saved state; the `base` of the next edit."""


class DocumentConflict(Output):
    """Detail of the 409: both versions. Nothing was saved."""

    theirs: Loop
    mine: WrittenDocument


class LoopVersion(Output):
    version: int
    revision: str
    name: str
    label: str | None
    """Label that a user gave it; null if there is none."""
    reason: Literal["created", "edited", "restored"]
    restored_from: int | None
    """Number of the version that was restored; null for other versions."""
    runs: int
    """Number of runs that were started from exactly this version."""
    is_kept: bool
    """Whether it is kept permanently: it has a label or runs, or was created or restored. Of the
    other versions only the newest are kept."""
    started_at: datetime
    """Time of its first edit. All edits of one editing session are one version."""
    saved_at: datetime
    """Time of its last edit."""


class LoopVersionText(LoopVersion):
    yaml: str
    spec: dict[str, Any] | None


class VersionLabel(Input):
    label: str | None = Field(max_length=MAX_NAME)
    """New label; null removes it."""


class DiffLine(Output):
    kind: Literal["same", "added", "removed", "gap"]
    """`gap` stands for omitted lines that are the same in both texts."""
    text: str


class VersionDiff(Output):
    lines: list[DiffLine]
    """From the older text to the newer one; empty if they are the same."""
