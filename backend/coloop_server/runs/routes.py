"""Runs over HTTP and WebSocket."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response, WebSocket
from fastapi import Path as PathParameter
from starlette.concurrency import run_in_threadpool

from coloop.events import RunStateName
from coloop_server import language
from coloop_server.dependencies import SessionOf, SettingsOf, SupervisorOf
from coloop_server.errors import NotFound
from coloop_server.runs import removal, repository, service
from coloop_server.runs.folder import RunFolder
from coloop_server.runs.samples import SampleReader
from coloop_server.runs.schemas import (
    EditRun,
    ForkRun,
    ImportRun,
    NewRun,
    RenameRun,
    ResumeRun,
    Run,
    RunEvents,
    RunReport,
    RunSpec,
    Samples,
    SampleSteps,
    StopRun,
)
from coloop_server.runs.stream import NO_SUCH_RUN, Stream
from coloop_server.runs.supervisor import Supervisor
from coloop_server.runs.watch import Watch
from coloop_server.session.visitors import is_signed_in

router = APIRouter(prefix="/runs", tags=["runs"])

RunId = Annotated[str, PathParameter(max_length=128)]
After = Annotated[int, Query(ge=0, description="`seq` of the last event that is known already")]
MAX_SEQ = 2**53
TOTAL = "X-Total-Count"
SCAN_PATIENCE_SECONDS = 1.0
"""How long a list waits for run folders that are new; longer ones come with the next list."""


def watch_of(run_id: RunId, supervisor: SupervisorOf) -> Watch:
    """The files of the run, read up to now; no transaction is open meanwhile."""
    return supervisor.open(run_id)


WatchOf = Annotated[Watch, Depends(watch_of)]


@router.post("", operation_id="createRun", status_code=201)
def create_run(
    body: NewRun, session: SessionOf, settings: SettingsOf, supervisor: SupervisorOf
) -> Run:
    """Queue a run; the supervisor starts it as soon as a place is free."""
    supervisor.wake_after(session)
    return Run.model_validate(service.create(session, settings, body))


@router.get("", operation_id="listRuns")
def list_runs(
    session: SessionOf,
    supervisor: SupervisorOf,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    offset: Annotated[int, Query(ge=0, lt=2**31, description="runs to pass over")] = 0,
    state: RunStateName | None = None,
    loop_id: Annotated[str | None, Query(max_length=64)] = None,
    search: Annotated[
        str | None, Query(max_length=200, description="words in the name, the id or the state")
    ] = None,
) -> list[Run]:
    """The newest first. The header X-Total-Count says how many there are in all."""
    supervisor.scanner.wait_for_look(SCAN_PATIENCE_SECONDS)
    rows, total = repository.list_runs(
        session, limit=limit, offset=offset, state=state, loop_id=loop_id, search=search
    )
    response.headers[TOTAL] = str(total)
    return [Run.model_validate(row) for row in rows]


@router.post("/import", operation_id="importRun", status_code=201)
def import_run(body: ImportRun, settings: SettingsOf, supervisor: SupervisorOf) -> Run:
    run_id = supervisor.import_folder(settings.roots.check(body.path, "path"))
    with supervisor.sessions() as session:
        return Run.model_validate(repository.get_outline(session, run_id))


@router.get("/{run_id}", operation_id="getRun")
def get_run(run_id: RunId, session: SessionOf) -> Run:
    return Run.model_validate(repository.get_outline(session, run_id))


@router.patch("/{run_id}", operation_id="renameRun")
def rename_run(run_id: RunId, body: RenameRun, session: SessionOf) -> Run:
    return Run.model_validate(service.rename(session, run_id, body.name))


@router.delete("/{run_id}", operation_id="deleteRun", status_code=204)
def delete_run(
    run_id: RunId, session: SessionOf, settings: SettingsOf, supervisor: SupervisorOf
) -> None:
    """Remove an ended run with its folder; 409 while it goes on."""
    removal.delete(session, settings, supervisor, run_id)


@router.post("/{run_id}/stop", operation_id="stopRun", status_code=202)
def stop_run(
    run_id: RunId,
    session: SessionOf,
    supervisor: SupervisorOf,
    body: StopRun | None = None,
) -> Run:
    supervisor.wake_after(session)
    row = service.stop(session, run_id)
    supervisor.ask_stop(run_id, at_once=body is not None and body.force)
    return Run.model_validate(row)


@router.post("/{run_id}/resume", operation_id="resumeRun", status_code=202)
def resume_run(
    run_id: RunId,
    session: SessionOf,
    settings: SettingsOf,
    supervisor: SupervisorOf,
    body: ResumeRun | None = None,
) -> Run:
    supervisor.wake_after(session)
    given = body or ResumeRun()
    row = service.resume(session, settings, run_id, force=given.force, trust=given.trust)
    return Run.model_validate(row)


@router.post("/{run_id}/fork", operation_id="forkRun", status_code=201)
def fork_run(
    run_id: RunId,
    session: SessionOf,
    settings: SettingsOf,
    supervisor: SupervisorOf,
    body: ForkRun | None = None,
) -> Run:
    supervisor.wake_after(session)
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
    watch: WatchOf,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=10000)] = 1000,
) -> Response:
    """Events as they stand in the file; they are not read into models and written out again."""
    log = watch.log
    found = log.read(min(after, MAX_SEQ), limit)
    last = log.last_seq
    texts = ",".join(text for _, text in found)
    has_more = "true" if found and found[-1][0] < last else "false"
    body = f'{{"events":[{texts}],"last_seq":{last},"has_more":{has_more}}}'
    return Response(body, media_type="application/json")


@router.get("/{run_id}/samples", operation_id="listRunSamples")
def list_run_samples(
    watch: WatchOf,
    step: Annotated[int | None, Query(ge=0, description="rows of this step only")] = None,
    node: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=2000)] = 200,
) -> Samples:
    """Rows of the newest steps, or of one; only the steps that are given are read."""
    reader = SampleReader(watch.folder, watch.log, watch.samples)
    return Samples(
        rows=reader.read(step=step, node=node, limit=limit), steps=watch.samples.all_steps()
    )


@router.get("/{run_id}/samples/steps", operation_id="listRunSampleSteps")
def list_run_sample_steps(watch: WatchOf) -> SampleSteps:
    """The steps that samples were kept of; reads none of them."""
    return SampleSteps(steps=watch.samples.all_steps())


@router.get("/{run_id}/report", operation_id="getRunReport")
def get_run_report(watch: WatchOf) -> RunReport:
    report = watch.folder.report()
    if not isinstance(report, dict):
        raise NotFound("run.no_report", "the run has no report; it is written when a run ends")
    return RunReport.model_validate(report)


@router.get("/{run_id}/spec", operation_id="getRunSpec")
def get_run_spec(run_id: RunId, session: SessionOf) -> RunSpec:
    row = repository.get_run(session, run_id)
    yaml = RunFolder(Path(row.folder)).spec_text() or row.yaml
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
        is_allowed=lambda: is_signed_in(socket, state.tickets),
    )
    await stream.serve(supervisor.hub)
