"""SPIN (arXiv 2401.01335): −log σ(β z) on sums over tokens.

Chosen is real data, rejected the own text of the previous self, which is the reference as well; so
an iteration starts at ln 2. The loop says so: a snapshot, pairs, a buffer.
"""

from coloop.recipes.preference import PreferenceRecipe

SPIN = PreferenceRecipe(name="spin")
