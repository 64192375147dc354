"""CISPO (arXiv 2506.13585): −sg(clip(ρ, ratio_min, ratio_max)) A log π.

The bounds are absolute and bound a weight, so no token loses its gradient.
"""

from coloop.recipes.policy import PolicyRecipe

CISPO = PolicyRecipe(name="cispo")
