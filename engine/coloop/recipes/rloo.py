"""RLOO (arXiv 2402.14740): A_i = r_i − mean of the other rows of the group; clipped ratio.

`trl-rloo` clips the ratio of the whole text, as TRL does.
"""

from coloop.recipes.policy import PolicyRecipe

RLOO = PolicyRecipe(name="rloo")
