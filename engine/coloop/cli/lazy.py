"""Sub-commands whose modules are imported when they are called, not when help is shown.

A delegated command is registered with its name and one line of help. When it is called, its module
is imported, and its function, with its own arguments, replaces the placeholder.
"""

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from typing import Any

import typer
from typer import _click
from typer.core import TyperGroup

from coloop.errors import SettingInvalid
from coloop.workers import collecting

DELEGATED: dict[str, tuple[str, str]] = {
    "new": ("coloop.cli.begin", "new_command"),
    "run": ("coloop.cli.run", "run_command"),
    "rehearse": ("coloop.cli.rehearse", "rehearse_command"),
    "watch": ("coloop.cli.watch", "watch_command"),
    "export": ("coloop.cli.export", "export_command"),
    "backup": ("coloop.cli.serving", "backup_command"),
    "restore": ("coloop.cli.serving", "restore_command"),
    "runs": ("coloop.cli.watch", "runs_app"),
}
"""Name to module and function, or a group of commands."""


class LazyGroup(TyperGroup):
    """A group that builds delegated commands when they are called."""

    def invoke(self, ctx: _click.Context) -> Any:
        """Run the command. An invalid environment variable or a missing library of an extra gives
        one line on standard error and exit code 1."""
        try:
            return super().invoke(ctx)
        except SettingInvalid as invalid:
            raise _click.ClickException(str(invalid)) from invalid
        except ModuleNotFoundError as missing:
            name = (missing.name or "").partition(".")[0]
            extra = extra_of(name)
            if extra is None:
                raise
            message = f"this command needs `{name}`: pip install 'coloop[{extra}]'"
            raise _click.ClickException(message) from missing

    def resolve_command(
        self, ctx: _click.Context, args: list[str]
    ) -> tuple[str | None, _click.Command | None, list[str]]:
        """The command that the arguments call."""
        if args and args[0] in DELEGATED:
            self.commands[args[0]] = build_command(args[0])
        return super().resolve_command(ctx, args)


def build_command(name: str) -> _click.Command:
    """The command behind a delegated name."""
    module, function = DELEGATED[name]
    with collecting.not_while_loading():
        loaded = import_module(module)
    command = getattr(loaded, function, None)
    if command is None:
        raise typer.BadParameter(f"this version has no command `{name}`")
    if isinstance(command, typer.Typer):
        return typer.main.get_command(command)
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name)(command)
    return typer.main.get_command(single)


LIBRARIES: tuple[tuple[str, str | None], ...] = (
    ("pydantic", None),
    ("torch", "engine"),
    ("transformers", "engine"),
    ("tokenizers", "engine"),
    ("ray", "engine"),
    ("pyarrow", "engine"),
    ("fastapi", "server"),
    ("uvicorn", "server"),
    ("sqlalchemy", "server"),
    ("websockets", "server"),
    ("vllm", "vllm"),
    ("deepspeed", "deepspeed"),
    ("peft", "lora"),
)
"""Module (its distribution has the same name) and the extra that installs it."""


def extra_of(module: str) -> str | None:
    """The extra that installs a module; None if no extra does."""
    if module in dict(LIBRARIES):
        return dict(LIBRARIES)[module]
    try:
        demands = requires("coloop") or []
    except PackageNotFoundError:
        return None
    for demand in demands:
        match = re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", demand)
        if match and match[1].replace("-", "_").lower() == module and match[2] != "all":
            return match[2]
    return None
