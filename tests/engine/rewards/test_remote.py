"""Rewards of a service: batches, what is kept, what a failure does, which answers are none."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.engine.web_service import Asked, WebService, serving

from coloop.data.rewards.remote import RemoteReward, read_scores
from coloop.data.services import service as at_work
from coloop.data.services.endpoint import Endpoint
from coloop.data.services.replies import Nonsense
from coloop.errors import DataError, ServiceFailed
from coloop.spec.reward import ScoreAs


def lengths(asked: Asked) -> list[Any]:
    return [float(len(text)) for text in asked.body["completions"]]


@pytest.fixture
def reward(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RemoteReward]]:
    """A reward of a service that runs may call."""
    monkeypatch.setattr(at_work, "FIRST_PAUSE_SECONDS", 0.001)
    made: list[RemoteReward] = []

    def make(web: WebService, batch: int = 2, **options: Any) -> RemoteReward:
        monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", web.host)
        options = {"retries": 0, **options}
        endpoint = Endpoint(node="judge", field="source.url", url=web.url, **options)
        made.append(RemoteReward(endpoint, batch=batch))
        return made[-1]

    yield make
    for one in made:
        one.close()


def scored(
    reward: RemoteReward, *texts: str, on_error: Any = "stop", **columns: Any
) -> tuple[list[Any], list[str]]:
    rows = [{"prompt": "p", "completion": text, **columns} for text in texts]
    ids = [f"row-{place}" for place in range(len(texts))]
    found = reward.score(rows, ids, on_error=on_error, tick=lambda done, total: None)
    return found.scores, [one.message for one in found.failures]


def test_rows_go_in_batches_and_scores_come_in_their_order(reward: Any) -> None:
    with serving(lengths) as web:
        assert scored(reward(web), "a", "bb", "ccc", answer="x") == ([1.0, 2.0, 3.0], [])

        bodies = sorted((one.body for one in web.asked), key=lambda body: body["ids"])
        assert bodies[0] == {
            "coloop": 1,
            "node": "judge",
            "ids": ["row-0", "row-1"],
            "prompts": ["p", "p"],
            "completions": ["a", "bb"],
            "columns": {"answer": ["x", "x"]},
        }
        assert bodies[1]["ids"] == ["row-2"]


def test_equal_rows_are_asked_once_and_never_again(reward: Any) -> None:
    with serving(lengths) as web:
        judge = reward(web, batch=9)

        assert scored(judge, "a", "bb", "a")[0] == [1.0, 2.0, 1.0]
        assert scored(judge, "bb", "ccc", "a")[0] == [2.0, 3.0, 1.0]
        assert scored(judge, "a", answer="of another row")[0] == [1.0]

        assert [one.body["completions"] for one in web.asked] == [["a", "bb"], ["ccc"], ["a"]]


def test_the_batch_changes_no_score(reward: Any) -> None:
    texts = ["a" * length for length in range(1, 8)]
    with serving(lengths) as web:
        found = [scored(reward(web, batch=batch), *texts)[0] for batch in (1, 3, 50)]

    assert found[0] == found[1] == found[2]


def test_numbers_null_and_lists_of_steps_are_scores() -> None:
    assert read_scores([1, None, [0.5, None, -2]], count=3) == [1.0, None, [0.5, None, -2.0]]


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ({"scores": [1.0]}, "answered an object, expected a list"),
        ([1.0, 2.0], "answered 2 scores for 1 rows"),
        ([], "answered 0 scores for 1 rows"),
        (["0.5"], "answered a text as the score at position 0"),
        ([True], "answered true or false as the score at position 0"),
        ([{"score": 1}], "answered an object as the score"),
        ([[[1.0]]], "answered a list as the score"),
        (json.loads("[1e999]"), "answered inf at position 0, and a number between -1e.19 and"),
        ([1e308], "answered 1e.308 at position 0, and a number between -1e.19 and"),
        ([10**400], "answered inf at position 0, and a number between -1e.19 and"),
    ],
)
def test_what_is_no_score_is_told(answer: Any, what: str) -> None:
    with pytest.raises(Nonsense, match=what):
        read_scores(answer, count=1)


def test_the_first_failure_stops(reward: Any) -> None:
    with (
        serving(lambda asked: (500, "no")) as web,
        pytest.raises(ServiceFailed, match="answered status 500"),
    ):
        scored(reward(web), "a", "bb", "ccc")


@pytest.mark.parametrize(("on_error", "instead"), [("skip_row", None), (ScoreAs(score=-1.0), -1.0)])
def test_the_rows_of_a_failed_batch_are_asked_one_by_one(
    on_error: Any, instead: Any, reward: Any
) -> None:
    def picky(asked: Asked) -> Any:
        return (500, "no") if "bad" in asked.body["completions"] else lengths(asked)

    with serving(picky) as web:
        scores, messages = scored(reward(web), "a", "bad", "ccc", "dd", on_error=on_error)

        assert scores == [1.0, instead, 3.0, 2.0]
        [message] = messages
        assert message.startswith(f"judge, row 1: source.url: {web.url} answered status 500")


def test_a_service_that_is_gone_is_not_asked_for_every_row(reward: Any) -> None:
    with serving(lambda asked: (500, "no")) as web:
        texts = [f"text {place}" for place in range(40)]
        scores, messages = scored(reward(web, batch=4, concurrency=1), *texts, on_error="skip_row")

        assert scores == [None] * 40
        assert len(web.asked) == 3
        assert "is not called for a while" in messages[-1]


def test_a_failed_row_is_asked_again_another_time(reward: Any) -> None:
    answers = iter([(500, "no"), [2.0]])
    with serving(lambda asked: next(answers)) as web:
        judge = reward(web)

        assert scored(judge, "a", on_error="skip_row")[0] == [None]
        assert scored(judge, "a", on_error="skip_row")[0] == [2.0]


def test_progress_is_told_in_rows(reward: Any) -> None:
    told: list[tuple[int, int]] = []
    with serving(lengths) as web:
        rows = [{"completion": text} for text in ("a", "bb", "ccc")]
        reward(web).score(
            rows,
            ["x", "y", "z"],
            on_error="stop",
            tick=lambda done, total: told.append((done, total)),
        )

    assert told[-1] == (3, 3)


def test_a_column_that_is_no_json_is_named(reward: Any) -> None:
    with serving(lengths) as web, pytest.raises(DataError, match="column `picture`") as failed:
        scored(reward(web), "a", picture=float("nan"))

    assert (failed.value.node, failed.value.field) == ("judge", "source.url")
