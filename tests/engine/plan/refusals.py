"""Loops of which a run refuses a part, by what is said of it: edges beside GRPO's, and nodes.

`test_refusals` goes through them; the table of nodes (`roles/node_table.py`) shows which nodes they
are about.
"""

from collections.abc import Iterator
from typing import Any

from tests.engine.plan.conftest import loop
from tests.engine.plan.test_later_kinds import CASES, GRPO, MODEL

from coloop.plan.run_check import check_runs
from coloop.spec.graph import LoopSpec

Case = tuple[list[Any], dict[str, Any]]

JUDGED = ["actor.rollouts -> judge.rollouts", "judge.scores -> actor.rewards"]
SEARCHED = [
    "problems.rows -> tree.rows",
    "actor.policy -> tree.policy",
    "exact.check -> tree.outcome",
]
LABELLED = ["actor.rollouts -> tree.rows", *SEARCHED[1:]]
ROLLOUT = {"completions_per_prompt": 1, "max_new_tokens": 4}
QUESTION = {"text": "{{ completion }}?"}


def _judge(method: str, **fields: Any) -> dict[str, Any]:
    return {"judge": {"kind": "verifier", "method": method, **fields}}


def _writing(**fields: Any) -> dict[str, Any]:
    return _judge("generative", model=MODEL, template=QUESTION, **{"rollout": ROLLOUT, **fields})


def _tree(method: str = "monte_carlo", **fields: Any) -> dict[str, Any]:
    budget = {"tokens": 100, "searches_per_row": 2}
    return {"tree": {"kind": "search", "method": method, "budget": budget, **fields}}


def _tool(node: str, type_: str, /, **fields: Any) -> dict[str, Any]:
    return {node: {"kind": "tool", "type": type_, **fields}}


ASKS = _tool("asks", "model", template={"text": "{{ question }}?"}, call="<(?P<question>.)>")
RUBRIC = [{"name": "clear", "text": "it is clear"}]
MODEL_REWARD = {"kind": "reward", "source": {"type": "model"}, "model": MODEL}
HELPER = {"helper": {"kind": "actor", "model": MODEL, "rollout": ROLLOUT}}
HELPED = ["helper.policy -> asks.policy", "asks.tool -> actor.tools"]

CODE = {"type": "python", "code": "class Environment: ..."}
GAME = {"game": {"kind": "environment", "source": CODE}}
PLAYED = ["problems.rows -> game.rows"]

MORE: dict[str, Case] = {
    "an environment with the policy of a verifier (`judge`)": (
        [*PLAYED, "judge.policy -> game.policy"],
        {**GAME, **_writing()},
    ),
    "a policy with tools in an environment (policy `helper`)": (
        [*PLAYED, "helper.policy -> game.policy", "sums.tool -> helper.tools"],
        {
            **GAME,
            **_tool("sums", "calculator"),
            "helper": {**HELPER["helper"], "rollout": {**ROLLOUT, "turns": {"max": 2}}},
        },
    ),
    "2 policies on 1 seats (node `game`)": (
        [*PLAYED, "actor.policy -> game.policy", "helper.policy -> game.policy"],
        {"game": {**GAME["game"], "players": 1}, **HELPER},
    ),
    "`read.beta`, which a verifier of method rule does not use (node `judge`)": (
        JUDGED,
        _judge("rule", read={"beta": 0.5}),
    ),
    "`read.order`, which a verifier of method vote does not use (node `judge`)": (
        JUDGED,
        _judge("vote", read={"order": "both"}),
    ),
    "`read.reduce`, which a verifier of method formal does not use (node `judge`)": (
        JUDGED,
        _judge("formal", checker="proof", read={"reduce": "min"}),
    ),
    "`read.labels`, which a verifier of method implicit_prm does not use (node `judge`)": (
        JUDGED,
        _judge("implicit_prm", model=MODEL, read={"labels": ["yes", "no"]}),
    ),
    "`read.number`, which a verifier of method discriminative does not use (node `judge`)": (
        JUDGED,
        _judge("discriminative", model=MODEL, read={"number": "([0-9])"}),
    ),
    "`read.on_no_match`, which a judge that chooses among labels (without `rollout`) does not use "
    "(node `judge`)": (
        JUDGED,
        _judge(
            "generative",
            model=MODEL,
            template=QUESTION,
            read={"labels": ["yes", "no"], "on_no_match": 0.0},
        ),
    ),
    "`read.scale`, which a judge whose labels are weighted (`score: probability`) does not use "
    "(node `judge`)": (
        JUDGED,
        _writing(read={"score": "probability", "labels": ["yes", "no"], "scale": [0, 5]}),
    ),
    "`read.beta`, which a judge whose text is parsed (`score: text`) does not use (node `judge`)": (
        JUDGED,
        _writing(read={"number": "([0-9])", "beta": 0.5}),
    ),
    "`read.order`, which a judge whose text is parsed (`score: text`) without `comparisons` or "
    "`pairs` does not use (node `judge`)": (
        JUDGED,
        _writing(read={"number": "([0-9])", "order": "both"}),
    ),
    "`read.labels`, which a judge whose text is parsed (`score: text`) does not use "
    "(node `judge`)": (
        JUDGED,
        _writing(read={"number": "([0-9])", "labels": ["yes", "no"]}),
    ),
    "`read.score`, which a verifier of method discriminative does not use (node `judge`)": (
        JUDGED,
        _judge("discriminative", model=MODEL, read={"score": "probability"}),
    ),
    "`greedy` of an evaluation of the step's own rows (`instead_of` is not set)": (
        ["actor.rollouts -> probe.rows", "exact.scores -> probe.scores"],
        {"probe": {"kind": "evaluate", "greedy": True}},
    ),
    "`of: [actor.rewards]` (node `probe`)": (
        ["problems.rows -> probe.rows"],
        {
            "probe": {
                "kind": "evaluate",
                "instead_of": "problems",
                "of": ["actor.rewards"],
                "metrics": ["loss"],
            }
        },
    ),
    "`temperature` of an evaluation with greedy decoding": (
        ["problems.rows -> probe.rows", "exact.scores -> probe.scores"],
        {
            "probe": {
                "kind": "evaluate",
                "instead_of": "problems",
                "greedy": True,
                "temperature": 0.5,
            }
        },
    ),
    "`on_error` of a reward model: a text that it cannot score has no score": (
        ["actor.rollouts -> rm.rollouts", "rm.scores -> actor.rewards"],
        {
            "rm": {
                "kind": "reward",
                "source": {"type": "model"},
                "model": MODEL,
                "on_error": "skip_row",
            }
        },
    ),
    "`read.values`, which a reward model without `labels` does not use (node `judge`)": (
        JUDGED,
        {"judge": {**MODEL_REWARD, "read": {"values": {"good": 1.0}}}},
    ),
    "`read.activation`, which a reward by a chat model does not use (node `judge`)": (
        JUDGED,
        {
            "judge": {
                "kind": "reward",
                "source": {"type": "chat", "url": "http://localhost:1/v1", "model": "m"},
                "template": QUESTION,
                "read": {"number": "([0-9])", "activation": "sigmoid"},
            }
        },
    ),
    "`read.values`, which a verifier of method discriminative without `labels` does not use "
    "(node `judge`)": (
        JUDGED,
        _judge("discriminative", model=MODEL, read={"values": {"good": 1.0}}),
    ),
    "`join` (`cross`) of rows that arrive by one edge": (
        ["actor.rollouts -> two.rollouts", "exact.scores -> two.scores"],
        {"two": {"kind": "pairs", "method": "all", "join": "cross"}},
    ),
    "`soft` of pairs without `scores`": (
        ["actor.rollouts -> two.rollouts"],
        {"two": {"kind": "pairs", "method": "all", "soft": True}},
    ),
    "`timeout_seconds` of an environment that coloop provides": (
        ["world.tool -> actor.tools"],
        _tool("world", "environment", name="proof", timeout_seconds=3.0),
    ),
    "`step_scores` of a formal checker, which grades whole texts (node `judge`)": (
        ["actor.rollouts -> judge.rollouts", "judge.step_scores -> actor.rewards"],
        _judge("formal", checker="proof"),
    ),
    "`label_ce` together with another algorithm at `labels` (node `judge`)": (
        ["actor.rollouts -> judge.rollouts", "exact.scores -> judge.labels"],
        _judge(
            "discriminative",
            model=MODEL,
            template=QUESTION,
            read={"labels": ["yes", "no"]},
            algorithm={"labels": [{"name": "label_ce"}, {"name": "outcome"}]},
        ),
    ),
    "`label_ce` with the labels Yes, No, where the scorer reads yes, no (node `judge`)": (
        ["actor.rollouts -> judge.rollouts", "exact.scores -> judge.labels"],
        _judge(
            "discriminative",
            model=MODEL,
            template=QUESTION,
            read={"labels": ["yes", "no"]},
            algorithm={"labels": {"name": "label_ce", "labels": ["Yes", "No"]}},
        ),
    ),
    "`read.granularity: step` of a verifier that generates": (
        JUDGED,
        _writing(read={"granularity": "step"}),
    ),
    "`read.numbers` without `per: row`": (JUDGED, _writing(read={"numbers": "([0-9]): ([0-9])"})),
    "`read.ranking` without `per: row`": (
        JUDGED,
        _writing(read={"verdict": "([0-9 ]+)", "ranking": True}),
    ),
    "`read.ask` without a rubric": (
        JUDGED,
        _writing(read={"number": "([0-9])", "ask": "one_by_one"}),
    ),
    "`read.ask: one_by_one` of a judge with a model of the loop (node `judge`)": (
        JUDGED,
        _writing(read={"number": "([0-9])", "rubric": RUBRIC, "ask": "one_by_one"}),
    ),
    "`read.rubric` with `per: row` (node `judge`)": (
        ["actor.rollouts -> judge.rows", "judge.scores -> actor.rewards"],
        _writing(read={"json": "all", "rubric": RUBRIC}, join={"gather": "problems"}, per="row"),
    ),
    "probabilities of labels, which a chat model by URL does not give (node `judge`)": (
        JUDGED,
        _judge(
            "generative",
            template=QUESTION,
            read={"verdict": "(yes|no)", "labels": ["yes", "no"], "score": "probability"},
            rollout={"engine": "chat", "chat": {"url": "http://localhost:1/v1", "model": "m"}},
        ),
    ),
    "one verdict as the score of every gathered row": (
        ["actor.rollouts -> judge.rows", "judge.scores -> actor.rewards"],
        _writing(read={"number": "([0-9])"}, join={"gather": "problems"}, per="row"),
    ),
    "the port `labels` of a verifier that generates": (
        ["actor.rollouts -> judge.rollouts", "exact.scores -> judge.labels"],
        _writing(read={"number": "([0-9])"}, algorithm={"labels": {"name": "outcome"}}),
    ),
    "`give` of a search by monte_carlo": (SEARCHED, _tree(give="visited")),
    "`select` of a search that labels each text separately": (
        LABELLED,
        _tree(select={"rule": "omega"}),
    ),
    "`labels: {relative_progress: ...}` of a binary search, which evaluates only a few steps": (
        SEARCHED,
        _tree("binary_search", labels={"relative_progress": 0.1}),
    ),
    "`expand` of a search by binary_search": (
        SEARCHED,
        _tree("binary_search", expand={"samples": 2}),
    ),
    "`labels` of a search by and_or": (
        [*SEARCHED, "world.tool -> tree.tools"],
        {**_tree("and_or", labels="hard"), **_tool("world", "environment", name="proof")},
    ),
    "`completions` of a search by puct": (SEARCHED, _tree("puct", completions=4)),
    "`select.beta` of a search by puct": (SEARCHED, _tree("puct", select={"beta": 0.5})),
    "`give: visited` of a search that samples whole texts": (
        SEARCHED,
        _tree("puct", give="visited"),
    ),
    "rows that have a text, in a search by puct": (LABELLED, _tree("puct")),
    "the port `tools` of a search by puct": (
        [*SEARCHED, "world.tool -> tree.tools"],
        {**_tree("puct"), **_tool("world", "environment", name="proof")},
    ),
    "`select.rule: omega` of a search by and_or": (
        [*SEARCHED, "world.tool -> tree.tools"],
        {
            **_tree("and_or", select={"rule": "omega"}),
            **_tool("world", "environment", name="proof"),
        },
    ),
    "several environments for one search": (
        [*SEARCHED, "one.tool -> tree.tools", "two.tool -> tree.tools"],
        {
            **_tree("and_or"),
            **_tool("one", "environment", name="proof"),
            **_tool("two", "environment", name="proof"),
        },
    ),
    "the tool `sums` in a search, which moves from state to state": (
        [*SEARCHED, "sums.tool -> tree.tools"],
        {**_tree("and_or"), **_tool("sums", "calculator")},
    ),
    "several policies for one search": (
        [*SEARCHED, "helper.policy -> tree.policy"],
        {**_tree(), **HELPER},
    ),
    "multi-turn texts in a search (policy `actor`)": (
        [*SEARCHED, "sums.tool -> actor.tools"],
        {**_tree(), **_tool("sums", "calculator")},
    ),
    "`together` as the outcome of a search: it needs more than one row": (
        [*SEARCHED[:2], "together.check -> tree.outcome"],
        {
            **_tree(),
            "together": {
                "kind": "reward",
                "join": {"gather": "problems"},
                "source": {"type": "python", "code": "def reward(**columns): return [0.0]"},
            },
        },
    ),
    "`completions` by the pass rate of prompts without texts": (
        SEARCHED,
        _tree(
            "binary_search",
            completions={"by": "pass_rate", "bands": [{"below": 0.5, "use": 4}]},
        ),
    ),
    "`labels: {relative_progress: ...}` of a tree, whose prompt has no success rate of its own": (
        SEARCHED,
        _tree("puct", labels={"relative_progress": 0.1}),
    ),
    "a search with the policy of a verifier (`judge`)": (
        [*JUDGED, *SEARCHED[:1], "judge.policy -> tree.policy", SEARCHED[2]],
        {**_tree(), **_writing(read={"number": "([0-9])"})},
    ),
    "`label_ce` without a template that asks for its labels (node `judge`)": (
        ["actor.rollouts -> judge.rollouts", "exact.scores -> judge.labels"],
        _judge(
            "discriminative",
            model=MODEL,
            read={"labels": ["yes", "no"]},
            algorithm={"labels": {"name": "label_ce"}},
        ),
    ),
    "a reference of pairs that a verifier shares with another learner": (
        [
            "actor.rollouts -> two.rollouts",
            "two.pairs -> start.pairs",
            "two.pairs -> judge.pairs",
            "two.pairs -> actor.pairs",
            "start.log_probs -> judge.reference",
            "start.log_probs -> actor.reference",
        ],
        {
            "two": {"kind": "pairs", "method": "all"},
            "actor": {"algorithm": {"rewards": {"name": "grpo"}, "pairs": {"name": "dpo"}}},
            **_writing(read={"number": "([0-9])"}, algorithm={"pairs": {"name": "dpo"}}),
        },
    ),
    "a score head and text generation on one adapter (node `critic`)": (
        ["actor.rollouts -> critic.rollouts", "critic.values -> actor.values"],
        {
            "actor": {"model": {"type": "pretrained", "path": "somewhere", "lora": {"rank": 4}}},
            "critic": {"kind": "critic", "model": {"type": "shared", "with": "actor"}},
        },
    ),
    "a policy with tools used as a tool (node `helper`)": (
        [*HELPED, "sums.tool -> helper.tools"],
        {**ASKS, **HELPER, **_tool("sums", "calculator")},
    ),
    "`call` of a tool that wraps others (node `asks`)": (
        [*HELPED, "sums.tool -> asks.tools"],
        {**ASKS, **HELPER, **_tool("sums", "calculator")},
    ),
    "`world` wrapped by another tool": (
        [*HELPED, "world.tool -> asks.tools"],
        {**ASKS, **HELPER, **_tool("world", "environment", name="proof")},
    ),
    "an environment whose policy is a verifier (node `judge`)": (
        [*JUDGED, "world.tool -> judge.tools"],
        {**_writing(read={"number": "([0-9])"}), **_tool("world", "environment", name="proof")},
    ),
    "`rollout.engine: remote` of `actor`, which learns: a service does not receive new weights": (
        [],
        {"actor": {"rollout": {**ROLLOUT, "engine": "remote", "url": "http://localhost:1/v1"}}},
    ),
    "`rollout.script` with the `vllm` engine, which does not use it": (
        [],
        {"actor": {"rollout": {**ROLLOUT, "engine": "vllm", "script": ["yes"]}}},
    ),
    "training backend `megatron`; supported here: `deepspeed`, `fsdp2`, `single`": (
        [],
        {"actor": {"training": {"backend": "megatron"}}},
    ),
    "images in prompts (node `problems`)": (
        [],
        {
            "problems": {
                "source": {"type": "task", "task": "images"},
                "columns": {"images": "figure"},
            }
        },
    ),
    "a curriculum with `max_staleness` (node `problems`): rows of a step are drawn before the "
    "scores of earlier steps are known": ([], {"problems": {"curriculum": {"by": "exact"}}}),
    "`of: [actor.reference]` without `instead_of` (node `probe`)": (
        [
            "actor.rollouts -> start.rollouts",
            "start.log_probs -> actor.reference",
            "actor.rollouts -> probe.rollouts",
        ],
        {
            "actor": {"algorithm": {"rewards": {"name": "grpo"}, "reference": {"name": "opd"}}},
            "probe": {"kind": "evaluate", "of": ["actor.reference"], "metrics": ["loss"]},
        },
    ),
    "handles (edge exact.check -> actor.tools)": (["exact.check -> actor.tools"], {}),
    "`training.dtype: float16`": ([], {"actor": {"training": {"dtype": "float16"}}}),
}
ALL = {**CASES, **MORE}


def refused_loop(what: str) -> LoopSpec:
    """The loop of a case."""
    edges, nodes = ALL[what]
    actor = {"algorithm": {"name": "grpo"}, **nodes.get("actor", {})}
    if "quantization" in what:
        actor["model"] = {"type": "pretrained", "path": "somewhere", **actor["model"]}
    schedule = {"steps": 3, "max_staleness": 1} if "max_staleness" in what else None
    return loop([*GRPO, *edges], schedule, **{**nodes, "actor": actor})


def places() -> Iterator[tuple[LoopSpec, str, str]]:
    """The loop, the node and the field of each refusal."""
    for what in ALL:
        spec = refused_loop(what)
        for one in check_runs(spec):
            if one.message.endswith(what) and one.node is not None:
                yield spec, one.node, one.field or ""
