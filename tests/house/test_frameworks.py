"""Presets of frameworks have the defaults of the newest versions that the benchmarks' locks pin."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from coloop.spec.algorithms.registry import ALGORITHMS, FRAMEWORKS, VERSIONS

BENCH = Path(__file__).resolve().parents[1] / "bench"
LOCKS = ("requirements.txt", "frameworks.txt")


def pinned() -> dict[str, str]:
    """By package, its version, or the tag or commit of its repository without a leading v."""
    pins = {}
    for lock in LOCKS:
        for line in (BENCH / lock).read_text(encoding="utf-8").splitlines():
            if not line or line.startswith("#"):
                continue
            one = Requirement(line)
            versions = [clause.version for clause in one.specifier if clause.operator == "=="]
            if one.url is not None:
                versions = [one.url.rpartition("@")[2].removeprefix("v")]
            if versions:
                pins[one.name] = versions[0]
    return pins


def package_of(framework: str) -> str:
    return framework if framework in pinned() else f"{framework}-rl"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_presets_of_a_framework_were_read_at_the_pinned_version(framework: str) -> None:
    pin = pinned()[package_of(framework)]

    assert pin.startswith(VERSIONS[framework]), (
        f"{FRAMEWORKS[framework]} is pinned at {pin}, but its presets were read at "
        f"{VERSIONS[framework]}: compare the defaults of both sources, correct the presets in "
        "spec/algorithms/algorithms.yaml with what changed, and set the version there"
    )
    # a release is named whole, a commit by its beginning
    assert pin == VERSIONS[framework] or len(pin) == 40


def test_every_preset_of_a_framework_names_a_version() -> None:
    told = {record.name: record for record in ALGORITHMS.values() if record.framework}

    assert [name for name, record in told.items() if not record.version] == []
    older = {name for name, one in told.items() if one.version != VERSIONS[one.framework or ""]}
    assert all(told[name].changed for name in older), "an older version needs a reason"
