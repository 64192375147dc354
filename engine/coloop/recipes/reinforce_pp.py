"""REINFORCE++ (arXiv 2501.03262): G_t = r_t + γ G_{t+1}, whitened over all tokens.

The ratio is clipped; there is no group, so one completion a prompt will do.
"""

from coloop.recipes.policy import PolicyRecipe

REINFORCE_PP = PolicyRecipe(name="reinforce_pp")
