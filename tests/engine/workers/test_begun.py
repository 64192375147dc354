"""Texts that a host writes on from a beginning: the branches of a search."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.engine.numerics import near
from tests.engine.workers.test_worker import EDGES, NODES, settings_of

from coloop.data.tables import Tokens
from coloop.errors import DataError
from coloop.runtime.roles.rows.texts import drawn_sequence
from coloop.workers.messages import Begun, PromptRequest, Reply, Sampling, TooLong
from coloop.workers.worker import Worker

SAMPLING = Sampling(max_new_tokens=12)
SEEDS = (3, 4, 5)
TERMS = 10_000
"""More roundings than two passes of the smallest model over a text have."""


@pytest.fixture
def host(tmp_path: Path) -> Worker:
    host = Worker(settings_of(NODES, EDGES, tmp_path))
    host.build()
    return host


def written(reply: Reply) -> list[Tokens]:
    assert not isinstance(reply, TooLong)
    return reply


def on(host: Worker, begun: Begun, *seeds: int, sampling: Sampling = SAMPLING) -> list[Tokens]:
    """Texts that go on with a beginning."""
    request = PromptRequest(id="row", prompt="1+1=", seeds=seeds, begun=begun)
    [reply] = host.generate("actor", "actor", [request], sampling)
    return written(reply)


def stem_of(host: Worker, length: int) -> tuple[Tokens, Begun]:
    """A text, and its first so many tokens."""
    request = PromptRequest(id="row", prompt="1+1=", seeds=(1,))
    [reply] = host.generate("actor", "actor", [request], SAMPLING)
    [text] = written(reply)
    assert len(text.token_ids) > length
    return text, Begun.of(text, length)


def test_what_is_begun_stays_and_is_not_trained(host: Worker) -> None:
    text, begun = stem_of(host, 3)

    for branch in on(host, begun, *SEEDS):
        assert branch.token_ids[:3].tolist() == text.token_ids[:3].tolist()
        assert branch.loss_mask.tolist()[:3] == [False] * 3
        assert branch.loss_mask[3:].all()
        assert branch.prompt_ids.tolist() == text.prompt_ids.tolist()
        assert 3 < len(branch.token_ids) <= SAMPLING.max_new_tokens


def test_a_branch_is_as_likely_as_its_writer_says(host: Worker) -> None:
    _, begun = stem_of(host, 3)
    branches = on(host, begun, *SEEDS)
    rows = [drawn_sequence(f"row{n}", one) for n, one in enumerate(branches)]

    said = host.score("actor", "actor", rows, 1.0)

    for branch, own in zip(branches, said, strict=True):
        assert not isinstance(own, TooLong)
        assert np.asarray(own)[3:].tolist() == near(branch.log_probs[3:].tolist(), terms=TERMS)


def test_branches_draw_together_what_they_draw_alone(host: Worker) -> None:
    _, begun = stem_of(host, 3)

    together = on(host, begun, *SEEDS)
    alone = [on(host, begun, seed)[0] for seed in SEEDS]

    assert [one.token_ids.tolist() for one in together] == [one.token_ids.tolist() for one in alone]
    assert len({tuple(one.token_ids.tolist()) for one in together}) > 1


def test_a_stop_in_the_beginning_ends_no_branch(host: Worker) -> None:
    _, begun = stem_of(host, 3)
    first = on(host, begun, SEEDS[0])[0]
    stop = first.text[:1]
    assert stop

    [branch] = on(host, begun, SEEDS[0], sampling=replace(SAMPLING, stop=(stop,)))

    assert first.text.startswith(branch.text)
    assert len(branch.token_ids) > 3


def test_a_beginning_of_another_tokenizer_is_refused(host: Worker) -> None:
    _, begun = stem_of(host, 3)

    with pytest.raises(DataError, match="different tokenizer"):
        on(host, replace(begun, tokenizer="others", writer="stranger"), 1)
