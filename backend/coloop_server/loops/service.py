"""Saving loops. A save says which revision it replaces, so that no tab overwrites another."""

import hashlib
import re
import secrets
import unicodedata
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from coloop_server import language
from coloop_server.database.tables import LoopRow, LoopVersionRow
from coloop_server.errors import Conflict, RevisionNeeded
from coloop_server.loops import repository
from coloop_server.loops.schemas import (
    MAX_NAME,
    Loop,
    LoopSummary,
    LoopText,
    LoopVersion,
    LoopVersionText,
)

UNNAMED = "untitled"


def create(session: Session, new: LoopText) -> Loop:
    document = language.require_document(new.yaml)
    now = datetime.now(UTC)
    loop_id = secrets.token_hex(8)
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
    return whole(row)


def save(session: Session, loop_id: str, new: LoopText, if_match: str | None) -> Loop:
    """Save a new version. Saving what is there already changes nothing."""
    row = repository.get_loop(session, loop_id)
    expected = read_etag(if_match)
    if expected not in ("*", row.revision):
        raise stale(row)
    document = language.require_document(new.yaml)
    name = clean_name(new.name) or clean_name(document.get("name")) or row.name
    if name == row.name and new.yaml == row.yaml:
        return whole(row)
    revision = new_revision(loop_id, row.version + 1, new.yaml)
    at = datetime.now(UTC)
    if not repository.replace(session, row, name=name, yaml=new.yaml, revision=revision, at=at):
        raise stale(row)
    return whole(row)


def stale(row: LoopRow) -> Conflict:
    return Conflict(
        "loop.stale",
        "the loop was saved elsewhere since you opened it; nothing was overwritten",
        whole(row).model_dump(mode="json"),
    )


def read_etag(text: str | None) -> str:
    if text is None or not text.strip():
        raise RevisionNeeded(
            "loop.revision_needed", "send the revision that you replace as the header If-Match"
        )
    return text.strip().removeprefix("W/").strip('"')


def whole(row: LoopRow) -> Loop:
    summary = LoopSummary.model_validate(row)
    return Loop(**summary.model_dump(), yaml=row.yaml, spec=language.document(row.yaml))


def whole_version(row: LoopVersionRow) -> LoopVersionText:
    summary = LoopVersion.model_validate(row)
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
