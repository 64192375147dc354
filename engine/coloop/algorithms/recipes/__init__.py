"""Recipes: credit and loss of each algorithm that can run, by the name of its family."""

from coloop.algorithms.recipes.table import RECIPES, recipe_of

__all__ = ["RECIPES", "recipe_of"]
