"""`coloop export`: the trained weights of a run as a model folder in Hugging Face format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from coloop.cli.app import Run, RunsDir
from coloop.cli.watch import run_folder
from coloop.errors import ColoopError
from coloop.models.folder import (
    ADAPTER_FILES,
    BASE_FOLDER,
    CONFIG,
    dtype_in,
    is_adapter,
    link_tree,
    save_hf,
    written_aside,
)
from coloop.models.pretrained import load_pretrained


def export_command(
    run: Run,
    node: Annotated[str, typer.Argument(help="Node whose weights to export.")],
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not exist.")],
    at: Annotated[
        Literal["last", "best"],
        typer.Option(help="Export the last checkpoint, or the best by `run.best`."),
    ] = "last",
    runs_dir: RunsDir = Path("runs"),
) -> None:
    """Export the trained weights of a node as a model in Hugging Face format. Adapters are merged,
    and also saved separately beside it."""
    console = Console(soft_wrap=True)
    folder = run_folder(console, run, runs_dir)
    try:
        _export(folder, node, out, at)
        console.print(f"written: {out}")
    except ColoopError as error:
        console.print(str(error))
        raise typer.Exit(1) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of a node in a checkpoint of a run."""

    folder: Path
    step: int
    is_best: bool


def weights_of(folder: Path, node: str, at: str, *, falls_back: bool = False) -> Weights:
    """The weights of a node in the newest checkpoint of a run, or the newest of the best.

    Args:
        at: `last` or `best`.
        falls_back: take the last one where none is marked as the best.

    Raises `ColoopError`.
    """
    from coloop.data.files.marks import Marks
    from coloop.runtime.checkpoints.checkpoint import list_checkpoints
    from coloop.spec.groups import owner_of
    from coloop.spec.io import parse

    whole = list_checkpoints(folder / "checkpoints")
    checkpoints = [checkpoint for checkpoint in whole if checkpoint.best or at == "last"]
    if falls_back and not checkpoints:
        checkpoints = whole
    if not checkpoints:
        missing = "no best checkpoint (`run.best` is not set)" if whole else "no checkpoint"
        raise ColoopError(f"{folder} has {missing}")
    checkpoint = checkpoints[-1]
    spec = parse((folder / "spec.yaml").read_text(encoding="utf-8")).spec
    owner = owner_of(spec, node) if spec is not None and node in spec.nodes else None
    owners = sorted(
        path.name for path in checkpoint.path.iterdir() if (path / "config.json").is_file()
    )
    if owner not in owners:
        raise ColoopError(
            f"{checkpoint.path} has no weights for {node!r}, only for {', '.join(owners)}"
        )
    damage = checkpoint.damage(Marks())
    if damage is not None:
        raise ColoopError(f"{damage}; nothing was exported")
    return Weights(folder=checkpoint.path / owner, step=checkpoint.step, is_best=checkpoint.best)


def _export(folder: Path, node: str, out: Path, at: str) -> None:
    weights = weights_of(folder, node, at)
    if out.exists():
        raise ColoopError(f"{out} already exists; choose another folder")
    export_model(weights.folder, out)


def export_model(folder: Path, out: Path, *, with_adapter: bool = True) -> None:
    """Write the weights in a folder of a checkpoint as a model folder, which is replaced. An
    adapter is merged; `with_adapter`: and also written to `adapter/` in the format of peft.

    Raises `CheckpointError`, `StorageFull`, `ModelUnavailable`.
    """
    if not is_adapter(folder):
        with written_aside(out) as aside:
            link_tree(folder, aside, without=("*.pt",), copies=True)
        return
    model, tokenizer, _ = load_pretrained(str(folder), folder, dtype=dtype_in(folder))
    save_hf(out, model, tokenizer)
    if not with_adapter:
        return
    with written_aside(out / "adapter") as aside:
        for name in ADAPTER_FILES:
            (aside / name).write_bytes((folder / name).read_bytes())
        config = json.loads((aside / CONFIG).read_text(encoding="utf-8"))
        config["base_model_name_or_path"] = str((folder / BASE_FOLDER).resolve())
        (aside / CONFIG).write_text(json.dumps(config, indent=2), encoding="utf-8")
