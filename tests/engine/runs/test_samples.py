"""Texts of a run for people: which steps are shown is a matter of time, what they show is not."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.runtime import samples

Texts = dict[str, str]


def shown(ended: Any) -> Texts:
    folder = ended.folder / samples.FOLDER
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_what_is_shown_of_a_step_does_not_depend_on_which_steps_are_shown(
    runner: Callable[..., Any],
    whole: Callable[[str], Any],
    tiny: Callable[..., str],
    finished: Callable[[Any], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = shown(whole(tiny("spin")))
    monkeypatch.setattr(samples, "INTERVAL_SECONDS", 0.0)

    every = shown(finished(runner(tiny("spin"))))

    assert usual
    assert usual.items() <= every.items()
