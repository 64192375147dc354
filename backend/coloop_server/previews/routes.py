"""Previews over HTTP: from what a client asks to the job that a process is given, and back.

They end with the request: a client that goes away ends what it asked for. What the loop names is
held against the folders that the server may use, as before a run.
"""

from typing import Annotated, Any, TypeVar, get_args

from fastapi import Depends, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from coloop_server.dependencies import PreviewsOf, SettingsOf, SupervisorOf
from coloop_server.errors import Invalid, NotAllowed, router_of
from coloop_server.language import require_spec
from coloop_server.previews.schemas import (
    ROLLOUT,
    SHORT,
    Asked,
    AskOverlap,
    AskRows,
    AskScores,
    AskTokens,
    DatasetPage,
    Done,
    Job,
    Limits,
    Overlap,
    PreviewLimits,
    RolledOutRows,
    RowsFrom,
    RunRows,
    Scores,
    TokenizedRows,
)
from coloop_server.remote_code import FIELD, NOT_ALLOWED, remote_code
from coloop_server.runs.samples import SampleReader
from coloop_server.runs.supervisor import Supervisor
from coloop_server.settings import Settings

router = router_of("previews", "/previews")
Answer = TypeVar("Answer", bound=BaseModel)


class Preview:
    """Dependencies of a preview."""

    def __init__(
        self,
        request: Request,
        settings: SettingsOf,
        supervisor: SupervisorOf,
        queue: PreviewsOf,
    ) -> None:
        self.request = request
        self.settings = settings
        self.supervisor = supervisor
        self.queue = queue

    async def of(self, asked: Asked, kind: type[Answer]) -> Answer:
        """Run a job, in its turn. Only the service's own code runs in the process that answers."""
        job = await run_in_threadpool(job_of, asked, self.settings, self.supervisor)
        limits = limits_of(type(asked.rows)) if isinstance(asked, AskScores) else SHORT
        answer = await self.queue.ask(job.model_dump_json().encode(), limits, self.gone)
        done = await run_in_threadpool(Done.model_validate_json, answer)
        if done.answer is None:
            raise Invalid(done.code, done.message, done.detail or None)
        return await run_in_threadpool(kind.model_validate, done.answer)

    async def gone(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass


PreviewOf = Annotated[Preview, Depends()]


@router.post("/scores", operation_id="previewScores")
async def preview_scores(body: AskScores, preview: PreviewOf) -> Scores:
    """Scores and rewards of some rows. Errors of a reward function are part of the response."""
    return await preview.of(body, Scores)


@router.get("/limits", operation_id="getPreviewLimits")
def get_preview_limits() -> PreviewLimits:
    """How long previews can take."""
    kinds: tuple[type[BaseModel], ...] = get_args(get_args(RowsFrom)[0])
    return PreviewLimits(
        seconds={
            get_args(kind.model_fields["type"].annotation)[0]: limits_of(kind).seconds
            for kind in kinds
        }
    )


@router.post("/rows", operation_id="previewRows")
async def preview_rows(body: AskRows, preview: PreviewOf) -> DatasetPage:
    """Rows of a dataset, and what its columns are used for."""
    return await preview.of(body, DatasetPage)


@router.post("/tokens", operation_id="previewTokens")
async def preview_tokens(body: AskTokens, preview: PreviewOf) -> TokenizedRows:
    """Rows of a dataset as tokens, which of them are trained, and how long the rows are."""
    return await preview.of(body, TokenizedRows)


@router.post("/overlap", operation_id="previewOverlap")
async def preview_overlap(body: AskOverlap, preview: PreviewOf) -> Overlap:
    """Rows that two datasets share."""
    return await preview.of(body, Overlap)


@router.post("/ready", operation_id="preparePreviews", status_code=204)
async def prepare_previews(queue: PreviewsOf) -> None:
    """Load what previews need. Returns when it is loaded; the next preview is then faster."""
    await queue.prepare()


def limits_of(rows: type[BaseModel]) -> Limits:
    return ROLLOUT if rows is RolledOutRows else SHORT


def job_of(asked: Asked, settings: Settings, supervisor: Supervisor) -> Job:
    spec = require_spec(asked.yaml)
    settings.roots.check_spec(spec)
    if fields := remote_code(spec):
        raise NotAllowed(
            NOT_ALLOWED,
            f"{fields[0]}: a preview does not run Python code from a model's folder; set "
            f"`{FIELD}` to false",
        )
    job = Job(asked=asked, root=str(settings.roots.base_for(spec)))
    match asked:
        case AskScores(rows=RunRows() as wanted):
            return _with_samples(job, wanted, asked.learner, settings, supervisor)
        case AskScores(rows=RolledOutRows(run=str(run))):
            return job.model_copy(update={"weights_from": str(supervisor.open(run).folder.path)})
    return job


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
