"""`coloop runs check`: whether a run folder is whole. Exit codes: 0 whole, 1 damaged, 2 no run."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape


def check_command(
    run: Annotated[str, typer.Argument(help="A run's id or folder.")],
    runs_dir: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read a run folder whole and name what is damaged: loop, plan, events, samples, checkpoints
    and their copies, by size and SHA-256. Writes nothing."""
    from coloop.runtime.checkpoints.checkup import check_run

    console = Console(soft_wrap=True, stderr=as_json)
    folder = next((one for one in (Path(run), runs_dir / run) if _is_run(one)), None)
    if folder is None:
        console.print(f"there is no run {run!r}, neither as a folder nor in {runs_dir}")
        raise typer.Exit(2)
    found = list(check_run(folder))
    is_whole = not any(one.level == "damaged" for one in found)
    if as_json:
        print(json.dumps({"ok": is_whole, "findings": [asdict(one) for one in found]}))
    else:
        for one in found:
            colour = "red" if one.level == "damaged" else "yellow"
            line = f"[{colour}]{one.level}[/] {escape(one.path)}: {escape(one.message)}"
            console.print(line, highlight=False)
        console.print("whole" if is_whole else f"{folder} is damaged", highlight=False)
    raise typer.Exit(0 if is_whole else 1)


def _is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("spec.yaml", "events.jsonl", "checkpoints"))
