"""`coloop datasets`: datasets of the hub; their first rows before a download.

Exit codes: 0 done, 1 the hub does not answer, refuses, or the file exists, 130 cancelled.
"""

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer
from rich.markup import escape

from coloop.cli.app import Json
from coloop.cli.fetching import fetch
from coloop.cli.models import FAILED, Repo, Revision
from coloop.cli.output import console, fail, print_json, table_of
from coloop.errors import ColoopError
from coloop.hub.about import HubDataset, describe_dataset, only
from coloop.hub.listing import datasets_here
from coloop.hub.rows import Preview, preview
from coloop.units import count, gib

SHOWN = 300
"""Characters of a value in a preview."""

datasets_app = typer.Typer(
    help="Datasets of the hub, and their first rows before a download.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Split = Annotated[str | None, typer.Option("--split", help="The split; the first by default.")]
Config = Annotated[
    str | None, typer.Option("--config", help="The configuration; the first by default.")
]


@datasets_app.callback()
def _datasets(context: typer.Context) -> None:
    """Datasets of the hub, and their first rows before a download."""
    if context.invoked_subcommand is None:
        _list_datasets()


@datasets_app.command("list")
def _list_datasets(as_json: Json = False) -> None:
    """List the datasets in the cache of the hub."""
    there = datasets_here()
    if as_json:
        print_json([asdict(dataset) for dataset in there])
        return
    table = table_of("name", "size", "folder", right=("size",))
    for dataset in there:
        table.add_row(escape(dataset.name), gib(dataset.bytes), escape(dataset.folder))
    console().print(table)


@datasets_app.command("show")
def _show_dataset(
    repo: Repo,
    split: Split = None,
    config: Config = None,
    rows: Annotated[int, typer.Option(min=1, max=100, help="Rows to show.")] = 3,
    revision: Revision = None,
    as_json: Json = False,
) -> None:
    """Show the splits and first rows of a dataset without downloading it: by ranged requests to one
    of its files."""
    try:
        dataset = describe_dataset(repo, revision)
        first = preview(dataset, dataset.part(split, config), rows)
    except ColoopError as error:
        fail(str(error), FAILED)
    if as_json:
        print_json(_as_json(dataset, first))
    else:
        _print(dataset, first)


def _as_json(dataset: HubDataset, first: Preview) -> dict[str, object]:
    return {
        "id": dataset.repo.id,
        "license": dataset.repo.licence,
        "bytes": dataset.repo.bytes,
        "parts": [asdict(part) for part in dataset.parts],
        "preview": asdict(first),
    }


def _print(dataset: HubDataset, first: Preview) -> None:
    out, repo = console(), dataset.repo
    out.print(f"[bold]{escape(repo.id)}[/], licence {escape(repo.licence or 'not stated')}")
    table = table_of("config", "split", "files", "size", right=("files", "size"))
    for part in dataset.parts:
        size = gib(sum(file.bytes for file in part.files))
        table.add_row(escape(part.config or ""), escape(part.split), str(len(part.files)), size)
    out.print(table)
    of = "" if first.rows_in_file is None else f" of {first.rows_in_file:,}"
    shown = count(len(first.rows), "row")
    out.print(f"[dim]{shown}{of} of {escape(first.file)}; {gib(first.bytes_read)} were read[/]")
    for row in first.rows:
        for name, value in row.items():
            text = str(value)
            cut = text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."
            out.print(f"  [bold]{escape(name)}[/]: {escape(cut)}")
        out.print()


@datasets_app.command("download")
def _download_dataset(
    repo: Repo,
    split: Split = None,
    config: Config = None,
    to: Annotated[
        Path, typer.Option("--to", metavar="FOLDER", help="Folder that gets the files.")
    ] = Path("data"),
    revision: Revision = None,
    as_json: Json = False,
) -> None:
    """Download the files of one split, for datasets with `source: {type: file}`."""
    try:
        dataset = describe_dataset(repo, revision)
        part = dataset.part(split, config)
        folder = fetch(only(dataset.repo, part.files), as_json=as_json)
    except ColoopError as error:
        fail(str(error), FAILED)
    to.mkdir(parents=True, exist_ok=True)
    paths = []
    for file in part.files:
        target = to / "-".join((*repo.split("/"), *PurePosixPath(file.name).parts))
        if target.exists() and target.stat().st_size != file.bytes:
            fail(f"{target} exists and is another file; give another folder with --to", FAILED)
        shutil.copyfile(folder / file.name, target)
        paths.append(str(target))
        if not as_json:
            console().print(
                f"in a loop: [bold]source: {{type: file, path: {escape(str(target))}}}[/]"
            )
    if as_json:
        sys.stdout.write(json.dumps({"paths": paths}) + "\n")
