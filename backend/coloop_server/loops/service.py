"""Saving loops and their history. A save says which revision it replaces, so that no tab
overwrites another."""

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from typing import Any

from sqlalchemy.orm import Session

from coloop_server import language
from coloop_server.database.tables import LoopRow, LoopVersionRow
from coloop_server.errors import Conflict, RevisionNeeded
from coloop_server.loops import repository
from coloop_server.loops.schemas import (
    MAX_NAME,
    DiffLine,
    Loop,
    LoopSummary,
    LoopText,
    LoopVersion,
    LoopVersionText,
    VersionDiff,
)

UNNAMED = "untitled"
EDIT_SESSION = timedelta(minutes=10)
"""Edits from one tab within this time after the first are merged into one version."""
KEPT_VERSIONS = 50
"""How many of the newest plain edits, without a label or a run, are kept."""


def create(session: Session, new: LoopText, loop_id: str | None = None) -> Loop:
    """Create a loop. An id chosen by the client is accepted only if it is unused."""
    return whole(add(session, new, language.require_document(new.yaml), loop_id))


def add(
    session: Session, new: LoopText, document: Mapping[str, Any], loop_id: str | None = None
) -> LoopRow:
    """Like `create`, for a text that is already parsed."""
    now = datetime.now(UTC)
    loop_id = loop_id or secrets.token_hex(8)
    known = session.get(LoopRow, loop_id)
    if known is not None:
        raise stale(known)
    row = LoopRow(
        id=loop_id,
        name=clean_name(new.name) or clean_name(document.get("name")) or UNNAMED,
        version=1,
        revision=new_revision(loop_id, 1, new.yaml),
        yaml=new.yaml,
        created_at=now,
        updated_at=now,
    )
    repository.add_loop(session, row)
    return row


def save(session: Session, loop_id: str, new: LoopText, if_match: str | None) -> Loop:
    """Replace the newest text. Saving an identical text has no effect."""
    row = require_revision(session, loop_id, if_match)
    edit(session, row, new, language.require_document(new.yaml))
    return whole(row)


def edit(session: Session, row: LoopRow, new: LoopText, document: Mapping[str, Any]) -> None:
    """Like `save`, for a row and a text that are already loaded and parsed.

    Edits of one session are merged: each save overwrites their version. A version with a label, a
    run or a restore is never overwritten; the edit starts a new one.
    """
    name = clean_name(new.name) or clean_name(document.get("name")) or row.name
    if name == row.name and new.yaml == row.yaml:
        return
    at = datetime.now(UTC)
    extends_version = new.edit_session is not None and repository.is_working(
        session, row, new.edit_session, since=at - EDIT_SESSION
    )
    version = row.version if extends_version else row.version + 1
    put(session, row, name=name, yaml=new.yaml, version=version, at=at)
    if extends_version:
        repository.rewrite_version(session, row)
    else:
        repository.add_version(session, row, reason="edited", edit_session=new.edit_session)
        repository.prune_versions(session, row.id, KEPT_VERSIONS)


def restore(session: Session, loop_id: str, version: int, if_match: str | None) -> Loop:
    """Make an earlier version the newest one. What was there stays in the history."""
    row = require_revision(session, loop_id, if_match)
    earlier = repository.get_version(session, loop_id, version)
    at = datetime.now(UTC)
    put(session, row, name=earlier.name, yaml=earlier.yaml, version=row.version + 1, at=at)
    repository.add_version(session, row, reason="restored", restored_from=version)
    return whole(row)


def label_version(session: Session, loop_id: str, version: int, label: str | None) -> LoopVersion:
    row = repository.get_version(session, loop_id, version)
    row.label = clean_name(label) or None
    return summary_of(row, repository.count_runs(session, loop_id, version))


def compare(session: Session, loop_id: str, version: int, to: int | None) -> VersionDiff:
    old = repository.get_version(session, loop_id, version).yaml
    if to is None:
        new = repository.get_loop(session, loop_id).yaml
    else:
        new = repository.get_version(session, loop_id, to).yaml
    return VersionDiff(lines=compare_texts(old, new))


def require_revision(session: Session, loop_id: str, if_match: str | None) -> LoopRow:
    row = repository.get_loop(session, loop_id)
    if read_etag(if_match) not in ("*", row.revision):
        raise stale(row)
    return row


def put(
    session: Session, row: LoopRow, *, name: str, yaml: str, version: int, at: datetime
) -> None:
    revision = new_revision(row.id, version, yaml)
    is_saved = repository.replace(
        session, row, name=name, yaml=yaml, version=version, revision=revision, at=at
    )
    if not is_saved:
        raise stale(row)


def stale(row: LoopRow) -> Conflict:
    return Conflict(
        "loop.stale",
        "the loop was saved elsewhere since you opened it; nothing was overwritten",
        whole(row).model_dump(mode="json"),
    )


def read_etag(text: str | None) -> str:
    if text is None or not text.strip():
        raise RevisionNeeded(
            "loop.revision_needed", "send the revision to replace in the header If-Match"
        )
    return text.strip().removeprefix("W/").strip('"')


def whole(row: LoopRow) -> Loop:
    summary = LoopSummary.model_validate(row)
    return Loop(**summary.model_dump(), yaml=row.yaml, spec=language.document(row.yaml))


def summary_of(row: LoopVersionRow, runs: int) -> LoopVersion:
    known = LoopVersion.model_fields.keys() - {"runs", "is_kept"}
    facts = {name: getattr(row, name) for name in known}
    is_kept = row.label is not None or row.reason != "edited" or runs > 0
    return LoopVersion(**facts, runs=runs, is_kept=is_kept)


def list_versions(
    session: Session, loop_id: str, *, limit: int, before: int | None
) -> list[LoopVersion]:
    repository.get_loop(session, loop_id)
    versions = repository.list_versions(session, loop_id, limit=limit, before=before)
    return [summary_of(row, runs) for row, runs in versions]


def whole_version(session: Session, loop_id: str, version: int) -> LoopVersionText:
    row = repository.get_version(session, loop_id, version)
    summary = summary_of(row, repository.count_runs(session, loop_id, version))
    return LoopVersionText(**summary.model_dump(), yaml=row.yaml, spec=language.document(row.yaml))


def new_revision(loop_id: str, version: int, yaml: str) -> str:
    text = f"{loop_id}\0{version}\0{yaml}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def clean_name(name: object) -> str:
    """A name on one line, without control characters."""
    text = name if isinstance(name, str) else ""
    printable = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text)
    return re.sub(r"\s+", " ", printable).strip()[:MAX_NAME]


def file_name(name: str) -> str:
    """A name for the downloaded file: safe in a header and on every file system."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-.")[:80].strip("-.")
    return f"{stem or 'loop'}.yaml"


CONTEXT = 3


def compare_texts(old: str, new: str) -> list[DiffLine]:
    """Changed lines with some context; empty for equal texts."""
    before, after = old.splitlines(), new.splitlines()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    lines: list[DiffLine] = []
    shown = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        first = group[0][1]
        if first > shown:
            lines.append(DiffLine(kind="gap", text=count_lines(first - shown)))
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                lines += told("same", before[start:end])
            else:
                lines += told("removed", before[start:end])
                lines += told("added", after[new_start:new_end])
        shown = group[-1][2]
    if lines and shown < len(before):
        lines.append(DiffLine(kind="gap", text=count_lines(len(before) - shown)))
    return lines


def told(kind: str, texts: list[str]) -> Iterator[DiffLine]:
    return (DiffLine.model_validate({"kind": kind, "text": text}) for text in texts)


def count_lines(count: int) -> str:
    return "1 line that is the same" if count == 1 else f"{count} lines that are the same"
