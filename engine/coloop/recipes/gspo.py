"""GSPO (arXiv 2507.18071): the ratio of a sequence, s = exp(mean_t log ρ_t), is clipped as one.

Clip bounds are of the order 3e-4; the loss is a mean over sequences.
"""

from coloop.recipes.policy import PolicyRecipe

GSPO = PolicyRecipe(name="gspo")
