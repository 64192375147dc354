"""The import table: who may import whom, of ours and from outside."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "engine" / "coloop"

LIGHT = {
    "errors",
    "diagnostics",
    "events",
    "run_ids",
    "run_lock",
    "run_log",
    "ray_remains",
    "ray_settings",
    "documents",
    "links",
    "code_files",
    "chats",
    "datafiles",
    "json_schemas",
    "portions",
    "spec",
    "plugins",
    "presets",
    "sandbox",
    "sizing",
    "estimate",
    "templates",
    "validate",
    "plan",
    "rehearsal",
    "explain",
}

OURS: dict[str, set[str]] = {
    "errors": set(),
    "run_ids": set(),
    "run_lock": {"errors"},
    "run_log": set(),
    "ray_remains": set(),
    "ray_settings": {"errors"},
    "ray_patience": set(),
    "diagnostics": {"errors"},
    "events": {"errors"},
    "marks": set(),
    "portions": set(),
    "documents": set(),
    "links": set(),
    "code_files": set(),
    "chats": set(),
    "json_schemas": set(),
    "datafiles": {"chats", "spec", "documents"},
    "spec": {"errors", "diagnostics"},
    "plugins": {"spec"},
    "presets": {"spec", "errors", "diagnostics"},
    "sizing": {"spec", "presets", "datafiles", "errors", "portions"},
    "estimate": {"spec", "presets", "sizing", "plan", "errors", "diagnostics"},
    "templates": {"chats"},
    "validate": {
        *("spec", "sizing", "plan", "estimate", "diagnostics", "presets", "errors", "templates"),
        *("chats", "code_files", "datafiles", "documents", "json_schemas", "links", "sandbox"),
    },
    "plan": {"spec", "presets", "sizing", "diagnostics", "errors"},
    "rehearsal": {"spec", "sizing", "validate"},
    "explain": {"spec", "diagnostics", "presets", "estimate", "plan", "runtime", "errors"},
    "algos": set(),
    "arrays": set(),
    "fingerprint": set(),
    "collecting": set(),
    "batch": {"arrays"},
    "tables": {"arrays", "spec", "errors"},
    "data": {"spec", "batch", "tables", "templates", "chats", "datafiles", "documents", "errors"},
    "sandbox": {"errors"},
    "services": {"spec", "errors", "seeds"},
    "rewards": {"spec", "batch", "tables", "data", "sandbox", "services", "errors"},
    "tools": {"spec", "data", "sandbox", "templates", "errors"},
    "models": {"chats", "arrays", "spec", "presets", "templates", "errors", "marks"},
    "rollout": {"fingerprint", "spec", "batch", "models", "services", "errors"},
    "sync": {"fingerprint", "spec", "batch", "errors", "portions"},
    "recipes": {"arrays", "spec", "batch", "algos", "errors"},
    "training": {
        *("arrays", "spec", "batch", "models", "algos", "recipes", "errors", "portions", "seeds"),
    },
    "seeds": set(),
    "hosts": {
        *("plan", "spec", "batch", "tables", "models", "rollout", "training", "sync", "recipes"),
        *("algos", "arrays", "errors", "fingerprint", "marks", "run_log", "seeds", "services"),
        *("portions", "sizing"),
    },
    "roles": {
        *("plan", "spec", "batch", "tables", "data", "rewards", "hosts", "recipes", "errors"),
        *("arrays", "chats", "code_files", "sandbox", "seeds", "services", "tools"),
    },
    "cluster": {
        "plan",
        "hosts",
        "collecting",
        "errors",
        "ray_patience",
        "ray_remains",
        "ray_settings",
    },
    "runtime": {
        *("plan", "spec", "events", "batch", "tables", "data", "recipes", "hosts", "roles"),
        *("cluster", "collecting", "marks", "sync", "sizing"),
        *("errors", "diagnostics", "estimate", "run_ids", "run_lock", "run_log"),
    },
}
"""By package, the packages of ours that it may import. `cli` may import anything."""

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
    "run_ids": set(),
    "run_lock": set(),
    "run_log": set(),
    "ray_remains": set(),
    "ray_settings": set(),
    "ray_patience": {"ray"},
    "diagnostics": {"pydantic"},
    "events": {"pydantic"},
    "spec": {"pydantic", "pydantic_core", "ruamel", "typing_extensions", "yaml"},
    "presets": set(),
    "sandbox": set(),
    "code_files": set(),
    "sizing": set(),
    "estimate": {"pydantic"},
    "templates": {"jinja2"},
    "validate": {"jinja2"},
    "plan": {"pydantic"},
    "rehearsal": set(),
    "marks": set(),
    "portions": set(),
    "services": {"httpcore2"},
    "collecting": set(),
    "arrays": {"numpy"},
    "tables": {"numpy"},
    "fingerprint": {"torch"},
    "algos": {"torch", "numpy"},
    "batch": {"torch", "numpy"},
    "recipes": {"torch", "numpy"},
    "cluster": {"ray"},
    "runtime": {"torch", "pydantic", "fsspec"},
}
"""By package, what it may import from outside of the standard library, where that is limited.
typing_extensions comes with pydantic, which wants its TypedDict before Python 3.12."""

INSIDE = {"vllm_worker.py"}
"""Files that such a library imports itself."""


def package_of(path: Path) -> str:
    return path.relative_to(ENGINE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Imported modules, their lines, and whether they stand at the top of the module."""
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
                yield alias.name, node.lineno, id(node) in top
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, node.lineno, id(node) in top


def engine_files() -> list[Path]:
    return sorted(
        path
        for path in ENGINE.rglob("*.py")
        if package_of(path) not in ("cli", "__init__", "__main__")
    )


def test_every_package_has_a_line_in_the_table() -> None:
    assert {package_of(path) for path in engine_files()} <= OURS.keys()


@pytest.mark.parametrize("path", engine_files(), ids=lambda path: str(path.relative_to(ENGINE)))
def test_imports_follow_the_table(path: Path) -> None:
    own = package_of(path)
    wrong = []
    for module, line, _ in imports_of(path):
        head, _, rest = module.partition(".")
        if head == "coloop":
            package = rest.partition(".")[0]
            if package and package != own and package not in OURS[own]:
                wrong.append(f"line {line}: {own} may not import {module}")
        elif head == "coloop_server":
            wrong.append(f"line {line}: the engine may not import the service")

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", engine_files(), ids=lambda path: str(path.relative_to(ENGINE)))
def test_outside_imports_follow_the_table(path: Path) -> None:
    import sys

    own = package_of(path)
    wrong = []
    for module, line, at_top in imports_of(path):
        head = module.partition(".")[0]
        if head in sys.stdlib_module_names or head in ("coloop", "coloop_server"):
            continue
        if own in LIGHT and head in HEAVY:
            wrong.append(f"line {line}: {own} is light and may not import {module}")
        if own in OUTSIDE and head not in OUTSIDE[own]:
            wrong.append(f"line {line}: {own} may not import {module}")
        if head in ("vllm", "deepspeed") and at_top and path.name not in INSIDE:
            wrong.append(f"line {line}: {module} is imported inside the function that needs it")

    assert not wrong, "\n".join(wrong)


def test_ray_is_imported_only_in_its_files() -> None:
    found = {
        str(path.relative_to(ENGINE))
        for path in engine_files()
        for module, _, _ in imports_of(path)
        if module.partition(".")[0] == "ray"
    }

    cluster = {f"cluster/ray_{name}.py" for name in ("cluster", "joining", "probe", "spares")}
    assert found == cluster | {"ray_patience.py"}
