"""Catalog, checks, and reading and writing YAML over HTTP."""

import hashlib
from functools import lru_cache
from typing import Annotated

from fastapi import Header, Response

from coloop.plan.terms import Terms
from coloop.spec import presets
from coloop.spec.catalog import catalog
from coloop.spec.catalog_types import Catalog, PresetInfo
from coloop_server.checks import fitting, jobs, service
from coloop_server.checks.fitting_schemas import FitLoop, FitResult, PlaceResult
from coloop_server.checks.jobs import JobFile, JobInput
from coloop_server.checks.schemas import (
    CheckResult,
    DumpResult,
    DumpSpec,
    Fragment,
    LoopInput,
    ParseResult,
    ParseText,
    PatchResult,
    PatchText,
)
from coloop_server.checks.service import read_fragment
from coloop_server.dependencies import SettingsOf, SupervisorOf
from coloop_server.errors import router_of

router = router_of("checks")

IfNoneMatch = Annotated[str | None, Header(max_length=500)]


@lru_cache(maxsize=1)
def catalog_text() -> tuple[bytes, str]:
    """The catalog as JSON with its ETag; constant for a version of the program."""
    models = map(presets.model, presets.list_models())
    hardware = map(presets.hardware, presets.list_hardware())
    whole = catalog(architectures=map(_preset, models), hardware=map(_preset, hardware))
    body = whole.model_dump_json().encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:20]}"'


def _preset(preset: presets.ModelPreset | presets.HardwarePreset) -> PresetInfo:
    return PresetInfo(name=preset.name, title=preset.title, description=preset.description)


@router.get("/catalog", operation_id="getCatalog", response_model=Catalog)
def get_catalog(if_none_match: IfNoneMatch = None) -> Response:
    """The loop language for editors: node kinds, ports, JSON Schemas, algorithms and help."""
    body, etag = catalog_text()
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    known = {part.strip().removeprefix("W/") for part in (if_none_match or "").split(",")}
    if etag in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@router.post("/check", operation_id="checkLoop")
def check_loop(body: LoopInput, settings: SettingsOf, supervisor: SupervisorOf) -> CheckResult:
    """Findings, estimate and plan of a loop. Errors of the loop are findings, not HTTP errors."""
    result = service.check(body, settings)
    if result.plan is not None and result.missing is None:
        supervisor.warm()
    return result


@router.post("/spec/parse", operation_id="parseText")
def parse_text(body: ParseText) -> ParseResult:
    """Read a YAML text as data."""
    return service.read_text(body.yaml)


@router.post("/spec/fragment", operation_id="readFragment")
def read_fragment_text(body: ParseText) -> Fragment:
    """Read nodes and edges from a text that was pasted, which need not be a whole loop."""
    return read_fragment(body.yaml)


@router.post("/spec/patch", operation_id="patchText")
def patch_text(body: PatchText) -> PatchResult:
    """Change a YAML text and keep comments and number formats of the other parts."""
    return service.patch_text(body)


@router.post("/spec/dump", operation_id="dumpSpec")
def dump_spec(body: DumpSpec) -> DumpResult:
    """Write a loop as YAML text."""
    return DumpResult(yaml=service.dump_spec(body.spec))


@router.post("/fit", operation_id="fitLoop")
def fit_loop(body: FitLoop, settings: SettingsOf) -> FitResult:
    """Choose settings so that the loop fits a memory budget. What it learns and what is locked does
    not change."""
    return fitting.fit_loop(body, settings.roots)


@router.post("/terms", operation_id="explainNumbers")
def explain_numbers(body: LoopInput, settings: SettingsOf) -> Terms:
    """The formulas behind the estimate of a loop: for each number its values and their sources."""
    return service.terms(body, settings.roots)


@router.post("/place", operation_id="placeLoop")
def place_loop(body: LoopInput, settings: SettingsOf) -> PlaceResult:
    """Look for a faster placement of the loop on its GPUs, and recommend training backends."""
    return fitting.place_loop(body, settings.roots)


@router.post("/jobs", operation_id="writeJobFile")
def write_job_file(body: JobInput, settings: SettingsOf) -> JobFile:
    """The file that runs the loop on a cluster: machines and placement of its plan, secrets by
    name."""
    return jobs.job_file(body, settings.roots)
