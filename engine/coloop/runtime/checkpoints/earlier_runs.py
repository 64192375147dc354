"""Models that begin with the weights of an earlier run (`model: {type: run}`). The checkpoint is
determined once when a run begins and noted in its folder.

    run names a folder beside this one    that run, finished or not
    run is a loop's name                  the newest finished run of that loop, controls left out

`at: last` is the newest whole checkpoint, `at: best` the newest that was the best. The model is a
folder in Hugging Face format: it keeps its heads, a missing one is new, an adapter is merged. A
resumed run uses the same folder, or if that is gone, the shapes in its own checkpoint.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from coloop.data.files.marks import write_whole
from coloop.errors import ColoopError, ModelUnavailable
from coloop.runtime.checkpoints.checkpoint import Checkpoint, list_checkpoints
from coloop.runtime.checkpoints.run_folder import SPEC_FILE, RunRequest
from coloop.runtime.run_files.checkpoint_folders import CHECKPOINTS
from coloop.runtime.run_files.event_file import EVENT_FILE, events_of
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import owner_of
from coloop.spec.io import parse
from coloop.spec.model import PretrainedModel, RunModel
from coloop.spec.nodes import model_of
from coloop.spec.paths import with_parts

NOTE_FILE: Final = "earlier_runs.json"

Folders = Mapping[str, Path]
"""By node, the folder of its initial weights."""


def earlier_weights(request: RunRequest) -> Folders:
    """The model folders of the nodes that begin with an earlier run's weights.

    Raises:
        ModelUnavailable: there is no such run, checkpoint or node.
    """
    noted = {} if request.resume is None else _noted(request.resume)
    models = {node: model_of(section) for node, section in request.spec.nodes.items()}
    return {
        node: _folder(node, model, request, noted.get(node))
        for node, model in models.items()
        if isinstance(model, RunModel)
    }


def with_folders(spec: LoopSpec, folders: Folders) -> LoopSpec:
    if not folders:
        return spec
    nodes = dict(spec.nodes)
    for node, folder in folders.items():
        model = model_of(nodes[node])
        assert isinstance(model, RunModel)
        pretrained = PretrainedModel(
            type="pretrained", path=str(folder), lora=model.lora, dtype=model.dtype
        )
        nodes[node] = nodes[node].model_copy(update={"model": pretrained})
    return with_parts(spec, nodes=nodes)


def note_folders(run: Path, folders: Folders) -> None:
    if folders and not (run / NOTE_FILE).exists():
        text = json.dumps({node: str(folder) for node, folder in folders.items()})
        write_whole(run / NOTE_FILE, text)


def _noted(run: Path) -> dict[str, Path]:
    try:
        noted = json.loads((run / NOTE_FILE).read_text(encoding="utf-8"))
        return {node: Path(folder) for node, folder in noted.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ModelUnavailable(
            f"{run / NOTE_FILE} is damaged: it does not say which weights the run started with; "
            "remove it, and the runs that the loop names are looked up again"
        ) from error


def _folder(node: str, model: RunModel, request: RunRequest, noted: Path | None) -> Path:
    if noted is not None and noted.is_dir():
        return noted
    kept = None if request.resume is None else _own(request.resume, node)
    if kept is not None:
        return kept
    if noted is not None:
        raise ModelUnavailable(
            f"`{node}`: the run started with the weights in {noted}, which do not exist any more, "
            "and has no checkpoint of its own; restore them, or start a new run"
        )
    return _find(node, model, request)


def _own(run: Path, node: str) -> Path | None:
    """A folder of the run's own newest checkpoint with the same shapes."""
    for checkpoint in reversed(list_checkpoints(run / CHECKPOINTS)):
        folders = [path.parent for path in (checkpoint.path / node).rglob("config.json")]
        if folders:
            return max(folders, key=lambda folder: len(folder.parts))  # the base of an adapter
    return None


def _find(node: str, model: RunModel, request: RunRequest) -> Path:
    runs = request.runs_dir if request.resume is None else request.resume.parent
    run = _run_of(model.run, runs)
    if run is None:
        raise ModelUnavailable(
            f"`{node}`: `model.run: {model.run}`: there is no run {model.run!r} in {runs}, and no "
            f"finished run of a loop with that name; run it first (`coloop run {model.run}`), or "
            "name another"
        )
    checkpoint = _checkpoint_of(node, model, run)
    owner = _owner_in(run, model.node)
    held = sorted(config.parent.name for config in checkpoint.path.glob("*/config.json"))
    if owner not in held:
        raise ModelUnavailable(
            f"`{node}`: `model.node: {model.node}`: the run {run.name} has no weights of "
            f"{model.node!r}; it has {', '.join(held) or 'none'}"
        )
    return (checkpoint.path / owner).resolve()


def _run_of(name: str, runs: Path) -> Path | None:
    """The folder of a run by its id, or of the newest finished run of a loop by its name."""
    if (runs / name / SPEC_FILE).is_file():
        return runs / name
    finished = [(at, folder) for folder in _runs_named(name, runs) if (at := _finished(folder))]
    return max(finished)[1] if finished else None


def _runs_named(name: str, runs: Path) -> Iterator[Path]:
    for path in runs.glob(f"*/{SPEC_FILE}"):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        spec = parse(text).spec if name in text else None
        if spec is not None and spec.name == name and not _is_control(spec):
            yield path.parent


def _is_control(spec: LoopSpec) -> bool:
    """Whether a run was made to compare with, and lacks a part of the loop whose name it has."""
    return spec.run.control is not None and spec.run.control.kind != "full"


def _finished(run: Path) -> str | None:
    """When a run finished, according to its events; None if it did not."""
    last = None
    for event in events_of(run / EVENT_FILE):
        if event["type"] == "run.state":
            last = event
    if last is None or last.get("state") != RunStateName.FINISHED.value:
        return None
    return str(last.get("at"))


def _checkpoint_of(node: str, model: RunModel, run: Path) -> Checkpoint:
    whole = list_checkpoints(run / CHECKPOINTS)
    chosen = [checkpoint for checkpoint in whole if checkpoint.best or model.at != "best"]
    if chosen:
        return chosen[-1]
    if whole:
        raise ModelUnavailable(
            f"`{node}`: `model.at: best`: no checkpoint of the run {run.name} is marked as its "
            "best; set what is best in its loop (`run.best`), or use `at: last`"
        )
    raise ModelUnavailable(
        f"`{node}`: `model.run: {model.run}`: the run {run.name} has no intact checkpoint; `coloop "
        f"runs check {run.name}` shows what is wrong with it"
    )


def _owner_in(run: Path, node: str) -> str | None:
    try:
        spec = parse((run / SPEC_FILE).read_text(encoding="utf-8")).spec
    except (OSError, UnicodeDecodeError, ColoopError):
        return node
    return owner_of(spec, node) if spec is not None and node in spec.nodes else None
