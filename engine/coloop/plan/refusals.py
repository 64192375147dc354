"""Parts of a loop that can be edited, validated and estimated but that no run supports on any
machine: they are refused by name instead of crashing. `run_check` refuses what a particular machine
cannot do, `unused` settings without effect.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from coloop.spec.algorithm import LabelCrossEntropy, ValueLoss, node_algorithms
from coloop.spec.algorithms.registry import RUNNABLE_ALGORITHMS, family_of
from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.diagnostics import Diagnostic, Fix, error
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import chat_service, turns_of, weights_groups
from coloop.spec.heads import head_of, heads_of_group, label_words
from coloop.spec.lineage import Lineage, compute_lineage
from coloop.spec.nodes import (
    RUNNABLE_KINDS,
    EnvironmentNode,
    EvaluateNode,
    Node,
    RewardNode,
    SearchNode,
    ToolNode,
    VerifierNode,
    model_of,
)
from coloop.spec.ports import PORTS, is_of_use
from coloop.spec.reading import Read
from coloop.spec.reward import RUNNABLE_REWARD_SOURCES, ChatSource
from coloop.spec.search import CompletionsByRate, RelativeProgress

NOT_YET: Final = "not yet runnable: "
UNUSED: Final = "no effect: "
"""Prefix of the refusal of a setting without effect."""
LATER: Final = (
    "the loop can be drawn, validated and estimated, but this version cannot run this part"
)
REMOVE: Final = "remove it"

HANDLES: Final = {
    "search": frozenset(
        {("policy", "policy"), ("check", "outcome"), ("check", "value"), ("tool", "tools")}
    ),
    "tool": frozenset({("tool", "tools"), ("policy", "policy")}),
    "environment": frozenset({("policy", "policy")}),
}
"""Handles that each node kind calls, as (source port, target port)."""
WRITER_HANDLES: Final = frozenset({("tool", "tools")})
"""Handles of all other kinds, which generate text."""
TREES: Final = ("puct", "and_or")
"""Search methods that grow trees of text prefixes or of states."""
RULES: Final = {
    "binary_search": ("omega", "greedy"),
    "puct": ("puct", "greedy"),
    "and_or": ("puct", "greedy"),
}
"""Supported values of `select.rule` by search method."""
ROW_BY_ROW: Final = frozenset({"rule", "discriminative", "generative", "formal"})
"""Verifier methods that score each row separately."""


def refusal(
    what: str, at: str, hint: str = LATER, *fixes: Fix, begins: str = NOT_YET
) -> Diagnostic:
    """A part of a loop that `run` refuses, by its full path. `begins`: prefix of the message,
    `NOT_YET` or `UNUSED`."""
    return error("run.not_yet_runnable", at, f"{begins}{what}", hint, *fixes)


def cause_of(message: str) -> str:
    return message.removeprefix(NOT_YET).removeprefix(UNUSED)


def check_parts(spec: LoopSpec) -> Iterator[Diagnostic]:
    """Nodes, edges and settings that no run supports."""
    lineage: Lineage | None = None
    for name, node in spec.nodes.items():
        yield from _check_node(spec, name, node)
        if isinstance(node, ToolNode):
            yield from _check_tool(spec, name, node)
        if isinstance(node, VerifierNode):
            yield from _check_verifier(spec, name, node)
        if isinstance(node, RewardNode) and isinstance(node.source, ChatSource):
            yield from _check_answers(name, node)
        if isinstance(node, SearchNode):
            lineage = lineage or compute_lineage(spec)[0]
            yield from _check_search(spec, name, node, lineage)
            yield from _check_callees(spec, name, node)
        if isinstance(node, EnvironmentNode):
            yield from _check_players(spec, name, node)
        if isinstance(node, EvaluateNode):
            yield from _check_measured_ports(name, node)
        yield from _check_algorithms(spec, name)
    for index, edge in enumerate(spec.edges):
        handle, target = (edge.source.port, edge.target.port), spec.kind_of(edge.target.node)
        if spec.graph.is_handle(edge) and handle not in HANDLES.get(target or "", WRITER_HANDLES):
            yield refusal(f"handles (edge {edge.label})", f"edges.{index}")
    for group in weights_groups(spec).values():
        lora = getattr(model_of(spec.nodes[group.name]), "lora", None)
        if lora is not None and len(heads_of_group(spec, group.members)) > 1:
            scoring = next(n for n in group.members if head_of(spec.nodes[n]) == "score")
            what = f"a score head and text generation on one adapter (node `{scoring}`)"
            hint = f"give `{scoring}` its own adapter: `lora` beside `with`"
            yield refusal(what, f"nodes.{scoring}.model", hint)


def _check_node(spec: LoopSpec, name: str, node: Node) -> Iterator[Diagnostic]:
    at, source = f"nodes.{name}", getattr(node, "source", None)
    kind = getattr(source, "type", None)
    if "images" in getattr(node, "columns", {}) and node.kind == "dataset":
        hint = "prompts are texts; a column of another name is data for templates and rewards"
        yield refusal(f"images in prompts (node `{name}`)", f"{at}.columns.images", hint)
    if getattr(node, "curriculum", None) is not None and spec.schedule.max_staleness > 0:
        yield refusal(
            f"a curriculum with `max_staleness` (node `{name}`): rows of a step are drawn before "
            "the scores of earlier steps are known",
            f"{at}.curriculum",
            "set `max_staleness: 0`, or remove the curriculum",
        )
    if node.kind not in RUNNABLE_KINDS:
        yield refusal(f"nodes of kind {node.kind} (node `{name}`)", f"{at}.kind")
    if node.kind == "reward" and kind not in RUNNABLE_REWARD_SOURCES:
        yield refusal(f"rewards of type {kind} (node `{name}`)", f"{at}.source")
    rollout = getattr(node, "rollout", None)
    if rollout is not None and rollout.images:
        yield refusal("`rollout.images`", f"{at}.rollout.images")
    if getattr(model_of(node), "quantization", None) is not None:
        yield refusal("`model.quantization`", f"{at}.model.quantization")
    theirs = getattr(getattr(node, "training", None), "implementation", "coloop")
    if theirs != "coloop":
        path = f"{at}.training.implementation"
        what = f"`training.implementation: {theirs}` (node `{name}`): it describes another trainer"
        hint = "estimate with it; to run the loop here, remove it or set `coloop`"
        yield refusal(what, path, hint, Fix.set("Train with coloop", path, "coloop"))
    reads_single_texts = isinstance(node, RewardNode) and kind not in ("python", "remote", "chat")
    reads_single_texts |= isinstance(node, VerifierNode) and node.method != "generative"
    if reads_single_texts and getattr(node, "per", None) is not None:
        yield refusal(
            f"`per` of a scorer that reads one text at a time (node `{name}`)",
            f"{at}.per",
            "remove `join` and `per`: each row is scored; Python and judges that generate can "
            "compare rows",
        )


def _check_verifier(spec: LoopSpec, name: str, node: VerifierNode) -> Iterator[Diagnostic]:
    """Inputs that a verifier's method cannot use, and step scores that it cannot tell apart."""
    at, read, who = f"nodes.{name}", node.read, f" (node `{name}`)"
    edges, by_step = spec.graph.edges_into, node.read.granularity != "sequence"
    if node.method == "generative":
        yield from _check_judge(spec, name, node)
        return
    if edges(name, "comparisons") and (node.method != "discriminative" or by_step):
        what = f"comparing pairs with a verifier of method {node.method}{who}"
        hint = "score single rows, or compare with a reward model or a judge that generates"
        yield refusal(what, f"{at}.method", hint)
    if node.template is not None and node.method == "implicit_prm":
        what = "a template of an implicit PRM, which scores the tokens of the completion itself"
        yield refusal(f"{what}{who}", f"{at}.template", REMOVE)
    if node.method == "discriminative":
        if by_step and (node.template is not None or read.labels is not None):
            yield refusal(
                "scores of steps with a template or `read.labels`, where the tokens of each step "
                f"are not known{who}",
                f"{at}.read.granularity",
                "remove `template` and `read.labels`, or set `read.granularity: sequence`",
            )
        if head_of(node) == "words" and node.template is None:
            what = f"`read.labels` without a template that asks for them{who}"
            yield refusal(what, f"{at}.template", ASK)
    if node.method == "formal" and spec.graph.edges_out_of(name, "step_scores"):
        what = f"`step_scores` of a formal checker, which grades whole texts{who}"
        yield refusal(what, f"{at}.method", "use `scores`")
    if node.method == "rule" and read.granularity == "token":
        what = f"a rule that grades tokens{who}"
        yield refusal(what, f"{at}.read.granularity", "use `step`")


ASK: Final = "set the question: `template: {text: ...}`"


def _check_judge(spec: LoopSpec, name: str, node: VerifierNode) -> Iterator[Diagnostic]:
    at, read, edges = f"nodes.{name}", node.read, spec.graph.edges_into
    if read.granularity != "sequence" and read.step_verdicts is None:
        what = f"`read.granularity: {read.granularity}` of a verifier that generates"
        hint = "set how it names its steps: `read.step_verdicts`"
        yield refusal(what, f"{at}.read.granularity", hint)
    yield from _check_answers(name, node)
    if read.numbers is not None and node.per is None:
        hint = "gather the rows that are judged together: `join: {gather: ...}`, `per: row`"
        yield refusal("`read.numbers` without `per: row`", f"{at}.read.numbers", hint)
    is_listed = read.numbers is not None or read.json_path is not None or read.ranking
    if node.per is not None and not is_listed:
        hint = "set how its text names each row and its number: `read.numbers` or `read.json`"
        yield refusal("one verdict as the score of every gathered row", f"{at}.per", hint)
    if node.rollout is not None and edges(name, "labels"):
        yield refusal("the port `labels` of a verifier that generates", f"{at}.algorithm.labels")
    for edge in edges(name, "reference"):
        others = spec.graph.edges_out_of(edge.source.node, "log_probs")
        if len(others) > 1 and edges(edge.source.node, "pairs"):
            what = "a reference of pairs that a verifier shares with another learner"
            hint = "give each its own reference: a judge reads pairs after its prompts"
            yield refusal(what, f"nodes.{edge.source.node}", hint)


def _check_answers(name: str, node: VerifierNode | RewardNode) -> Iterator[Diagnostic]:
    """Rubrics and rankings that a judge cannot be asked for, and by URL what needs its tokens."""
    at, read, is_by_url = f"nodes.{name}.read", node.read or Read(), chat_service(node) is not None
    if read.rubric is None and read.ask != "together":
        yield refusal("`read.ask` without a rubric", f"{at}.ask", REMOVE, begins=UNUSED)
    if read.rubric is not None and read.ask == "one_by_one" and not is_by_url:
        what = f"`read.ask: one_by_one` of a judge with a model of the loop (node `{name}`)"
        hint = "ask for all criteria `together`, or use a chat model (`rollout.engine: chat`)"
        yield refusal(what, f"{at}.ask", hint)
    if read.rubric is not None and node.per is not None:
        what = f"`read.rubric` with `per: row` (node `{name}`)"
        yield refusal(what, f"{at}.rubric", "remove `per` and `join`: each row is judged alone")
    if read.ranking and node.per is None:
        hint = "gather the rows that are ranked: `join: {gather: ...}`, `per: row`"
        yield refusal("`read.ranking` without `per: row`", f"{at}.ranking", hint)
    if is_by_url and read.score == "probability":
        what = f"probabilities of labels, which a chat model by URL does not give (node `{name}`)"
        yield refusal(what, f"{at}.score", "read its text instead (`score: text`)")


def _check_algorithms(spec: LoopSpec, name: str) -> Iterator[Diagnostic]:
    at, algorithms = f"nodes.{name}", node_algorithms(spec, name)
    for port, entries in algorithms.items():
        for entry in entries:
            if family_of(str(entry.name)) not in RUNNABLE_ALGORITHMS:
                yield refusal(f"algorithm `{entry.name}`", f"{at}.algorithm.{port}.name")
        if any(isinstance(entry, LabelCrossEntropy) for entry in entries):
            yield from _check_choices(spec, name, port)
    returns = [entry for entry in algorithms.get("returns", ()) if isinstance(entry, ValueLoss)]
    if len({entry.gae_lambda for entry in returns}) > 1:
        what = f"several values of `gae_lambda` for one critic (node `{name}`)"
        hint = "a critic learns returns of one `gae_lambda`; use one critic for each"
        yield refusal(what, f"{at}.algorithm.returns", hint)


def _check_choices(spec: LoopSpec, name: str, port: str) -> Iterator[Diagnostic]:
    """`label_ce` at a port where labels are missing, not requested, or different from those of the
    scorer."""
    node, who = spec.nodes[name], f" (node `{name}`)"
    at, entries = f"nodes.{name}.algorithm.{port}", node_algorithms(spec, name)[port]
    words = label_words(spec, name) or ()
    if len(words) < 2 or (port == "pairs" and len(words) != 2):
        what = f"`label_ce` at `{port}` with {len(words) or 'no'} labels{who}"
        hint = "set two: `read: {labels: [Yes, No]}`, the first for right, or for `a`"
        yield refusal(what, at, hint)
    for entry in entries:
        if isinstance(entry, LabelCrossEntropy) and entry.labels not in (None, words):
            what = (
                f"`label_ce` with the labels {', '.join(entry.labels or ())}, where the scorer "
                f"reads {', '.join(words)}{who}"
            )
            hint = "remove `labels` from the algorithm: it learns those of `read.labels`"
            yield refusal(what, at, hint)
    if len(entries) > 1:
        what = f"`label_ce` together with another algorithm at `{port}`{who}"
        yield refusal(what, at, "give each its own port or node")
    if head_of(node) == "words" and getattr(node, "template", None) is None:
        what = f"`label_ce` without a template that asks for its labels{who}"
        yield refusal(what, f"nodes.{name}.template", ASK)


def _check_measured_ports(name: str, node: EvaluateNode) -> Iterator[Diagnostic]:
    """Teaching ports whose loss an evaluation cannot measure."""
    for port in node.of:
        taught = port.partition(".")[2]
        if taught == "rewards":
            what = f"`of: [{port}]` (node `{name}`)"
            hint = "the loss on rewards depends on the rows of a learning step: "
            hint += "connect their `scores` here instead (`metrics: [score]`)"
            yield refusal(what, f"nodes.{name}.of", hint)
        if taught == "returns" and node.instead_of is None:
            what = f"`of: [{port}]` without `instead_of` (node `{name}`)"
            hint = "returns need texts that are generated and scored: set `instead_of` to "
            hint += "the dataset that the probe's rows replace"
            yield refusal(what, f"nodes.{name}.of", hint)
        if taught == "reference" and node.instead_of is None:
            what = f"`of: [{port}]` without `instead_of` (node `{name}`)"
            hint = "a teacher reads texts that are generated: set `instead_of` to the dataset "
            hint += "that the probe's rows replace"
            yield refusal(what, f"nodes.{name}.of", hint)


def _check_tool(spec: LoopSpec, name: str, node: ToolNode) -> Iterator[Diagnostic]:
    """Unsupported tool calls, and tools that search rows produced by the loop."""
    at, into = f"nodes.{name}", spec.graph.edges_into
    for edge in into(name, "policy"):
        policy = edge.source.node
        if into(policy, "tools"):
            what = f"a policy with tools used as a tool (node `{policy}`)"
            yield refusal(what, f"nodes.{policy}.rollout.turns")
    for edge in into(name, "tools"):
        if getattr(spec.nodes[edge.source.node], "type", None) in ("model", "environment"):
            yield refusal(f"`{edge.source.node}` wrapped by another tool", f"{at}.type")
    for edge in spec.graph.edges_out_of(name, "tool") if node.type == "environment" else ():
        caller = edge.target.node
        tools = [tool_edge.source.node for tool_edge in into(caller, "tools")]
        environments = [n for n in tools if getattr(spec.nodes[n], "type", None) == "environment"]
        if spec.kind_of(caller) == "verifier":
            what = f"an environment whose policy is a verifier (node `{caller}`)"
            yield refusal(what, f"{at}.type")
        if len(environments) > 1 and environments[0] == name:
            yield refusal(f"several environments for one policy (node `{caller}`)", at)
    for edge in into(name, "documents"):
        if spec.kind_of(edge.source.node) != "dataset":
            what = f"documents that `{edge.source.node}` produces during the run"
            hint = (
                "connect a dataset to `documents`: its rows are indexed once, when the run starts"
            )
            yield refusal(what, f"{at}.documents", hint)


def _check_search(
    spec: LoopSpec, name: str, node: SearchNode, lineage: Lineage
) -> Iterator[Diagnostic]:
    """Values that a search's method does not support, and rows that it cannot search."""
    at, rules, method = f"nodes.{name}", RULES.get(node.method, ()), node.method
    rule = node.select.rule if node.select is not None else None
    by_progress = isinstance(node.labels, RelativeProgress)
    use_labels = "use `soft` or `hard`, or `method: monte_carlo`"
    if rule is not None and rules and rule not in rules:
        hint = f"use {' or '.join(f'`{rule}`' for rule in rules)}, or leave it unset"
        yield refusal(f"`select.rule: {rule}` of a search by {method}", f"{at}.select.rule", hint)
    if method == "binary_search" and by_progress:
        what = "`labels: {relative_progress: ...}` of a binary search, which evaluates only a few"
        yield refusal(f"{what} steps", f"{at}.labels", use_labels)
    is_by_rate = isinstance(node.completions, CompletionsByRate)
    if method == "binary_search" and is_by_rate and not lineage.labels_texts(name):
        what = "`completions` by the pass rate of prompts without texts"
        yield refusal(what, f"{at}.completions", "set a number, or connect rollouts")
    if method in TREES and lineage.brings_texts(name):
        what = f"rows that have a text, in a search by {method}"
        hint = "connect prompts, or use `monte_carlo` or `binary_search` to label texts"
        yield refusal(what, f"{at}.rows", hint)
    if method == "puct" and by_progress:
        what = "`labels: {relative_progress: ...}` of a tree, whose prompt has no success rate of"
        yield refusal(f"{what} its own", f"{at}.labels", use_labels)
    if method == "puct" and node.budget.searches_per_row is None:
        what = "a search by puct without `budget.searches_per_row`"
        hint = "set how many visits a tree gets: visits of finished texts cost no tokens"
        yield refusal(what, f"{at}.budget.searches_per_row", hint)
    if method == "puct" and node.give == "visited" and not spec.graph.edges_into(name, "value"):
        what = "`give: visited` of a search that samples whole texts"
        hint = "connect a check to `value`, so that it samples step by step, or remove `give`"
        yield refusal(what, f"{at}.give", hint)


def _check_callees(spec: LoopSpec, name: str, node: SearchNode) -> Iterator[Diagnostic]:
    """Nodes that a search cannot call, and unused ports."""
    at, into = f"nodes.{name}", partial(spec.graph.edges_into, name)
    if len(into("policy")) > 1:
        what, hint = "several policies for one search", "give each its own search"
        yield refusal(what, f"{at}.policy", hint)
    for edge in into("policy"):
        policy, kind = edge.source.node, spec.kind_of(edge.source.node)
        if kind != "actor":
            what = f"a search with the policy of a {kind} (`{policy}`)"
            yield refusal(what, f"{at}.policy", "connect an actor")
        elif turns_of(spec, policy) is not None:
            what = f"multi-turn texts in a search (policy `{policy}`)"
            hint = "give the search a policy without tools"
            yield refusal(what, f"nodes.{policy}.rollout.turns", hint)
    for port, section in PORTS[node.kind].inputs.items():
        if not is_of_use(section, node) and into(port):
            what = f"the port `{port}` of a search by {node.method}"
            yield refusal(what, f"{at}.{port}", "remove the edge: this port is not used")
    for port in ("outcome", "value"):
        for edge in into(port):
            check = edge.source.node
            is_critic = port == "value" and spec.kind_of(check) == "critic"
            if not is_critic and not _scores_alone(spec, check):
                what = f"`{check}` as the {port} of a search: it needs more than one row"
                hint = "connect a reward that scores single rows, a rule or a classifier"
                yield refusal(what, f"{at}.{port}", hint)
    if len(into("tools")) > 1:
        yield refusal("several environments for one search", f"{at}.tools", "connect one")
    for edge in into("tools"):
        if getattr(spec.nodes[edge.source.node], "type", None) != "environment":
            what = f"the tool `{edge.source.node}` in a search, which moves from state to state"
            yield refusal(what, f"{at}.tools", "connect a tool of `type: environment`")


def _check_players(spec: LoopSpec, name: str, node: EnvironmentNode) -> Iterator[Diagnostic]:
    """Policies that cannot play, and more of them than seats."""
    players = spec.graph.edges_into(name, "policy")
    for edge in players:
        policy, kind = edge.source.node, spec.kind_of(edge.source.node)
        if kind != "actor":
            what = f"an environment with the policy of a {kind} (`{policy}`)"
            yield refusal(what, f"nodes.{name}.policy", "connect an actor")
        elif turns_of(spec, policy) is not None:
            what = f"a policy with tools in an environment (policy `{policy}`)"
            hint = "give the environment a policy without tools"
            yield refusal(what, f"nodes.{policy}.rollout.turns", hint)
    if node.players is not None and len(players) > node.players:
        what = f"{len(players)} policies on {node.players} seats (node `{name}`)"
        yield refusal(what, f"nodes.{name}.players", "raise `players`, or remove edges")


def _scores_alone(spec: LoopSpec, name: str) -> bool:
    """Whether a scorer can score a row by itself."""
    node, into = spec.nodes[name], spec.graph.edges_into
    if node.join not in ("align", "concat", "cross") or into(name, "scores"):
        return False
    if isinstance(node, VerifierNode):
        compares = into(name, "comparisons") or into(name, "library")
        return node.method in ROW_BY_ROW and not compares
    return isinstance(node, RewardNode) and getattr(node.source, "name", "") not in SCORE_TO_SCORE
