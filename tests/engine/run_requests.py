"""Requests to a run in progress."""

from pathlib import Path

from coloop.runtime.control import CONTROL_FILE
from coloop.runtime.run_files.events import ControlRequest


def request(folder: Path, what: ControlRequest) -> None:
    with (folder / CONTROL_FILE).open("a", encoding="utf-8") as file:
        file.write(what.model_dump_json() + "\n")
