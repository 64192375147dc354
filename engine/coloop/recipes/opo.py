"""OPO (arXiv 2505.23585): A = r − Σ_j L_j r_j / Σ_j L_j over the group; plain policy gradient."""

from coloop.recipes.policy import PolicyRecipe

OPO = PolicyRecipe(name="opo")
