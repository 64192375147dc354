"""Searches that grow trees: PUCT over texts, and AND/OR trees of proofs."""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.engine.roles.conftest import ACTOR, ScriptedHosts
from tests.engine.roles.test_search import RIGHT

from coloop.data.arrays import ids_of, mask_of, numbers_of
from coloop.data.tables import Tokens
from coloop.runtime.roles.searching.and_or import ProofTree, proof_of
from coloop.runtime.roles.searching.puct import exploration, pick, priors, shares, wanted
from coloop.runtime.roles.searching.text_tree import TextTree
from coloop.runtime.roles.searching.trees import Path, chance_of
from coloop.spec.nodes import SearchNode
from coloop.spec.search import Expand, Progressive, Select
from coloop.workers.messages import HandOn, PromptRequest, Reply, Sampling

Bench = Callable[..., Any]
Say = Callable[[str, str, int], tuple[str, float]]
"""(prompt, what is begun, number of the draw) -> what is drawn, and its log-prob."""


class Speaker(ScriptedHosts):
    """A policy that says what a script says to a state, by the number of the draw."""

    def __init__(self, say: Say, values: Callable[[str], float] | None = None) -> None:
        super().__init__()
        self.say = say
        self.value = values or (lambda text: 0.5)
        self.asked: list[tuple[str, str, int]] = []
        self.drawn: dict[tuple[str, str], int] = {}

    def generate(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        hand_on: HandOn | None = None,
        answer: Any = None,
    ) -> list[Reply]:
        self.samplings.append(sampling)
        return [self._written(request, sampling) for request in requests]

    def _written(self, request: PromptRequest, sampling: Sampling) -> Reply:  # type: ignore[override]
        self.seeds.append(request.seeds)
        begun = "" if request.begun is None else "".join(map(chr, request.begun.token_ids))
        prompt = str(request.prompt)
        self.asked.append((prompt, begun, len(request.seeds)))
        found = []
        for _ in request.seeds:
            number = self.drawn.get((prompt, begun), 0)
            self.drawn[prompt, begun] = number + 1
            found.append(self._text(begun, *self.say(prompt, begun, number), sampling))
        return found

    def _text(self, begun: str, drawn: str, log_prob: float, sampling: Sampling) -> Tokens:
        for stop in sampling.stop:
            drawn = drawn[: drawn.index(stop) + len(stop)] if stop in drawn else drawn
        text = begun + drawn
        each = log_prob / max(len(drawn), 1)
        return Tokens(
            prompt_ids=ids_of([112]),
            token_ids=ids_of(list(map(ord, text))),
            loss_mask=mask_of([False] * len(begun) + [True] * len(drawn)),
            log_probs=numbers_of([0.0] * len(begun) + [each] * len(drawn)),
            text=text,
            finished=True,
        )

    def score(self, group: str, node: str, texts: Any, temperature: float, reading: Any) -> Any:
        said = []
        for one in texts:
            text = "".join(map(chr, one.token_ids[one.prompt_length :]))
            said.append(numbers_of([self.value(text[: n + 1]) for n in range(len(text))]))
        return said


def tree(method: str = "and_or", **fields: Any) -> dict[str, Any]:
    budget = {"searches_per_row": 8}
    return {"kind": "search", "method": method, "budget": budget, **fields}


def proving(
    bench: Bench, rows_of: Any, hosts: Speaker, theorem: str, *, value: bool = False, **fields: Any
) -> Any:
    """A loop that proves theorems of the proof task."""
    nodes = {
        "sums": rows_of(*({"prompt": one} for one in theorem.split(";"))),
        "policy": ACTOR,
        "kernel": {"kind": "tool", "type": "environment", "name": "proof"},
        "checker": {"kind": "verifier", "method": "formal", "checker": "proof"},
        "tree": tree(**fields),
    }
    edges = ["sums.rows -> tree.rows", "policy.policy -> tree.policy"]
    edges += ["kernel.tool -> tree.tools", "checker.check -> tree.outcome"]
    if value:
        nodes["value"] = {"kind": "critic", "model": ACTOR["model"]}
        edges.append("value.check -> tree.value")
    loop = bench(nodes, edges)
    loop.stand(hosts=hosts)
    return loop


def writing(
    bench: Bench, rows_of: Any, hosts: Speaker, *, value: bool = False, **given: Any
) -> Any:
    """A loop in which a tree of texts grows from a prompt."""
    nodes = {"sums": rows_of({"prompt": "p"}), "policy": ACTOR, "right": RIGHT}
    nodes["tree"] = tree("puct", **given)
    edges = ["sums.rows -> tree.rows", "policy.policy -> tree.policy"]
    edges.append("right.check -> tree.outcome")
    if value:
        nodes["value"] = {"kind": "critic", "model": ACTOR["model"]}
        edges.append("value.check -> tree.value")
    loop = bench(nodes, edges)
    loop.stand(hosts=hosts)
    return loop


class Known:
    """A branch of which all is known."""

    def __init__(self, worth: float, log_prob: float, visits: int) -> None:
        self.worth, self.log_prob, self.visits = worth, log_prob, visits


def test_a_chance_is_the_mean_of_what_was_graded() -> None:
    graded = [action("a", "a", None, score) for score in (1.0, None, 0.0, 1.0)]

    assert chance_of(graded) == pytest.approx(2 / 3)
    assert chance_of(graded[1:2]) is None


def test_puct_by_the_numbers() -> None:
    # priors of log 0.6 and log 0.2: 0.6 / 0.8 and 0.2 / 0.8
    assert priors([math.log(0.6), math.log(0.2)]) == pytest.approx([0.75, 0.25])
    # 1.25 * 0.75 * sqrt(9) / (1 + 2)
    assert exploration(1.25, 0.75, 9, 2) == pytest.approx(0.9375)
    assert shares([3, 1]) == [0.75, 0.25]
    likely = Known(0.2, math.log(0.6), 2)
    good = Known(0.6, math.log(0.2), 2)
    # with c 1.25: 0.2 + 0.9375 = 1.1375 against 0.6 + 1.25 * 0.25 * 3 / 3 = 0.9125
    assert pick([good, likely], 9, Select()) is likely
    # with c 0.5: 0.2 + 0.375 = 0.575 against 0.6 + 0.125 = 0.725
    assert pick([good, likely], 9, Select(c=0.5)) is good
    assert pick([likely, good], 9, Select(rule="greedy")) is good
    # worths from -4 to 0 become (-1 + 4) / 4 = 0.75 and (-3 + 4) / 4 = 0.25
    far, near = Known(-3.0, 0.0, 1), Known(-1.0, 0.0, 1)
    assert pick([far, near], 2, Select(c=0.0), (-4.0, 0.0)) is near
    # explored by 1.25 * 0.75 * 2 / 2 and 1.25 * 0.25 * 2 / 2: 0.25 + 0.9375 against 0.75 + 0.3125
    far.log_prob, near.log_prob = math.log(0.6), math.log(0.2)
    assert pick([far, near], 4, Select(c=1.25), (-4.0, 0.0)) is far
    same = Known(0.5, 0.0, 1)
    assert pick([same, Known(0.5, 0.0, 1)], 2, Select()) is same


def test_a_node_widens_as_it_is_visited() -> None:
    at_once, slowly = (
        Expand(samples=4),
        Expand(samples=3, progressive=Progressive(c=1.0, alpha=0.5)),
    )

    assert wanted(at_once, 1, 0, 0) == 4
    assert wanted(at_once, 2, 4, 1) == 0
    # floor(sqrt(visits)) branches: 1, 1, 1, 2, ..., 3 at the ninth visit, and no fourth sample
    assert [wanted(slowly, visits, 1, 1) for visits in (1, 3, 4, 8, 9)] == [0, 0, 1, 1, 2]
    assert wanted(slowly, 1, 1, 0) == 1, "a branch that came to nothing is drawn again"
    assert wanted(slowly, 99, 3, 0) == 0


def step(above: tuple[int, ...], number: int) -> Path:
    """A beginning that goes on with a step of one token, worth and likely as its tokens say; the
    fourth step ends a text."""
    ids = (*above, number)
    rng = random.Random(repr(ids))
    tokens = Tokens(
        prompt_ids=[1],
        token_ids=[*ids],
        loss_mask=[True] * len(ids),
        log_probs=[0.0] * len(above) + [-3 * rng.random()],
        temperature=1.0,
        text=repr(ids),
    )
    return Path(tokens=tokens, score=rng.random(), name=repr(ids), is_open=len(ids) < 4)


def slow_puct(visits: int, samples: int, c: float) -> list[tuple[int, ...]]:
    """Where each visit ends, from the history of all visits alone."""
    ends: list[tuple[tuple[int, ...], float]] = []
    for _ in range(visits):
        here: tuple[int, ...] = ()
        while here in {end for end, _ in ends} and len(here) < 4:
            below = [step(here, number) for number in range(samples)]
            total = sum(math.exp(one.tokens.log_probs[-1]) for one in below)
            passed = [end for end, _ in ends if end[: len(here)] == here]
            worths = []
            for number, one in enumerate(below):
                own = [v for end, v in ends if end[: len(here) + 1] == (*here, number)]
                known = sum(own) / len(own) if own else float(one.score or 0.0)
                prior = math.exp(one.tokens.log_probs[-1]) / total
                worths.append(known + c * prior * math.sqrt(len(passed)) / (1 + len(own)))
            here = (*here, worths.index(max(worths)))
        if len(here) == 4:
            back = float(step(here[:-1], here[-1]).score or 0.0)
        else:
            back = sum(float(step(here, n).score or 0.0) for n in range(samples)) / samples
        ends.append((here, back))
    return [end for end, _ in ends]


@pytest.mark.parametrize("c", [0.0, 0.5, 1.25, 5.0])
def test_a_tree_of_texts_goes_where_a_slow_reference_goes(c: float) -> None:
    fields = {"select": {"c": c}, "expand": {"samples": 3}}
    grown = TextTree(SearchNode.model_validate(tree("puct", **fields)), is_by_step=True)
    went = []

    for _ in range(60):
        way, count = grown.descend()
        node = way[-1]
        above = () if node.text is None else tuple(node.text.tokens.token_ids.tolist())
        went.append(above)
        drawn = [step(above, number) for number in range(count)]
        grown.climb(way, grown.grow(node, count, drawn) if count else node.promise)

    assert went == slow_puct(60, 3, c)


def node_of(**fields: Any) -> SearchNode:
    return SearchNode.model_validate(tree(**fields))


def action(name: str, text: str, leads: tuple[str, ...] | None, score: float | None = None) -> Path:
    tokens = Tokens(
        prompt_ids=[1],
        token_ids=[1],
        loss_mask=[True],
        log_probs=[-0.5],
        temperature=1.0,
        text=text,
    )
    return Path(tokens=tokens, score=score, name=name, leads=leads)


def test_returns_come_up_by_the_numbers() -> None:
    grown = ProofTree("s", node_of(step_reward=-1.0, expand={"samples": 2}))
    way, state, count = grown.descend()
    assert (way, state, count) == ([], grown.root, 2)

    both = action("root.0", "both", ("u", "v"), -3.0)
    bad = action("root.1", "bad", None)
    grown.climb(way, state, grown.grow(state, count, [both, bad]))

    # what was drawn and leads on promises -3, so does its state; below it -3 - (-1) each
    assert grown.root.worth == -3.0
    assert [one.worth for one in grown.root.actions[0].states] == [-2.0, -2.0]

    way, state, count = grown.descend()
    assert state.text == "u"
    done, far = action("u.0", "done", ()), action("u.1", "far", ("w",), -5.0)
    grown.climb(way, state, grown.grow(state, count, [done, far]))

    # `done` shows u: -1. Back comes -1 + min(-1, -2) = -3, to the root (-3 + -3) / 2
    assert state.shown == -1.0
    assert grown.root.worth == -3.0
    assert grown.root.shown is None

    way, state, count = grown.descend()
    assert state.text == "v", "what is proved is left alone"
    grown.climb(way, state, grown.grow(state, count, [action("v.0", "on", ("x",), -2.5)] * 2))

    # v promises -2.5 now: -1 + min(-1, -2.5) = -3.5; the root (-3 - 3 - 3.5) / 3
    assert grown.root.worth == pytest.approx(-9.5 / 3)
    # what came back over the action: -3 and -3.5
    assert grown.root.actions[0].worth == pytest.approx(-3.25)
    way, state, count = grown.descend()
    assert state.text == "x"
    grown.climb(way, state, grown.grow(state, count, [action("x.0", "end", ())]))

    # x: -1, v: -2, so both: -1 + min(-1, -2)
    assert grown.root.shown == -3.0
    assert [one.text for _, one in proof_of(grown.root)] == ["both", "done", "on", "end"]


def test_of_what_is_left_to_be_shown_the_least_promising_is_tried_next() -> None:
    grown = ProofTree("s", node_of(step_reward=-1.0, expand={"samples": 1}))
    way, state, count = grown.descend()
    grown.climb(way, state, grown.grow(state, count, [action("root.0", "both", ("u", "v"), -3.0)]))
    way, state, count = grown.descend()
    grown.climb(way, state, grown.grow(state, count, [action("u.0", "far", ("w",), -9.0)]))

    # u promises -9 by now, v still -2
    way, state, count = grown.descend()
    assert [above.text for above, _ in way] == ["s", "u"]
    assert state.text == "w"


def test_a_visit_brings_back_what_its_draws_promise_on_the_mean() -> None:
    grown = ProofTree("s", node_of(step_reward=-1.0, expand={"samples": 2}))
    way, state, count = grown.descend()
    draws = [action("root.0", "near", ("u",), -2.0), action("root.1", "far", ("v",), -5.0)]

    grown.climb(way, state, grown.grow(state, count, draws))

    assert grown.root.worth == -3.5


def test_an_action_that_leads_back_to_its_own_state_shows_nothing() -> None:
    grown = ProofTree("s", node_of(expand={"samples": 1}))
    way, state, count = grown.descend()

    grown.climb(way, state, grown.grow(state, count, [action("root.0", "round", ("s",))]))

    assert grown.root.actions == []
    assert not grown.is_open


def test_what_comes_back_to_a_state_or_to_nothing_is_dead() -> None:
    grown = ProofTree("s", node_of(expand={"samples": 1}))
    way, state, count = grown.descend()
    grown.climb(way, state, grown.grow(state, count, [action("root.0", "on", ("t",))]))
    way, state, count = grown.descend()
    grown.climb(way, state, grown.grow(state, count, [action("t.0", "back", ("s",))]))

    assert state.is_dead
    assert not grown.is_open
    assert grown.root.shown is None


def slow_shown(state: str, graph: dict[str, dict[str, tuple[str, ...]]], depth: int) -> float:
    """The best return of a state by trying everything; minus infinity where it is not shown."""
    best = -math.inf
    for leads in graph.get(state, {}).values() if depth else ():
        own = min((slow_shown(one, graph, depth - 1) for one in leads), default=0.0)
        best = max(best, -1.0 + own)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_a_tree_proves_what_a_slow_reference_proves(seed: int) -> None:
    rng = random.Random(seed)
    names = "abcdefg"
    graph = {
        state: {
            f"{state}{n}": tuple(sorted(rng.sample(names[place + 1 :], min(n, 6 - place))))
            for n in rng.sample(range(4), 2)
            if (n == 0 and rng.random() < 0.4) or 0 < n <= 6 - place
        }
        for place, state in enumerate(names)
    }
    grown = ProofTree("a", node_of(step_reward=-1.0, expand={"samples": 2}))

    for number in itertools.count():
        if not grown.is_open:
            break
        way, state, count = grown.descend()
        said = [*graph[state.text].items(), ("none", None)][:2]
        paths = [action(f"{state.name}.{k}", *one) for k, one in enumerate(said)]
        grown.climb(way, state, grown.grow(state, count, paths))
        assert number < 10_000

    best = slow_shown("a", graph, len(names))
    assert (grown.root.shown is not None) == (best > -math.inf)
    assert grown.root.shown is None or grown.root.shown <= best


def tactics(said: dict[str, Sequence[str]]) -> Say:
    """To each state its tactics in turn; the last one over and over."""
    return lambda prompt, begun, k: (said[prompt][min(k, len(said[prompt]) - 1)], -1.0)


def first(said: dict[str, Any]) -> str:
    return next(iter(said))


FORWARD = {"a, a>b, b>c |- c": ["b"], "a, b, a>b, b>c |- c": ["c"]}
SPLIT = {
    "a, a>b, a>c, bc>d |- d": ["bc>d"],
    "a, a>b, a>c, bc>d |- b": ["b"],
    "a, a>b, a>c, bc>d |- c": ["a>c"],
}


def test_a_proof_gives_a_row_for_each_state_and_tactic(
    bench: Bench, rows_of: Any, scores: Any, column: Any
) -> None:
    hosts = Speaker(tactics(FORWARD))
    loop = proving(bench, rows_of, hosts, "a, a>b, b>c |- c", step_reward=-1.0)
    rows = loop.give("tree.step_scores")

    assert column(rows, "completion") == ["b", "c"]
    assert column(rows, "prompt") == [*FORWARD]
    # two steps from the end and one, at the last token
    assert scores(rows) == [{0: -2.0}, {0: -1.0}]
    assert column(rows, "share") == [1.0, 1.0]
    assert [row.writer for row in rows.rows] == ["policy"] * 2
    proved = loop.give("tree.scores")
    assert scores(proved) == [1.0]
    assert proved.rows[0].id.startswith("sums:")
    assert [len(seeds) for seeds in hosts.seeds[:2]] == [4, 4]


def test_a_rule_that_splits_the_goal_wants_all_of_its_premises(
    bench: Bench, rows_of: Any, scores: Any, column: Any
) -> None:
    loop = proving(bench, rows_of, Speaker(tactics(SPLIT)), first(SPLIT), step_reward=-1.0)
    rows = loop.give("tree.step_scores")

    assert column(rows, "completion") == ["bc>d", "b", "a>c"]
    # -1 + min(-1, -1) above the two premises
    assert scores(rows) == [{3: -2.0}, {0: -1.0}, {2: -1.0}]
    assert scores(loop.give("tree.scores")) == [1.0], "the checker takes the proof as one text"


def test_a_negation_is_shown_by_none_where_nothing_leads_to_the_goal(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    rows = "not a, b>c |- c;not a, a>c |- c"
    loop = proving(bench, rows_of, Speaker(lambda *_: ("none", -1.0)), rows)

    assert scores(loop.give("tree.scores")) == [1.0, 0.0]


def test_without_a_proof_the_visited_tactics_can_be_had(
    bench: Bench, rows_of: Any, scores: Any, column: Any
) -> None:
    said = {"a, a>b, b>c |- c": ["b"], "a, b, a>b, b>c |- c": ["x"]}
    fields = {"step_reward": -1.0, "expand": {"samples": 2}}
    proofs = proving(bench, rows_of, Speaker(tactics(said)), first(said), **fields)
    dead = proving(bench, rows_of, Speaker(tactics(said)), first(said), give="visited", **fields)
    fields["budget"] = {"searches_per_row": 2}
    longer = {"a, a>b, b>c, c>d |- d": ["b"], "a, b, a>b, b>c, c>d |- d": ["c"]}
    cut = proving(bench, rows_of, Speaker(tactics(longer)), first(longer), give="visited", **fields)

    assert proofs.give("tree.rollouts").rows == ()
    assert scores(proofs.give("tree.scores")) == [0.0]
    assert dead.give("tree.rollouts").rows == (), "what comes to nothing has no return"
    # `b` was followed once: -1 + -1, which `c` promises where nobody says more of it
    assert column(cut.give("tree.step_scores"), "completion") == ["b"]
    assert scores(cut.give("tree.step_scores")) == [{0: -2.0}]


def test_a_critic_says_what_a_tactic_promises(bench: Bench, rows_of: Any) -> None:
    said = {
        "a, a>b, a>d, b>c |- c": ["b", "d"],
        "a, b, a>b, a>d, b>c |- c": ["c"],
        "a, d, a>b, a>d, b>c |- c": ["x"],
    }
    looked = {}
    for best in "bd":
        hosts = Speaker(tactics(said), lambda text, best=best: -1.0 if text == best else -9.0)
        fields = {"expand": {"samples": 2}, "select": {"rule": "greedy"}, "step_reward": -1.0}
        loop = proving(bench, rows_of, hosts, first(said), value=True, **fields)
        assert loop.give("tree.scores").scores is not None
        looked[best] = [prompt for prompt, _, _ in hosts.asked]

    assert looked["b"] == [first(said), [*said][1]]
    assert looked["d"] == [first(said), [*said][2], [*said][1]], "what it promised was nothing"


@pytest.mark.parametrize(
    ("budget", "score"),
    [({"tokens": 1}, None), ({"nodes": 1}, 0.0), ({"searches_per_row": 1}, 0.0)],
)
def test_a_budget_that_is_spent_before_a_proof_is_told(
    budget: dict[str, int], score: float | None, bench: Bench, rows_of: Any, scores: Any
) -> None:
    loop = proving(bench, rows_of, Speaker(tactics(FORWARD)), first(FORWARD), budget=budget)

    assert scores(loop.give("tree.scores")) == [score]
    codes = [code for code, _ in loop.alerts]
    assert ("search.nothing_found" in codes) == (score is None)
    metrics = loop.outcomes["tree.generate"].metrics
    assert metrics["search/cut"] == (0.0 if "searches_per_row" in budget else 1.0)


def test_tactics_that_lead_nowhere_are_told(bench: Bench, rows_of: Any) -> None:
    loop = proving(bench, rows_of, Speaker(lambda *_: ("z", -1.0)), "a, a>b |- b")
    loop.give("tree.scores")

    [message] = [text for code, text in loop.alerts if code == "search.leads_nowhere"]
    assert "z does not follow" in message
    assert loop.outcomes["tree.generate"].metrics["search/dead"] == 1.0


def test_a_proof_that_the_outcome_rejects_counts_for_nothing(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    fields = {"step_separator": ";"}
    loop = proving(bench, rows_of, Speaker(tactics(FORWARD)), first(FORWARD), **fields)

    assert scores(loop.give("tree.scores")) == [0.0], "`b;c` is no proof to the checker"
    assert loop.give("tree.rollouts").rows == ()
    assert "search.proof_rejected" in [code for code, _ in loop.alerts]


STEPS = {"": ["a\n1", "b\n0"], "a\n": ["c\n1", "c\n0"], "b\n": ["0", "0"]}


def whole(begun_to: dict[str, list[str]]) -> Say:
    return lambda prompt, begun, k: (begun_to[begun][k % 2], -1.0 if k % 2 else -0.5)


def test_a_tree_of_texts_follows_the_chances_of_its_steps(
    bench: Bench, rows_of: Any, scores: Any, column: Any
) -> None:
    hosts = Speaker(whole(STEPS))
    fields = {"expand": {"samples": 2}, "budget": {"searches_per_row": 2}}
    loop = writing(bench, rows_of, hosts, **fields)
    rows = loop.give("tree.step_scores")

    # drawn at the prompt: a (1) and b (0), so a is followed; behind it c, right in one of two
    assert hosts.asked == [("p", "", 2), ("p", "a\n", 2)]
    assert column(rows, "completion") == ["a\n1", "b\n0", "a\nc\n1", "a\nc\n0"]
    a, c = 0.5, 0.5  # of one visit to `a`; `c` was not visited
    expected = [{1: a, 2: 1.0}, {1: 0.0, 2: 0.0}, {1: a, 3: c, 4: 1.0}, {1: a, 3: c, 4: 0.0}]
    assert scores(rows) == expected
    assert column(rows, "share") == [1.0, 0.0, 0.0, 0.0], "`c` has no visit of those of `a`"
    assert scores(loop.give("tree.scores")) == [1.0, 0.0, 1.0, 0.0]


def test_with_a_value_steps_are_drawn_one_by_one(
    bench: Bench, rows_of: Any, scores: Any, column: Any
) -> None:
    hosts = Speaker(whole(STEPS), lambda text: {"a\n": 0.75, "b\n": -2.0}.get(text, 0.0))
    budget = {"searches_per_row": 2}
    given = {"expand": {"samples": 2}, "budget": budget, "give": "visited"}
    loop = writing(bench, rows_of, hosts, value=True, **given)
    rows = loop.give("tree.step_scores")

    assert all(sampling.stop[-1:] == ("\n",) for sampling in hosts.samplings if sampling.stop)
    assert column(rows, "completion") == ["a\n", "b\n", "a\nc\n"]
    assert column(rows, "finished") == [False] * 3
    # behind a came c, of which the critic says 0; b promises no less than 0
    assert scores(rows) == [{1: 0.0}, {1: 0.0}, {1: 0.0, 3: 0.0}]


def test_trees_draw_by_row_node_and_number(bench: Bench, rows_of: Any) -> None:
    def seeds(theorems: str) -> set[int]:
        hosts = Speaker(tactics({**FORWARD, **SPLIT}))
        proving(bench, rows_of, hosts, theorems).give("tree.scores")
        return {seed for own in hosts.seeds for seed in own}

    alone, both = seeds(first(FORWARD)), seeds(f"{first(FORWARD)};{first(SPLIT)}")
    assert alone < both, "what other rows there are changes nothing"
    assert len(both) == 8 + 12
