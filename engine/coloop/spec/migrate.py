"""Versions of the language: a file of an older version is brought up to date, one step at a time.

A step is a pure function from the document of version n to that of n + 1; `MIGRATIONS[n]` is that
step. Old files load for ever; each version has a fixture. Version 0 was the draft of the
language, in which a node said its kind under `type` and an actor its completions under
`rollout.group_size`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coloop.spec.diagnostics import Diagnostic, closest

VERSION = 1
"""The version that this program reads and writes."""


def migrate(document: dict[str, Any]) -> tuple[dict[str, Any], Diagnostic | None]:
    """The document in the present version, or why it cannot be had."""
    problem = check_version(document)
    if problem is not None:
        return document, problem
    version = document["coloop"]
    while version < VERSION:
        document = MIGRATIONS[version](document)
        version += 1
    return document, None


def check_version(document: dict[str, Any]) -> Diagnostic | None:
    """Why the version of a document cannot be read, or nothing."""
    if "coloop" not in document:
        near = closest("coloop", [key for key in document if isinstance(key, str)])
        instead = f"; found `{near[0]}`" if near else ""
        return Diagnostic(
            code="version.missing",
            message=f"`coloop`, the version of the language, is missing{instead}",
            hint=f"write `coloop: {VERSION}` as the first line",
            field="coloop",
        )
    version = document["coloop"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        return Diagnostic(
            code="version.unknown",
            message=f"found {version!r}, expected a whole number up to {VERSION}"[:200],
            hint=f"write `coloop: {VERSION}`",
            field="coloop",
        )
    if version > VERSION:
        return Diagnostic(
            code="version.newer",
            message=f"the file is of version {version}; this program reads up to {VERSION}",
            hint="install a newer coloop",
            field="coloop",
        )
    return None


def _from_0(document: dict[str, Any]) -> dict[str, Any]:
    """0 to 1: `type` of a node is `kind`, `rollout.group_size` is `completions_per_prompt`."""
    nodes = document.get("nodes")
    renamed = {
        name: _node_from_0(node) if isinstance(node, dict) else node
        for name, node in (nodes.items() if isinstance(nodes, dict) else ())
    }
    return {**document, "coloop": 1, "nodes": renamed if isinstance(nodes, dict) else nodes}


def _node_from_0(node: dict[str, Any]) -> dict[str, Any]:
    if "kind" not in node and "type" in node:
        node = {("kind" if key == "type" else key): value for key, value in node.items()}
    rollout = node.get("rollout")
    if isinstance(rollout, dict) and "group_size" in rollout:
        new = {
            ("completions_per_prompt" if key == "group_size" else key): value
            for key, value in rollout.items()
        }
        node = {**node, "rollout": new}
    return node


MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {0: _from_0}
