"""Who goes on with a run keeps what was decided for it, unless what that rests on has changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coloop.plan.settings.processor import Begun
from coloop.runtime.checkpoints.pinned_settings import (
    DECIDED_ANEW,
    MACHINE_FILE,
    PLAN_FILE,
    begun_in,
)
from coloop.runtime.run_files.events import RunStateName
from coloop.workers.settings import HostSettings
from coloop.workers.worker import Worker

Run = Callable[..., Any]

ROWS = 3
"""Texts at once that no resolver chooses here."""


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Texts at once of the engines with which hosts are built."""
    found: list[int] = []
    build = Worker.__init__

    def noted(host: Worker, settings: HostSettings) -> None:
        found.append(settings.weights[0].engines[0].max_num_seqs)
        build(host, settings)

    monkeypatch.setattr(Worker, "__init__", noted)
    return found


def change(folder: Path, name: str, **values: Any) -> None:
    path = folder / name
    known = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(known | values), encoding="utf-8")


@pytest.fixture
def stopped(runner: Run, small: str) -> Any:
    """A run that began with other settings than would be chosen now."""
    ended = runner(small, stop_at=lambda event: event.get("step") == 1)
    plan = ended.plan()
    plan["weights"][0]["engines"][0]["max_num_seqs"] = ROWS
    change(ended.folder, PLAN_FILE, weights=plan["weights"])
    return ended


def told(ended: Any) -> list[str]:
    return [one["message"] for one in ended.of("alert", code=DECIDED_ANEW)]


def test_what_was_decided_holds_on(
    stopped: Any, runner: Run, small: str, hosted: list[int]
) -> None:
    ended = runner(small, resume=stopped)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert hosted == [ROWS]
    assert told(ended) == []
    assert ended.plan()["weights"][0]["engines"][0]["max_num_seqs"] == ROWS


def another_loop(folder: Path, text: str) -> str:
    return text.replace("max: 3}", "max: 4}")


def another_machine(folder: Path, text: str) -> str:
    change(folder, MACHINE_FILE, cores=64)
    return text


def another_version(folder: Path, text: str) -> str:
    change(folder, PLAN_FILE, of_another_version=1)
    return text


def other_pools(folder: Path, text: str) -> str:
    pools = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))["pools"]
    change(folder, PLAN_FILE, pools=[pools[0] | {"name": "elsewhere"}])
    return text


@pytest.mark.parametrize(
    ("change_it", "words"),
    [
        (another_loop, "the loop has changed"),
        (another_machine, "the machine has changed (64 cores then, "),
        (other_pools, "the pools have changed (elsewhere then, main now)"),
        (another_version, "plan.json is damaged, or was written by another version"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_where_it_rests_on_something_else_now_it_is_decided_anew_and_told(
    change_it: Callable[[Path, str], str],
    words: str,
    stopped: Any,
    runner: Run,
    small: str,
    hosted: list[int],
) -> None:
    ended = runner(change_it(stopped.folder, small), resume=stopped)

    assert ended.state is RunStateName.FINISHED, ended.error
    [message] = told(ended)
    assert words in message
    assert change_it is another_version or f"(was {ROWS})" in message
    assert hosted[0] != ROWS
    assert ended.plan()["weights"][0]["engines"][0]["max_num_seqs"] == hosted[0]


def test_the_same_settings_for_another_reason_are_no_news(runner: Run, small: str) -> None:
    """As on a machine without bfloat16 of a run that began with it: it holds on."""
    begun = runner(small, stop_at=lambda event: event.get("step") == 1)
    weights = begun.plan()["weights"]
    weights[0]["dtypes"]["reason"] = "as that machine would have it"
    change(begun.folder, PLAN_FILE, weights=weights)
    change(begun.folder, MACHINE_FILE, cores=64)

    ended = runner(small, resume=begun)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert told(ended) == []


@pytest.mark.parametrize("change_it", [another_machine, another_version, another_loop])
def test_what_results_rest_on_holds_on_whatever_has_changed(
    change_it: Callable[[Path, str], str], stopped: Any, runner: Run, small: str
) -> None:
    weights = stopped.plan()["weights"]
    narrow = {"matrices": "float32", "rest": "float32", "compute": "bfloat16"}
    weights[0]["dtypes"] |= {**narrow, "engine": "bfloat16"}
    change(stopped.folder, PLAN_FILE, weights=weights)

    ended = runner(change_it(stopped.folder, small), resume=stopped)

    assert ended.state is RunStateName.FINISHED, ended.error
    found = ended.plan()["weights"][0]["dtypes"]
    assert (found["compute"], found["engine"]) == ("bfloat16", "bfloat16")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '{"weights": [{"name": "a", "dtypes": {"compute": "bfloat16"}}],'
            ' "pools": [{"workers": 2}]}',
            Begun(dtypes=(("a", "bfloat16"),), workers=2),
        ),
        (
            '{"weights": [{"name": "a", "dtypes": {"compute": "odd"}}], "pools": [{"workers": 0}]}',
            Begun(dtypes=(), workers=1),
        ),
        ('{"weights": [{"name": "a"}], "pools": []}', None),
        ("{", None),
        ("[]", None),
    ],
)
def test_what_a_run_began_with_is_read_of_any_version(
    text: str, found: Begun | None, tmp_path: Path
) -> None:
    (tmp_path / PLAN_FILE).write_text(text, encoding="utf-8")

    assert begun_in(tmp_path) == found
    assert begun_in(tmp_path / "other") is None
    assert begun_in(None) is None
