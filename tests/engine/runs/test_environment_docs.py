"""The example of docs/environments.md runs as it stands there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coloop.runtime.run_files.events import RunStateName

PAGE = Path(__file__).resolve().parents[3] / "docs" / "environments.md"


def test_the_example_of_the_page_runs(runner: Callable[..., Any]) -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert ended.metrics("game", "episode/failed") == [0.0, 0.0]
    assert ended.metrics("white", "reward/mean")
    assert ended.metrics("black", "reward/mean")
