"""`coloop export`: the trained weights of a run as a model folder in Hugging Face format."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from coloop.errors import ColoopError


def export_command(
    run: Annotated[str, typer.Argument(help="Id or folder of a run.")],
    node: Annotated[str, typer.Argument(help="Node whose weights to export.")],
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not exist.")],
    at: Annotated[
        Literal["last", "best"],
        typer.Option(help="Export the last checkpoint, or the best by `run.best`."),
    ] = "last",
    runs_dir: Annotated[Path, typer.Option(help="Folder that contains the run folders.")] = Path(
        "runs"
    ),
) -> None:
    """Export the trained weights of a node as a model in Hugging Face format. Adapters are merged,
    and also saved separately beside it."""
    console = Console(soft_wrap=True)
    try:
        console.print(f"written: {_export(run, node, out, at, runs_dir)}")
    except ColoopError as error:
        console.print(str(error))
        raise typer.Exit(1) from None


def _export(run: str, node: str, out: Path, at: str, runs_dir: Path) -> Path:
    from coloop.data.files.marks import Marks
    from coloop.models.export import export_model
    from coloop.runtime.checkpoints.checkpoint import list_checkpoints
    from coloop.spec.groups import owner_of
    from coloop.spec.io import parse

    folder = next((f for f in (Path(run), runs_dir / run) if (f / "spec.yaml").exists()), None)
    if folder is None:
        raise ColoopError(f"run {run!r} not found, neither as a folder nor in {runs_dir}")
    checkpoints = [
        checkpoint
        for checkpoint in list_checkpoints(folder / "checkpoints")
        if checkpoint.best or at == "last"
    ]
    if not checkpoints:
        missing = "no checkpoint" if at == "last" else "no best checkpoint (`run.best` is not set)"
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
    if out.exists():
        raise ColoopError(f"{out} already exists; choose another folder")
    export_model(checkpoint.path / owner, out)
    return out
