"""IPO (arXiv 2310.12036): (z − 1/(2β))², log ratios as means over tokens."""

from coloop.recipes.preference import PreferenceRecipe

IPO = PreferenceRecipe(name="ipo")
