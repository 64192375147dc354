"""Previews over HTTP. They end with the request: a client that goes away ends what it asked for."""

from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from coloop_server.dependencies import SettingsOf, SupervisorOf
from coloop_server.errors import router_of
from coloop_server.previews import service
from coloop_server.previews.queue import PreviewQueue
from coloop_server.previews.schemas import (
    Asked,
    AskOverlap,
    AskRows,
    AskScores,
    AskTokens,
    DatasetPage,
    Overlap,
    PreviewLimits,
    Scores,
    TokenizedRows,
)
from coloop_server.runs.supervisor import Supervisor
from coloop_server.settings import Settings

router = router_of("previews", "/previews")
Answer = TypeVar("Answer", bound=BaseModel)


@router.post("/scores", operation_id="previewScores")
async def preview_scores(
    body: AskScores, request: Request, settings: SettingsOf, supervisor: SupervisorOf
) -> Scores:
    """What the rewards of a learner say of rows. What is wrong with a reward is part of the
    answer."""
    return await previewed(body, request, settings, supervisor, Scores)


@router.get("/limits", operation_id="getPreviewLimits")
def get_preview_limits() -> PreviewLimits:
    """How long what is asked may take."""
    return PreviewLimits(seconds=service.seconds_by_rows())


@router.post("/rows", operation_id="previewRows")
async def preview_rows(
    body: AskRows, request: Request, settings: SettingsOf, supervisor: SupervisorOf
) -> DatasetPage:
    """A page of a dataset, and what each column is used for."""
    return await previewed(body, request, settings, supervisor, DatasetPage)


@router.post("/tokens", operation_id="previewTokens")
async def preview_tokens(
    body: AskTokens, request: Request, settings: SettingsOf, supervisor: SupervisorOf
) -> TokenizedRows:
    """Rows as the tokens that a model reads, which of them are learned, and how long rows are."""
    return await previewed(body, request, settings, supervisor, TokenizedRows)


@router.post("/overlap", operation_id="previewOverlap")
async def preview_overlap(
    body: AskOverlap, request: Request, settings: SettingsOf, supervisor: SupervisorOf
) -> Overlap:
    """Rows that two datasets share."""
    return await previewed(body, request, settings, supervisor, Overlap)


@router.post("/ready", operation_id="preparePreviews", status_code=204)
async def prepare_previews(request: Request) -> None:
    """Load the engine for the previews that will come; answers when it is loaded."""
    queue: PreviewQueue = request.app.state.previews
    await queue.prepare()


async def previewed(
    asked: Asked,
    request: Request,
    settings: Settings,
    supervisor: Supervisor,
    kind: type[Answer],
) -> Answer:
    job = await run_in_threadpool(service.job_of, asked, settings, supervisor)
    queue: PreviewQueue = request.app.state.previews

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    said = await queue.ask(job.model_dump_json().encode(), service.limits_of(job), gone)
    return await run_in_threadpool(service.answer_of, said, kind)
