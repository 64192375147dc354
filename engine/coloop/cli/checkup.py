"""`coloop runs check`: verify a run folder. Exit codes: 0 intact, 1 damaged, 2 no such run."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape


def check_command(
    run: Annotated[str, typer.Argument(help="Id or folder of a run.")],
    runs_dir: Annotated[Path, typer.Option(help="Folder that contains the run folders.")] = Path(
        "runs"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify a run folder and report what is damaged: loop, plan, events, samples, checkpoints
    and their copies, by size and SHA-256. Read-only."""
    from coloop.runtime.checkpoints.checkup import check_run

    console = Console(soft_wrap=True, stderr=as_json)
    folder = next((path for path in (Path(run), runs_dir / run) if _is_run(path)), None)
    if folder is None:
        console.print(f"run {run!r} not found, neither as a folder nor in {runs_dir}")
        raise typer.Exit(2)
    findings = list(check_run(folder))
    is_intact = not any(finding.level == "damaged" for finding in findings)
    if as_json:
        print(json.dumps({"ok": is_intact, "findings": [asdict(finding) for finding in findings]}))
    else:
        for finding in findings:
            colour = "red" if finding.level == "damaged" else "yellow"
            line = f"[{colour}]{finding.level}[/] {escape(finding.path)}: {escape(finding.message)}"
            console.print(line, highlight=False)
        console.print("intact" if is_intact else f"{folder} is damaged", highlight=False)
    raise typer.Exit(0 if is_intact else 1)


def _is_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("spec.yaml", "events.jsonl", "checkpoints"))
