"""GRPO (arXiv 2402.03300): A = (r − mean_g) / (std_g + ε) for all tokens of a row; clipped ratio.

std is unbiased, ε = 1e-6, the loss is a mean over all tokens of the optimizer step. A group of one
row gets advantage 0 and an alert.
"""

from coloop.recipes.policy import PolicyRecipe

GRPO = PolicyRecipe(name="grpo")
