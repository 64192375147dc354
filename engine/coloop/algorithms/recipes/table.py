"""Every algorithm that has a recipe, by the name of its family, and its formula.

A is the advantage of a token, r the score of a row, g its group, G_t = r_t + γ G_{t+1} what a token
earns from here on, ρ = π / π_old, z the difference of both sides' log ratios to the reference. A
parity preset (`trl-grpo`) is a setting of its family (`grpo`).

port `rewards`: settings of one recipe (`policy.py`)
    grpo                   A = (r − mean_g) / (std_g + ε) for all tokens of a row; clipped ρ, mean
                           over the tokens of the optimizer step. std is unbiased, ε = 1e-6; a group
                           of one gets 0 and an alert. arXiv 2402.03300
    dr_grpo                A = r − mean_g, so hard and easy prompts weigh alike; divided by rows
                           times a constant, so a token weighs alike in long and short rows. arXiv
                           2503.20783
    dapo                   the advantage of grpo, token mean, upper clip 0.28. Dynamic sampling is a
                           filter that refills, the length penalty a reward. arXiv 2503.14476
    gspo                   s = exp(mean_t log ρ_t) of a sequence is clipped as one, by bounds of the
                           order 3e-4; mean over sequences. arXiv 2507.18071
    cispo                  −sg(clip(ρ, ratio_min, ratio_max)) A log π: absolute bounds on a weight,
                           so no token loses its gradient. arXiv 2506.13585
    rloo                   A = r − mean of the group's other rows; clipped ρ, in `trl-rloo` of the
                           whole text. arXiv 2402.14740
    remax                  A = G_t − r(greedy text of the prompt); −A log π. arXiv 2310.10505
    opo                    A = r − Σ_j L_j r_j / Σ_j L_j over the group; −A log π. arXiv 2505.23585
    reinforce              −G_t log π, no ratio, no clip; with `advantage: group_mean` the loss of
                           MAGRPO (arXiv 2508.04652)
    reinforce_pp           G_t, whitened over all tokens; clipped ρ. No group, so one completion a
                           prompt will do. arXiv 2501.03262
    reinforce_pp_baseline  A = r − mean_g, whitened over all tokens. Their mean is not that of rows,
                           so a group of equal rewards gets a small advantage where lengths differ:
                           that is the algorithm. arXiv 2501.03262
    ppo                    A by GAE: δ_t = r_t + γ V_{t+1} − V_t, A_t = δ_t + γ λ A_{t+1}, whitened;
                           clipped ρ. arXiv 1707.06347, 1506.02438
    vapo                   ppo with λ = 1 − 1/(α L) by the length of the text, the critic's own λ
                           for what it learns, upper clip 0.28, no whitening. arXiv 2504.05118
    pf_ppo                 ppo of rows that a filter draws again with replacement by their scores; a
                           row counts as often as it is drawn. arXiv 2409.06957
port `demonstrations` (`imitation.py`)
    sft                    −log π of the target tokens, mean over the tokens of the optimizer step
port `pairs` of a policy: settings of one recipe (`preference.py`)
    dpo                    −log σ(β z), log ratios as sums over tokens. arXiv 2305.18290
    ipo                    (z − 1/(2β))², log ratios as means over tokens. arXiv 2310.12036
    kto                    mean of 1 − σ(β(a − z0)) of chosen, 1 − σ(β(z0 − b)) of rejected; z0 is
                           the mean log ratio of answers to others' prompts, at least 0, measured
                           once an order. arXiv 2402.01306
    orpo                   −mean_t log π(chosen) − β log σ(log odds(chosen) − log odds(rejected)),
                           odds of mean log-probs; no reference. arXiv 2403.07691
    simpo                  −log σ(β (mean_t log π(chosen) − mean_t log π(rejected)) − γ); no
                           reference. arXiv 2405.14734
    spin                   dpo where rejected is the text of the previous self, which is the
                           reference as well: it starts at ln 2. arXiv 2401.01335
    online_dpo             dpo of two of the policy's own texts to a prompt, paired by their scores
                           in the step in which they are written. arXiv 2402.04792
port `returns` of a critic (`value.py`)
    value                  ½ max((V − R)², (clip(V, V_old ± ε) − R)²), mean over tokens. arXiv
                           2005.12729
ports `pairs` and `labels` of a scorer (`scores.py`)
    bradley_terry          −log σ(s_chosen − s_rejected − margin), mean over pairs. arXiv 2009.01325
    regression             (s − label)², mean over what is labelled: texts, steps or tokens
    outcome                −y log σ(s) − (1 − y) log σ(−s), mean over the same; y is rounded unless
                           the labels are soft
    implicit_prm           the same of s = β Σ_t (log π − log prior) over a text's trained tokens,
                           which is then read token by token. arXiv 2412.01981, 2502.01456
    label_ce               −Σ_c q_c log p_c over a few labels alone, said in words behind a prompt
                           or by a head with a class for each, mean over texts. arXiv 2506.14175
"""

from coloop.algorithms.recipes.choices import ChoiceRecipe
from coloop.algorithms.recipes.imitation import ImitationRecipe
from coloop.algorithms.recipes.implicit import ImplicitPrmRecipe
from coloop.algorithms.recipes.labels import LabelRecipe
from coloop.algorithms.recipes.policy import PolicyRecipe
from coloop.algorithms.recipes.preference import PreferenceRecipe
from coloop.algorithms.recipes.protocol import Recipe
from coloop.algorithms.recipes.scores import BradleyTerryRecipe
from coloop.algorithms.recipes.value import ValueRecipe

POLICY = (
    "grpo",
    "dr_grpo",
    "dapo",
    "gspo",
    "cispo",
    "rloo",
    "remax",
    "opo",
    "reinforce",
    "reinforce_pp",
    "reinforce_pp_baseline",
    "ppo",
    "vapo",
    "pf_ppo",
)
PREFERENCE = ("dpo", "ipo", "kto", "orpo", "simpo", "spin", "online_dpo")

RECIPES: dict[str, Recipe] = {
    **{name: PolicyRecipe(name=name) for name in POLICY},
    "sft": ImitationRecipe(name="sft"),
    **{name: PreferenceRecipe(name=name) for name in PREFERENCE},
    "value": ValueRecipe(),
    "bradley_terry": BradleyTerryRecipe(),
    "regression": LabelRecipe(name="regression"),
    "outcome": LabelRecipe(name="outcome"),
    "implicit_prm": ImplicitPrmRecipe(),
    "label_ce": ChoiceRecipe(),
}
"""By family name of the loop language."""
