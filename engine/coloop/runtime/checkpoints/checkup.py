"""Checks a run folder (`coloop runs check`): reads all of it, reports every file that is not what a
run writes, and writes nothing.

It does not detect changed numbers in an event that is still valid, which no resume reads, or in a
valid loop without a plan.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from coloop.data.files.marks import Marks
from coloop.errors import CheckpointError
from coloop.plan.types import Plan
from coloop.runtime.checkpoints.checkpoint import STEP, every_checkpoint
from coloop.runtime.checkpoints.checkpoint_manager import last_written
from coloop.runtime.checkpoints.pinned_settings import MACHINE_FILE, PLAN_FILE
from coloop.runtime.checkpoints.run_folder import ORIGIN_FILE, SPEC_FILE, links_in
from coloop.runtime.checkpoints.storage import Storage, is_address
from coloop.runtime.control import CONTROL_FILE
from coloop.runtime.reporting.report import REPORT_FILE
from coloop.runtime.run_files.checkpoint_folders import CHECKPOINTS, MANIFEST
from coloop.runtime.run_files.event_file import EVENT_FILE, GAUGE_LINES, lines_of, torn_bytes
from coloop.runtime.run_files.run_lock import holder
from coloop.spec.graph import LoopSpec
from coloop.spec.io import content_hash, parse

WHOLE_JSON = ("gauges.json", REPORT_FILE, MACHINE_FILE, ORIGIN_FILE)
ALWAYS = (PLAN_FILE, MACHINE_FILE, ORIGIN_FILE)
"""Written before the first event."""


@dataclass(frozen=True, slots=True)
class Finding:
    level: Literal["damaged", "note"]
    path: str
    """Relative to the run folder, or a URL."""
    message: str


def check_run(folder: Path) -> Iterator[Finding]:
    """Problems of a run folder, and notes about it."""
    is_live = (writer := holder(folder)) is not None
    if writer is not None:
        message = f"it is being written by {writer.words}; files that change may look damaged"
        yield _note(".", message)
    odd = [
        path.name
        for path in sorted(folder.iterdir())
        if path.exists() and not path.is_file() and not path.is_dir()
    ]
    if odd:  # pipes and devices: nothing is read where reading may never end
        yield from (_damaged(name, "it is neither a file nor a folder; remove it") for name in odd)
        return
    for link in links_in(folder):
        message = f"it is a link to {link.readlink()}; a run writes into its own folder only"
        yield _damaged(str(link.relative_to(folder)), message)
    spec, problem = _spec_in(folder)
    if problem is not None:
        yield _damaged(SPEC_FILE, problem)
    yield from _plan_of(folder, spec)
    for name in ALWAYS:
        if (folder / EVENT_FILE).exists() and not (folder / name).exists():
            yield _damaged(name, "it is missing, although a run writes it at its start")
    for name in WHOLE_JSON:
        if (problem := _json_problem(folder / name)) is not None:
            yield _damaged(name, problem)
    yield from _events(folder, is_live=is_live)
    for path in sorted((folder / "samples").glob("*.jsonl")):
        yield from _lines(folder, path, is_live=is_live)
    for name in (GAUGE_LINES, CONTROL_FILE):
        yield from _lines(folder, folder / name, is_live=is_live)
    yield from _checkpoints(folder)
    if spec is not None:
        yield from _copies(folder, spec)


def _spec_in(folder: Path) -> tuple[LoopSpec | None, str | None]:
    try:
        parsed = parse((folder / SPEC_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return None, f"it cannot be read: {error}"
    if parsed.spec is None:
        first = next(iter(parsed.diagnostics), None)
        return None, f"it is not a loop: {(first.describe() if first else 'it is empty')}"
    return parsed.spec, None


def _plan_of(folder: Path, spec: LoopSpec | None) -> Iterator[Finding]:
    path = folder / PLAN_FILE
    if not path.exists():
        return
    try:
        plan = Plan.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        yield _damaged(PLAN_FILE, f"it cannot be read: {str(error).splitlines()[0]}")
        return
    if spec is not None and plan.spec_hash != content_hash(spec):
        yield _damaged(SPEC_FILE, f"it is not the loop of {PLAN_FILE}, which the run used")


def _json_problem(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return f"it cannot be read: {error}"
    return None if isinstance(content, dict) else "it is not a JSON object"


def _events(folder: Path, *, is_live: bool) -> Iterator[Finding]:
    path = folder / EVENT_FILE
    if not path.exists():
        if (folder / PLAN_FILE).exists():
            yield _damaged(EVENT_FILE, "the run has started, but its events are missing")
        return
    last, attempt = 0, 1
    for number, event in lines_of(path):
        if event is None:
            yield _damaged(EVENT_FILE, f"line {number} is not an event")
            last = last + 1 if last else 0
            continue
        seq, own = event["seq"], event.get("attempt")
        if seq != last + 1:
            yield _damaged(EVENT_FILE, f"line {number} has seq {seq} after {last}")
        if not isinstance(own, int) or own < attempt:
            yield _damaged(EVENT_FILE, f"line {number} has attempt {own!r} after {attempt}")
        last, attempt = seq, own if isinstance(own, int) else attempt
        sample = event.get("path") if event["type"] == "sample" else None
        if isinstance(sample, str) and not (folder / sample).is_file():
            yield _damaged(sample, f"event {seq} reports it, but it is missing")
    torn = 0 if is_live else torn_bytes(path)
    if torn:
        yield _damaged(EVENT_FILE, f"its last {torn} bytes are incomplete")


def _lines(folder: Path, path: Path, *, is_live: bool) -> Iterator[Finding]:
    name = str(path.relative_to(folder))
    if not path.exists():
        return
    try:
        data = path.read_bytes()
    except OSError as error:
        yield _damaged(name, f"it cannot be read: {error.strerror}")
        return
    for number, line in enumerate(data.split(b"\n"), 1):
        if line and not _is_object(line):
            yield _damaged(name, f"line {number} is not a JSON object")
    if not is_live and (not data or not data.endswith(b"\n")):
        yield _damaged(name, "it is incomplete: it does not end with a line break")


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _checkpoints(folder: Path) -> Iterator[Finding]:
    checkpoints, marks = folder / CHECKPOINTS, Marks()
    if checkpoints.is_symlink() and not checkpoints.is_dir():
        yield _damaged(CHECKPOINTS, f"it points to {checkpoints.readlink()}, which does not exist")
        return
    with_manifest = every_checkpoint(checkpoints)
    for checkpoint in with_manifest:
        problem = checkpoint.damage(marks)
        if problem is not None and checkpoint.path.exists():
            yield _damaged(f"{CHECKPOINTS}/{checkpoint.path.name}", problem)
    named = {checkpoint.path for checkpoint in with_manifest}
    for path in sorted(checkpoints.glob("*")) if checkpoints.is_dir() else ():
        name = f"{CHECKPOINTS}/{path.name}"
        if STEP.fullmatch(path.name) and path not in named and path.exists():
            yield _damaged(name, f"it has no {MANIFEST}")
        elif path.name.startswith(".step-"):
            yield _note(name, "it was left by a writer that was killed; the next start removes it")
    last = last_written(folder)
    if last is not None and not any(checkpoint.step >= last for checkpoint in with_manifest):
        yield _damaged(
            f"{CHECKPOINTS}/step-{last}",
            "the events report it, but neither it nor a newer one exists",
        )


def _copies(folder: Path, spec: LoopSpec) -> Iterator[Finding]:
    if spec.run.storage is None or not is_address(spec.run.storage):
        return
    try:
        storage = Storage(spec.run.storage, folder.name)
        steps = storage.steps()
    except CheckpointError as error:
        yield _note(spec.run.storage, f"its copies were not checked: {error}")
        return
    for step in steps:
        if (problem := storage.damage(step)) is not None:
            yield _damaged(f"{storage.url}/checkpoints/step-{step}", problem)


_damaged, _note = partial(Finding, "damaged"), partial(Finding, "note")
