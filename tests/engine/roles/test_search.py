"""Searches that label steps, over a policy whose pass rate behind each beginning is known."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError
from tests.engine.roles.conftest import ACTOR, ScriptedHosts

from coloop.data.arrays import ids_of, mask_of, numbers_of
from coloop.data.tables import Tokens
from coloop.errors import DataError
from coloop.runtime.roles.searching.binary_search import State, pick, value
from coloop.runtime.roles.searching.tree_expansion import SearchBudget
from coloop.runtime.roles.searching.trees import ExpansionRequest, Path, labels_of
from coloop.spec.search import Budget, RelativeProgress, Select
from coloop.workers.messages import HandOn, PromptRequest, Reply, Sampling

Bench = Callable[..., Any]
Wrong = Callable[[str, int], str]

RIGHT = {"kind": "reward", "source": {"type": "builtin", "name": "regex"}}
RIGHT["source"] |= {"pattern": "([01])$", "scale": [0, 1], "on_no_match": 0.0}
"""1 where a text ends with 1."""
STEPS = {"": 3, "a\n": 2, "a\nb\n": 0, "a\nb\nc\n": 0}
"""Of four completions behind each beginning so many are right."""


class KnownRates(ScriptedHosts):
    """A policy that ends `rates[beginning]` of its completions of it with 1, and writes the others
    as `wrong` says of a beginning and a number, the tail and 0 unless told otherwise."""

    def __init__(self, rates: Mapping[str, int], tail: str = "", wrong: Wrong | None = None):
        super().__init__()
        self.rates = rates
        self.wrong = wrong or (lambda begun, k: f"{tail[len(begun) :]}0")
        self.asked: list[str] = []

    def generate(
        self,
        group: str,
        node: str,
        requests: Sequence[PromptRequest],
        sampling: Sampling,
        hand_on: HandOn | None = None,
        answer: Any = None,
    ) -> list[Reply]:
        if all(request.begun is None for request in requests) and node == "writer":
            return super().generate(group, node, requests, sampling, hand_on)
        self.seeds += [request.seeds for request in requests]
        return [self._completed(request) for request in requests]

    def _completed(self, request: PromptRequest) -> Reply:
        begun = "" if request.begun is None else "".join(map(chr, request.begun.token_ids))
        self.asked.append(begun)
        right = self.rates.get(begun, 0)
        drawn = ["1" if k < right else self.wrong(begun, k) for k in range(len(request.seeds))]
        return [self._text(begun, one) for one in drawn]

    def _text(self, begun: str, drawn: str) -> Tokens:
        text = begun + drawn
        return Tokens(
            prompt_ids=ids_of([112]),
            token_ids=ids_of(list(map(ord, text))),
            loss_mask=mask_of([False] * len(begun) + [True] * len(drawn)),
            log_probs=numbers_of([0.0] * len(begun) + [-0.5] * len(drawn)),
            temperature=1.0,
            writer="policy",
            text=text,
            finished=True,
        )


def search(method: str = "monte_carlo", **fields: Any) -> dict[str, Any]:
    budget = {"tokens": 100_000}
    return {"kind": "search", "method": method, "completions": 4, "budget": budget, **fields}


def labelled(
    bench: Bench, rows_of: Any, tree: dict[str, Any], texts: Sequence[str], hosts: KnownRates
) -> Any:
    """A loop in which a policy completes what a writer wrote to one problem."""
    writer = {**ACTOR, "rollout": {"completions_per_prompt": len(texts), "max_new_tokens": 40}}
    policy = {**ACTOR, "rollout": {"max_new_tokens": 40}}
    nodes = {"sums": rows_of({"prompt": "p"}), "writer": writer, "policy": policy}
    edges = ["sums.rows -> writer.prompts", "writer.rollouts -> tree.rows"]
    edges += ["policy.policy -> tree.policy", "right.check -> tree.outcome"]
    loop = bench({**nodes, "right": RIGHT, "tree": tree}, edges)
    hosts.write, hosts.writer = lambda prompt, k: texts[k], "writer"
    loop.stand(hosts=hosts)
    return loop


def grown(
    bench: Bench, rows_of: Any, tree: dict[str, Any], hosts: KnownRates, right: Any = RIGHT
) -> Any:
    """A loop in which a tree grows from a prompt."""
    nodes = {"sums": rows_of({"prompt": "p"}), "policy": ACTOR, "right": right, "tree": tree}
    edges = ["sums.rows -> tree.rows", "policy.policy -> tree.policy"]
    loop = bench(nodes, [*edges, "right.check -> tree.outcome"])
    loop.stand(hosts=hosts)
    return loop


def metric(loop: Any, name: str) -> float:
    return float(loop.outcomes["tree.generate"].metrics[name])


def test_monte_carlo_labels_each_step_by_its_completions(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    loop = labelled(bench, rows_of, search(), ["a\nb\n0", "a\n1"], KnownRates(STEPS))

    # behind "a\n" 2 of 4 are right, behind "a\nb\n" none; the last step is the text itself
    assert scores(loop.give("tree.step_scores")) == [{1: 0.5, 3: 0.0, 4: 0.0}, {1: 0.5, 2: 1.0}]
    assert scores(loop.give("tree.scores")) == [0.0, 1.0]
    assert [row.id.partition(":")[0] for row in loop.give("tree.rollouts").rows] == ["writer"] * 2
    assert metric(loop, "search/rollouts") == 12


def test_labels_are_chances_or_whether_there_is_any_or_progress() -> None:
    chances = {1: 0.5, 3: 0.4, 5: 0.0, 7: 0.25}
    of = RelativeProgress(relative_progress=0.8)

    def said(rule: Any, stop: bool = False) -> dict[int, float]:
        return labels_of(chances, rule, before=0.75, stop_at_zero=stop)

    assert said("soft") == chances
    assert said("hard") == {1: 1.0, 3: 1.0, 5: 0.0, 7: 1.0}
    # 0.5/0.75 = 0.67 < 0.8, 0.4/0.5 = 0.8, 0/0.4 = 0, and behind 0 nothing makes progress
    assert said(of) == {1: 0.0, 3: 1.0, 5: 0.0, 7: 0.0}
    assert said("soft", stop=True) == {1: 0.5, 3: 0.4, 5: 0.0}


def test_relative_progress_begins_with_the_chance_of_the_prompt(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    tree = search(labels={"relative_progress": 0.6})
    loop = labelled(bench, rows_of, tree, ["a\nb\n0", "a\n1"], KnownRates(STEPS))

    # 0.5/0.75 >= 0.6; 0/0.5; the second text: 1/0.5
    assert scores(loop.give("tree.step_scores")) == [{1: 1.0, 3: 0.0, 4: 0.0}, {1: 1.0, 2: 1.0}]
    assert metric(loop, "search/rollouts") == 16, "the prompt is completed once for both"


def test_after_a_step_without_a_chance_nothing_is_completed(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    hosts = KnownRates(STEPS)
    loop = labelled(bench, rows_of, search(stop_at_zero=True), ["a\nb\nc\n0", "1"], hosts)

    assert scores(loop.give("tree.step_scores")) == [{1: 0.5, 3: 0.0}, {0: 1.0}]
    assert hosts.asked == ["a\n", "a\nb\n"]


def test_harder_problems_get_more_completions(bench: Bench, rows_of: Any) -> None:
    bands = [{"below": 0.5, "use": 8}, {"below": 1.0, "use": 4}]
    tree = search(completions={"by": "pass_rate", "bands": bands})
    counts = {}
    for texts in (["a\n0", "a\n0"], ["a\n0", "a\n1"], ["a\n1", "a\n1"]):
        hosts = KnownRates(STEPS)
        labelled(bench, rows_of, tree, texts, hosts).give("tree.step_scores")
        counts["".join(texts)] = [len(seeds) for seeds in hosts.seeds[1:]]

    assert list(counts.values()) == [[8, 8], [4, 4], []], "a rate of 1 is in no band"


def test_a_wrong_text_of_a_rate_without_a_band_is_not_searched(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    bands = [{"below": 0.5, "use": 8}]
    tree = search("binary_search", completions={"by": "pass_rate", "bands": bands})
    loop = labelled(bench, rows_of, tree, ["a\nb\n0", "a\n1"], KnownRates(STEPS))

    assert scores(loop.give("tree.step_scores")) == [{4: 0.0}, {2: 1.0}]
    assert metric(loop, "search/nodes") == 0


def test_binary_search_looks_at_few_steps(bench: Bench, rows_of: Any, scores: Any) -> None:
    text = "a\nb\nc\nd\ne\nf\ng\n0"
    rates = {text[: 2 * n]: (4 if n < 3 else 0) for n in range(9)}  # the third step is wrong
    hosts = KnownRates(rates)
    loop = labelled(bench, rows_of, search("binary_search"), [text, "a\n1"], hosts)

    # eight steps, the last known: the middle of [-1, 7] is 3 (0), of [-1, 3] is 1 (1), then 2 (0)
    known = {7: 0.0, 3: 1.0, 5: 0.0, 14: 0.0}
    assert scores(loop.give("tree.step_scores")) == [known, {2: 1.0}]
    assert [len(asked) for asked in hosts.asked] == [8, 4, 6]


@pytest.mark.parametrize("wrong", range(8))
def test_binary_search_finds_the_error_that_a_scan_finds(
    wrong: int, bench: Bench, rows_of: Any, scores: Any
) -> None:
    text = "a\nb\nc\nd\ne\nf\ng\n0"
    rates = {text[: 2 * n]: (2 if n <= wrong else 0) for n in range(8)}
    hosts = KnownRates(rates)
    [halved] = scores(
        labelled(bench, rows_of, search("binary_search"), [text], hosts).give("tree.step_scores")
    )
    [scanned] = scores(
        labelled(bench, rows_of, search(), [text], KnownRates(rates)).give("tree.step_scores")
    )

    assert min(at for at, label in halved.items() if label == 0) == min(
        at for at, label in scanned.items() if label == 0
    )
    assert halved.items() <= scanned.items()
    assert len(halved) <= 1 + math.ceil(math.log2(8))
    assert len(hosts.asked) == len(halved) - 1, "the last step is the text itself"


def test_the_next_search_has_the_greatest_worth() -> None:
    text = Tokens(
        prompt_ids=[1],
        token_ids=[1] * 10,
        loss_mask=[True] * 10,
        log_probs=[0.0] * 10,
        temperature=1.0,
        text="x",
        finished=True,
    )
    path = Path(tokens=text, score=0.0)
    select = Select(alpha=0.5, beta=0.9, length=5, c=0.125)
    often = State(length=0, chance=0.5, visits=3, waiting=[path])
    once = State(length=5, chance=0.25, visits=1, waiting=[path])
    dead = State(length=0, chance=0.0, waiting=[path])

    # 0.5^0.5 * 0.9^2 + 0.125 * 2 / 4 and 0.5^0.75 * 0.9^1 + 0.125 * 2 / 2
    assert value(often, path, select, 4) == pytest.approx(0.5**0.5 * 0.81 + 0.0625)
    assert value(once, path, select, 4) == pytest.approx(0.5**0.75 * 0.9 + 0.125)
    picked = pick([dead, often, once], select)
    assert picked is not None
    assert picked[0] is once
    assert pick([dead], select) is None


@pytest.mark.parametrize("field", ["alpha", "beta"])
@pytest.mark.parametrize("value", [0, 1.5])
def test_a_weight_by_which_the_worse_were_chosen_is_refused(field: str, value: float) -> None:
    with pytest.raises(ValidationError, match=field):
        Select.model_validate({field: value})


def test_a_tree_grows_below_the_wrong_texts_of_a_prompt(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    hosts = KnownRates({"": 3, "a\n": 2}, tail="a\nb\nc\n")
    tree = search("binary_search", budget={"searches_per_row": 1})
    loop = grown(bench, rows_of, tree, hosts)
    table = loop.give("tree.step_scores")

    # 3 of 4 are right ("1"); in the wrong "a\nb\nc\n0" the steps 1 (0) and 0 (0.5) are looked at
    assert scores(table) == [{0: 1.0}] * 3 + [{3: 0.0, 1: 0.5, 6: 0.0}]
    assert hosts.asked == ["", "a\nb\n", "a\n"]
    assert [row.writer for row in table.rows] == ["policy"] * 4
    assert all(row.tokens.loss_mask.all() for row in table.rows)


def test_a_text_below_a_state_is_learned_as_it_was_drawn(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    rests = {"": "a\nb\nc\n0", "a\n": "d\n0"}
    hosts = KnownRates({"": 3, "a\n": 3}, wrong=lambda begun, k: rests.get(begun, "0"))
    tree = search("binary_search", budget={"searches_per_row": 2})
    table = grown(bench, rows_of, tree, hosts).give("tree.step_scores")

    # it keeps what is known of the state: three quarters of what was written from there are right
    assert scores(table)[4] == {1: 0.75, 3: 0.0, 4: 0.0}
    below = table.rows[4].tokens  # what was wrong behind "a\n", searched next
    assert below.text == "a\nd\n0"
    assert below.loss_mask.all()
    assert below.log_probs.tolist() == [-0.5] * 5


def test_a_beginning_that_texts_share_is_completed_once(
    bench: Bench, rows_of: Any, scores: Any
) -> None:
    text = "a\nb\nc\n"
    hosts = KnownRates({"": 2, "a\n": 2}, wrong=lambda begun, k: f"{text[len(begun) :]}{k + 2}")
    tree = search("binary_search", budget={"searches_per_row": 8})
    table = grown(bench, rows_of, tree, hosts).give("tree.step_scores")

    # wrong are "a b c 4" and "a b c 5", drawn at the prompt and again behind "a"
    assert hosts.asked == ["", "a\nb\n", "a\n"]
    known = {3: 0.0, 1: 0.5, 6: 0.0}
    assert scores(table) == [{0: 1.0}, {0: 1.0}, known, known]


def test_a_text_that_is_drawn_again_is_not_searched_again(bench: Bench, rows_of: Any) -> None:
    hosts = KnownRates({"": 1, "a\n": 2}, tail="a\nb\nc\n")
    tree = search("binary_search", budget={"searches_per_row": 8})
    table = grown(bench, rows_of, tree, hosts).give("tree.step_scores")

    assert hosts.asked == ["", "a\nb\n", "a\n"]
    assert len(table.rows) == 4


def test_texts_of_which_nothing_is_said_do_not_end_the_search_of_others(
    bench: Bench, rows_of: Any
) -> None:
    rests = {"a\n": "?", "c\n": "0"}
    at_prompt = ["", "", "a\nb\n0", "c\nd\n0"]
    hosts = KnownRates({"": 2, "c\n": 2}, wrong=lambda begun, k: rests.get(begun, at_prompt[k]))
    tree = search("binary_search", budget={"searches_per_row": 8})
    right = {**RIGHT, "source": {**RIGHT["source"], "on_no_match": None}}
    grown(bench, rows_of, tree, hosts, right).give("tree.step_scores")

    # behind "a" all end with "?", of which the check says nothing
    assert hosts.asked[:3] == ["", "a\n", "c\n"]


@pytest.mark.parametrize(
    ("budget", "known"),
    [
        ({"searches_per_row": 4}, {1: 0.5}),  # one node of four completions
        ({"nodes": 1}, {1: 0.5}),
        ({"tokens": 4 * 38 - 1}, None),  # each may write 38 tokens behind "a\n"
    ],
)
def test_a_spent_budget_gives_what_is_known(
    budget: dict[str, int], known: Any, bench: Bench, rows_of: Any, scores: Any
) -> None:
    tree = search(budget=budget, stop_at_zero=True)
    rates = {**STEPS, "a\n": 2}
    loop = labelled(bench, rows_of, tree, ["a\nb\n0"], KnownRates(rates))

    assert scores(loop.give("tree.step_scores")) == [known]
    assert metric(loop, "search/cut") == 1
    codes = [code for code, _ in loop.alerts]
    assert codes == ([] if known else ["search.nothing_found"])


@pytest.mark.parametrize(("tokens", "is_granted"), [(12, True), (11, False)])
def test_a_budget_may_be_met_exactly(tokens: int, is_granted: bool) -> None:
    search_budget = SearchBudget(Budget(tokens=tokens), most_rollouts=None)

    assert search_budget.look([("row", ExpansionRequest(name="root", count=2), 6)]) == [is_granted]


def test_time_that_is_up_is_told(bench: Bench, rows_of: Any, scores: Any) -> None:
    tree = search(budget={"seconds": 1e-9})
    loop = labelled(bench, rows_of, tree, ["a\nb\n0"], KnownRates(STEPS))

    assert scores(loop.give("tree.step_scores")) == [None]
    assert "search.out_of_time" in [code for code, _ in loop.alerts]


def test_draws_belong_to_row_and_node_and_visit(bench: Bench, rows_of: Any) -> None:
    def seeds(texts: list[str]) -> list[tuple[int, ...]]:
        hosts = KnownRates(STEPS)
        labelled(bench, rows_of, search(), texts, hosts).give("tree.step_scores")
        return hosts.seeds[1:]

    alone, both = seeds(["a\nb\n0"]), seeds(["a\nb\n0", "a\n1"])
    assert both[:2] == alone, "what other rows there are changes nothing"
    assert len({seed for own in both for seed in own}) == 12


def test_an_outcome_that_is_no_chance_is_refused(bench: Bench, rows_of: Any) -> None:
    loop = labelled(bench, rows_of, search(), ["a\n9"], KnownRates({}))
    loop.roles["right"] = Doubled(loop.roles["right"])

    with pytest.raises(DataError, match="from 0"):
        loop.give("tree.step_scores")


class Doubled:
    """A scorer whose every score is 2."""

    def __init__(self, role: Any) -> None:
        self._role = role

    def run(self, call: Any) -> Any:
        outcome = self._role.run(call)
        table = outcome.outputs["scores"]
        said = dict.fromkeys(table.scores, 2.0)
        return replace(outcome, outputs={"scores": replace(table, scores=said)})


def test_a_judge_in_words_says_how_good_each_completion_is(bench: Bench, rows_of: Any) -> None:
    """Of two verdicts about a completion one is always right; the other says what it ends with."""
    judge = {
        "kind": "verifier",
        "method": "generative",
        "model": ACTOR["model"],
        "template": {"text": "{{ completion }}?"},
        "read": {"verdict": "(yes|no)", "values": {"yes": 1, "no": 0}},
        "rollout": {"completions_per_prompt": 2},
    }
    writer = {**ACTOR, "rollout": {"completions_per_prompt": 1, "max_new_tokens": 40}}
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "writer": writer,
        "policy": {**ACTOR, "rollout": {"max_new_tokens": 40}},
        "judge": judge,
        "tree": search(),
    }
    edges = ["sums.rows -> writer.prompts", "writer.rollouts -> tree.rows"]
    edges += ["policy.policy -> tree.policy", "judge.check -> tree.outcome"]
    loop = bench(nodes, edges)
    hosts = KnownRates(STEPS, "a\nb\nc")
    hosts.write, hosts.writer = lambda prompt, k: "a\nb\nc0", "writer"
    said = ScriptedHosts()
    said.write = lambda prompt, k: "yes" if k or prompt.endswith("1?") else "no"
    complete = hosts.generate

    def generate(group: str, node: str, *others: Any) -> list[Reply]:
        return (
            said.generate(group, node, *others[:3])
            if node == "judge"
            else complete(group, node, *others)
        )

    hosts.generate = generate  # type: ignore[method-assign]
    loop.stand(hosts=hosts)

    [labels] = (loop.give("tree.step_scores").scores or {}).values()

    # behind `a` 2 of 4 end with 1, which both verdicts call right, and of the others one does
    assert next(iter(labels.values())) == pytest.approx((2 * 1.0 + 2 * 0.5) / 4)
