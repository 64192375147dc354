"""Datasets of other frameworks as sources of ours."""

from __future__ import annotations

from typing import Any


def file_source(value: Any) -> dict[str, Any]:
    """A source for a path, the first of several paths, or a hub id."""
    path = str(value[0] if isinstance(value, list) and value else value)
    is_file = "." in path.rpartition("/")[2] and not path.rpartition("/")[2][-1].isdigit()
    if not is_file and path.count("/") <= 1 and path[:1] not in ("~", ".", "/"):
        return {"type": "hub", "path": path}
    return {"type": "file", "path": path}
