"""The report of a run as an experiment, with the runs of the same loop and its controls."""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from coloop.explain.experiment import Experiment, RunRecord, experiment_of, record_of
from coloop.explain.experiment.record import read_rows
from coloop.explain.experiment.related import (
    FinishedRun,
    arms_of_run,
    measured_by,
    siblings_of,
    spec_of,
)
from coloop.runtime.run_files.checkpoint_folders import whole_checkpoints
from coloop.runtime.run_files.event_file import event_of
from coloop.spec.graph import LoopSpec
from coloop_server import language
from coloop_server.private import open_plain
from coloop_server.runs import repository, service
from coloop_server.runs.comparing import compare
from coloop_server.runs.folder import RunFolder, Stamp, stamp_of
from coloop_server.runs.supervisor import Supervisor

KEPT = 256
"""Runs whose records are kept in memory."""


def read_experiment(supervisor: Supervisor, run_id: str) -> Experiment:
    """The report of a run, which may still be in progress. No transaction is open while files are
    read."""
    with supervisor.sessions() as session:
        row = repository.get_run(session, run_id)
        text = service.text_of(session, run_id)
        spec = language.require_spec(text)
        named = repository.list_finished_naming(session, spec.name)
        others = [(other.id, other.yaml) for other in named if other.id != run_id]
        parent = row.parent_id
        before = None if parent is None else repository.find_outline(session, parent)
        changes = [] if before is None else compare(service.text_of(session, before.id), text)
    folder = supervisor.open(run_id).folder
    own = FinishedRun(run=run_id, spec=spec, record=_record(folder, measured_by(spec, spec)))
    related = list(_finished(supervisor, others, spec))
    report = folder.report()
    return experiment_of(
        run_id,
        spec,
        own.record,
        report=report if isinstance(report, dict) else {},
        rows=lambda path: _rows(folder, path),
        kept=list(whole_checkpoints(folder.path)),
        siblings=siblings_of(spec, related),
        arms=arms_of_run(own, related),
        parent=parent,
        changes=[change.words for change in changes],
    )


def _finished(
    supervisor: Supervisor, others: list[tuple[str, str]], base: LoopSpec
) -> Iterator[FinishedRun]:
    for run, text in others:
        spec = spec_of(text)
        if spec is not None and spec.name == base.name:
            record = _record(supervisor.open(run).folder, measured_by(base, spec))
            yield FinishedRun(run=run, spec=spec, record=record)


def _record(folder: RunFolder, metric: str | None) -> RunRecord:
    stamp = stamp_of(folder.events)
    return RunRecord() if stamp is None else _read(folder.events, stamp, metric)


@lru_cache(maxsize=KEPT)
def _read(path: Path, stamp: Stamp, metric: str | None) -> RunRecord:
    """`stamp` is part of the key: a file that has grown is read again."""
    return record_of(_events(path), also=metric)


def _events(path: Path) -> Iterator[dict[str, Any]]:
    with open_plain(path, os.O_RDONLY) as file:
        for line in file:
            event = event_of(line) if line.endswith(b"\n") else None
            if event is not None:
                yield event


def _rows(folder: RunFolder, path: str) -> list[dict[str, Any]]:
    return [] if folder.inside(path) is None else read_rows(folder.path, path)
