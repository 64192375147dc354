"""What each metric means and what it should look like; names are the same for every algorithm.

Nodes and steps report `METRICS`, where `<scorer>` and `<value>` stand for names; probes report
`PROBE_METRICS` under `node.metric`, or `node.scorer.metric` where several scorers are connected.
`@k` stands for a number of samples.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import Literal

from coloop.spec.nodes import NODE_CLASSES

Better = Literal["higher", "lower", "steady", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number of a run."""

    title: str
    help: str
    expect: str
    better: Better = "none"
    unit: str | None = None


METRICS: dict[str, Metric] = {
    "loss": Metric(
        title="Loss",
        help="All losses of the learner, weighted and summed.",
        expect="Falls for demonstrations and pairs; for rewards its value means little.",
    ),
    "loss/policy": Metric(
        title="Policy loss",
        help="The clipped or plain policy loss.",
        expect="Fluctuates around 0. If it drifts steadily, check clip share and KL.",
    ),
    "loss/demonstrations": Metric(
        title="Imitation loss",
        help="Cross-entropy on the demonstrations.",
        expect="Falls and flattens; on little data it goes to 0 when they are memorized.",
        better="lower",
    ),
    "loss/pairs": Metric(
        title="Preference loss",
        help="Loss over pairs of chosen and rejected.",
        expect="Starts at ln 2 = 0.693 where policy and reference are the same, then falls.",
        better="lower",
    ),
    "loss/rewards": Metric(
        title="Loss of rewards",
        help="Policy loss with what KL and entropy add to it.",
        expect="Near 0, moving around it.",
    ),
    "loss/labels": Metric(
        title="Loss of labels",
        help="Error or cross-entropy of a scorer's predictions.",
        expect="Falls; cross-entropy starts at ln 2 = 0.693, a random guess.",
        better="lower",
    ),
    "loss/returns": Metric(
        title="Value loss",
        help="Squared error of the critic.",
        expect="Falls fast, then follows the spread of the rewards.",
        better="lower",
    ),
    "reward/mean": Metric(
        title="Mean reward",
        help="Mean of the combined rewards over the step's rows.",
        expect="Rises; a jump without better samples is a hint of reward hacking.",
        better="higher",
    ),
    "reward/std": Metric(
        title="Spread of rewards",
        help="Standard deviation of the combined rewards.",
        expect="Above 0: without spread inside the groups there is nothing to learn.",
    ),
    "reward/<scorer>": Metric(
        title="Mean reward of a scorer",
        help="Mean contribution of one scorer to the rewards, before its weight.",
        expect="All of them rise; if only one rises, the policy may be gaming it.",
    ),
    "advantage/mean": Metric(
        title="Mean advantage",
        help="Mean of the advantages over trained tokens.",
        expect="Near 0 with a baseline.",
    ),
    "advantage/std": Metric(
        title="Spread of advantages",
        help="Standard deviation of the advantages over trained tokens.",
        expect="Around 1 with group deviation or whitening; 0 means that nothing is learned.",
    ),
    "rows/left_out": Metric(
        title="Rows left out",
        help=(
            "Share of rows left out of the update because the reference, the critic or a greedy "
            "answer has no value for them."
        ),
        expect="0.",
        better="lower",
    ),
    "group/zero_variance": Metric(
        title="Groups without variance",
        help="Share of groups in which all rewards are the same.",
        expect="Below 0.5; near 1 the problems are too easy or too hard.",
        better="lower",
    ),
    "kl": Metric(
        title="KL",
        help=(
            "KL divergence from the algorithm's reference: k3 over the trained tokens, of both "
            "sides of pairs. Where a node learns from scores, only of the scored texts."
        ),
        expect="Rises slowly from 0; beyond 0.1 a token the policy is far away. Of pairs it rises "
        "further, as the rejected sides become unlikely.",
    ),
    "kl/penalty": Metric(
        title="KL penalty",
        help="Mean KL penalty per token that is subtracted from the reward.",
        expect=(
            "Small compared with the mean reward divided by the length; else the policy does not "
            "move."
        ),
    ),
    "kl/coefficient": Metric(
        title="KL coefficient",
        help="KL coefficient of this step, where it follows a target.",
        expect="Settles; if it keeps rising or falling, the target cannot be met.",
    ),
    "entropy": Metric(
        title="Entropy",
        help=(
            "Mean entropy of the next token over trained tokens. Where a node learns from scores, "
            "only of the scored texts."
        ),
        expect=(
            "Falls slowly; a sharp drop to 0 means collapse, a steady rise divergence. On "
            "demonstrations it falls as they are learned."
        ),
    ),
    "clip_fraction": Metric(
        title="Clip share",
        help="Share of trained tokens whose ratio was clipped.",
        expect="0 with one mini-batch a step; below 0.2 with several.",
    ),
    "ratio/max": Metric(
        title="Greatest ratio",
        help="Greatest ratio between new and old policy over trained tokens.",
        expect="Close to 1; above 10 the step is too large.",
    ),
    "mismatch_kl": Metric(
        title="Engine mismatch",
        help="Divergence between the engine's and the trainer's log-probs of the same tokens.",
        expect="Below 1e-6 on a CPU, below 1e-3 on GPUs; more means wrong log-probs.",
        better="lower",
    ),
    "mismatch/max": Metric(
        title="Greatest engine mismatch",
        help="Greatest difference of a log-prob between engine and trainer.",
        expect="Below 1e-4 on a CPU.",
        better="lower",
    ),
    "staleness": Metric(
        title="Staleness",
        help="Versions that the weights which learn are ahead of those that wrote the texts.",
        expect="0 in a synchronous loop; at most `max_staleness`, more for replayed texts.",
        better="lower",
    ),
    "staleness/max": Metric(
        title="Greatest staleness",
        help="Number of weight versions by which the oldest text of the update lags.",
        expect="At most `max_staleness`, more for replayed texts.",
        better="lower",
    ),
    "grad_norm": Metric(
        title="Gradient norm",
        help="Norm of the gradient before clipping.",
        expect="Steady; if it spikes far above the clip, lower the learning rate.",
    ),
    "lr": Metric(title="Learning rate", help="The rate of the last step.", expect="As scheduled."),
    "accuracy": Metric(
        title="Accuracy",
        help="Share of pairs or labels that the learner gets right.",
        expect="From 0.5 towards 1; 1 from the start means that the data reveal the answer.",
        better="higher",
    ),
    "margin": Metric(
        title="Margin",
        help="Mean lead of chosen over rejected, scaled by beta.",
        expect="Rises from 0.",
        better="higher",
    ),
    "score/chosen": Metric(
        title="Score of chosen sides",
        help="Mean score of chosen sides by the scorer that learns.",
        expect="Rises above that of rejected sides; both may drift, the difference matters.",
        better="higher",
    ),
    "score/rejected": Metric(
        title="Score of rejected sides",
        help="Mean score of rejected sides by the scorer that learns.",
        expect="Falls below that of chosen sides.",
        better="lower",
    ),
    "log_ratio/chosen": Metric(
        title="Chosen against the reference",
        help="Mean log ratio of policy and reference over chosen sides.",
        expect="From 0; it may fall, but slower than that of rejected sides.",
    ),
    "log_ratio/rejected": Metric(
        title="Rejected against the reference",
        help="Mean log ratio of policy and reference over rejected sides.",
        expect="From 0 downwards.",
        better="lower",
    ),
    "log_prob/chosen": Metric(
        title="Chosen log-prob",
        help="Mean log-prob of chosen sides, of losses without a reference.",
        expect="Rises or stays; a fall means that both sides are unlearned.",
        better="higher",
    ),
    "log_prob/rejected": Metric(
        title="Rejected log-prob",
        help="Mean log-prob of rejected sides, of losses without a reference.",
        expect="Falls below that of chosen sides.",
        better="lower",
    ),
    "divergence": Metric(
        title="Divergence of KTO",
        help="Mean log ratio of answers to other prompts, at least 0, before the update.",
        expect="From 0, slowly; far above the log ratios of both sides it stops the learning.",
    ),
    "shift": Metric(
        title="Shift of BCO",
        help="Mean reward of all sides, before the update.",
        expect="Near 0, between the rewards of chosen and rejected sides.",
    ),
    "log_ratio": Metric(
        title="Log ratio",
        help="Mean log ratio of an implicit reward model and its prior.",
        expect="From 0; its size is the reward divided by beta.",
    ),
    "value/mean": Metric(
        title="Mean value",
        help="Mean value that the critic assigns to trained tokens.",
        expect="Follows the mean return.",
    ),
    "return/mean": Metric(
        title="Mean return",
        help="Mean of the returns that the critic learns.",
        expect="Rises with the rewards.",
    ),
    "explained_variance": Metric(
        title="Explained variance",
        help="Share of the returns' variance that the critic explains.",
        expect="From below 0 towards 1; below 0 it does worse than the mean.",
        better="higher",
    ),
    "rows": Metric(
        title="Rows held", help="Rows in a buffer.", expect="Up to `capacity`.", unit="rows"
    ),
    "step/seconds": Metric(
        title="Time of a step",
        help="Seconds from the end of the step before to the end of this one.",
        expect="Steady, and as estimated.",
        better="lower",
        unit="seconds",
    ),
    "step/controller_share": Metric(
        title="Share of the driver",
        help="Share of the step in which only the driver was working.",
        expect="Below 0.03 with large models; more with tiny ones.",
        better="lower",
    ),
    "rows/without_reward": Metric(
        title="Rows without reward",
        help="Rows that are not learned, because all scorers of their rewards returned None.",
        expect="0, unless scorers return None on purpose.",
        better="lower",
        unit="rows",
    ),
    "rows/without_prior": Metric(
        title="Rows without prior",
        help="Rows that an implicit reward model does not score, for its prior did not.",
        expect="0.",
        better="lower",
        unit="rows",
    ),
    "rows/truncated": Metric(
        title="Cut rows out of the loss",
        help="Rows cut by the limit that are kept out of the loss (`rollout.truncated: mask`).",
        expect="Falls as the policy learns to end.",
        better="lower",
        unit="rows",
    ),
    "class/<value>": Metric(
        title="Share of a class",
        help="Share that a class of `credit.class_weights` has had so far.",
        expect="Above 0: if a share falls to 0, only one class is left to learn.",
    ),
    "optimizer_steps": Metric(
        title="Optimizer steps",
        help="Steps of the optimizer in this update.",
        expect="Rows of a step divided by `mini_batch`, times `epochs` and `updates`.",
    ),
    "sync/difference": Metric(
        title="Difference after a sync",
        help="Greatest difference of a log-prob between trainer and engine after a weight sync.",
        expect="Below 1e-4 on a CPU: engine and trainer have the same weights.",
        better="lower",
    ),
    "rollout/tokens": Metric(
        title="Written tokens",
        help=("Tokens generated in the step."),
        expect="Steady.",
        unit="tokens",
    ),
    "rollout/length": Metric(
        title="Length",
        help="Mean tokens of a completion.",
        expect="Moves slowly; growth to the limit without reward is rambling.",
        unit="tokens",
    ),
    "rollout/finished": Metric(
        title="Finished share",
        help="Share of completions that ended by themselves.",
        expect="Close to 1; less means that `max_new_tokens` cuts answers.",
        better="higher",
    ),
    "rollout/mixed": Metric(
        title="Mixed share",
        help="Share of completions that several versions of the weights wrote (`on_sync: resume`).",
        expect="Falls with shorter completions; a row's age is that of its oldest version.",
    ),
    "turns/mean": Metric(
        title="Turns",
        help="Mean number of turns of a text that may call tools, including the last.",
        expect="Above 1 where tools help; at `turns.max` texts run out of turns.",
    ),
    "turns/tokens": Metric(
        title="Tokens of tools",
        help="Mean tokens of a text that came from tools: read by the policy, not trained.",
        expect="Moves with the calls; near `observation_tokens` tool results are cut.",
        unit="tokens",
    ),
    "turns/invalid": Metric(
        title="Invalid turns",
        help="Mean number of turns of a text that neither called a tool nor ended it.",
        expect="Falls to 0 as the policy learns the call format.",
        better="lower",
    ),
    "turns/cut": Metric(
        title="Texts out of turns",
        help="Share of texts that were cut after their last turn: an environment that did not end.",
        expect="Near 0; more means that `turns.max` is too low, or that episodes never end.",
        better="lower",
    ),
    "tool/calls": Metric(
        title="Calls of a tool",
        help="Mean calls of this tool in a text.",
        expect=(
            "Rises if the tool helps; 0 means that the policy never calls it in the format of "
            "`call`."
        ),
    ),
    "tool/errors": Metric(
        title="Failed calls of a tool",
        help="Share of its calls that it answered with an error.",
        expect="Falls; near 1 the policy calls it wrongly, or the tool does not work.",
        better="lower",
    ),
    "tool/seconds": Metric(
        title="Time in a tool",
        help="Seconds that it worked in the step, all texts together.",
        expect="Small compared with the generation time; several texts are served concurrently.",
        unit="seconds",
    ),
    "prompts/too_long": Metric(
        title="Prompts too long",
        help="Prompts of the step that leave no room in the model's context; they are dropped.",
        expect="0. Otherwise shorten prompts or lower `max_new_tokens`.",
        better="lower",
        unit="rows",
    ),
    "rows/too_long": Metric(
        title="Rows too long",
        help="Rows of the step with more tokens than the model has positions; they are dropped.",
        expect="0. Otherwise shorten rows or use a model with a longer context.",
        better="lower",
        unit="rows",
    ),
    "kept": Metric(
        title="Kept share",
        help="Share of the rows that a filter kept.",
        expect="As its rules intend; near 0 almost everything generated is discarded.",
    ),
    "groups_kept": Metric(
        title="Groups kept",
        help="Share of the groups of which a filter kept a row.",
        expect="As its rules mean it; where only right texts pass it rises with the writer.",
    ),
    "pairs": Metric(
        title="Pairs",
        help="Pairs made in the step.",
        expect="Above 0: without pairs nothing is learned.",
        unit="rows",
    ),
    "ties": Metric(
        title="Ties",
        help="Pairs left out because both sides have the same score.",
        expect="Few; many mean that scores hardly distinguish texts.",
        better="lower",
        unit="rows",
    ),
    "equal_texts": Metric(
        title="Equal texts",
        help="Pairs left out because both sides are the same text.",
        expect="Few; many mean that the policy has lost its variety.",
        better="lower",
        unit="rows",
    ),
    "left_out": Metric(
        title="Pairs without a preference",
        help="Pairs left out because no score says which side is better.",
        expect="Few.",
        better="lower",
        unit="rows",
    ),
    "written": Metric(
        title="Rows taken",
        help="Rows that a buffer took in the step.",
        expect="As many as are new.",
        unit="rows",
    ),
    "score/mean": Metric(
        title="Mean score",
        help="Mean score that a scorer gives the step's rows.",
        expect="Between its extremes: at an extreme all rows have the same score.",
    ),
    "score/none": Metric(
        title="Rows without a score",
        help="Share of rows for which a scorer returned None: nothing found, or its code failed.",
        expect="Near 0; at 1 it finds nothing to score.",
        better="lower",
    ),
    "search/rollouts": Metric(
        title="Completions",
        help="Completions, steps or actions that a search drew in the step.",
        expect="Completions of a step times the steps looked at; binary search needs far fewer.",
        unit="rows",
    ),
    "search/nodes": Metric(
        title="Nodes",
        help="Beginnings of texts, or states, from which a search drew.",
        expect="Rises with the length of texts; for binary search with its logarithm.",
    ),
    "search/tokens": Metric(
        title="Tokens of the search",
        help="Tokens that a search drew in the step.",
        expect="Below `budget.tokens`.",
        unit="tokens",
    ),
    "search/labels": Metric(
        title="Labels",
        help="Steps that a search labelled.",
        expect="Above 0; at 0 no learner uses it.",
        better="higher",
    ),
    "search/label": Metric(
        title="Mean label",
        help="Mean of the labels of steps; of a proof search of the returns of actions.",
        expect="Between 0 and 1: at one of them all steps are labelled alike. Returns rise to 0.",
    ),
    "search/dead": Metric(
        title="Rejected actions",
        help="Share of the actions of a proof search that its environment rejected.",
        expect="Falls as the policy learns; at 1 nothing is ever proved.",
        better="lower",
    ),
    "search/rejected": Metric(
        title="Proofs rejected",
        help="Proofs that the environment took for finished and `outcome` did not.",
        expect="0. More means that the two disagree on what a proof is.",
        better="lower",
    ),
    "search/cut": Metric(
        title="Searches cut",
        help=(
            "Rows whose search ended because its budget was spent; the best result so far is "
            "returned."
        ),
        expect="Near 0. Otherwise raise `budget` or lower `completions`.",
        better="lower",
        unit="rows",
    ),
    "parse/none": Metric(
        title="Rows without a match",
        help="Share of a template's or judge's texts in which no pattern matched.",
        expect="Falls to 0 as the writer learns the format.",
        better="lower",
    ),
    "rows/none": Metric(
        title="Rows that end here",
        help=(
            "Share of a template's input rows that are dropped: `code` returned None for them, or "
            "the list of `each` is empty."
        ),
        expect="As many as intended; at 1 no node after it gets a row.",
        better="lower",
    ),
    "swap/consistent": Metric(
        title="Swap consistency",
        help="Share of the pairs judged in both orders that are judged the same way in both.",
        expect="Near 1; near 0.5 the judge follows the position.",
        better="higher",
    ),
}

PROBE_METRICS: dict[str, Metric] = {
    "accuracy": Metric(
        title="Accuracy",
        help="Share of rows whose score counts as right.",
        expect="Rises on held-out rows.",
        better="higher",
    ),
    "score": Metric(title="Score", help="Mean score.", expect="Rises.", better="higher"),
    "pass@k": Metric(
        title="Pass at k",
        help="Chance that one of k samples is right.",
        expect="Above accuracy; if it falls while accuracy rises, diversity is lost.",
        better="higher",
    ),
    "majority@k": Metric(
        title="Majority of k",
        help="Accuracy of the most frequent answer among k samples.",
        expect="Above accuracy.",
        better="higher",
    ),
    "best_of@k": Metric(
        title="Best of k",
        help="Accuracy of the sample that the selector likes best.",
        expect="Above accuracy if the selector is informative.",
        better="higher",
    ),
    "weighted_majority@k": Metric(
        title="Weighted majority of k",
        help="Accuracy of the answer with the greatest sum of selector scores.",
        expect="Above the plain majority if the selector is informative.",
        better="higher",
    ),
    "loss": Metric(
        title="Loss", help="Loss of the teaching ports in `of`.", expect="Falls.", better="lower"
    ),
    "explained_variance": METRICS["explained_variance"],
    "calibration": Metric(
        title="Calibration error",
        help="Mean gap between scores as probabilities and shares that are right.",
        expect="Near 0.",
        better="lower",
    ),
    "brier": Metric(
        title="Brier score",
        help="Mean squared gap between scores as probabilities and the truth.",
        expect="Falls towards 0; a scorer that always returns 0.5 has 0.25.",
        better="lower",
    ),
    "agreement": Metric(
        title="Agreement",
        help="Share of samples for which scores and labels agree, right or wrong.",
        expect="Above the share of the more frequent class; near 1 before a verifier teaches.",
        better="higher",
    ),
    "false_positive_rate": Metric(
        title="False positives",
        help="Share of samples wrong by their labels that scores call right.",
        expect="Below 0.1: a policy learns to produce wrong answers that are scored as right.",
        better="lower",
    ),
    "false_negative_rate": Metric(
        title="False negatives",
        help="Share of samples right by their labels that scores call wrong.",
        expect="Below 0.2; more only slows learning, unless it affects one kind of answer only.",
        better="lower",
    ),
    "pair_accuracy": Metric(
        title="Pair accuracy",
        help="Share of pairs in which the better side scores higher.",
        expect="Above 0.5, towards 1.",
        better="higher",
    ),
    "swap_consistency": Metric(
        title="Swap consistency",
        help="Share of pairs judged the same way in both orders.",
        expect="Near 1; near 0.5 the judge follows the position.",
        better="higher",
    ),
    "class_recall": Metric(
        title="Lowest class recall",
        help="Lowest recall of any class; `.right`, `.wrong` for each.",
        expect="Above 0.5; 0 means that one class is never predicted.",
        better="higher",
    ),
    "step_f1": Metric(
        title="Step F1",
        help="F1 of finding wrong steps.",
        expect="Rises.",
        better="higher",
    ),
    "rank_correlation": Metric(
        title="Rank correlation",
        help="Rank correlation of scores and truth.",
        expect="Above 0, towards 1.",
        better="higher",
    ),
    "win_rate": Metric(
        title="Win rate",
        help="Share of comparisons won, a draw is half: by chosen sides, else by the first of "
        "several writers of one problem; `.<writer>` for each.",
        expect="Above 0.5; 1 means that the opponent always loses.",
        better="higher",
    ),
    "elo": Metric(
        title="Elo",
        help="Rating from these comparisons, 1000 in the mean; `.<writer>` for each.",
        expect="Rises; one player 400 above another wins ten of eleven games.",
        better="higher",
    ),
    "label_accuracy": Metric(
        title="Label accuracy",
        help="Share of majority answers that are right by their `labels`.",
        expect="Above accuracy; what self-training can reach.",
        better="higher",
    ),
    "majority_ratio": Metric(
        title="Majority share",
        help="Share of samples that agree with the majority.",
        expect="Rises; to 1 without accuracy is lock-in.",
    ),
    "tokens": Metric(
        title="Tokens", help="Mean tokens of a completion.", expect="Steady.", unit="tokens"
    ),
}

OF_KIND: dict[str, tuple[str, ...]] = {
    kind: tuple(name for pattern in node.about.metrics for name in fnmatch.filter(METRICS, pattern))
    for kind, node in NODE_CLASSES.items()
    if node.about.metrics
}
"""What nodes report that do not learn."""

CHART_ORDER: tuple[str, ...] = (
    "reward/mean",
    "accuracy",
    "score",
    "loss",
    "kl",
    "entropy",
    "rollout/length",
    "mismatch_kl",
    "clip_fraction",
    "grad_norm",
    "reward/std",
    "lr",
)
"""What one looks at first when a run goes well or badly; the rest follows by name."""

_OPEN = re.compile(r"<[a-z]+>")


def described(name: str) -> Metric | None:
    """The metric of a node that a name means: `reward/exact` is `reward/<scorer>`."""
    if name in METRICS:
        return METRICS[name]
    family = name.partition("/")[0]
    return next((one for key, one in METRICS.items() if _is_of(key, family)), None)


def _is_of(key: str, family: str) -> bool:
    return _OPEN.search(key) is not None and key.partition("/")[0] == family


_AT_K = re.compile(r"@[1-9][0-9]{0,5}$")


def metric_of(name: str) -> Metric | None:
    """The probe metric that a name in `metrics` means: `pass@8` is `pass@k`."""
    return PROBE_METRICS.get(_AT_K.sub("@k", name.partition(".")[0] if "@" not in name else name))


def samples_of(name: str) -> int | None:
    """k of `pass@k`; nothing for other metrics."""
    found = _AT_K.search(name)
    return int(found[0][1:]) if found else None
