"""Imports as specs, for tests."""

from typing import Any

from coloop.interop.bring import Imported, import_text
from coloop.spec.algorithm import node_algorithms, resolve_algorithm
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.spec.paths import find


def spec_of(imported: Imported) -> LoopSpec:
    spec = parse(imported.text).spec
    assert spec is not None
    return spec


def loop_of(text: str, name: str = "imported") -> LoopSpec:
    return spec_of(import_text(text, name=name))


def algorithm_of(spec: LoopSpec, port: str = "rewards") -> Any:
    (entry,) = node_algorithms(spec, "actor")[port]
    return resolve_algorithm(entry)


def values(spec: LoopSpec, paths: dict[str, Any]) -> dict[str, Any]:
    """The values at the paths of a dict."""
    return {path: find(spec, path).value for path in paths}


def fates(imported: Imported) -> dict[str, tuple[str, str]]:
    return {fate.name: (fate.kind, fate.why) for fate in imported.settings}
