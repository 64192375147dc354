"""`coloop import`: a configuration of another framework as a loop; `coloop export-to`: a loop as
one.

Exit codes: 0 written, 1 the file cannot be written, 2 it is no configuration that is known here, or
has no form there.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from coloop.cli.app import Json, Settings, Spec
from coloop.cli.begin import EXISTS, STDOUT
from coloop.cli.check import UNREADABLE, Source, check_source, checked_spec
from coloop.cli.output import console, fail, print_diagnostics, print_json, table_of
from coloop.errors import ExportRefused, ImportRefused
from coloop.interop import reading
from coloop.interop.bring import Imported, import_text, shown
from coloop.interop.settings import Fate
from coloop.interop.take import export_loop
from coloop.units import gib, seconds

KINDS = {
    "not_understood": "not understood",
    "not_carried": "not carried",
    "carried": "carried",
}


def import_command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="TRL script or YAML, verl command or YAML, OpenRLHF command, prime-rl TOML; "
            "`-` for standard input. Several files: trainer, orchestrator, inference of prime-rl.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write, NAME.yaml by default; `-` prints it."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="Kind of the GPUs, e.g. A100-80GB.")
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", min=1, help="Processes of a TRL script, one GPU each."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list the settings that are carried.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Json = False,
) -> int:
    """Make a loop of a configuration of TRL, verl, OpenRLHF or prime-rl. Scripts are read, and
    never run."""
    imported = _imported(files, gpu, gpus)
    if as_json:
        print_json(as_document(imported))
        return 0
    if out == STDOUT:
        sys.stdout.write(imported.text)
        return 0
    target = out or Path(f"{imported.name}.yaml")
    _write(target, imported.text, force=force)
    _print(imported, target, everything=everything)
    return 0


def _imported(files: list[str], gpu: str | None, gpus: int | None) -> Imported:
    try:
        first, *others = [(name, _text(name)) for name in files]
        root = Path.cwd() if first[0] == "-" else Path(first[0]).resolve().parent
        return import_text(
            first[1],
            name="standard input" if first[0] == "-" else Path(first[0]).name,
            source=reading.Source(root=root, gpu=gpu, gpus=gpus),
            others=[text for _, text in others],
        )
    except ImportRefused as refused:
        fail(str(refused), UNREADABLE)


def _text(name: str) -> str:
    if name == "-":
        return reading.decoded(sys.stdin.buffer.read(reading.MOST_BYTES + 1), "standard input")
    try:
        with Path(name).open("rb") as file:
            return reading.decoded(file.read(reading.MOST_BYTES + 1), name)
    except OSError as error:
        fail(f"{name} cannot be read: {error.strerror or error}", UNREADABLE)


def as_document(imported: Imported) -> dict[str, Any]:
    """An import as JSON."""
    return {
        "framework": imported.framework,
        "version": imported.version,
        "trainer": imported.trainer,
        "name": imported.name,
        "text": imported.text,
        "settings": [
            {
                "name": fate.name,
                "value": shown(fate.value),
                "line": fate.line,
                "kind": fate.kind,
                "to": fate.to,
                "why": fate.why,
            }
            for fate in imported.settings
        ],
        "assumptions": list(imported.assumptions),
    }


def _print(imported: Imported, target: Path, *, everything: bool) -> None:
    out = console()
    counts = {kind: len(imported.of_kind(kind)) for kind in KINDS}
    out.print(
        f"wrote {escape(str(target))}: {imported.framework} {imported.trainer}, "
        f"{counts['carried']} settings carried, {counts['not_carried']} not carried, "
        f"{counts['not_understood']} not understood"
    )
    for kind, title in KINDS.items():
        fates = imported.of_kind(kind)
        if fates and (kind != "carried" or everything):
            out.print(f"\n[bold]{title}[/]")
            _print_fates(fates)
    if imported.assumptions:
        out.print("\n[bold]assumed[/]")
        for assumption in imported.assumptions:
            out.print(f"  {escape(assumption)}")
    checked = check_source(Source(text=imported.text, name=str(target), root=target.parent))
    out.print("")
    print_diagnostics(checked.report.diagnostics)
    if checked.explanation is not None:
        estimate = checked.explanation.estimate
        peaks = [found.peak_bytes for found in estimate.gpus if found.peak_bytes is not None]
        if peaks:
            out.print(f"the fullest GPU holds {gib(max(peaks))}")
        if estimate.step_seconds is not None:
            out.print(f"a step takes about {seconds(estimate.step_seconds)}")
    out.print(f"next: [bold]coloop rehearse {escape(str(target))}[/]")


def _print_fates(fates: tuple[Fate, ...]) -> None:
    table = table_of("line", "setting", "value", "", right=("line",))
    for fate in fates:
        table.add_row(
            str(fate.line or ""),
            escape(fate.name),
            escape(shown(fate.value)),
            escape(fate.to or fate.why),
        )
    console().print(table)


def export_to_command(
    framework: Annotated[str, typer.Argument(metavar="FRAMEWORK", help="verl or openrlhf.")],
    spec: Spec,
    settings: Settings = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write; `-` prints it. By default its name."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> int:
    """Write a loop with one learner as a configuration of another framework, and say what that
    framework does not have."""
    _, loop = checked_spec(spec, settings, as_json=False)
    try:
        exported = export_loop(loop, framework)
    except ExportRefused as refused:
        fail(str(refused), UNREADABLE)
    if out == STDOUT:
        sys.stdout.write(exported.text)
        for sentence in exported.unsaid:
            console(stderr=True).print(f"not said there: {escape(sentence)}")
        return 0
    target = out or Path(exported.name)
    _write(target, exported.text, force=force)
    console().print(f"wrote {escape(str(target))} for {exported.framework} {exported.version}")
    for sentence in exported.unsaid:
        console().print(f"  not said there: {escape(sentence)}")
    return 0


def _write(target: Path, text: str, *, force: bool) -> None:
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        fail(f"{target} exists; choose another file with --out, or give --force", EXISTS)
    except OSError as error:
        fail(f"{target} cannot be written: {error.strerror or error}", EXISTS)
