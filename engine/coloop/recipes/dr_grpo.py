"""Dr. GRPO (arXiv 2503.20783): A = r − mean_g, and the loss is divided by rows times a constant.

Without the deviation hard and easy prompts weigh alike; with the constant a token weighs alike in
long and short rows.
"""

from coloop.recipes.policy import PolicyRecipe

DR_GRPO = PolicyRecipe(name="dr_grpo")
