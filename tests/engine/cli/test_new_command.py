"""`coloop new`: what it writes, what it refuses, and that what it writes trains."""

import json

import pytest

from coloop.spec import presets
from coloop.spec.io import parse
from coloop.spec.modes import MODES


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _spec(path):
    spec = parse(path.read_text("utf-8")).spec
    assert spec is not None
    return spec


@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", list(MODES))
def test_a_new_loop_of_each_mode_is_right_and_trains(coloop, folder, mode):
    assert coloop("new", "mine", "--mode", mode).code == 0

    checked = coloop("validate", "mine.yaml", "--strict", "--json").json
    rehearsed = coloop("rehearse", "mine.yaml", "--json")

    spec = _spec(folder / "mine.yaml")
    assert (spec.name, spec.mode) == ("mine", mode)
    assert checked["diagnostics"] == []
    assert rehearsed.code == 0
    assert set(rehearsed.json["learned"].values()) == {2}


def test_without_a_mode_it_is_online_and_its_comments_stay(coloop, folder):
    outcome = coloop("new", "mine")

    written = (folder / "mine.yaml").read_text("utf-8")
    assert written == presets.load_new_text("online").replace("name: online", "name: mine", 1)
    assert "coloop rehearse mine.yaml" in outcome.out


def test_without_a_name_it_is_called_like_its_mode(coloop, folder):
    assert coloop("new", "--mode", "reward-modelling").code == 0
    assert _spec(folder / "reward-modeling.yaml").name == "reward-modeling"


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["mine.yaml"], "mine.yaml"),
        (["mine", "--out", "there.yaml"], "there.yaml"),
        (["mine", "--out", "inner"], "inner/mine.yaml"),
    ],
)
def test_a_file_or_a_folder_can_be_named(coloop, folder, arguments, file):
    (folder / "inner").mkdir()

    assert coloop("new", *arguments).code == 0
    assert _spec(folder / file).name == "mine"


def test_a_file_that_exists_stays_unless_forced(coloop, folder):
    (folder / "mine.yaml").write_text("mine", encoding="utf-8")

    refused = coloop("new", "mine")
    assert refused.code == 1
    assert "mine.yaml exists; choose another file or give --force" in refused.err
    assert (folder / "mine.yaml").read_text("utf-8") == "mine"

    assert coloop("new", "mine", "--force").code == 0
    assert _spec(folder / "mine.yaml").name == "mine"


def test_a_dash_prints_it(coloop, folder):
    outcome = coloop("new", "mine", "-m", "offline", "-o", "-")

    assert "\nname: mine\nmode: offline\n" in outcome.out
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["new", "mine", "--preset", "dpo-from-file"], "mine"),
        (["presets", "copy", "dpo-from-file", "mine.yaml"], "dpo-from-file"),
    ],
)
def test_a_preset_brings_its_files_and_those_that_are_there_stay(coloop, folder, arguments, name):
    (folder / "data").mkdir()
    (folder / "data" / "preferences.jsonl").write_text("{}\n", encoding="utf-8")

    assert coloop(*arguments).code == 0

    assert _spec(folder / "mine.yaml").name == name
    assert (folder / "data" / "preferences.jsonl").read_text("utf-8") == "{}\n"
    theirs = presets.presets_root() / "loops" / "data" / "preferences-held-out.jsonl"
    brought = folder / "data" / "preferences-held-out.jsonl"
    assert brought.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--mode", "ofline"], "there is no mode 'ofline'; choose one of online, offline, reward"),
        (["--preset", "grpp-arithmetic"], "did you mean grpo-arithmetic"),
        (["--mode", "offline", "--preset", "spin"], "give --mode or --preset, not both"),
        (["my loop"], "'my loop' is not a valid loop name"),
    ],
)
def test_what_is_not_known_is_told(coloop, folder, arguments, said):
    outcome = coloop("new", *arguments)

    assert outcome.code == 2
    assert said in " ".join(outcome.err.split())
    assert list(folder.iterdir()) == []


def test_modes_are_listed_each_with_a_sentence(coloop):
    people, machines = coloop("new", "--list"), coloop("new", "--list", "--json")

    assert all(mode.help in people.out for mode in MODES.values())
    assert [one["name"] for one in json.loads(machines.out)] == list(MODES)
