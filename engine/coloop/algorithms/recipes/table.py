"""The recipe of every algorithm that runs, by the name of its family, from its record in
`spec.algorithms`; a parity preset (`trl-grpo`) is a setting of its family (`grpo`)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from coloop.algorithms.recipes.distillation import DistillationRecipe
from coloop.algorithms.recipes.imitation import ImitationRecipe
from coloop.algorithms.recipes.labels import ChoiceRecipe, ImplicitPrmRecipe, LabelRecipe
from coloop.algorithms.recipes.policy import PolicyRecipe
from coloop.algorithms.recipes.preference import BradleyTerryRecipe, PreferenceRecipe
from coloop.algorithms.recipes.protocol import Recipe
from coloop.algorithms.recipes.value import ValueRecipe
from coloop.spec.algorithms.registry import families, family_of
from coloop.spec.heads import Reading
from coloop.spec.plugins import RecipeName

_OF_NAME: Final[Mapping[RecipeName, Callable[..., Recipe[Any]]]] = {
    "policy": PolicyRecipe,
    "preference": PreferenceRecipe,
    "distillation": DistillationRecipe,
    "imitation": ImitationRecipe,
    "value": ValueRecipe,
    "bradley_terry": BradleyTerryRecipe,
    "labels": LabelRecipe,
    "implicit_prm": ImplicitPrmRecipe,
    "choices": ChoiceRecipe,
}

RECIPES: dict[str, Recipe[Any]] = {
    record.name: _OF_NAME[record.recipe](name=record.name)
    for record in families()
    if record.recipe is not None
}
"""Recipes by the family name of an algorithm."""


def recipe_of(settings: Any, reading: Reading = "scores") -> Recipe[Any]:
    """The recipe of resolved settings; raises ValueError if it cannot run.

    `reading`: for labels, the outputs of the model to train.
    """
    family = family_of(settings.name)
    if family not in RECIPES:
        raise ValueError(f"algorithm {settings.name!r} has no recipe; known: {', '.join(RECIPES)}")
    recipe = RECIPES[family]
    if isinstance(recipe, LabelRecipe | ChoiceRecipe):
        recipe = replace(recipe, reading=reading)
    reason = recipe.refusal(settings)
    if reason is not None:
        raise ValueError(f"algorithm {settings.name!r}: {reason}")
    return recipe
