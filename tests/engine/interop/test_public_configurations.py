"""Public configurations: values of arguments, each with repository, path and commit.

The arguments of each command as `coloop.interop.shell` read them from the script.
"""

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coloop.interop.bring import import_text
from coloop.spec.io import parse

FOLDER = Path(__file__).with_name("configurations")
FRAMEWORKS = sorted(file.stem for file in FOLDER.glob("*.jsonl"))


def configurations(framework: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{framework}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def command_of(configuration: dict[str, Any]) -> str:
    return shlex.join(["python", "-m", configuration["program"], *configuration["arguments"]])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nine_of_ten_settings_are_carried_or_named(framework: str) -> None:
    rows = configurations(framework)
    kinds: Counter[str] = Counter()
    for row in rows:
        imported = import_text(command_of(row), name=row["path"].rpartition("/")[2])
        assert parse(imported.text).spec is not None, row["path"]
        kinds.update(fate.kind for fate in imported.settings)

    assert len(rows) >= 40
    assert kinds["carried"] + kinds["not_carried"] >= 0.9 * kinds.total(), kinds
