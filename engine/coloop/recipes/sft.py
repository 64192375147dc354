"""SFT: −log π of the target tokens, mean over all tokens of the optimizer step."""

from coloop.recipes.imitation import ImitationRecipe

SFT = ImitationRecipe(name="sft")
