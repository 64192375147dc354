"""What the gallery shows is worked out once for a text, a version and a machine. Counts, no
clocks."""

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coloop.spec import presets
from coloop_server.presets import gallery
from coloop_server.presets.gallery import KEPT, Gallery

NAMES = ("grpo-arithmetic", "spin", "grpo-qwen2.5-7b-8xH100")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[presets.LoopPreset]:
    """A few presets instead of all; a test may change them."""
    found = [one for one in presets.list_loops() if one.name in NAMES]
    monkeypatch.setattr(presets, "list_loops", lambda: tuple(found))
    return found


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the presets that are read, sized, checked and planned, in their order."""
    names: list[str] = []
    real = gallery.work_out

    def counted(preset: presets.LoopPreset) -> gallery.LoopPresetEntry:
        names.append(preset.name)
        return real(preset)

    monkeypatch.setattr(gallery, "work_out", counted)
    return names


def test_each_is_worked_out_once_and_the_next_server_knows(
    tmp_path: Path, shown: list[presets.LoopPreset], worked_out: list[str]
) -> None:
    first = Gallery(tmp_path)
    told = first.list()
    assert sorted(worked_out) == sorted(NAMES)
    assert [one.name for one in told] == [one.name for one in shown]

    assert first.list() == told
    assert Gallery(tmp_path).list() == told
    assert len(worked_out) == len(NAMES)


def test_only_a_text_that_changed_is_worked_out_again(
    tmp_path: Path, shown: list[presets.LoopPreset], worked_out: list[str]
) -> None:
    known = Gallery(tmp_path)
    before = known.list()
    worked_out.clear()
    place = next(at for at, one in enumerate(shown) if one.name == "grpo-arithmetic")
    other = tmp_path / "other.yaml"
    text = (
        shown[place].path.read_text().replace("kind: actor", "kind: actor\n    note: It writes.", 1)
    )
    other.write_text(text)
    shown[place] = replace(shown[place], path=other, title="Another")

    after = known.list()

    assert worked_out == ["grpo-arithmetic"]
    assert after[place] == before[place].model_copy(update={"title": "Another"})
    assert Gallery(tmp_path).list() == after
    assert len(worked_out) == 1


def test_another_machine_or_version_is_asked_anew(
    tmp_path: Path,
    shown: list[presets.LoopPreset],
    worked_out: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Gallery(tmp_path).list()
    monkeypatch.setenv("COLOOP_CORES", "3")
    Gallery(tmp_path).list()
    assert len(worked_out) == 2 * len(NAMES)

    monkeypatch.setattr(gallery, "sources", lambda: "another version")
    Gallery(tmp_path).list()

    assert len(worked_out) == 3 * len(NAMES)


@pytest.mark.parametrize("broken", ["", "{", "[1]", '{"x": {"name": 1}}'])
def test_what_was_kept_and_cannot_be_read_is_worked_out(
    tmp_path: Path, shown: list[presets.LoopPreset], worked_out: list[str], broken: str
) -> None:
    del shown[1:]
    (tmp_path / KEPT).write_text(broken)

    told = Gallery(tmp_path).list()

    assert worked_out == [told[0].name]
    assert Gallery(tmp_path).list() == told


def test_the_route_says_what_the_engine_says(
    client: TestClient, shown: list[presets.LoopPreset], worked_out: list[str]
) -> None:
    told = {one["name"]: one for one in client.get("/api/presets/loops").json()}
    assert client.get("/api/presets/loops").json() == list(told.values())

    assert len(worked_out) == len(NAMES)
    assert told["grpo-arithmetic"]["runnable_here"] is True
    assert told["grpo-qwen2.5-7b-8xH100"]["traits"]["needs_gpus"] is True
    edges = told["grpo-arithmetic"]["sketch"]["edges"]
    assert any(edge["teaches"] for edge in edges)
    assert not all(edge["teaches"] for edge in edges)
