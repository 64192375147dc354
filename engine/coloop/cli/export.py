"""`coloop export`: what a run has learned, as a model folder that other programs load."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from coloop.errors import ColoopError


def export_command(
    run: Annotated[str, typer.Argument(help="A run's id or folder.")],
    node: Annotated[str, typer.Argument(help="The node whose weights are wanted.")],
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not be there.")],
    at: Annotated[
        Literal["last", "best"],
        typer.Option(help="The last checkpoint, or the best by `run.best`."),
    ] = "last",
    runs_dir: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
) -> None:
    """Write what a node of a run has learned as a model in Hugging Face format; an adapter is
    merged, and stands beside it by itself."""
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
        raise ColoopError(f"there is no run {run!r}, neither as a folder nor in {runs_dir}")
    found = [one for one in list_checkpoints(folder / "checkpoints") if one.best or at == "last"]
    if not found:
        wanted = "no checkpoint" if at == "last" else "no best checkpoint (`run.best` names none)"
        raise ColoopError(f"{folder} has {wanted}")
    spec = parse((folder / "spec.yaml").read_text(encoding="utf-8")).spec
    owner = owner_of(spec, node) if spec is not None and node in spec.nodes else None
    held = sorted(one.name for one in found[-1].path.iterdir() if (one / "config.json").is_file())
    if owner not in held:
        raise ColoopError(
            f"{found[-1].path} holds no weights of {node!r}; it has {', '.join(held)}"
        )
    damage = found[-1].damage(Marks())
    if damage is not None:
        raise ColoopError(f"{damage}; nothing was exported")
    if out.exists():
        raise ColoopError(f"{out} is there already; name a folder that is not")
    export_model(found[-1].path / owner, out)
    return out
