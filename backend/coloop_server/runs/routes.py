"""Runs over HTTP and WebSocket."""

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, WebSocket
from fastapi import Path as PathParameter
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from coloop.events import RunStateName
from coloop_server import language
from coloop_server.dependencies import SessionOf, SettingsOf, SupervisorOf
from coloop_server.errors import NotFound
from coloop_server.runs import repository, service
from coloop_server.runs.samples import read_samples
from coloop_server.runs.schemas import (
    EditRun,
    ForkRun,
    ImportRun,
    NewRun,
    ResumeRun,
    Run,
    RunEvents,
    RunSpec,
    Samples,
    StopRun,
)
from coloop_server.runs.stream import NO_SUCH_RUN, Stream
from coloop_server.runs.supervisor import Supervisor
from coloop_server.runs.watch import Watch

router = APIRouter(prefix="/runs", tags=["runs"])

RunId = Annotated[str, PathParameter(max_length=128)]
After = Annotated[int, Query(ge=0, description="`seq` of the last event that is known already")]
MAX_SEQ = 2**53


def open_watch(session: Session, supervisor: Supervisor, run_id: str) -> Watch:
    """The files of a run, read up to now."""
    row = repository.get_run(session, run_id)
    watch = supervisor.watch(row.id, Path(row.folder))
    watch.poll()
    return watch


@router.post("", operation_id="createRun", status_code=201)
def create_run(body: NewRun, session: SessionOf, settings: SettingsOf) -> Run:
    """Queue a run; the supervisor starts it as soon as a place is free."""
    return Run.model_validate(service.create(session, settings, body))


@router.get("", operation_id="listRuns")
def list_runs(
    session: SessionOf,
    supervisor: SupervisorOf,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    state: RunStateName | None = None,
    loop_id: Annotated[str | None, Query(max_length=64)] = None,
) -> list[Run]:
    supervisor.scan()
    rows = repository.list_runs(session, limit=limit, state=state, loop_id=loop_id)
    return [Run.model_validate(row) for row in rows]


@router.post("/import", operation_id="importRun", status_code=201)
def import_run(
    body: ImportRun, session: SessionOf, settings: SettingsOf, supervisor: SupervisorOf
) -> Run:
    row = service.import_run(session, settings, body.path)
    supervisor.take_up(row)
    return Run.model_validate(row)


@router.get("/{run_id}", operation_id="getRun")
def get_run(run_id: RunId, session: SessionOf) -> Run:
    return Run.model_validate(repository.get_run(session, run_id))


@router.post("/{run_id}/stop", operation_id="stopRun", status_code=202)
def stop_run(
    run_id: RunId,
    session: SessionOf,
    supervisor: SupervisorOf,
    body: StopRun | None = None,
) -> Run:
    row = service.stop(session, run_id)
    supervisor.ask_stop(run_id, at_once=body is not None and body.force)
    return Run.model_validate(row)


@router.post("/{run_id}/resume", operation_id="resumeRun", status_code=202)
def resume_run(
    run_id: RunId,
    session: SessionOf,
    settings: SettingsOf,
    body: ResumeRun | None = None,
) -> Run:
    force = body is not None and body.force
    return Run.model_validate(service.resume(session, settings, run_id, force=force))


@router.post("/{run_id}/fork", operation_id="forkRun", status_code=201)
def fork_run(
    run_id: RunId,
    session: SessionOf,
    settings: SettingsOf,
    body: ForkRun | None = None,
) -> Run:
    return Run.model_validate(service.fork(session, settings, run_id, body or ForkRun()))


@router.post("/{run_id}/edit", operation_id="editRun", status_code=202)
def edit_run(
    run_id: RunId,
    body: EditRun,
    session: SessionOf,
    settings: SettingsOf,
    supervisor: SupervisorOf,
) -> Run:
    return Run.model_validate(service.edit(session, settings, supervisor, run_id, body))


@router.get("/{run_id}/events", operation_id="listRunEvents", response_model=RunEvents)
def list_run_events(
    run_id: RunId,
    session: SessionOf,
    supervisor: SupervisorOf,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=10000)] = 1000,
) -> Response:
    """Events as they stand in the file; they are not read into models and written out again."""
    log = open_watch(session, supervisor, run_id).log
    found = log.read(min(after, MAX_SEQ), limit)
    last = log.last_seq
    texts = ",".join(text for _, text in found)
    has_more = "true" if found and found[-1][0] < last else "false"
    body = f'{{"events":[{texts}],"last_seq":{last},"has_more":{has_more}}}'
    return Response(body, media_type="application/json")


@router.get("/{run_id}/samples", operation_id="listRunSamples")
def list_run_samples(
    run_id: RunId,
    session: SessionOf,
    supervisor: SupervisorOf,
    step: Annotated[int | None, Query(ge=0)] = None,
    node: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=2000)] = 200,
) -> Samples:
    watch = open_watch(session, supervisor, run_id)
    return read_samples(watch, step=step, node=node, limit=limit)


@router.get("/{run_id}/report", operation_id="getRunReport")
def get_run_report(run_id: RunId, session: SessionOf, supervisor: SupervisorOf) -> dict[str, Any]:
    report = open_watch(session, supervisor, run_id).folder.report()
    if not isinstance(report, dict):
        raise NotFound("run.no_report", "the run has no report; it is written when a run ends")
    return report


@router.get("/{run_id}/spec", operation_id="getRunSpec")
def get_run_spec(run_id: RunId, session: SessionOf, supervisor: SupervisorOf) -> RunSpec:
    folder = open_watch(session, supervisor, run_id).folder
    yaml = folder.spec_text() or repository.get_run(session, run_id).yaml
    return RunSpec(yaml=yaml, spec=language.document(yaml))


@router.websocket("/{run_id}/stream")
async def stream_run(socket: WebSocket, run_id: str, after: str = "0") -> None:
    """Replay from `after`, then live; messages as in `StreamMessage`."""
    state = socket.app.state
    supervisor: Supervisor = state.supervisor
    await socket.accept()
    folder = await run_in_threadpool(supervisor.folder_of, run_id)
    if folder is None:
        await socket.close(NO_SUCH_RUN, "no such run")
        return
    stream = Stream(
        socket,
        run_id,
        supervisor.watch(run_id, folder),
        state.sessions,
        after=int(after) if after.isdecimal() and len(after) < 16 else 0,
        send_seconds=state.settings.send_seconds,
    )
    await stream.serve(supervisor.hub)
