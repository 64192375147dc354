"""REINFORCE++ with baseline (arXiv 2501.03262): A = r − mean_g, whitened over all tokens.

The mean over tokens is not the mean over rows, so a group of equal rewards gets a small advantage
where lengths differ. That is the algorithm, not an error.
"""

from coloop.recipes.policy import PolicyRecipe

REINFORCE_PP_BASELINE = PolicyRecipe(name="reinforce_pp_baseline")
