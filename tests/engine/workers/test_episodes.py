"""Texts that pause until somebody has spoken: many at once, each as if it were alone."""

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.engine.generating import generate
from tests.engine.numerics import rounding
from tests.engine.workers.test_worker import EDGES, NODES, settings_of
from tests.engine.workers.test_writing import learn

from coloop.data.tables import Tokens
from coloop.errors import StopRequested
from coloop.workers import worker_group, writing
from coloop.workers.encoder import Encoder
from coloop.workers.messages import Answer, Branches, Pause, PromptRequest, Sampling
from coloop.workers.rollout import Generation
from coloop.workers.worker import Worker
from coloop.workers.worker_group import WorkerGroup

PATIENCE = 60.0
CALLS = tuple("0123456789abcde")
"""Each of them calls the tool: a text of a random model calls it every few tokens."""
SAMPLING = Sampling(max_new_tokens=40, pauses=CALLS)


@pytest.fixture(autouse=True)
def short_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(writing, "SOON_SECONDS", 0.0)


@pytest.fixture
def host(tmp_path: Path) -> Worker:
    rollout = {**NODES["actor"]["rollout"], "max_num_seqs": 4}
    host = Worker(
        settings_of({**NODES, "actor": {**NODES["actor"], "rollout": rollout}}, EDGES, tmp_path)
    )
    host.build()
    return host


@pytest.fixture
def hosts(host: Worker) -> WorkerGroup:
    """The driver's way to the host."""

    def ask(pool: str, method: Any, *arguments: Any) -> Any:
        return getattr(host, method.__name__)(*arguments)

    weight_sync: Any = SimpleNamespace(
        writing_pool=lambda group, node: "main",
        make_current=lambda ask, group, pool: None,
        undisturbed=lambda pool: nullcontext(),
    )
    return WorkerGroup(
        SimpleNamespace(asking=lambda tick=None: ask), {"actor": "main"}, weight_sync
    )


def count(text: str) -> str | None:
    """A tool: how long the call is, twice; it says nothing to every seventh length."""
    return None if len(text) % 7 == 0 else f"{len(text)}={len(text)};"


def waits_for(event: threading.Event) -> Callable[..., Any]:
    """What was said, once this has happened."""
    finished = worker_group.ToolCalls.finished

    def waiting(self: worker_group.ToolCalls, *arguments: Any) -> Any:
        if self._waiting:
            assert event.wait(PATIENCE)
        return finished(self, *arguments)

    return waiting


def requests() -> list[PromptRequest]:
    return [PromptRequest(id=f"row{n}", prompt=f"{n}+1=", seeds=(n, 60 + n)) for n in range(5)]


def alone(host: Worker, prompt: str, seed: int) -> tuple[list[int], list[bool], list[float]]:
    """One text by itself: before each turn everything is read anew."""
    engine = host._engines["actor"].engine
    encoder = host._homes["actor"].weights.encoder("actor")
    start = encoder.prompt(prompt)
    ids: list[int] = []
    own: list[bool] = []
    log_probs: list[float] = []
    while True:
        [drawn] = generate(
            engine,
            [
                Generation(
                    id="alone",
                    prompt_ids=[*start, *ids],
                    seed=seed,
                    seed_from=len(start),
                    max_new_tokens=SAMPLING.max_new_tokens - sum(own),
                    stop=CALLS,
                )
            ],
        )
        ids += drawn.token_ids
        own += [True] * len(drawn.token_ids)
        log_probs += drawn.log_probs
        said = count(encoder.text(drawn.token_ids)) if drawn.reason == "stop" else None
        if said is None or sum(own) == SAMPLING.max_new_tokens:
            return ids, own, log_probs
        heard = encoder.said(said)
        ids += heard
        own += [False] * len(heard)
        log_probs += [0.0] * len(heard)


def written(hosts: WorkerGroup, answer: Answer) -> list[list[Tokens]]:
    replies = hosts.generate("actor", "actor", requests(), SAMPLING, answer=answer)
    assert all(isinstance(reply, list) for reply in replies)
    return replies  # type: ignore[return-value]


def drawn(replies: list[list[Tokens]]) -> list[list[list[int]]]:
    """The tokens; how likely they were is rounded as their company has it, which clocks decide."""
    return [[one.token_ids.tolist() for one in texts] for texts in replies]


@pytest.mark.slow
def test_many_at_once_are_each_as_if_it_were_alone(host: Worker, hosts: WorkerGroup) -> None:
    turns: Counter[tuple[int, int]] = Counter()

    def answer(pause: Pause) -> str | None:
        turns[pause.place, pause.k] += 1
        return count(pause.text)

    replies = written(hosts, answer)

    assert max(turns.values()) >= 3
    for request, texts in zip(requests(), replies, strict=True):
        for seed, found in zip(request.seeds, texts, strict=True):
            ids, own, log_probs = alone(host, str(request.prompt), seed)
            assert found.token_ids.tolist() == ids
            assert found.loss_mask.tolist() == own
            assert np.abs(found.log_probs - np.array(log_probs)).max() < rounding(3000, scale=10.0)
            assert sum(own) <= SAMPLING.max_new_tokens
    assert host._engines["actor"].engine.unfinished == 0


def test_nothing_is_encoded_twice(hosts: WorkerGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: Counter[str] = Counter()
    answered: list[str] = []
    prompt, said = Encoder.prompt, Encoder.said

    def noted(real: Any, what: str) -> Any:
        def encode(encoder: Encoder, *given: Any) -> list[int]:
            encoded[what] += 1
            found: list[int] = real(encoder, *given)
            return found

        return encode

    monkeypatch.setattr(Encoder, "prompt", noted(prompt, "prompt"))
    monkeypatch.setattr(Encoder, "said", noted(said, "said"))

    def answer(pause: Pause) -> str | None:
        text = count(pause.text)
        answered.extend([text] if text is not None else [])
        return text

    written(hosts, answer)

    assert encoded == {"prompt": 5, "said": len(answered)}


def test_nobody_waits_for_another_ones_tool(hosts: WorkerGroup) -> None:
    """The first tool answers only when another text has called three times."""
    calls: Counter[tuple[int, int]] = Counter()
    changed = threading.Condition()
    is_first = [True]

    def answer(pause: Pause) -> str | None:
        with changed:
            slow, is_first[0] = is_first[0], False
            if slow:
                assert changed.wait_for(lambda: max(calls.values(), default=0) >= 3, PATIENCE)
            else:
                calls[pause.place, pause.k] += 1
                changed.notify_all()
        return count(pause.text)

    assert [len(texts) for texts in written(hosts, answer)] == [2] * 5


@pytest.mark.slow
def test_a_tool_that_breaks_leaves_nothing_behind(host: Worker, hosts: WorkerGroup) -> None:
    def breaks(pause: Pause) -> str | None:
        raise ValueError("no such tool")

    with pytest.raises(ValueError, match="no such tool"):
        written(hosts, breaks)

    assert host._engines["actor"].engine.unfinished == 0
    expected = drawn(written(hosts, lambda pause: count(pause.text)))
    assert drawn(written(hosts, lambda pause: count(pause.text))) == expected


def test_a_stop_is_heard_while_all_wait_for_tools(hosts: WorkerGroup) -> None:
    is_called, is_stopped = threading.Event(), threading.Event()

    def answer(pause: Pause) -> str | None:
        is_called.set()
        assert is_stopped.wait(PATIENCE)
        return None

    def tick(poll: Any) -> bool:
        if is_called.is_set():
            is_stopped.set()
        return is_called.is_set()

    with pytest.raises(StopRequested):
        written(hosts.with_tick(tick), answer)


@pytest.mark.slow
def test_new_weights_come_while_texts_pause(host: Worker, hosts: WorkerGroup) -> None:
    """What was drawn stays, with the version that drew it; the rest is by the new ones."""
    old = written(hosts, lambda pause: count(pause.text))
    has_learned = threading.Event()

    def answer(pause: Pause) -> str | None:
        if not has_learned.is_set():
            learn(host)
            has_learned.set()
        return count(pause.text)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worker_group, "LANES", 1)  # the host is asked by one thread at a time
        patched.setattr(worker_group.ToolCalls, "finished", waits_for(has_learned))
        found = written(hosts, answer)

    mixed = [
        (one, before)
        for texts, others in zip(found, old, strict=True)
        for one, before in zip(texts, others, strict=True)
        if one.switches
    ]
    assert mixed
    for one, before in mixed:
        [(token, version)] = one.switches
        assert (one.version, version) == (0, 1)
        assert one.loss_mask[token]
        drawn = int(np.flatnonzero(one.loss_mask[:token])[-1]) + 1
        assert one.token_ids[:drawn].tolist() == before.token_ids[:drawn].tolist()


# Branches


def once(seeds: tuple[int, ...], said: str = "") -> Answer:
    """A text branches where it pauses first; its branches go on until they are full."""

    def answer(pause: Pause) -> str | Branches | None:
        return "" if pause.branch else Branches(seeds=seeds, text=said)

    return answer


@pytest.mark.slow
def test_a_text_that_branches_goes_on_as_several(hosts: WorkerGroup) -> None:
    """With its own seed a branch is the text itself; with another one it begins with it."""
    whole = written(hosts, lambda pause: "")

    for request, texts in zip(requests(), whole, strict=True):
        branching = once((request.seeds[0], 77))
        [reply] = hosts.generate("actor", "actor", [request], SAMPLING, answer=branching)

        assert isinstance(reply, list)
        assert len(reply) == 2 * len(request.seeds)
        assert reply[0].token_ids.tolist() == texts[0].token_ids.tolist()
        assert 0 < _stem(reply[0], reply[1]) < len(reply[0].token_ids)


def _stem(one: Tokens, other: Tokens) -> int:
    """How many tokens two completions begin with alike."""
    pairs = zip(one.token_ids.tolist(), other.token_ids.tolist(), strict=False)
    alike = [left == right for left, right in pairs]
    return alike.index(False) if False in alike else len(alike)


@pytest.mark.slow
def test_draws_of_branches_do_not_depend_on_who_is_answered_first(hosts: WorkerGroup) -> None:
    first, changed = [True], threading.Condition()
    answered: list[Pause] = []

    def late(pause: Pause) -> str | Branches | None:
        """The text that pauses first is answered when four others were."""
        with changed:
            slow, first[0] = first[0], False
            if slow:
                assert changed.wait_for(lambda: len(answered) >= 4, PATIENCE)
            answered.append(pause)
            changed.notify_all()
        return twice(pause)

    def twice(pause: Pause) -> str | Branches | None:
        deep = len(pause.branch)
        return Branches(seeds=(5, 6, 7), text="=") if deep < 2 else None

    assert drawn(written(hosts, late)) == drawn(written(hosts, twice))


def test_what_branches_share_is_computed_once(
    host: Worker, hosts: WorkerGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(hosts, lambda pause: None)
    engine: Any = host._engines["actor"].engine
    extended: list[tuple[int, int]] = []
    read: list[int] = []
    extend, admit = engine._decoder.extend, engine._decoder.admit

    def extending(slot: int, lines: Any, texts: Any, counts: Any) -> None:
        given = zip(texts, lines, counts, strict=True)
        extended.extend((len(text) - 1 - line.length, count) for text, line, count in given)
        extend(slot, lines, texts, counts)

    def admitting(slot: int, prompts: Any, counts: Any) -> Any:
        read.extend(map(len, prompts))
        return admit(slot, prompts, counts)

    monkeypatch.setattr(engine._decoder, "extend", extending)
    monkeypatch.setattr(engine._decoder, "admit", admitting)
    request = requests()[0]
    prompt = len(host._homes["actor"].weights.encoder("actor").prompt(request.prompt))
    only = replace(request, seeds=(0,))

    hosts.generate("actor", "actor", [only], SAMPLING, answer=once((1, 2, 3)))

    assert read == [prompt]
    assert extended[0] == (0, 3)  # nothing is read again, and three texts have it
    assert engine._kept._token_ids == {}


def test_a_full_text_does_not_branch(hosts: WorkerGroup) -> None:
    """Where no token is left to be drawn, it is one text that is cut."""
    short = replace(SAMPLING, max_new_tokens=1, pauses=tuple(map(chr, range(32, 127))))

    replies = hosts.generate("actor", "actor", requests(), short, answer=once((1, 2, 3)))

    for request, texts in zip(requests(), replies, strict=True):
        assert isinstance(texts, list)
        assert len(texts) == len(request.seeds)
        assert not any(one.finished for one in texts if len(one.token_ids) == 1 and one.text)
