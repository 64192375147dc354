"""Trees of forks: the first run, the runs that start from its checkpoints, and theirs."""

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy.orm import Session

from coloop.runtime.run_files.events import RunStateName
from coloop_server.database.tables import RunRow
from coloop_server.runs import repository
from coloop_server.runs.comparing import compare
from coloop_server.runs.folder import RunFolder
from coloop_server.runs.outcomes import outcome_of
from coloop_server.runs.schemas import FamilyRun, RunFamily
from coloop_server.runs.supervisor import Supervisor


def read_family(supervisor: Supervisor, run_id: str) -> RunFamily:
    """The tree that a run belongs to. No transaction is open while files are read."""
    with supervisor.sessions() as session:
        rows = {row.id: row for row in _tree(session, _first(session, run_id))}
        session.expunge_all()
    return RunFamily(runs=[_shown(supervisor, row, rows) for row in rows.values()])


def _first(session: Session, run_id: str) -> RunRow:
    row = repository.get_run(session, run_id)
    seen = {row.id}
    while row.parent_id is not None and row.parent_id not in seen:
        before = session.get(RunRow, row.parent_id)
        if before is None:
            break
        seen.add(before.id)
        row = before
    return row


def _tree(session: Session, first: RunRow) -> list[RunRow]:
    """Parents before their forks, at most `MOST_RELATED` runs."""
    found, ids = [first], {first.id}
    level = [first.id]
    while level and len(found) < repository.MOST_RELATED:
        below = [row for row in repository.list_children(session, level) if row.id not in ids]
        found += below
        level = [row.id for row in below]
        ids.update(level)
    return found[: repository.MOST_RELATED]


def _shown(supervisor: Supervisor, row: RunRow, rows: Mapping[str, RunRow]) -> FamilyRun:
    folder = RunFolder(Path(row.folder))
    text = _text(row)
    parent = rows.get(row.parent_id or "")
    origin = folder.parent()
    changes = [] if parent is None else compare(_text(parent), text)
    return FamilyRun(
        run=row.id,
        name=row.name,
        state=RunStateName(row.state),
        parent=None if parent is None else parent.id,
        from_step=None if origin is None else origin.step,
        step=row.step,
        changes=[change.words for change in changes],
        outcome=outcome_of(supervisor, row.id, text),
    )


def _text(row: RunRow) -> str:
    return RunFolder(Path(row.folder)).spec_text() or row.yaml
