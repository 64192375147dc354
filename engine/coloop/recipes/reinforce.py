"""REINFORCE: −G_t log π with G_t = r_t + γ G_{t+1}; no ratio, no clip.

With `advantage: group_mean` it is the loss of MAGRPO (arXiv 2508.04652).
"""

from coloop.recipes.policy import PolicyRecipe

REINFORCE = PolicyRecipe(name="reinforce")
