"""DPO (arXiv 2305.18290): −log σ(β z), z the difference of both sides' log ratios.

Log ratios are sums over tokens; with `reduce: mean` beta means something else.
"""

from coloop.recipes.preference import PreferenceRecipe

DPO = PreferenceRecipe(name="dpo")
