"""Pages of runs: which, in which order, and where the next page begins.

A page goes on behind the last run of the one before, by what that run is sorted by and its id: runs
that come or go meanwhile move nothing.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Text,
    and_,
    cast,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.orm import Session

from coloop.runtime.run_files.events import RunStateName
from coloop_server.database.tables import RunRow, UtcDateTime
from coloop_server.errors import Invalid
from coloop_server.runs.repository import OUTLINE

NEVER = datetime.fromisoformat("9999-01-01T00:00:00+00:00")


class Sort(StrEnum):
    """What a list of runs is sorted by."""

    CREATED = "created"
    ENDED = "ended"
    NAME = "name"
    STATE = "state"
    STEP = "step"

    @property
    def is_rising(self) -> bool:
        return self in (Sort.NAME, Sort.STATE)

    def key(self) -> ColumnElement[Any]:
        """What is compared; never null. Runs that go on come before all that have ended."""
        match self:
            case Sort.CREATED:
                return RunRow.created_at.expression
            case Sort.ENDED:
                return func.coalesce(RunRow.ended_at, literal(NEVER, UtcDateTime()))
            case Sort.NAME:
                return func.lower(RunRow.name)
            case Sort.STATE:
                return RunRow.state.expression
            case Sort.STEP:
                return func.coalesce(RunRow.step, -1)

    def read(self, given: Any) -> ColumnElement[Any]:
        """A key as it stands in a cursor."""
        if self in (Sort.CREATED, Sort.ENDED):
            return literal(datetime.fromisoformat(given), UtcDateTime())
        if self is Sort.STEP:
            return literal(int(given), Integer())
        return literal(str(given), Text())


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    state: RunStateName | None = None
    loop_id: str | None = None
    tag: str | None = None
    search: str | None = None
    """Words, each in the name, the id, the state or a tag."""

    def conditions(self) -> list[ColumnElement[bool]]:
        wanted: list[ColumnElement[bool]] = []
        if self.state is not None:
            wanted.append(RunRow.state == self.state)
        if self.loop_id is not None:
            wanted.append(RunRow.loop_id == self.loop_id)
        tags = cast(RunRow.tags, Text)
        if self.tag is not None:
            wanted.append(tags.contains(json.dumps(self.tag), autoescape=True))
        for word in (self.search or "").split():
            columns = (RunRow.name, RunRow.id, RunRow.state, tags)
            wanted.append(or_(*(column.icontains(word, autoescape=True) for column in columns)))
        return wanted


@dataclass(frozen=True, slots=True)
class Page:
    rows: Sequence[RunRow]
    total: int
    """Of all pages."""
    next: str | None
    """Cursor of the next page; None where this is the last."""


def list_page(
    session: Session,
    wanted: Filter,
    *,
    limit: int,
    offset: int = 0,
    sort: Sort = Sort.CREATED,
    cursor: str | None = None,
) -> Page:
    """Runs without the texts of their loops."""
    conditions = wanted.conditions()
    total = session.scalars(select(func.count()).select_from(RunRow).where(*conditions)).one()
    key = sort.key()
    query = select(RunRow, key).options(OUTLINE).where(*conditions)
    if cursor is not None:
        query = query.where(behind(sort, key, cursor))
    order = (key.asc(), RunRow.id.asc()) if sort.is_rising else (key.desc(), RunRow.id.desc())
    found = session.execute(query.order_by(*order).limit(limit + 1).offset(offset)).all()
    rows = [row for row, _ in found[:limit]]
    has_more = len(found) > limit
    return Page(rows, total, write_cursor(sort, *found[limit - 1]) if has_more else None)


def behind(sort: Sort, key: ColumnElement[Any], cursor: str) -> ColumnElement[bool]:
    """Only what comes after the run that the cursor tells of."""
    try:
        told, given, run_id = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        value = sort.read(given)
        is_ours = told == sort.value and isinstance(run_id, str)
    except (ValueError, TypeError):
        is_ours = False
    if not is_ours:
        raise Invalid(
            "run.cursor",
            f"the cursor {cursor!r} does not belong to a list sorted by {sort}; start without one",
        )
    if sort.is_rising:
        return or_(key > value, and_(key == value, RunRow.id > run_id))
    return or_(key < value, and_(key == value, RunRow.id < run_id))


def write_cursor(sort: Sort, row: RunRow, key: Any) -> str:
    given = key.isoformat() if isinstance(key, datetime) else key
    text = json.dumps([sort.value, given, row.id])
    return base64.urlsafe_b64encode(text.encode()).decode()


def list_tags(session: Session) -> list[str]:
    """Every tag that a run has, each once."""
    texts = session.scalars(select(cast(RunRow.tags, Text)).distinct())
    return sorted({tag for text in texts for tag in json.loads(text)})
