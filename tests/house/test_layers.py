"""The import table: who may import whom, of ours and from outside."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "engine" / "coloop"

LIGHT = {
    "errors",
    "units",
    "spec",
    "data.chats",
    "data.json_schemas",
    "data.files",
    "data.templates",
    "data.tasks",
    "data.answers",
    "data.expressions",
    "sandbox",
    "sandbox.inside.parsing",
    "plan",
    "plan.settings",
    "plan.cost",
    "plan.terms",
    "launch",
    "validate",
    "explain",
    "explain.controls",
    "explain.experiment",
    "explain.rehearsal",
    "explain.sweeps",
    "interop",
    "hub",
    "suites",
    "runtime.run_files",
    "runtime.health",
    "workers.ray.ray_remains",
    "workers.ray.ray_settings",
}
"""Rooms that load neither torch nor Ray."""

OURS: dict[str, set[str]] = {
    "errors": set(),
    "units": set(),
    "spec": {"errors", "sandbox.inside.parsing"},
    "data.arrays": set(),
    "data.distributions": {"data.arrays"},
    "data.chats": set(),
    "data.json_schemas": set(),
    "data.seeds": set(),
    "data.files": {"data.chats", "spec"},
    "data.templates": {"data.chats"},
    "data.answers": set(),
    "data.expressions": set(),
    "data.tasks": {"spec", "data.answers", "data.expressions"},
    "data.tables": {"data.arrays", "data.distributions", "spec", "errors"},
    "data": {
        *("spec", "algorithms.batch", "data.tables", "data.templates", "data.chats"),
        *("data.files", "errors", "sandbox", "data.answers", "data.expressions", "data.tasks"),
    },
    "data.services": {"spec", "errors", "data.seeds"},
    "data.rewards": {
        *("spec", "algorithms.batch", "data.tables", "data", "sandbox", "data.services", "errors"),
        *("sandbox.inside.parsing", "data.answers", "data.expressions", "data.tasks"),
    },
    "data.tools": {"spec", "data", "data.expressions", "sandbox", "data.templates", "errors"},
    "sandbox.inside.parsing": set(),
    "sandbox": {"errors", "sandbox.inside.parsing"},
    "plan.settings": {"spec", "data.files", "data.tasks", "errors", "plan.weight_buckets"},
    "plan.weight_buckets": set(),
    "plan": {"spec", "plan.settings", "errors"},
    "plan.cost": {"spec", "plan.settings", "plan", "errors"},
    "plan.terms": {"spec", "plan.settings", "plan", "plan.cost"},
    "launch": {"spec", "plan", "errors", "workers.ray.ray_settings"},
    "validate": {
        *("spec", "plan.settings", "plan", "plan.cost", "errors", "data.templates", "data.chats"),
        *("data.files", "data.json_schemas", "sandbox", "sandbox.inside.parsing"),
    },
    "explain": {"spec", "plan.cost", "plan", "runtime.health", "errors"},
    "explain.controls": {"spec", "plan", "validate", "errors"},
    "explain.experiment": {"spec", "explain.controls", "errors", "units"},
    "explain.sweeps": {"spec", "explain.controls", "explain.experiment", "errors"},
    "explain.rehearsal": {"spec", "plan.settings", "validate", "sandbox.inside.parsing"},
    "interop": {"spec", "errors"},
    "suites": {"errors"},
    "suites.lm_eval_process": set(),
    "hub": {"spec", "plan.settings", "plan.cost", "data.files", "errors", "units"},
    "algorithms": set(),
    "algorithms.batch": {"data.arrays", "data.distributions"},
    "algorithms.recipes": {"data.arrays", "spec", "algorithms.batch", "algorithms", "errors"},
    "models": {
        *("data.chats", "data.arrays", "spec", "data.templates", "errors", "data.files"),
    },
    "workers.collecting": set(),
    "workers.fingerprint": set(),
    "workers.messages": {"data.arrays", "data.tables", "spec", "algorithms.batch"},
    "workers.rollout": {
        *("workers.fingerprint", "spec", "algorithms.batch", "models", "data.services", "errors"),
        "workers.cpu",
    },
    "workers.sync": {
        *("workers.fingerprint", "spec", "algorithms.batch", "errors", "plan.weight_buckets"),
        "workers.rollout",
    },
    "workers.training": {
        *("data.arrays", "data.distributions", "spec", "algorithms.batch", "models", "algorithms"),
        *("errors", "algorithms.recipes", "plan.weight_buckets", "data.seeds", "workers.cpu"),
        "workers.messages",
    },
    "workers.cpu": {"workers.rollout", "workers.training", "models", "algorithms.batch", "errors"},
    "workers": {
        *("plan", "spec", "algorithms.batch", "data.tables", "models", "workers.rollout"),
        *("workers.training", "workers.sync", "algorithms.recipes", "algorithms", "data.arrays"),
        *("errors", "workers.fingerprint", "data.files", "data.seeds", "data.services"),
        "data.distributions",
        *("plan.weight_buckets", "plan.settings", "runtime.run_files", "workers.cpu"),
        "workers.messages",
    },
    "workers.ray.ray_remains": set(),
    "workers.ray.ray_settings": {"errors"},
    "workers.ray.ray_patience": set(),
    "workers.ray": {
        *("plan", "workers", "workers.cluster", "workers.collecting", "errors"),
        *("workers.ray.ray_patience", "workers.ray.ray_remains", "workers.ray.ray_settings"),
        "workers.messages",
    },
    "workers.cluster": {
        *("plan", "workers", "workers.collecting", "workers.messages", "errors", "workers.ray"),
    },
    "runtime.run_files": {"errors", "data.files"},
    "runtime.health": {"spec", "errors"},
    "tracking": {"spec", "errors"},
    "runtime.roles": {
        *("plan", "spec", "algorithms.batch", "data.tables", "data", "data.rewards", "workers"),
        *("algorithms.recipes", "errors", "data.arrays", "data.chats", "sandbox", "data.seeds"),
        *("data.services", "data.tools", "data.tasks", "workers.messages"),
        "data.distributions",
    },
    "runtime": {
        *("plan", "plan.settings", "plan.cost", "spec", "algorithms.batch", "algorithms.recipes"),
        *("data.tables", "data.files", "data", "workers", "workers.cluster", "workers.sync"),
        *("workers.collecting", "workers.ray", "runtime.roles", "runtime.run_files"),
        *("runtime.health", "errors", "workers.messages", "tracking"),
    },
}
"""By room, the rooms of ours that it may import. A file is in the room of the longest name that
begins its own. `cli` may import anything."""

HEAVY = {
    "torch",
    "ray",
    "transformers",
    "vllm",
    "deepspeed",
    "tokenizers",
    "safetensors",
    "datasets",
}

OUTSIDE: dict[str, set[str]] = {
    "errors": set(),
    "units": set(),
    "spec": {"pydantic", "pydantic_core", "ruamel", "typing_extensions", "yaml"},
    "data.arrays": {"numpy"},
    "data.distributions": {"numpy"},
    "data.tables": {"numpy"},
    "data.templates": {"jinja2"},
    "data.services": {"httpcore2"},
    "sandbox": set(),
    "plan": {"pydantic"},
    "plan.weight_buckets": set(),
    "plan.settings": {"pydantic"},
    "plan.cost": {"pydantic"},
    "launch": {"yaml"},
    "validate": {"jinja2"},
    "explain.controls": set(),
    "explain.experiment": set(),
    "explain.rehearsal": set(),
    "interop": {"pydantic"},
    "suites": set(),
    "suites.lm_eval_process": {"lm_eval", "torch"},
    "hub": {"huggingface_hub", "httpx2", "pyarrow", "yaml"},
    "algorithms": {"torch", "numpy"},
    "algorithms.batch": {"torch", "numpy"},
    "algorithms.recipes": {"torch", "numpy"},
    "tracking": {"torch", "wandb", "mlflow", "trackio"},
    "workers.collecting": set(),
    "workers.fingerprint": {"torch"},
    "workers.cluster": set(),
    "workers.ray": {"ray"},
    "workers.ray.ray_remains": set(),
    "workers.ray.ray_settings": set(),
    "runtime.run_files": {"pydantic"},
    "runtime.health": set(),
    "runtime": {"torch", "pydantic", "fsspec"},
}
"""By room, what it may import from outside of the standard library, where that is limited.
typing_extensions comes with pydantic, which wants its TypedDict before Python 3.12."""

INSIDE = {"vllm_worker.py"}
"""Files that such a library imports itself."""


def room_of(module: str) -> str | None:
    """The room of a module that is named within `coloop`: the longest name in the table that begins
    it."""
    while module and module not in OURS:
        module = module.rpartition(".")[0]
    return module or None


def package_of(path: Path) -> str:
    return path.relative_to(ENGINE).parts[0].removesuffix(".py")


def room_of_file(path: Path) -> str | None:
    return room_of(".".join(path.relative_to(ENGINE).with_suffix("").parts))


@cache
def imports_of(path: Path) -> list[tuple[str, int, bool, list[str]]]:
    return list(imports_in(path))


def imports_in(path: Path) -> Iterator[tuple[str, int, bool, list[str]]]:
    """Imported modules, their lines, whether they stand at the top of the module, and the names
    that are taken from them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) in top, []
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [alias.name for alias in node.names]
            yield node.module, node.lineno, id(node) in top, names


def engine_files() -> list[Path]:
    return sorted(
        path
        for path in ENGINE.rglob("*.py")
        if package_of(path) not in ("cli", "__init__", "__main__")
    )


def modules_in(module: str, names: list[str]) -> list[str]:
    """What `from coloop.a import b` imports: `a.b` where that is a module, else `a`."""
    base = ENGINE.joinpath(*module.split(".")) if module else ENGINE
    return [
        f"{module}.{name}".strip(".")
        if (base / f"{name}.py").exists() or (base / name / "__init__.py").exists()
        else module
        for name in names
    ]


def test_every_file_is_in_a_room() -> None:
    assert not [str(path) for path in engine_files() if room_of_file(path) is None]


def test_imports_follow_the_table() -> None:
    wrong = []
    for path in engine_files():
        own, name = room_of_file(path), path.relative_to(ENGINE)
        for module, line, _, names in imports_of(path):
            head, _, rest = module.partition(".")
            if head == "coloop_server":
                wrong.append(f"{name}:{line}: the engine may not import the service")
            if head != "coloop":
                continue
            for imported in modules_in(rest, names):
                room = room_of(imported)
                if room and room != own and room not in OURS[own or ""]:
                    wrong.append(f"{name}:{line}: {own} may not import {imported}")

    assert not wrong, "\n".join(wrong)


def test_outside_imports_follow_the_table() -> None:
    wrong = []
    for path in engine_files():
        own, name = room_of_file(path) or "", path.relative_to(ENGINE)
        for module, line, at_top, _ in imports_of(path):
            head = module.partition(".")[0]
            if head in sys.stdlib_module_names or head in ("coloop", "coloop_server"):
                continue
            if own in LIGHT and head in HEAVY:
                wrong.append(f"{name}:{line}: {own} is light and may not import {module}")
            if own in OUTSIDE and head not in OUTSIDE[own]:
                wrong.append(f"{name}:{line}: {own} may not import {module}")
            if head in ("vllm", "deepspeed") and at_top and path.name not in INSIDE:
                wrong.append(f"{name}:{line}: {module} is imported inside the function needing it")

    assert not wrong, "\n".join(wrong)


def test_light_rooms_import_light_rooms() -> None:
    wrong = {room: OURS[room] - LIGHT - {"plan.weight_buckets"} for room in LIGHT}
    assert not {room: heavy for room, heavy in wrong.items() if heavy}


def test_ray_is_imported_only_in_its_files() -> None:
    found = {
        path.name
        for path in engine_files()
        for module, *_ in imports_of(path)
        if module.partition(".")[0] == "ray"
    }

    assert found == {
        f"ray_{name}.py" for name in ("cluster", "joining", "patience", "probe", "spares")
    }
