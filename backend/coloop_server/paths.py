"""Where paths in a spec may point when the spec comes over HTTP: inside the allowed roots.

A spec names files (data, reward code, model folders). Over HTTP it need not be the person at this
machine who names them, so every such field is held against the roots, after links are followed.
Which fields are paths is said by the spec itself (`x-widget: path`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from coloop_server.errors import NotAllowed

URL_MARK = "://"


def is_inside(path: Path, roots: Sequence[Path]) -> bool:
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError):
        return False
    return any(resolved.is_relative_to(root) for root in roots)


def check_inside(text: str, roots: Sequence[Path], what: str) -> Path:
    """The path that a client named, as long as it lies inside the roots."""
    path = Path(text).expanduser() if text.startswith("~") else roots[0] / text
    if "\0" in text or not is_inside(path, roots):
        raise NotAllowed(
            "path.outside",
            f"{what}: {text!r} lies outside of the folders that this server may use "
            f"({', '.join(map(str, roots))}); COLOOP_ALLOWED_ROOTS adds one",
            {"path": text},
        )
    return path.resolve()


def check_spec_paths(spec: BaseModel, roots: Sequence[Path]) -> None:
    """Refuse a spec of which any path leads outside."""
    for field, text in spec_paths(spec):
        if URL_MARK in text and not text.startswith("file:"):
            continue
        check_inside(text.removeprefix("file://"), roots, field)


def spec_paths(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Every (field, path) of a spec."""
    match value:
        case BaseModel():
            for name, info in type(value).model_fields.items():
                extra = info.json_schema_extra
                is_path = isinstance(extra, dict) and extra.get("x-widget") == "path"
                field = f"{at}.{info.alias or name}".lstrip(".")
                item = getattr(value, name)
                if isinstance(item, str) and is_path:
                    yield field, item
                else:
                    yield from spec_paths(item, field)
        case dict():
            for key, item in value.items():
                yield from spec_paths(item, f"{at}.{key}".lstrip("."))
        case tuple() | list():
            for index, item in enumerate(value):
                yield from spec_paths(item, f"{at}.{index}")
