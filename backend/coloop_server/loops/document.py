"""One edit of an open loop in one request: the text is written, checked and saved.

The text is read once; the check and the save work on what was read. It is checked first, so that
the transaction of the save is short.
"""

from sqlalchemy.orm import Session

from coloop.errors import SpecProblem
from coloop.spec.changes import diff
from coloop.spec.io import parse
from coloop.spec.presets import patched
from coloop_server import language
from coloop_server.checks.service import check_parsed, dump_spec
from coloop_server.database.tables import LoopRow
from coloop_server.errors import Conflict, Invalid
from coloop_server.loops import repository, service
from coloop_server.loops.schemas import (
    DocumentConflict,
    EditDocument,
    Loop,
    LoopText,
    SavedDocument,
    WrittenDocument,
)
from coloop_server.settings import Settings


def save(session: Session, loop_id: str, body: EditDocument, settings: Settings) -> SavedDocument:
    """Write, check and save an edit; raises `Conflict` with both versions where the base is no
    longer the newest revision."""
    text = write(body)
    parsed = parse(text)
    if parsed.document is None or (body.strict and parsed.spec is None):
        raise language.invalid("the loop cannot be read", parsed.diagnostics)
    written = WrittenDocument(
        yaml=text,
        spec=parsed.document if body.spec is None else None,
        check=check_parsed(parsed, settings),
    )
    new = LoopText(yaml=text, edit_session=body.edit_session)
    try:
        if body.base is None:
            row = service.add(session, new, parsed.document, loop_id)
        else:
            row = require_base(session, loop_id, body.base)
            service.edit(session, row, new, parsed.document)
    except Conflict as conflict:
        theirs = Loop.model_validate(conflict.body.detail)
        detail = DocumentConflict(theirs=theirs, mine=written).model_dump(mode="json")
        raise Conflict(conflict.body.code, conflict.body.message, detail) from conflict
    return SavedDocument(**dict(written), revision=row.revision)


def write(body: EditDocument) -> str:
    """The text of an edit. One that takes no changes is written anew, without its comments."""
    if body.spec is None:
        return body.yaml
    try:
        return patched(body.yaml, list(diff(language.require_document(body.yaml), body.spec)))
    except (Invalid, SpecProblem):
        return dump_spec(body.spec)


def require_base(session: Session, loop_id: str, base: str) -> LoopRow:
    row = repository.get_loop(session, loop_id)
    if row.revision != base:
        raise service.stale(row)
    return row
