"""Recipes: credit and loss of each algorithm that can run, by the name of its family (`table.py`).

A parity preset (`trl-grpo`) is a setting of its family (`grpo`).
"""

from dataclasses import replace
from typing import Any

from coloop.algorithms.recipes.labels import ChoiceRecipe, LabelRecipe
from coloop.algorithms.recipes.protocol import (
    CreditInput,
    CreditOutput,
    CreditRecipe,
    EdgeScores,
    LossOutput,
    ModelOutputs,
    Needs,
    PreparingRecipe,
    Recipe,
)
from coloop.algorithms.recipes.table import RECIPES
from coloop.spec.algorithms.registry import family_of
from coloop.spec.heads import Reading

__all__ = [
    "RECIPES",
    "CreditInput",
    "CreditOutput",
    "CreditRecipe",
    "EdgeScores",
    "LossOutput",
    "ModelOutputs",
    "Needs",
    "PreparingRecipe",
    "Recipe",
    "recipe_of",
]


def recipe_of(settings: Any, reading: Reading = "scores") -> Recipe:
    """The recipe of resolved settings; raises where the algorithm or a setting cannot run.

    Args:
        reading: of who learns labels, which of its model's numbers are to say them.
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
