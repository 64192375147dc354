"""Recipes: the loss of each algorithm that can run, by family name, and the credit of rewards."""

from coloop.algorithms.recipes.table import RECIPES, recipe_of

__all__ = ["RECIPES", "recipe_of"]
