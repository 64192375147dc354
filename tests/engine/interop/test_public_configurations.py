"""Public configurations: values of settings, each with repository, path and commit.

Arguments of commands as `coloop.interop.shell` reads them from the scripts, settings of TRL's YAML
files and scripts; keys of services are left out.
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


def text_of(configuration: dict[str, Any]) -> tuple[str, str]:
    """A configuration as text, with a name for it."""
    if "settings" in configuration:
        return json.dumps(configuration["settings"], indent=1), f"{configuration['trainer']}.yaml"
    words = ["python", "-m", configuration["program"], *configuration["arguments"]]
    return shlex.join(words), "run.sh"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nine_of_ten_settings_are_carried_or_named(framework: str) -> None:
    rows = configurations(framework)
    kinds: Counter[str] = Counter()
    for row in rows:
        text, name = text_of(row)
        imported = import_text(text, name=name)
        assert parse(imported.text).spec is not None, row["path"]
        kinds.update(fate.kind for fate in imported.settings)

    assert len(rows) >= 40
    assert kinds["carried"] + kinds["not_carried"] >= 0.9 * kinds.total(), kinds
