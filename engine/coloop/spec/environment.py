"""Where an environment comes from: a class of the user's, or a game of TextArena.

All of them are used by one contract (`data.tools.turns`): reset, step, rewards, end.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from coloop.spec.base import Name, Number, PlainValue, Section, Text, Whole, either, setting
from coloop.spec.reward import CODE_MEMORY_MIB

ENVIRONMENT_SIGNATURE: Final = (
    "class Environment:\n"
    "    def reset(self, row):\n"
    "        return row['prompt']\n"
    "    def step(self, text):\n"
    "        return {'observation': '', 'reward': 0.0, 'score': 0.0, 'done': True}\n"
)
PROCESSES: Final = 4
"""Default number of processes of an environment."""


class EnvironmentProcesses(Section):
    """The sandboxed processes in which environments run."""

    timeout_seconds: Number = setting(10.0, gt=0, le=3600, level="advanced", unit="seconds")
    """Maximum time of a `reset` or `step`."""
    memory_mib: Whole = setting(CODE_MEMORY_MIB, ge=64, le=1_048_576, level="advanced", unit="MiB")
    """Maximum memory of a process."""
    processes: Whole = setting(PROCESSES, ge=1, le=256, level="advanced")
    """Number of processes, which share the episodes."""


class PythonEnvironment(EnvironmentProcesses):
    """A class `Environment` of yours, in the loop or in a file."""

    type: Literal["python"]
    """A class `Environment` of yours."""
    code: Text | None = setting(None, widget="code", starter=ENVIRONMENT_SIGNATURE)
    """Source of a class `Environment` with `reset(row)` and `step(text)`."""
    file: Text | None = setting(None, widget="path", level="advanced")
    """A file with that class instead, relative to the folder of the loop."""

    _has_one = either("code", "file")


class EntryEnvironment(EnvironmentProcesses):
    """A class by its module: of an installed package, or of a file beside the loop."""

    type: Literal["entry"]
    """A class with the interface of Gymnasium, or with that of `Environment`."""
    entry: Annotated[Text, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] = setting()
    """`module:Class`, e.g. `mazes.text:Maze`; a file beside the loop comes before installed
    packages."""
    settings: dict[str, PlainValue] = setting({})
    """Arguments of the class."""
    row_settings: tuple[Name, ...] = setting((), level="advanced")
    """Columns of the row that are arguments as well."""


class TextArenaEnvironment(EnvironmentProcesses):
    """A game of TextArena, for one or several players."""

    type: Literal["textarena"]
    """A game of TextArena."""
    game: Text = setting()
    """Id of the game, e.g. `TicTacToe-v0`."""
    settings: dict[str, PlainValue] = setting({})
    """Arguments of the game, e.g. `{piles: [3, 4, 5]}` of Nim."""
    row_settings: tuple[Name, ...] = setting((), level="advanced")
    """Columns of the row that are arguments as well."""
    errors: Whole | None = setting(None, ge=0)
    """Invalid moves in a row that a player may make before it loses; null: as the game has it,
    usually one."""


EnvironmentSource = Annotated[
    PythonEnvironment | EntryEnvironment | TextArenaEnvironment, Field(discriminator="type")
]
