"""Requests and responses of the loop routes."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from coloop_server.checks.schemas import CheckResult
from coloop_server.schemas import MAX_YAML, Input, Output

MAX_NAME = 200


class LoopText(Input):
    yaml: str = Field(max_length=MAX_YAML)
    """The loop, as text. A draft may have errors, but it has to be readable as YAML."""
    name: str | None = Field(default=None, max_length=MAX_NAME)
    """What to call it. Default: the name in the text."""
    edit_session: str | None = Field(default=None, max_length=64)
    """Names the session that edits, such as a tab. Its saves are one version for a while; without
    it each save is a version."""


class LoopSummary(Output):
    id: str
    name: str
    version: int
    """Number of the newest version. Edits of one session are one version."""
    revision: str
    """Names exactly this saved state; a save sends it as `If-Match`."""
    created_at: datetime
    updated_at: datetime


class LoopHit(Output):
    """Where a search found its words: a loop by its name, or a node of it."""

    loop: str
    """The loop's id."""
    loop_name: str
    node: str | None
    """None where the loop itself is called so."""
    kind: str | None
    model: str | None
    """The model of the node, as the loop names it."""


class Loop(LoopSummary):
    yaml: str
    spec: dict[str, Any] | None
    """The text as data, in the words of the YAML; a draft with errors too."""


class EditDocument(Input):
    base: str | None = Field(max_length=100)
    """The revision that was edited; null makes a new loop with this id."""
    yaml: str = Field(max_length=MAX_YAML)
    """The loop as text."""
    spec: dict[str, Any] | None = None
    """The loop as it shall be: the text is changed to say so, comments and number formats elsewhere
    are kept. Without it the text is the loop."""
    strict: bool = False
    """Refuse a loop that is only a draft, one with fields that cannot be read, instead of saving
    it."""
    edit_session: str | None = Field(default=None, max_length=64)
    """As in a save of a text: edits of one session are one version for a while."""


class WrittenDocument(Output):
    yaml: str
    """The text as it was saved, or would have been."""
    spec: dict[str, Any] | None
    """The text as data; None where the request brought the data."""
    check: CheckResult
    """The same as of `POST /check` with this text."""


class SavedDocument(WrittenDocument):
    revision: str
    """Base of the next edit."""


class DocumentConflict(Output):
    """Detail of the 409: both versions. Nothing was saved."""

    theirs: Loop
    mine: WrittenDocument


class LoopVersion(Output):
    version: int
    revision: str
    name: str
    label: str | None
    """What a person called it."""
    reason: Literal["created", "edited", "restored"]
    restored_from: int | None
    """The version that was restored."""
    runs: int
    """Runs that were started from exactly this."""
    is_kept: bool
    """Whether it stays for good: it has a label or a run, or was created or restored. Of the
    others the newest stay."""
    started_at: datetime
    """Its first edit; all edits of an edit session are one version."""
    saved_at: datetime
    """Its last edit."""


class LoopVersionText(LoopVersion):
    yaml: str
    spec: dict[str, Any] | None


class VersionLabel(Input):
    label: str | None = Field(max_length=MAX_NAME)
    """What to call the version; null takes the label away."""


class DiffLine(Output):
    kind: Literal["same", "added", "removed", "gap"]
    """A gap stands for lines that are the same on both sides."""
    text: str


class VersionDiff(Output):
    lines: list[DiffLine]
    """From the older text to the newer one; empty where they are the same."""
