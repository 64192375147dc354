"""RLOO (arXiv 2402.14740): A_i = r_i − mean of the other rows of the group; clipped ratio."""

from coloop.recipes.policy import PolicyRecipe

RLOO = PolicyRecipe(name="rloo")
