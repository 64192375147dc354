"""Packages that add to the language: what is found, and what of it cannot be used."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coloop.errors import BackendMissing
from coloop.spec import installed
from coloop.spec.algorithms.registry import _refusal
from coloop.spec.io import parse
from coloop.spec.plugins import AdvantageRecord, AlgorithmPlugin, AlgorithmRecord

GROUP = "coloop.rewards"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, and a language that has not looked for any yet."""
    monkeypatch.setenv("COLOOP_PLUGINS", "")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(installed, "LOADED", [])
    monkeypatch.setattr(installed, "PROBLEMS", [])
    installed._packages.cache_clear()
    yield tmp_path
    installed._packages.cache_clear()
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").parent == tmp_path:
            del sys.modules[name]


def package(site: Path, name: str, code: str, group: str = GROUP, **entries: str) -> None:
    """A package `name` with one module of that name, as pip would have written it."""
    (site / f"{name}.py").write_text(code, encoding="utf-8")
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{entry} = {name}:{place}" for entry, place in entries.items()]
    (folder / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]) + "\n")


def code_of(*names: str) -> str:
    lines = [f"{name} = SimpleNamespace(name={name!r})" for name in names]
    return "\n".join(["from types import SimpleNamespace", *lines])


def found(own_names: tuple[str, ...] = (), **given: Any) -> set[str]:
    return set(installed.records(GROUP, SimpleNamespace, own_names, **given))


def reasons() -> dict[tuple[str, str], str]:
    return {(one.package, one.name): one.reason for one in installed.PROBLEMS}


def test_records_of_a_package_are_found_by_the_names_of_its_entry_points(site: Path) -> None:
    package(site, "one_pack", code_of("alpha", "beta"), alpha="alpha", beta="beta")
    package(site, "other_pack", code_of("gamma"), group="coloop.tasks", gamma="gamma")

    assert found() == {"alpha", "beta"}
    assert [(one.package, one.name) for one in installed.LOADED] == [
        ("one_pack 1.0", "alpha"),
        ("one_pack 1.0", "beta"),
    ]


def test_a_package_that_cannot_be_imported_is_told_and_harms_no_other(site: Path) -> None:
    package(site, "broken_pack", "import nothing_of_this_name", broken="it")
    package(site, "sound_pack", code_of("sound"), sound="sound")

    assert found() == {"sound"}
    assert "nothing_of_this_name" in reasons()["broken_pack 1.0", "broken"]


def test_a_name_of_two_packages_is_neithers_and_both_are_named(site: Path) -> None:
    package(site, "first_pack", code_of("shared", "own"), shared="shared", own="own")
    package(site, "second_pack", code_of("shared"), shared="shared")

    assert found() == {"own"}
    assert "second_pack 1.0" in reasons()["first_pack 1.0", "shared"]
    assert "first_pack 1.0" in reasons()["second_pack 1.0", "shared"]


def test_a_name_of_coloop_stays_what_it_was(site: Path) -> None:
    package(site, "taking_pack", code_of("length"), length="length")

    assert found(("length",)) == set()
    assert "coloop already uses this name" in reasons()["taking_pack 1.0", "length"]


@pytest.mark.parametrize(
    ("code", "name", "reason"),
    [
        ("thing = 3", "thing", "is not a SimpleNamespace"),
        ("import types; thing = types.SimpleNamespace(name='else')", "thing", "its record `else`"),
        ("thing = None", "Thing-1", "lower-case"),
        ("raise SystemExit(1)", "thing", "SystemExit"),
    ],
)
def test_what_is_no_record_of_that_name_is_refused(
    site: Path, code: str, name: str, reason: str
) -> None:
    package(site, "odd_pack", code, **{name: "thing"})

    assert found() == set()
    assert reason in reasons()["odd_pack 1.0", name]


def test_a_record_that_does_not_fit_is_refused(site: Path) -> None:
    package(site, "odd_pack", code_of("thing"), thing="thing")

    assert found(refusal=lambda record: "it does not fit") == set()
    assert reasons() == {("odd_pack 1.0", "thing"): "it does not fit"}


def test_none_is_loaded_where_they_are_off(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(site, "one_pack", code_of("alpha"), alpha="alpha")
    monkeypatch.setenv("COLOOP_PLUGINS", "off")

    assert found() == set()


def test_a_loop_that_wants_what_could_not_be_loaded_is_told_why(site: Path) -> None:
    package(site, "broken_pack", "import nothing_of_this_name", broken="it")
    found()

    parsed = parse(
        "coloop: 1\nname: one\nschedule: {steps: 1}\n"
        "nodes: {one: {kind: reward, source: {type: builtin, name: broken}}}"
    )

    [diagnostic] = [one for one in parsed.diagnostics if one.code == "structure.unknown_value"]
    assert "broken_pack 1.0" in str(diagnostic.hint)
    assert "nothing_of_this_name" in str(diagnostic.hint)


def test_an_object_that_cannot_be_imported_is_named() -> None:
    places = {"far": "nothing_of_this_name:it"}
    registry = installed.WithPlugins({"near": 1}, places)

    assert list(registry) == ["near", "far"]
    assert registry["near"] == 1
    with pytest.raises(BackendMissing, match=r"`far` \(nothing_of_this_name:it\)"):
        registry["far"]


OWN_ADVANTAGE = AdvantageRecord(name="group_median", needs="group")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"preset": {"advantage": "group_mean"}}, None),
        ({"preset": {"advantage": "nothing_like_it"}}, "there is no advantage `nothing_like_it`"),
        ({"preset": {"clip_lower": 0.1}}, "its preset sets unknown fields: clip_lower"),
        ({"recipe": "labels"}, "`fields` and `recipe`"),
        ({"advantage": AdvantageRecord(name="gae")}, "coloop itself has the advantage `gae`"),
        ({"advantage": OWN_ADVANTAGE}, "requires `needs: group` and an `estimator`"),
        ({"advantage": OWN_ADVANTAGE, "estimator": "some_pack.maths:median"}, None),
    ],
    ids=str,
)
def test_an_algorithm_of_a_package_is_one_that_a_recipe_can_carry_out(
    fields: dict[str, Any], reason: str | None
) -> None:
    more = {key: value for key, value in fields.items() if key in ("advantage", "estimator")}
    own = {key: value for key, value in fields.items() if key not in more}
    record = AlgorithmRecord(**{"name": "median", "fields": "rewards", "recipe": "policy", **own})

    found = _refusal(AlgorithmPlugin(algorithm=record, **more))

    assert (found is None) if reason is None else (reason in str(found))
