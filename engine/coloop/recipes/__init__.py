"""Recipes: credit and loss of each algorithm that can run, by the name of its family (`table.py`).

A parity preset (`trl-grpo`) is a setting of its family (`grpo`).
"""

from typing import Any

from coloop.recipes.protocol import (
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
from coloop.recipes.table import RECIPES
from coloop.spec.algorithm import family_of

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


def recipe_of(settings: Any) -> Recipe:
    """The recipe of resolved settings; raises where the algorithm or a setting cannot run."""
    family = family_of(settings.name)
    if family not in RECIPES:
        raise ValueError(f"algorithm {settings.name!r} has no recipe; known: {', '.join(RECIPES)}")
    recipe = RECIPES[family]
    reason = recipe.refusal(settings)
    if reason is not None:
        raise ValueError(f"algorithm {settings.name!r}: {reason}")
    return recipe
