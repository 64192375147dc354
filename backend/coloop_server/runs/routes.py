"""Runs over HTTP and WebSocket."""

import json
from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query, Response, WebSocket
from fastapi import Path as PathParameter
from fastapi.responses import PlainTextResponse
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool

from coloop.explain.experiment import Experiment, markdown_of
from coloop.runtime.run_files.checkpoint_folders import whole_checkpoints
from coloop.runtime.run_files.events import RunStateName
from coloop_server import language
from coloop_server.dependencies import SessionOf, SettingsOf, SupervisorOf
from coloop_server.errors import NotFound, router_of
from coloop_server.runs import controls, experiments, repository, service
from coloop_server.runs.charts import LAST_STEP, curves_of
from coloop_server.runs.families import read_family
from coloop_server.runs.gauges import GaugeLines, read_gauges
from coloop_server.runs.outcomes import read_outcomes
from coloop_server.runs.repository import Filter, Sort, list_page, list_tags
from coloop_server.runs.samples import SampleReader
from coloop_server.runs.schemas import (
    AcknowledgeAlert,
    ChangeRun,
    CompareValues,
    ControlChoices,
    CurvesOfRuns,
    EditRun,
    ForkRun,
    MoveRun,
    NewControl,
    NewRun,
    ResumeRun,
    Run,
    RunCheckpoints,
    RunControls,
    RunCurves,
    RunEvents,
    RunFamily,
    RunGauges,
    RunMarks,
    RunOutcomes,
    RunReport,
    RunSpec,
    Samples,
    SampleSteps,
    SpecChanges,
    StopRun,
    TokensOfSamples,
)
from coloop_server.runs.stream import NO_SUCH_RUN, Stream
from coloop_server.runs.supervisor import Supervisor
from coloop_server.runs.watch import Watch
from coloop_server.session.visitors import chosen_protocol, is_signed_in

router = router_of("runs", "/runs")

RunId = Annotated[str, PathParameter(max_length=128)]
After = Annotated[int, Query(ge=0, description="only events after this `seq`")]
MAX_SEQ = 2**53
TOTAL = "X-Total-Count"
NEXT = "X-Next-Cursor"
MAX_RUNS = 50
"""Most runs in one request for curves."""
RUNS = TypeAdapter(list[Run])

Metrics = Annotated[
    Sequence[Annotated[str, Query(max_length=400)]],
    Query(max_length=64, description="`node.metric`, or a metric of all nodes"),
]
First = Annotated[int, Query(alias="from", ge=0, lt=2**31, description="first step")]
Last = Annotated[int, Query(alias="to", ge=0, lt=2**31, description="last step")]
BucketCount = Annotated[int, Query(ge=2, le=2000, description="most points per curve")]
Learner = Annotated[
    str | None,
    Query(max_length=64, description="main learner; default: the one that the metric measures"),
]
SCAN_PATIENCE_SECONDS = 1.0
"""How long a list waits for new run folders; later ones appear in the next list."""


def watch_of(run_id: RunId, supervisor: SupervisorOf) -> Watch:
    """The run's files, read to the end; no transaction is open meanwhile."""
    return supervisor.open(run_id)


WatchOf = Annotated[Watch, Depends(watch_of)]


@router.post("", operation_id="createRun", status_code=201)
def create_run(body: NewRun, settings: SettingsOf, supervisor: SupervisorOf) -> Run:
    """Queue a run. It starts as soon as the server has room for it."""
    return service.create(supervisor, settings, body)


@router.get("", operation_id="listRuns", response_model=list[Run])
def list_runs(
    session: SessionOf,
    supervisor: SupervisorOf,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    offset: Annotated[int, Query(ge=0, lt=2**31, description="number of runs to skip")] = 0,
    cursor: Annotated[
        str | None, Query(max_length=1000, description="`X-Next-Cursor` of the last page")
    ] = None,
    sort: Sort = Sort.CREATED,
    state: RunStateName | None = None,
    loop_id: Annotated[str | None, Query(max_length=64)] = None,
    tag: Annotated[str | None, Query(max_length=40)] = None,
    search: Annotated[
        str | None,
        Query(max_length=200, description="words in name, id, state or tags"),
    ] = None,
) -> Response:
    """Runs, newest first by default. The header `X-Total-Count` has their number, `X-Next-Cursor`
    the `cursor` of the next page."""
    supervisor.scanner.wait_for_new(SCAN_PATIENCE_SECONDS)
    wanted = Filter(state=state, loop_id=loop_id, tag=tag, search=search)
    page = list_page(session, wanted, limit=limit, offset=offset, sort=sort, cursor=cursor)
    headers = {TOTAL: str(page.total)} | ({NEXT: page.next} if page.next is not None else {})
    body = RUNS.dump_json(service.shown(session, page.rows))
    return Response(body, media_type="application/json", headers=headers)


@router.get("/tags", operation_id="listRunTags")
def list_run_tags(session: SessionOf) -> list[str]:
    """All tags of runs."""
    return list_tags(session)


@router.get("/series", operation_id="listRunSeries", response_model=CurvesOfRuns)
def list_run_series(
    supervisor: SupervisorOf,
    runs: Annotated[list[str], Query(max_length=MAX_RUNS)],
    metrics: Metrics = (),
    first: First = 0,
    last: Last = LAST_STEP,
    buckets: BucketCount = 400,
) -> Response:
    """Curves of several runs in buckets of the same width, so that they can be compared."""
    watches = {run_id: supervisor.open(run_id) for run_id in dict.fromkeys(runs)}
    curves = curves_of(watches, metrics, first=first, last=last, buckets=buckets)
    return Response(curves.model_dump_json(), media_type="application/json")


@router.get("/outcomes", operation_id="listRunOutcomes")
def list_run_outcomes(
    supervisor: SupervisorOf, runs: Annotated[list[str], Query(max_length=MAX_RUNS)]
) -> RunOutcomes:
    """The main metric of each run, with its first, best and last reading."""
    return RunOutcomes(outcomes=read_outcomes(supervisor, runs))


@router.get("/{run_id}", operation_id="getRun")
def get_run(run_id: RunId, session: SessionOf) -> Run:
    return service.show(session, repository.get_outline(session, run_id))


@router.patch("/{run_id}", operation_id="changeRun")
def change_run(run_id: RunId, body: ChangeRun, session: SessionOf) -> Run:
    """Change the name and tags of a run, or the priority of a queued run."""
    return service.show(session, service.change(session, run_id, body))


@router.post("/{run_id}/move", operation_id="moveRun")
def move_run(run_id: RunId, body: MoveRun, session: SessionOf) -> Run:
    """Move a queued run before another one, or to the end of the queue."""
    return service.show(session, service.move(session, run_id, body.before))


@router.post("/{run_id}/alerts/acknowledge", operation_id="acknowledgeRunAlert")
def acknowledge_run_alert(run_id: RunId, body: AcknowledgeAlert, session: SessionOf) -> Run:
    """Mark an alert as seen."""
    return service.show(session, service.acknowledge(session, run_id, body.seq))


@router.get("/{run_id}/changes", operation_id="compareRun")
def compare_run(
    run_id: RunId,
    session: SessionOf,
    run: Annotated[str | None, Query(max_length=128, description="id of another run")] = None,
    loop: Annotated[str | None, Query(max_length=64, description="id of a saved loop")] = None,
    version: Annotated[
        int | None, Query(ge=1, lt=2**31, description="version of that loop")
    ] = None,
) -> SpecChanges:
    """Differences from the loop of this run to that of another run, or to a saved loop."""
    changes = service.compare_with(session, run_id, run=run, loop=loop, version=version)
    return SpecChanges(changes=changes)


@router.post("/{run_id}/changes", operation_id="compareRunValues")
def compare_run_values(run_id: RunId, body: CompareValues, session: SessionOf) -> SpecChanges:
    """Differences from the loop of this run to the same loop with new values."""
    return SpecChanges(changes=service.compare_values(session, run_id, body.set))


@router.get("/{run_id}/series", operation_id="getRunSeries", response_model=RunCurves)
def get_run_series(
    run_id: RunId,
    watch: WatchOf,
    metrics: Metrics = (),
    first: First = 0,
    last: Last = LAST_STEP,
    buckets: BucketCount = 400,
) -> Response:
    """Curves of a run in buckets. They contain all events up to `seq` of the response."""
    curves = curves_of({run_id: watch}, metrics, first=first, last=last, buckets=buckets)
    return Response(curves.runs[0].model_dump_json(), media_type="application/json")


@router.get("/{run_id}/marks", operation_id="listRunMarks", response_model=RunMarks)
def list_run_marks(watch: WatchOf) -> Response:
    """The latest states, phases, checkpoints, edits, alerts and diagnostics: what a page shows
    besides curves."""
    seq = watch.log.last_seq
    texts = watch.log.read_places([(event.start, event.size) for event in watch.rare.upto(seq)])
    body = f'{{"events":[{",".join(texts)}],"seq":{seq}}}'
    return Response(body, media_type="application/json")


@router.delete("/{run_id}", operation_id="deleteRun", status_code=204)
def delete_run(
    run_id: RunId, session: SessionOf, settings: SettingsOf, supervisor: SupervisorOf
) -> None:
    """Delete an ended run and its folder; 409 if it has not ended."""
    service.delete(session, settings, supervisor, run_id)


@router.post("/{run_id}/stop", operation_id="stopRun", status_code=202)
def stop_run(
    run_id: RunId,
    session: SessionOf,
    supervisor: SupervisorOf,
    body: StopRun | None = None,
) -> Run:
    """Ask a run to write a checkpoint and stop. A queued run leaves the queue."""
    supervisor.wake_after(session)
    row = service.stop(session, run_id)
    supervisor.ask_stop(run_id, at_once=body is not None and body.force)
    return service.show(session, row)


@router.post("/{run_id}/resume", operation_id="resumeRun", status_code=202)
def resume_run(
    run_id: RunId,
    session: SessionOf,
    settings: SettingsOf,
    supervisor: SupervisorOf,
    body: ResumeRun | None = None,
) -> Run:
    """Queue an ended run for another attempt from its last checkpoint."""
    supervisor.wake_after(session)
    given = body or ResumeRun()
    row = service.resume(session, settings, run_id, force=given.force, trust=given.trust)
    return service.show(session, row)


@router.post("/{run_id}/fork", operation_id="forkRun", status_code=201)
def fork_run(
    run_id: RunId,
    settings: SettingsOf,
    supervisor: SupervisorOf,
    body: ForkRun | None = None,
) -> Run:
    """Queue a new run that starts from a checkpoint of this one."""
    return service.fork(supervisor, settings, run_id, body or ForkRun())


@router.post("/{run_id}/edit", operation_id="editRun", status_code=202)
def edit_run(
    run_id: RunId,
    body: EditRun,
    session: SessionOf,
    settings: SettingsOf,
    supervisor: SupervisorOf,
) -> Run:
    """Change settings of a run in progress."""
    return service.show(session, service.edit(session, settings, supervisor, run_id, body))


@router.get("/{run_id}/events", operation_id="listRunEvents", response_model=RunEvents)
def list_run_events(
    watch: WatchOf,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=10000)] = 1000,
    step: Annotated[
        int | None, Query(ge=0, lt=2**31, description="begin with the first event of this step")
    ] = None,
    before: Annotated[
        int | None, Query(ge=1, description="the last events before this `seq`")
    ] = None,
) -> Response:
    """Events of a run, in order."""
    log = watch.log
    if before is not None:
        end = min(before - 1, log.last_seq)
        after, limit = max(after, end - limit, 0), min(limit, max(end - after, 0))
    elif step is not None:
        after = log.first_of_step(step, watch.steps.before(step)) - 1
    events = log.read(min(after, MAX_SEQ), limit)
    last = log.last_seq
    texts = ",".join(text for _, text in events)
    has_more = "true" if events and events[-1][0] < last else "false"
    body = f'{{"events":[{texts}],"last_seq":{last},"has_more":{has_more}}}'
    return Response(body, media_type="application/json")


@router.get("/{run_id}/gauges", operation_id="listRunGauges", response_model=RunGauges)
def list_run_gauges(
    watch: WatchOf,
    seq: Annotated[int, Query(ge=0, description="`seq` of the event to begin at")],
    limit: Annotated[int, Query(ge=1, le=32)] = 16,
) -> Response:
    """Gauges of a run at one of its events, and at the end of the steps after it."""
    last = watch.log.last_seq
    lines = read_gauges(watch.folder.gauge_lines, seq, limit)
    texts, has_more = lines or GaugeLines([], has_more=False)
    body = f'{{"gauges":[{",".join(texts)}],"last_seq":{last},"has_more":{json.dumps(has_more)},'
    body += f'"is_recorded":{json.dumps(lines is not None)}}}'
    return Response(body, media_type="application/json")


@router.get("/{run_id}/samples", operation_id="listRunSamples")
def list_run_samples(
    watch: WatchOf,
    step: Annotated[int | None, Query(ge=0, description="rows of this step only")] = None,
    node: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=2000)] = 200,
) -> Samples:
    """Sample rows of one step, or of the newest steps."""
    reader = SampleReader(watch.folder, watch.log, watch.samples)
    return Samples(
        rows=reader.read(step=step, node=node, limit=limit), steps=watch.samples.all_steps()
    )


@router.get("/{run_id}/samples/steps", operation_id="listRunSampleSteps")
def list_run_sample_steps(watch: WatchOf) -> SampleSteps:
    """Steps with recorded samples."""
    return SampleSteps(steps=watch.samples.all_steps())


@router.get("/{run_id}/samples/tokens", operation_id="listRunSampleTokens")
def list_run_sample_tokens(
    watch: WatchOf,
    step: Annotated[int, Query(ge=0)],
    row: Annotated[str | None, Query(max_length=400, description="id of one row")] = None,
) -> TokensOfSamples:
    """Tokens of recorded rows of a step, as the loss saw them."""
    reader = SampleReader(watch.folder, watch.log, watch.samples)
    return TokensOfSamples(step=step, rows=reader.tokens_of(step, row))


@router.get("/{run_id}/checkpoints", operation_id="listRunCheckpoints")
def list_run_checkpoints(watch: WatchOf) -> RunCheckpoints:
    """Checkpoints from which the run can be resumed or forked."""
    return RunCheckpoints(steps=sorted(whole_checkpoints(watch.folder.path)))


@router.get("/{run_id}/report", operation_id="getRunReport")
def get_run_report(run_id: RunId, watch: WatchOf, session: SessionOf) -> RunReport:
    """Estimated and measured times of a run, and its controls; 404 before the run has ended."""
    report = watch.folder.report()
    if not isinstance(report, dict):
        raise NotFound("run.no_report", "the run has no report; it is written when a run ends")
    told = RunReport.model_validate(report)
    return told.model_copy(update={"controls": controls.references(session, run_id)})


@router.get("/{run_id}/experiment", operation_id="getRunExperiment")
def get_run_experiment(run_id: RunId, supervisor: SupervisorOf) -> Experiment:
    """A run as an experiment: result, controls, seeds, time, cost, samples, and what to do next."""
    return experiments.read_experiment(supervisor, run_id)


@router.get(
    "/{run_id}/experiment.md",
    operation_id="getRunExperimentAsMarkdown",
    response_class=PlainTextResponse,
)
def get_run_experiment_as_markdown(run_id: RunId, supervisor: SupervisorOf) -> PlainTextResponse:
    """The same report as Markdown."""
    text = markdown_of(experiments.read_experiment(supervisor, run_id))
    return PlainTextResponse(text, media_type="text/markdown; charset=utf-8")


@router.get("/{run_id}/controls/choices", operation_id="listControlChoices")
def list_control_choices(
    run_id: RunId, supervisor: SupervisorOf, settings: SettingsOf, learner: Learner = None
) -> ControlChoices:
    """What each kind of control would change in the loop of a run."""
    return controls.choices_of(supervisor, settings, run_id, learner)


@router.get("/{run_id}/controls", operation_id="listRunControls")
def list_run_controls(
    run_id: RunId, supervisor: SupervisorOf, learner: Learner = None
) -> RunControls:
    """The controls of a run, with curves, means and spreads over seeds."""
    return controls.show(supervisor, run_id, learner)


@router.post("/{run_id}/controls", operation_id="createRunControls", status_code=201)
def create_run_controls(
    run_id: RunId, body: NewControl, settings: SettingsOf, supervisor: SupervisorOf
) -> RunControls:
    """Queue a control of a finished run over seeds. Runs that exist are not repeated."""
    return controls.start(supervisor, settings, run_id, body)


@router.get("/{run_id}/family", operation_id="getRunFamily")
def get_run_family(run_id: RunId, supervisor: SupervisorOf) -> RunFamily:
    """The tree of forks that a run belongs to."""
    return read_family(supervisor, run_id)


@router.get("/{run_id}/spec", operation_id="getRunSpec")
def get_run_spec(run_id: RunId, session: SessionOf) -> RunSpec:
    """The loop that the run was started with."""
    yaml = service.text_of(session, run_id)
    return RunSpec(yaml=yaml, spec=language.document(yaml))


@router.websocket("/{run_id}/stream")
async def stream_run(socket: WebSocket, run_id: str, after: str = "0") -> None:
    """Replay from `after`, then live; messages as in `StreamMessage`."""
    state = socket.app.state
    supervisor: Supervisor = state.supervisor
    await socket.accept(chosen_protocol(socket))
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
