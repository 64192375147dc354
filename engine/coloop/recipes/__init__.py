"""Recipes: credit and loss of each algorithm that can run, by the name of its family.

A parity preset (`trl-grpo`) is a setting of its family (`grpo`). Critics, scorers and algorithms
that look across pairs have no recipe yet.
"""

from typing import Any

from coloop.recipes.cispo import CISPO
from coloop.recipes.dapo import DAPO
from coloop.recipes.dpo import DPO
from coloop.recipes.dr_grpo import DR_GRPO
from coloop.recipes.grpo import GRPO
from coloop.recipes.gspo import GSPO
from coloop.recipes.ipo import IPO
from coloop.recipes.opo import OPO
from coloop.recipes.protocol import (
    CreditInput,
    CreditOutput,
    CreditRecipe,
    EdgeScores,
    LossOutput,
    Needs,
    PolicyOutputs,
    Recipe,
)
from coloop.recipes.reinforce import REINFORCE
from coloop.recipes.reinforce_pp import REINFORCE_PP
from coloop.recipes.reinforce_pp_baseline import REINFORCE_PP_BASELINE
from coloop.recipes.rloo import RLOO
from coloop.recipes.sft import SFT
from coloop.recipes.spin import SPIN
from coloop.spec.algorithm import family_of

__all__ = [
    "RECIPES",
    "CreditInput",
    "CreditOutput",
    "CreditRecipe",
    "EdgeScores",
    "LossOutput",
    "Needs",
    "PolicyOutputs",
    "Recipe",
    "recipe_of",
]

RECIPES: dict[str, Recipe] = {
    "grpo": GRPO,
    "dr_grpo": DR_GRPO,
    "dapo": DAPO,
    "gspo": GSPO,
    "cispo": CISPO,
    "rloo": RLOO,
    "opo": OPO,
    "reinforce": REINFORCE,
    "reinforce_pp": REINFORCE_PP,
    "reinforce_pp_baseline": REINFORCE_PP_BASELINE,
    "sft": SFT,
    "dpo": DPO,
    "ipo": IPO,
    "spin": SPIN,
}
"""By family name of the loop language."""


def recipe_of(settings: Any) -> Recipe:
    """The recipe of resolved settings; raises where the algorithm or a setting cannot run."""
    family = family_of(settings.name)
    if family not in RECIPES:
        raise ValueError(f"algorithm {settings.name!r} has no recipe; known: {', '.join(RECIPES)}")
    recipe = RECIPES[family]
    reason = recipe.refusal(settings)
    if reason is not None:
        raise ValueError(f"algorithm {settings.name!r}: {reason}")
    return recipe
