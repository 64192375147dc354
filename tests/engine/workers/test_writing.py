"""A host that writes a moment at a time: what is finished comes while others go on, and is the same
as what one call for all gives; new weights may come in between."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest
from tests.engine.workers.test_worker import EDGES, NODES, settings_of

from coloop.data.tables import Tokens
from coloop.errors import RequestRefused, StopRequested
from coloop.runtime.roles.rows.texts import drawn_sequence
from coloop.spec.rollout import OnSync
from coloop.workers import writing
from coloop.workers.messages import LearnRequest, PromptRequest, Reply, Sampling, TooLong
from coloop.workers.rollout import Generation
from coloop.workers.worker import Worker

SAMPLING = Sampling(max_new_tokens=40)
TWO_AT_ONCE = {
    **NODES,
    "actor": {**NODES["actor"], "rollout": {**NODES["actor"]["rollout"], "max_num_seqs": 2}},
}


@pytest.fixture(autouse=True)
def short_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment is over when a clock may be looked at for the first time."""
    monkeypatch.setattr(writing, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(writing, "SOON_SECONDS", 0.0)


@pytest.fixture
def host(tmp_path: Path) -> Worker:
    """A host whose engine writes two texts at once."""
    host = Worker(settings_of(TWO_AT_ONCE, EDGES, tmp_path))
    host.build()
    return host


def prompts(count: int = 3) -> list[PromptRequest]:
    return [PromptRequest(id=f"row{n}", prompt=f"{n}+1=", seeds=(n, 50 + n)) for n in range(count)]


def first_moment(host: Worker, requests: Sequence[PromptRequest], sampling: Sampling) -> int:
    """Begins to write; so many texts are unfinished then, and none is finished."""
    begun = host.write("actor", "actor", requests, sampling)
    assert begun.replies == ()
    return begun.unfinished


def the_rest(host: Worker, sampling: Sampling = SAMPLING) -> dict[int, Reply]:
    """What is unfinished, written to its end."""
    found: dict[int, Reply] = {}
    while True:
        told = host.write("actor", "actor", [], sampling)
        found.update(told.replies)
        if not told.unfinished:
            return found


def learn(host: Worker) -> None:
    """The next version of the weights, far from the one before, and the engine has it."""
    tokens = Tokens(
        prompt_ids=[5, 6], token_ids=[7, 8, 9], loss_mask=[True] * 3, log_probs=[-1.0] * 3
    )
    item = drawn_sequence("row", tokens, advantages=9.0)
    host.learn(LearnRequest(group="actor", items={("actor", "rewards"): (item,)}, seed=0))
    host.sync("actor")


def plain(reply: Reply) -> list[tuple[list[int], list[float]]]:
    """What was written, and how likely each token was."""
    assert not isinstance(reply, TooLong)
    return [(one.token_ids.tolist(), one.log_probs.tolist()) for one in reply]


def test_what_is_finished_comes_while_others_are_written(host: Worker) -> None:
    whole = host.generate("actor", "actor", prompts(), SAMPLING)

    begun = host.write("actor", "actor", prompts(), SAMPLING)
    seen, unfinished = dict(begun.replies), [begun.unfinished]
    early: set[int] = set()
    while unfinished[-1]:
        told = host.write("actor", "actor", [], SAMPLING)
        unfinished.append(told.unfinished)
        seen.update(told.replies)
        early |= {place for place, _ in told.replies} if told.unfinished else set()

    assert early, "nothing came before the last"
    assert unfinished == sorted(unfinished, reverse=True)
    assert [seen[place] for place in range(3)] == whole
    assert begun.poll.total == 6


def test_a_prompt_that_does_not_fit_comes_at_once(host: Worker) -> None:
    long = PromptRequest(id="long", prompt="1" * 5000, seeds=(1,))

    told = host.write("actor", "actor", [*prompts(1), long], SAMPLING)

    assert [(place, type(reply)) for place, reply in told.replies] == [(1, TooLong)]
    assert told.unfinished == 2
    host.stop_writing("actor")


@pytest.mark.slow
def test_what_is_given_up_leaves_nothing_behind(host: Worker) -> None:
    whole = host.generate("actor", "actor", prompts(), SAMPLING)

    first_moment(host, prompts(), SAMPLING)
    host.stop_writing("actor")
    host.stop_writing("actor")
    assert host.generate("actor", "actor", prompts(), SAMPLING) == whole

    first_moment(host, prompts(), SAMPLING)  # the driver that asked is gone
    assert host.generate("actor", "actor", prompts(), SAMPLING) == whole

    unknown = PromptRequest(id="unknown", prompt="ж", seeds=(1,))
    with pytest.raises(RequestRefused, match="ж"):
        host.write("actor", "actor", [*prompts(), unknown], SAMPLING)
    assert host.generate("actor", "actor", prompts(), SAMPLING) == whole


def test_a_stop_is_heard_in_the_middle(host: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    first_moment(host, prompts(), SAMPLING)
    monkeypatch.setattr(host, "_begin", lambda: None)
    host.interrupt()

    with pytest.raises(StopRequested, match="0 of 6 rows"):
        host.write("actor", "actor", [], SAMPLING)

    monkeypatch.undo()
    assert len(host.generate("actor", "actor", prompts(1), SAMPLING)) == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("on_sync", ["finish", "resume", "drop"])
def test_new_weights_come_while_texts_are_unfinished(on_sync: OnSync, host: Worker) -> None:
    """`finish`: all by the old ones. `drop`: all by the new ones, from the start. `resume`: each
    token by the weights of its time, with their log-probs."""
    old = host.generate("actor", "actor", prompts(), SAMPLING)
    sampling = replace(SAMPLING, on_sync=on_sync)
    assert first_moment(host, prompts(), sampling) == 6

    learn(host)
    found = the_rest(host, sampling)

    texts = [found[place] for place in range(3)]
    new = host.generate("actor", "actor", prompts(), SAMPLING)
    assert sum(len(plain(reply)) for reply in texts) == 6
    if on_sync != "resume":
        assert texts == (old if on_sync == "finish" else new)
        return
    assert not isinstance(texts[0], TooLong)
    begun, waiting = plain(texts[0]), plain(texts[1])
    assert waiting == plain(new[1])
    first, second = texts[0]
    [(switch, version)] = first.switches
    assert (first.version, version, second.version, second.switches) == (0, 1, 0, ((switch, 1),))
    for one, before, after in zip(begun, plain(old[0]), plain(new[0]), strict=True):
        assert one[0][:switch] == before[0][:switch]
        assert one[1][:switch] == before[1][:switch]
        assert one not in (before, after)


def test_a_written_text_has_all_its_fields_as_it_would_take_them(host: Worker) -> None:
    [[one, other]] = host.generate(
        "actor",
        "actor",
        [PromptRequest(id="row", prompt="1+1=", seeds=(1, 2))],
        Sampling(max_new_tokens=4, temperature=0.5),
    )

    for text in (one, other):
        known = {field.name: getattr(text, field.name) for field in fields(Tokens)}
        assert vars(text).keys() == known.keys()
        assert text == Tokens(**known)
        assert all(vars(text)[name] is value for name, value in vars(Tokens(**known)).items()), (
            "arrays would have been made anew"
        )
    assert one.prompt_ids is other.prompt_ids


def test_a_sibling_differs_in_its_draws_alone() -> None:
    first = Generation(id="a", prompt_ids=[1, 2], seed=3, max_new_tokens=4, stop=("x",))

    assert vars(first.unwritten(seed=5)) == {**vars(first), "seed": 5}
    assert first.seed == 3
