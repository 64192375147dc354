"""Every algorithm and every advantage of the loop language: one record for each.

Names of the language, presets, catalog, help, papers, recipes and what can run are all made from
these records. To add an algorithm: its record in `algorithms.yaml`, its mathematics in
`coloop.algorithms` if no setting expresses it, and a test with literal numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from coloop.spec.base import load_yaml
from coloop.spec.installed import records
from coloop.spec.plugins import (
    AdvantageRecord,
    AlgorithmPlugin,
    AlgorithmRecord,
    Fields,
    RecipeName,
)

_RECORDS: Final[dict[str, Any]] = load_yaml(Path(__file__).with_name("algorithms.yaml"))

REWARDS_BASE: Final[dict[str, Any]] = _RECORDS["rewards"]["base"]
"""What every algorithm of port `rewards` starts from."""
PREFERENCE_BASE: Final[dict[str, Any]] = _RECORDS["preference"]["base"]
"""What every preference algorithm of port `pairs` starts from."""
DISTILLATION_BASE: Final[dict[str, Any]] = _RECORDS["distillation"]["base"]
"""What every distillation algorithm of port `reference` starts from."""
FRAMEWORKS: Final[dict[str, str]] = _RECORDS["frameworks"]["names"]
"""By prefix, the name of a framework."""
VERSIONS: Final[dict[str, str]] = {
    name: versions["read"] for name, versions in _RECORDS["frameworks"]["versions"].items()
}
"""By prefix, the version of which the source was read; a commit where there is no release."""

_RECIPES: Final[dict[Fields, RecipeName]] = {
    "rewards": "policy",
    "preference": "preference",
    "distillation": "distillation",
}
_BASES: Final[dict[Fields, dict[str, Any]]] = {
    "rewards": REWARDS_BASE,
    "preference": PREFERENCE_BASE,
    "distillation": DISTILLATION_BASE,
    "own": {},
}


def _own_records() -> Iterator[AlgorithmRecord]:
    frameworks = _RECORDS["frameworks"]
    for fields, recipe in _RECIPES.items():
        for name, record in _RECORDS[fields]["algorithms"].items():
            yield AlgorithmRecord(name=name, fields=fields, recipe=recipe, **record)
        for name, preset in frameworks[fields].items():
            framework, _, family = name.partition("-")
            changes = frameworks["changes"].get(fields, {}).get(framework, {})
            record = {
                "family": family,
                "preset": preset,
                "version": VERSIONS[framework],
                "changed": changes.get(name, changes.get("all", "")),
                "since": frameworks["versions"][framework]["before"],
                **frameworks["exceptions"].get(name, {}),
            }
            yield AlgorithmRecord(
                name=name, framework=framework, fields=fields, recipe=recipe, **record
            )
    for name, record in _RECORDS["own"].items():
        yield AlgorithmRecord(name=name, **record)


_OWN: Final = {record.name: record for record in _own_records()}
_OWN_ADVANTAGES: Final = {
    name: AdvantageRecord(name=name, **record) for name, record in _RECORDS["advantages"].items()
}


def _refusal(plugin: AlgorithmPlugin) -> str | None:
    record, advantage = plugin.algorithm, plugin.advantage
    if _RECIPES.get(record.fields) != record.recipe or record.recipe is None:
        return (
            "its `fields` and `recipe` are to be `rewards` and `policy`, or both `preference`, or "
            "both `distillation`"
        )
    if advantage is not None and advantage.name in _OWN_ADVANTAGES:
        return f"coloop itself has the advantage `{advantage.name}`"
    if advantage is not None and (advantage.needs != "group" or not plugin.estimator):
        return f"its advantage `{advantage.name}` requires `needs: group` and an `estimator`"
    if advantage is not None and _FIRST.setdefault(advantage.name, record.name) != record.name:
        return f"`{_FIRST[advantage.name]}` has the advantage `{advantage.name}` as well"
    others = sorted(record.preset.keys() - _BASES[record.fields].keys())
    if others:
        return f"its preset sets unknown fields: {', '.join(others)}"
    wanted = record.preset.get("advantage", "none")
    if wanted not in _OWN_ADVANTAGES and (advantage is None or advantage.name != wanted):
        return f"there is no advantage `{wanted}`"
    return None


_FIRST: Final[dict[str, str]] = {}
"""By advantage of a package, the algorithm that brought it first."""

_PLUGINS: Final = records("coloop.algorithms", AlgorithmPlugin, _OWN, _refusal)

ALGORITHMS: Final[dict[str, AlgorithmRecord]] = {
    **_OWN,
    **{name: plugin.algorithm for name, plugin in _PLUGINS.items()},
}
"""By name, presets of frameworks included; in the order in which forms and help list them, those of
installed packages last."""

_OF_PLUGINS: Final = {
    plugin.advantage.name: plugin for plugin in _PLUGINS.values() if plugin.advantage is not None
}

ADVANTAGES: Final[dict[str, AdvantageRecord]] = {
    **_OWN_ADVANTAGES,
    **{name: plugin.advantage for name, plugin in _OF_PLUGINS.items() if plugin.advantage},
}
"""By the name that `advantage` takes."""

ESTIMATORS_OF_PLUGINS: Final = {name: plugin.estimator for name, plugin in _OF_PLUGINS.items()}


def families() -> tuple[AlgorithmRecord, ...]:
    """The algorithms without the presets of frameworks."""
    return tuple(record for record in ALGORITHMS.values() if not record.family)


def names_with(fields: Fields) -> tuple[str, ...]:
    return tuple(record.name for record in ALGORITHMS.values() if record.fields == fields)


def family_of(name: str) -> str:
    """The algorithm that a name is a setting of: `trl-grpo` is `grpo`."""
    record = ALGORITHMS.get(name)
    return record.family or name if record else name


def texts_of(name: str) -> AlgorithmRecord:
    """The record whose title, help, formula and paper describe an algorithm: its own where it has
    them, else its family's (`trl-grpo`: those of `grpo`)."""
    record = ALGORITHMS[name]
    return record if record.title or not record.family else ALGORITHMS[record.family]


def help_of(name: str) -> str:
    """What an algorithm does; of a framework's preset also whose defaults it has, of which version,
    and what differs from the version read before."""
    record, texts = ALGORITHMS[name], texts_of(name)
    if record.framework is None:
        return texts.help
    parts = [f"With the defaults of {FRAMEWORKS[record.framework]} {record.version}."]
    if record.changed:
        parts.append(f"Since {record.since}: {record.changed}" if record.since else record.changed)
    elif record.since:
        parts.append(f"Unchanged since {record.since}.")
    return " ".join([texts.help, *parts])


def title_of(name: str) -> str:
    """The title of an algorithm without its framework: `trl-grpo` is `GRPO`."""
    texts = texts_of(name)
    return texts.title or texts.name


def advantages_that_need(what: str) -> frozenset[str]:
    """The advantages that read a group, the values of a critic, or a greedy row."""
    return frozenset(record.name for record in ADVANTAGES.values() if record.needs == what)


PRESETS: Mapping[str, Mapping[str, Any]] = {
    record.name: record.preset for record in ALGORITHMS.values() if record.fields != "own"
}
"""By name, what differs from the base of its fields, e.g. `REWARDS_BASE`."""

AFTER_BASELINE: frozenset[str] = frozenset(
    record.name for record in ALGORITHMS.values() if record.framework == "openrlhf"
)
"""Presets whose rewards are clipped, and lose the KL of each token, after the baseline."""

RUNNABLE_ALGORITHMS = frozenset(record.name for record in families() if record.recipe is not None)
"""Algorithms that `run` carries out; the others can be drawn, checked and planned."""
