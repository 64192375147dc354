"""Measure the code: `python tools/house.py` prints a table; `--static` leaves out the run.

size      lines, files and entries at the top of the engine; the page; file names that occur
          more than once; locals whose name says nothing
a step    of `coloop run --local` with one dataset, one actor and `exact_match`, 8 prompts x 8
          completions x 8 tokens: functions and files that are at work, types that carry a
          sample, and our frames at the first `optimizer.step()`, over all threads
"""

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
ENGINE = REPOSITORY / "engine" / "coloop"
PAGE = REPOSITORY / "frontend" / "src"
VAGUE = ("one", "found", "place", "said")
MEASURED_STEP = 3
LOOP = """\
coloop: 1
name: grpo
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 64}, rows_per_step: 8}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 8, max_new_tokens: 8}
    training: {optimizer: {name: adamw}}
    algorithm: {name: grpo}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 4}
hardware: {preset: cpu}
"""
CARRIED = ("algorithms", "data", "runtime.roles", "workers")
"""Rooms whose types may carry samples; others hold what does the work."""
AT_WORK = ("Call", "Context", "Outcome", "StepContext", "WeightChecksum")
"""Records of these rooms that say what is to be done, or came of it, and with which tables; a sum
of weights has numbers, but of no sample."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--static", action="store_true", help="leave out the run")
    parser.add_argument("--names", action="store_true", help="name carriers, frames, duplicates")
    parser.add_argument("--trace", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        _trace(Path(options.trace))
        return
    numbers = _sizes(options.names)
    if not options.static:
        numbers |= _of_a_step(options.names)
    width = max(map(len, numbers))
    for name, value in numbers.items():
        sys.stdout.write(f"{name:<{width}}  {value}\n")


# --- size


def _sizes(with_names: bool) -> dict[str, Any]:
    engine = sorted(ENGINE.rglob("*.py"))
    page = [path for path in sorted(PAGE.rglob("*")) if _is_hand_written(path)]
    names = Counter(path.name for path in engine if path.name not in ("__init__.py", "__main__.py"))
    twice = {name: count for name, count in sorted(names.items()) if count > 1}
    tops = [
        path for path in ENGINE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    ]
    vague = Counter(name for path in engine for name in _vague_locals(path))
    return {
        "engine, Python lines": sum(_lines(path) for path in engine),
        "engine, files": len(engine),
        "engine, entries at the top": sum(not path.name.startswith("__") for path in tops),
        "page, hand-written lines": sum(_lines(path) for path in page),
        "page, files": len(page),
        "engine, file names that occur more than once": len(twice),
        **({"  of these": ", ".join(f"{k} {v}" for k, v in twice.items())} if with_names else {}),
        "engine, locals": ", ".join(f"`{name}` {vague[name]}" for name in VAGUE),
    }


def _is_hand_written(path: Path) -> bool:
    is_source = path.suffix in (".ts", ".tsx", ".css") and not path.name.endswith(".d.ts")
    return is_source and ".gen." not in path.name and ".test." not in path.name


def _lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def _vague_locals(path: Path) -> Iterator[str]:
    """A name for each function or comprehension that binds it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            bound = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
            bound |= {
                name.id
                for name in ast.walk(node)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            }
            yield from (name for name in VAGUE if name in bound)


# --- a step


def _of_a_step(with_names: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ENGINE.parent), os.environ.get("PYTHONPATH", "")]),
            "OMP_NUM_THREADS": "1",
            "COLOOP_HOME": folder,
        }
        command = [sys.executable, __file__, "--trace", folder]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        seen = json.loads((Path(folder) / "seen.json").read_text("utf-8"))
    frames: dict[str, list[str]] = seen["frames"]
    loop = [name.endswith("::run_loop") for name in frames["MainThread"]].index(True)
    ours = sum(map(len, frames.values())) - loop
    carriers: dict[str, int] = seen["carriers"]
    numbers = {
        "a steady step, functions": seen["functions"],
        "a steady step, files": seen["files"],
        "types that carry a sample": len(carriers),
        "frames at `optimizer.step()`, from the command": sum(map(len, frames.values())),
        "frames at `optimizer.step()`, from `run_loop`": ours,
    }
    if with_names:
        numbers["carriers"] = ", ".join(f"{name} {count}" for name, count in carriers.items())
        for thread, names in frames.items():
            numbers[f"frames of {thread}"] = "\n    " + "\n    ".join(names)
    return numbers


class _Step:
    """What is called and made in one step of a run, in all threads."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.made: dict[int, Any] = {}
        self.frames: dict[str, list[str]] = {}
        self.is_measured = False

    def seen(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self.is_measured:
            return
        code = frame.f_code
        if _is_ours(code) and not code.co_name.startswith("<"):  # `def` alone
            self.codes.add(code)
        if code.co_name == "__init__":
            self._make(frame.f_locals.get(code.co_varnames[0]))

    def _make(self, made: Any) -> None:
        if type(made).__module__.startswith("coloop."):
            self.made[id(made)] = made  # held, so that no other object has its number

    def stack(self) -> None:
        """Our frames of all threads."""
        threads = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            names = []
            at: FrameType | None = frame
            while at is not None:
                if _is_ours(at.f_code):
                    path = Path(at.f_code.co_filename).relative_to(ENGINE)
                    names.append(f"{path}::{at.f_code.co_qualname}")
                at = at.f_back
            if names:
                self.frames[threads.get(ident, str(ident))] = names[::-1]

    def carriers(self) -> dict[str, int]:
        """How many of each record carry samples: among their fields are numbers by the token, or
        records that have these."""
        by_type: dict[type, list[Any]] = {}
        for made in self.made.values():
            if is_dataclass(made) and _is_carried(made):
                by_type.setdefault(type(made), []).append(made)
        return {
            f"{kind.__module__.removeprefix('coloop.')}.{kind.__name__}": len(every)
            for kind, every in by_type.items()
            if kind.__name__ not in AT_WORK and any(_holds_a_sample(made) for made in every)
        }


def _is_carried(made: object) -> bool:
    module = type(made).__module__.removeprefix("coloop.")
    return any(module == room or module.startswith(f"{room}.") for room in CARRIED)


def _holds_a_sample(made: Any, depth: int = 0) -> bool:
    """Whether texts or numbers by the token are among the values of an object, or of the objects
    that it holds."""
    import numpy as np
    import torch

    if isinstance(made, np.ndarray | torch.Tensor):
        return made.size > 1 if isinstance(made, np.ndarray) else made.numel() > 1
    if depth > 6 or made is None or isinstance(made, str | int | float | bool | bytes | type):
        return False
    if isinstance(made, dict):
        return any(_holds_a_sample(value, depth + 1) for value in [*made.values()][:4])
    if isinstance(made, list | tuple):
        if len(made) > 3 and all(isinstance(value, int) for value in made):
            return True
        return any(_holds_a_sample(value, depth + 1) for value in made[:4])
    if not is_dataclass(made):
        return False
    values = (getattr(made, field.name, None) for field in fields(made))
    return any(_holds_a_sample(value, depth + 1) for value in values)


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(str(ENGINE))


def _trace(folder: Path) -> None:
    """Run the loop here, and write what was seen."""
    import torch

    from coloop.cli.app import app
    from coloop.runtime.roles.dataset import DatasetRole

    loop = folder / "grpo.yaml"
    loop.write_text(LOOP, "utf-8")
    step = _Step()
    optimizer_step, loads = torch.optim.AdamW.step, DatasetRole.run
    begun = 0

    def stepping(self: Any, *arguments: Any, **named: Any) -> Any:
        if not step.frames:
            step.stack()
        return optimizer_step(self, *arguments, **named)

    def loading(self: Any, call: Any) -> Any:
        nonlocal begun
        begun += 1
        step.is_measured = begun == MEASURED_STEP
        return loads(self, call)

    torch.optim.AdamW.step = stepping  # type: ignore[method-assign]
    DatasetRole.run = loading  # type: ignore[method-assign]
    threading.setprofile(step.seen)
    sys.setprofile(step.seen)
    with suppress(SystemExit):
        app(["run", str(loop), "--local", "--runs-dir", str(folder / "runs")])
    sys.setprofile(None)
    threading.setprofile(None)
    seen = {
        "functions": len(step.codes),
        "files": len({code.co_filename for code in step.codes}),
        "carriers": step.carriers(),
        "frames": step.frames,
    }
    (folder / "seen.json").write_text(json.dumps(seen), "utf-8")


if __name__ == "__main__":
    main()
