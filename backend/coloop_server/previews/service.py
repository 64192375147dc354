"""From what a client asks to the job that a process is given, and back. What the loop names is held
against the folders that the server may use, as before a run."""

from typing import Any, TypeVar, get_args

from pydantic import BaseModel

from coloop_server.errors import Invalid, NotAllowed
from coloop_server.language import require_spec
from coloop_server.previews.schemas import (
    ROLLOUT,
    SHORT,
    Asked,
    AskScores,
    Done,
    Job,
    Limits,
    RolledOutRows,
    RowsFrom,
    RunRows,
)
from coloop_server.remote_code import FIELD, NOT_ALLOWED, remote_code
from coloop_server.runs.samples import SampleReader
from coloop_server.runs.supervisor import Supervisor
from coloop_server.settings import Settings

Answer = TypeVar("Answer", bound=BaseModel)


def job_of(asked: Asked, settings: Settings, supervisor: Supervisor) -> Job:
    spec = require_spec(asked.yaml)
    settings.roots.check_spec(spec)
    if found := remote_code(spec):
        raise NotAllowed(
            NOT_ALLOWED,
            f"{found[0]}: a preview does not run Python code from a model's folder; set "
            f"`{FIELD}` to false",
        )
    job = Job(asked=asked, root=str(settings.roots.base_for(spec)))
    match asked:
        case AskScores(rows=RunRows() as wanted):
            return _with_samples(job, wanted, asked.learner, settings, supervisor)
        case AskScores(rows=RolledOutRows(run=str(run))):
            return job.model_copy(update={"weights_from": str(supervisor.open(run).folder.path)})
    return job


def limits_of(job: Job) -> Limits:
    asked = job.asked
    return _limits_with(type(asked.rows)) if isinstance(asked, AskScores) else SHORT


def seconds_by_rows() -> dict[str, float]:
    """How long scores of rows may take, by the type of these."""
    kinds: tuple[type[BaseModel], ...] = get_args(get_args(RowsFrom)[0])
    return {
        get_args(kind.model_fields["type"].annotation)[0]: _limits_with(kind).seconds
        for kind in kinds
    }


def _limits_with(rows: type[BaseModel]) -> Limits:
    return ROLLOUT if rows is RolledOutRows else SHORT


def _with_samples(
    job: Job, wanted: RunRows, learner: str, settings: Settings, supervisor: Supervisor
) -> Job:
    watch = supervisor.open(wanted.run)
    reader = SampleReader(watch.folder, watch.log, watch.samples)
    rows = reader.read(step=wanted.step, node=learner, limit=wanted.count)
    told: dict[str, Any] = {
        "samples": [row.model_dump(mode="json", exclude_none=True) for row in rows],
        "step": rows[0].step if rows else None,
    }
    text = watch.folder.spec_text()
    if text is not None:
        spec = require_spec(text)
        if not any(settings.roots.outside(spec)):
            told |= {"sampled_by": text, "sampled_in": str(settings.roots.base_for(spec))}
    return job.model_copy(update=told)


def answer_of(said: bytes, kind: type[Answer]) -> Answer:
    """The answer in what a process said; it ran nobody's code but its own."""
    done = Done.model_validate_json(said)
    if done.answer is None:
        raise Invalid(done.code, done.message, done.detail or None)
    return kind.model_validate(done.answer)
