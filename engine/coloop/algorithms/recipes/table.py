"""The recipe of every algorithm that runs, by the name of its family.

What an algorithm computes, its preset and its texts are in its record (`spec.algorithms`), which
names the recipe that carries it out. A parity preset (`trl-grpo`) is a setting of its family
(`grpo`).
"""

from collections.abc import Callable, Mapping
from typing import Final

from coloop.algorithms.recipes.imitation import ImitationRecipe
from coloop.algorithms.recipes.labels import ChoiceRecipe, ImplicitPrmRecipe, LabelRecipe
from coloop.algorithms.recipes.policy import PolicyRecipe
from coloop.algorithms.recipes.preference import BradleyTerryRecipe, PreferenceRecipe
from coloop.algorithms.recipes.protocol import Recipe
from coloop.algorithms.recipes.value import ValueRecipe
from coloop.spec.algorithms.registry import families
from coloop.spec.plugins import RecipeName

_OF_NAME: Final[Mapping[RecipeName, Callable[..., Recipe]]] = {
    "policy": PolicyRecipe,
    "preference": PreferenceRecipe,
    "imitation": ImitationRecipe,
    "value": ValueRecipe,
    "bradley_terry": BradleyTerryRecipe,
    "labels": LabelRecipe,
    "implicit_prm": ImplicitPrmRecipe,
    "choices": ChoiceRecipe,
}

RECIPES: dict[str, Recipe] = {
    record.name: _OF_NAME[record.recipe](name=record.name)
    for record in families()
    if record.recipe is not None
}
"""By family name of the loop language."""
