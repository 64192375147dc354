"""The Python that an environment's processes run, by where it comes from.

Each gives a module with a class `Environment`, of which `inside/instances.py` keeps instances.
"""

import importlib.util
import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from coloop.errors import DataError
from coloop.sandbox.code_files import CodeFile, modules_beside
from coloop.spec.environment import EntryEnvironment, TextArenaEnvironment

INSIDE: Final = Path(__file__).parent / "inside"
NO_TEXTARENA: Final = (
    "a game of TextArena needs the package textarena: pip install 'coloop[textarena]'"
)
GAME: Final = re.compile(r'\(\s*(?:id=)?"([^"]+)"\s*,\s*entry_point="([\w.]+):(\w+)"')
VERSIONS: Final = ("", "-raw", "-train")


def instances(code: CodeFile) -> CodeFile:
    """Code with a class `Environment`, and the instances of it."""
    return CodeFile(f"{code.source}\n\n{source_of('instances')}", code.modules)


def source_of(name: str) -> str:
    return (INSIDE / f"{name}.py").read_text(encoding="utf-8")


def entry_code(node: str, source: EntryEnvironment, root: Path) -> CodeFile:
    """A class of a file beside the loop, or else of an installed package. Raises DataError."""
    module, _, name = source.entry.partition(":")
    head = f"from {module} import {name} as coloop_entry"
    try:
        modules = modules_beside(head, root.resolve())
    except (OSError, ValueError) as error:
        raise DataError(
            f"{node}: source.entry: `{module}` in {root} cannot be read: {error}",
            node,
            "source.entry",
        ) from None
    if not modules and not _is_installed(module):
        raise DataError(
            f"{node}: source.entry: there is no module `{module}`: neither a file "
            f"{module.replace('.', '/')}.py in {root}, nor an installed package",
            node,
            "source.entry",
        )
    settings = _settings(source.settings, source.row_settings)
    return CodeFile(f"{head}\n{settings}\n\n{source_of('entry')}", modules)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def arena_code(node: str, source: TextArenaEnvironment, players: int) -> CodeFile:
    """A game of TextArena. Raises DataError if the package or the game is not there."""
    games = textarena_games()
    if not games:
        raise DataError(f"{node}: {NO_TEXTARENA}", node, "source.game")
    if source.game not in games:
        near = get_close_matches(source.game, games, 3, 0.4)
        hint = f"; did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""
        raise DataError(
            f"{node}: source.game: TextArena has no game `{source.game}`{hint}",
            node,
            "source.game",
        )
    module, name = games[source.game]
    head = "\n".join(
        (
            f"from {module} import {name} as coloop_game",
            f"COLOOP_GAME = {source.game!r}",
            f"COLOOP_PLAYERS = {players}",
            f"COLOOP_ERRORS = {source.errors!r}",
            _settings(source.settings, source.row_settings),
        )
    )
    return CodeFile(f"{head}\n\n{source_of('arena')}", {})


def _settings(settings: Mapping[str, Any], row_settings: tuple[str, ...]) -> str:
    written = json.dumps(dict(settings))
    return (
        f"import json as coloop_json\nCOLOOP_SETTINGS = coloop_json.loads({written!r})\n"
        f"COLOOP_ROW_SETTINGS = {row_settings!r}"
    )


@lru_cache(maxsize=1)
def textarena_games() -> Mapping[str, tuple[str, str]]:
    """Module and class of each game by its id, read from the registry of the installed package
    without importing it; empty if it is not installed."""
    found = importlib.util.find_spec("textarena")
    if found is None or found.origin is None:
        return {}
    registry = Path(found.origin).parent / "envs" / "__init__.py"
    games: dict[str, tuple[str, str]] = {}
    for line in registry.read_text(encoding="utf-8").splitlines():
        match = None if line.lstrip().startswith("#") else GAME.search(line)
        if match is not None:
            games.update({match[1] + end: (match[2], match[3]) for end in VERSIONS})
    return games
