"""`coloop push`: the trained weights of a run to the Hugging Face Hub.

Exit codes: 0 pushed, 1 there is no such run or checkpoint, or the hub refuses, 2 the loop of the
run cannot be read.
"""

import json
import tempfile
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer
import yaml
from rich.markup import escape

from coloop.cli.app import Run, RunsDir
from coloop.cli.check import UNREADABLE
from coloop.cli.export import Weights, export_model, weights_of
from coloop.cli.output import console, fail
from coloop.cli.report import read_experiment
from coloop.cli.watch import run_folder
from coloop.data.files.marks import write_whole
from coloop.errors import ColoopError, SpecUnreadable
from coloop.hub import pushing
from coloop.hub.card import CURVES, LOOP, PICTURE, CardFacts, Curve, card_of, curves_picture
from coloop.models.folder import ADAPTER_FILES, BASE_FOLDER, CONFIG, is_adapter
from coloop.plan.settings.facts import origin_of
from coloop.spec.graph import LoopSpec
from coloop.spec.hub_cache import HUB_ID, snapshot_of
from coloop.spec.io import load
from coloop.spec.model import PretrainedModel
from coloop.spec.nodes import model_of
from coloop.tracking.picture import picture_of

TOKENIZER = ("tokenizer*", "special_tokens_map.json", "chat_template*", "vocab*", "merges*")
GGUF_TYPES: tuple[str, ...] = get_args(pushing.GgufType)


def push_command(
    run: Run,
    node: Annotated[str, typer.Argument(help="Node whose weights to push.")],
    repo: Annotated[str, typer.Argument(metavar="ID", help="Where to: `user/name`.")],
    at: Annotated[
        Literal["last", "best"],
        typer.Option(help="The best checkpoint by `run.best`, if that is set; or the last."),
    ] = "best",
    private: Annotated[bool, typer.Option("--private", help="Make a private repository.")] = False,
    merged: Annotated[
        bool, typer.Option("--merged", help="Push whole weights instead of an adapter.")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Id of the base of an adapter, if its folder has none."),
    ] = None,
    gguf: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help=f"Also a GGUF file: {', '.join(GGUF_TYPES)}."),
    ] = None,
    dry_run: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Write the files there; push nothing."),
    ] = None,
    runs_dir: RunsDir = Path("runs"),
) -> int:
    """Push the trained weights of a node to the hub, with tokenizer, chat template, generation
    config and a card that shows the loop and its curves. Adapters stay adapters."""
    folder = run_folder(console(), run, runs_dir)
    if gguf is not None and gguf not in GGUF_TYPES:
        fail(f"--gguf {gguf}: types are {', '.join(GGUF_TYPES)}", 1)
    try:
        weights = weights_of(folder, node, at, falls_back=True)
        plan = _Push(folder, runs_dir, node, repo, weights, merged=merged, base=base, gguf=gguf)
        if dry_run is not None:
            if dry_run.exists():
                fail(f"{dry_run} already exists; choose another folder", 1)
            plan.write(dry_run)
            console().print(f"written: {escape(str(dry_run))}; nothing was pushed")
            return 0
        pushing.create_repo(repo, private=private)
        with tempfile.TemporaryDirectory(prefix="coloop-push-") as above:
            out = Path(above) / "model"
            plan.write(out)
            address = pushing.upload(out, repo, f"{node} at step {weights.step} of {folder.name}")
    except SpecUnreadable as unreadable:
        fail(str(unreadable), UNREADABLE)
    except ColoopError as error:
        fail(str(error), 1)
    console().print(f"pushed: {escape(address)}")
    return 0


class _Push:
    def __init__(
        self,
        run: Path,
        runs_dir: Path,
        node: str,
        repo: str,
        weights: Weights,
        *,
        merged: bool,
        base: str | None,
        gguf: str | None,
    ) -> None:
        self.run, self.runs_dir, self.node, self.repo = run, runs_dir, node, repo
        self.weights, self.gguf = weights, gguf
        self.spec = load(run / "spec.yaml")
        self.is_adapter = is_adapter(weights.folder) and not merged
        self.base = base or base_of(self.spec, node)
        if self.is_adapter and self.base is None:
            raise ColoopError(
                f"{node} is an adapter of a model that is on this machine only; push whole weights "
                "with --merged, or name its base on the hub with --base"
            )
        if self.is_adapter and gguf is not None:
            raise ColoopError("--gguf needs whole weights: give --merged as well")
        self.converter = pushing.find_converter() if gguf is not None else None

    def write(self, out: Path) -> None:
        """Write all files of the repository to a new folder."""
        if self.is_adapter:
            assert self.base is not None
            write_adapter(self.weights.folder, out, self.base)
        else:
            export_model(self.weights.folder, out, with_adapter=False)
        name = None
        if self.converter is not None:
            kind: pushing.GgufType = next(k for k in get_args(pushing.GgufType) if k == self.gguf)
            name = f"{self.repo.rpartition('/')[2]}-{kind}.gguf"
            pushing.write_gguf(out, out / name, kind, self.converter)
        text = (self.run / "spec.yaml").read_text(encoding="utf-8")
        text = text.replace(str(Path.home()), "~")
        found = read_experiment(self.run, self.runs_dir)
        curves = tuple(
            Curve(
                name=result.metric,
                points=tuple((reading.step, reading.value) for reading in result.values),
                best=result.best.value,
            )
            for result in found.results
        )
        facts = CardFacts(
            repo=self.repo,
            node=self.node,
            spec=self.spec,
            text=text,
            run=self.run.name,
            step=self.weights.step,
            is_best=self.weights.is_best,
            curves=curves,
            base=self.base,
            licence=licence_of(self.base) if self.base is not None else None,
            is_adapter=self.is_adapter,
            gguf=name,
        )
        write_whole(out / LOOP, text)
        write_whole(out / PICTURE, picture_of(self.spec))
        if curves:
            write_whole(out / CURVES, curves_picture(curves))
        write_whole(out / "README.md", card_of(facts))


def base_of(spec: LoopSpec, node: str) -> str | None:
    """The hub id from which a node's weights started; None if that is no model of the hub."""
    origin = origin_of(spec, node)
    model = model_of(spec.nodes[origin]) if origin is not None else None
    if not isinstance(model, PretrainedModel) or "/" not in model.path:
        return None
    is_id = HUB_ID.match(model.path) is not None and not Path(model.path).exists()
    return model.path if is_id else None


def licence_of(repo: str) -> str | None:
    """The licence that the card of a downloaded model states."""
    folder = snapshot_of(repo)
    try:
        text = (folder / "README.md").read_text(encoding="utf-8") if folder is not None else ""
        header = yaml.safe_load(text.split("---")[1]) if text.startswith("---") else None
    except (OSError, ValueError, IndexError, yaml.YAMLError):
        return None
    named = header.get("license") if isinstance(header, dict) else None
    return str(named) if named else None


def write_adapter(folder: Path, out: Path, base: str) -> None:
    """An adapter of a checkpoint in the format of peft, with the tokenizer, for a base on the
    hub."""
    out.mkdir(parents=True)
    for name in ADAPTER_FILES:
        (out / name).write_bytes((folder / name).read_bytes())
    config = json.loads((out / CONFIG).read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = base
    (out / CONFIG).write_text(json.dumps(config, indent=2), encoding="utf-8")
    for pattern in TOKENIZER:
        for path in (folder / BASE_FOLDER).glob(pattern):
            (out / path.name).write_bytes(path.read_bytes())
