"""DAPO (arXiv 2503.14476): the advantage of GRPO, token mean, upper clip raised to 0.28.

Its dynamic sampling is a filter that refills, its length penalty a reward: nodes of the loop.
"""

from coloop.recipes.policy import PolicyRecipe

DAPO = PolicyRecipe(name="dapo")
