"""Loops over HTTP."""

from typing import Annotated, Literal, TypeVar

from fastapi import Header, Path, Query, Response

from coloop_server.dependencies import SessionOf, SettingsOf, SupervisorOf
from coloop_server.errors import router_of
from coloop_server.loops import document, repository, search, service
from coloop_server.loops.schemas import (
    EditDocument,
    Loop,
    LoopHit,
    LoopSummary,
    LoopText,
    LoopVersion,
    LoopVersionText,
    SavedDocument,
    VersionDiff,
    VersionLabel,
)

router = router_of("loops", "/loops")

LoopId = Annotated[str, Path(max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
Version = Annotated[int, Path(ge=1, lt=2**31)]
Limit = Annotated[int, Query(ge=1, le=1000)]
IfMatch = Annotated[str | None, Header(max_length=100, description="revision to replace")]
IfNoneMatch = Annotated[Literal["*"] | None, Header(description="`*` makes a new loop")]
TOTAL = "X-Total-Count"
YAML = "application/yaml"
Saved = TypeVar("Saved", Loop, SavedDocument)


def tagged(saved: Saved, response: Response) -> Saved:
    """The response with its revision as ETag."""
    response.headers["ETag"] = f'"{saved.revision}"'
    return saved


@router.get("", operation_id="listLoops")
def list_loops(session: SessionOf, limit: Limit = 500) -> list[LoopSummary]:
    """Saved loops, without their texts."""
    return [LoopSummary.model_validate(row) for row in repository.list_loops(session, limit)]


@router.post("", operation_id="createLoop", status_code=201)
def create_loop(body: LoopText, session: SessionOf, response: Response) -> Loop:
    return tagged(service.create(session, body), response)


@router.post("/import", operation_id="importLoop", status_code=201)
def import_loop(body: LoopText, session: SessionOf, response: Response) -> Loop:
    """Create a loop from a file. It never replaces a loop, and runs no code of the file."""
    return create_loop(body, session, response)


@router.get("/search", operation_id="searchLoops")
def search_loops(
    session: SessionOf,
    q: Annotated[str, Query(min_length=1, max_length=100)],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> list[LoopHit]:
    """Find loops by name, and nodes by name, kind and model. All words must match; the last saved
    loops come first."""
    return search.find(session, q, limit)


@router.get("/{loop_id}", operation_id="getLoop")
def get_loop(loop_id: LoopId, session: SessionOf, response: Response) -> Loop:
    return tagged(service.whole(repository.get_loop(session, loop_id)), response)


@router.put("/{loop_id}", operation_id="saveLoop")
def save_loop(
    loop_id: LoopId,
    body: LoopText,
    session: SessionOf,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Loop:
    """Replace the revision given in `If-Match`; 409 with the current loop if it is not the newest.
    With `If-None-Match: *` a new loop is created with this id."""
    if if_none_match is not None:
        return tagged(service.create(session, body, loop_id), response)
    return tagged(service.save(session, loop_id, body, if_match), response)


@router.put("/{loop_id}/document", operation_id="saveDocument")
def save_document(
    loop_id: LoopId,
    body: EditDocument,
    session: SessionOf,
    settings: SettingsOf,
    supervisor: SupervisorOf,
    response: Response,
) -> SavedDocument:
    """Save one edit: change the text, check the loop, and replace the revision `base`.

    409 with both versions (`theirs`, the current loop, and `mine`, changed and checked) if `base`
    is not the newest revision; 422 with the findings if the text cannot be read.
    """
    saved = document.save(session, loop_id, body, settings)
    if saved.check.plan is not None and saved.check.missing is None:
        supervisor.warm()
    return tagged(saved, response)


@router.delete("/{loop_id}", operation_id="deleteLoop", status_code=204)
def delete_loop(loop_id: LoopId, session: SessionOf) -> None:
    repository.delete_loop(session, repository.get_loop(session, loop_id))


@router.get(
    "/{loop_id}/yaml",
    operation_id="downloadLoop",
    response_class=Response,
    responses={200: {"content": {YAML: {"schema": {"type": "string"}}}}},
)
def download_loop(loop_id: LoopId, session: SessionOf) -> Response:
    """The loop as a YAML file."""
    row = repository.get_loop(session, loop_id)
    disposition = f'attachment; filename="{service.file_name(row.name)}"'
    return Response(
        row.yaml,
        media_type=f"{YAML}; charset=utf-8",
        headers={"Content-Disposition": disposition},
    )


@router.get("/{loop_id}/versions", operation_id="listLoopVersions")
def list_loop_versions(
    loop_id: LoopId,
    session: SessionOf,
    response: Response,
    limit: Limit = 200,
    before: Annotated[int | None, Query(ge=1, lt=2**31, description="only older versions")] = None,
) -> list[LoopVersion]:
    """Versions of a loop, newest first. The header `X-Total-Count` has their number."""
    versions = service.list_versions(session, loop_id, limit=limit, before=before)
    response.headers[TOTAL] = str(repository.count_versions(session, loop_id))
    return versions


@router.get("/{loop_id}/versions/{version}", operation_id="getLoopVersion")
def get_loop_version(loop_id: LoopId, version: Version, session: SessionOf) -> LoopVersionText:
    return service.whole_version(session, loop_id, version)


@router.patch("/{loop_id}/versions/{version}", operation_id="labelLoopVersion")
def label_loop_version(
    loop_id: LoopId, version: Version, body: VersionLabel, session: SessionOf
) -> LoopVersion:
    """Set or remove the label of a version. Versions with a label are kept permanently."""
    return service.label_version(session, loop_id, version, body.label)


@router.get("/{loop_id}/versions/{version}/diff", operation_id="compareLoopVersion")
def compare_loop_version(
    loop_id: LoopId,
    version: Version,
    session: SessionOf,
    to: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
) -> VersionDiff:
    """Differences, line by line, between this version and version `to`; by default the current text
    of the loop."""
    return service.compare(session, loop_id, version, to)


@router.post("/{loop_id}/versions/{version}/restore", operation_id="restoreLoopVersion")
def restore_loop_version(
    loop_id: LoopId,
    version: Version,
    session: SessionOf,
    response: Response,
    if_match: IfMatch = None,
) -> Loop:
    """Make the text of this version the newest one. `If-Match` names the revision that it
    replaces."""
    return tagged(service.restore(session, loop_id, version, if_match), response)
