"""Names of the language against the registries that carry them out: none missing, none unknown."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from coloop.data.rewards.builtin import BUILTINS as REWARD_FUNCTIONS
from coloop.data.rewards.judging import source_of
from coloop.data.tasks import TASKS
from coloop.plan.unused import OF_SEARCHES
from coloop.spec.algorithm import PORTS_OF
from coloop.spec.algorithms.registry import (
    ADVANTAGES,
    ALGORITHMS,
    DISTILLATION_BASE,
    FRAMEWORKS,
    PREFERENCE_BASE,
    PRESETS,
    REWARDS_BASE,
    RUNNABLE_ALGORITHMS,
    families,
    family_of,
)
from coloop.spec.builtins import BUILTINS, SCORE_TO_SCORE
from coloop.spec.catalog_texts import KIND_TEXTS, PORT_TEXTS
from coloop.spec.nodes import NODE_CLASSES, RUNNABLE_KINDS, SearchNode
from coloop.spec.ports import PORTS, PortType
from coloop.spec.rollout import RUNNABLE_ENGINES, Engine
from coloop.spec.tasks import TASK_COLUMNS, TaskSource
from coloop.spec.training import RUNNABLE_BACKENDS, Backend
from coloop.validate.placement import CHECKERS

TASK_CLASSES: dict[str, Any] = {
    get_args(section.model_fields["task"].annotation)[0]: section
    for section in get_args(get_args(TaskSource)[0])
}
NAMES = {name for section in PORTS_OF for name in get_args(section.model_fields["name"].annotation)}


def test_kinds_have_sections_ports_and_words() -> None:
    assert set(NODE_CLASSES) == set(PORTS) == set(KIND_TEXTS)
    assert set(NODE_CLASSES) >= RUNNABLE_KINDS
    assert set(PORT_TEXTS) == {str(port) for port in PortType}


def test_the_algorithms_of_the_language_are_those_that_have_a_record() -> None:
    assert set(ALGORITHMS) == NAMES
    assert {record.name for record in families()} == {family_of(name) for name in NAMES}
    for record in ALGORITHMS.values():
        assert record.framework in (None, *FRAMEWORKS), record.name
        assert record.family or record.framework is None, record.name
        assert not record.family or ALGORITHMS[record.family].fields == record.fields, record.name


def test_every_algorithm_has_words() -> None:
    for record in families():
        assert all((record.title, record.help, record.formula, record.paper)), record.name


def test_presets_set_fields_that_there_are() -> None:
    bases = {
        "rewards": REWARDS_BASE,
        "preference": PREFERENCE_BASE,
        "distillation": DISTILLATION_BASE,
    }
    for name, preset in PRESETS.items():
        assert preset.keys() <= bases[ALGORITHMS[name].fields].keys(), name
        assert preset.get("advantage", "none") in ADVANTAGES, name


def test_every_algorithm_that_runs_has_a_recipe() -> None:
    recipes = pytest.importorskip("coloop.algorithms.recipes").RECIPES

    assert set(recipes) == RUNNABLE_ALGORITHMS


def test_every_comparison_of_a_group_has_a_function_and_a_formula() -> None:
    estimators = pytest.importorskip("coloop.algorithms.recipes.estimators").ESTIMATORS
    compared = {name: record for name, record in ADVANTAGES.items() if record.needs == "group"}

    assert set(estimators) == set(compared)
    assert all(record.formula and record.note for record in compared.values())


def test_every_method_of_a_search_is_carried_out() -> None:
    methods = {*get_args(SearchNode.model_fields["method"].annotation)}

    assert methods == pytest.importorskip("coloop.runtime.roles.search").METHODS.keys()
    assert methods == OF_SEARCHES.keys()


def test_every_built_in_reward_has_a_function() -> None:
    assert set(REWARD_FUNCTIONS) == set(BUILTINS)
    assert set(BUILTINS) >= SCORE_TO_SCORE


def test_every_checker_has_a_file_and_a_name() -> None:
    assert all("def reward(" in source_of(name) for name in CHECKERS)


def test_every_task_makes_rows_and_names_its_columns() -> None:
    assert set(TASKS) == set(TASK_CLASSES)
    for name, task in TASKS.items():
        assert task.parameters is TASK_CLASSES[name]
        assert {part for owner, part in TASK_COLUMNS if owner == name} == {None, *task.parts}


def test_every_part_of_a_task_can_be_named() -> None:
    for name, section in TASK_CLASSES.items():
        info = section.model_fields.get("part")
        named = _words(info.annotation) if info is not None else set()
        assert named == set(TASKS[name].parts), name


def _words(annotation: Any) -> set[str]:
    """The words of a `Literal`, alone or with `None`."""
    options = [option for option in get_args(annotation) if option is not type(None)]
    if options and all(isinstance(option, str) for option in options):
        return set(options)
    return {word for option in options for word in get_args(option)}


def test_engines_and_backends_are_named_in_the_language() -> None:
    engines = pytest.importorskip("coloop.workers.rollout").ENGINES
    backends = pytest.importorskip("coloop.workers.training").BACKENDS

    assert set(engines) <= set(get_args(Engine))
    assert set(backends) <= set(get_args(Backend))
    assert set(engines) >= RUNNABLE_ENGINES
    assert set(backends) >= RUNNABLE_BACKENDS
