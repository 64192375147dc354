"""Judges and rewards by URL: what is asked, how answers are read, what a failure does."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.chat_service import judged_by, prompt_of, reply
from tests.engine.web_service import Asked, Behaviour, WebService, serving

from coloop.data.services import service as at_work
from coloop.errors import ServiceFailed

Bench = Callable[..., Any]
Judged = Callable[..., Any]

YES = {"verdict": "(yes|no)", "values": {"yes": 1, "no": 0}}
CLEAR = {"name": "clear", "text": "every step is explained", "weight": 3.0}
SHORT = {"name": "short", "text": "nothing is said twice"}
WRONG = {"name": "wrong", "text": "there is an error", "weight": -1.0}
RATED = {"rubric": [CLEAR, SHORT, WRONG], "values": {"met": 1, "not": 0}}
"""(3 * clear + short - wrong) / 4."""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Behaviour], WebService]]:
    monkeypatch.setattr(at_work, "FIRST_PAUSE_SECONDS", 0.001)
    with ExitStack() as stack:

        def start(behave: Behaviour) -> WebService:
            web = stack.enter_context(serving(behave))
            monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", web.host)
            return web

        yield start


@pytest.fixture
def judged(bench: Bench, rows_of: Any, actor: Any, served: Any) -> Judged:
    """A loop whose writer answers `a` and `b`, and a chat model that judges these answers."""

    def build(behave: Behaviour, kind: str = "verifier", **fields: Any) -> Any:
        web = served(behave)
        service = {"url": f"http://{web.host}/v1", "model": "m", "retries": 0}
        service |= fields.pop("service", {})
        judge: dict[str, Any] = {
            "template": {"text": "{{ prompt }} {{ completion }}?"},
            "read": YES,
        }
        if kind == "verifier":
            rollout = {"engine": "chat", "chat": service, **fields.pop("rollout", {})}
            judge |= {"kind": kind, "method": "generative", "rollout": rollout}
        else:
            judge |= {"kind": kind, "source": {"type": "chat", **service}}
        nodes = {
            "sums": rows_of({"prompt": "p"}),
            "actor": actor(algorithm={"name": "grpo"}),
            "judge": {**judge, **fields},
        }
        into = {"from": "judge.scores", "to": "actor.rewards"}
        if kind == "verifier":
            into["aggregate"] = "mean"
        edges = ["sums.rows -> actor.prompts", "actor.rollouts -> judge.rollouts", into]
        loop = bench(nodes, edges)
        loop.hosts.write = lambda prompt, k: "ab"[k]
        loop.web = web
        return loop

    return build


def rewards(loop: Any) -> list[Any]:
    loop.step()
    return [row.column("reward") for row in loop.outcomes["actor.credit"].outputs["credited"].rows]


def prompts(loop: Any) -> list[str]:
    return sorted(map(prompt_of, loop.web.asked))


@pytest.mark.parametrize("kind", ["verifier", "reward"])
def test_a_verdict_of_a_chat_model_is_a_reward(kind: str, judged: Judged) -> None:
    loop = judged(judged_by(lambda text: "no, then yes" if "a?" in text else "no"), kind)

    assert rewards(loop) == [1.0, 0.0]
    assert prompts(loop) == ["p a?", "p b?"]
    metrics = loop.outcomes["judge.score"].metrics
    assert metrics["service/requests"] == 2
    assert metrics["service/prompt_tokens"] == 20
    assert metrics["service/completion_tokens"] == 10
    assert metrics["parse/none"] == 0
    assert loop.alerts == []


def test_its_rollouts_are_texts_without_tokens(judged: Judged, column: Any) -> None:
    loop = judged(judged_by(lambda text: "yes"), rollout={"completions_per_prompt": 2})
    loop.step()

    critiques = loop.outcomes["judge.score"].outputs["rollouts"]
    assert column(critiques, "judge.completion") == ["yes"] * 4
    assert column(critiques, "length") == [5] * 4
    assert column(critiques, "judge.prompt") == ["p a?", "p a?", "p b?", "p b?"]
    assert all(row.tokens is None for row in critiques.rows)
    assert len({one.body["seed"] for one in loop.web.asked}) == 4


def test_a_critique_feeds_a_template(
    bench: Bench, rows_of: Any, actor: Any, served: Any, column: Any
) -> None:
    web = served(judged_by(lambda text: f"think again about {text}"))
    rollout = {"engine": "chat", "chat": {"url": f"http://{web.host}/v1", "model": "m"}}
    critic = {
        "kind": "verifier",
        "method": "generative",
        "template": {"text": "{{ completion }}"},
        "rollout": rollout,
    }
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "actor": actor(),
        "judge": critic,
        "again": {"kind": "template", "text": "{{ actor.completion }}: {{ judge.completion }}"},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> judge.rollouts",
        "judge.rollouts -> again.rows",
    ]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: "ab"[k]

    texts = column(loop.give("again.rows"), "prompt")
    assert texts == ["a: think again about a", "b: think again about b"]


@pytest.mark.parametrize("kind", ["verifier", "reward"])
def test_a_number_in_a_json_answer(kind: str, judged: Judged) -> None:
    def behave(text: str) -> str:
        return f'Well. {{"verdict": {{"score": {7 if "a?" in text else 2}}}}}'

    read = {"json": "verdict.score", "scale": [2, 12]}
    loop = judged(judged_by(behave), kind, read=read)

    assert rewards(loop) == [0.5, 0.0]
    sent = loop.web.asked[0].body["response_format"]["json_schema"]["schema"]
    assert sent["properties"]["verdict"]["properties"] == {
        "score": {"type": "number", "minimum": 2, "maximum": 12}
    }


def test_a_word_in_a_json_answer(judged: Judged) -> None:
    loop = judged(
        judged_by(lambda text: json.dumps({"is": "yes" if "a?" in text else "no"})),
        read={"json": "is", "values": {"yes": 1.0, "no": -1.0}},
    )

    assert rewards(loop) == [1.0, -1.0]
    schema = loop.web.asked[0].body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["is"] == {"type": "string", "enum": ["yes", "no"]}


def test_a_schema_of_ones_own_is_sent_instead(judged: Judged) -> None:
    schema = {"type": "object", "properties": {"why": {"type": "string"}, "s": {"type": "number"}}}
    loop = judged(
        judged_by(lambda text: '{"why": "so", "s": 0.25}'),
        read={"json": "s"},
        service={"answer_schema": schema},
    )

    assert rewards(loop) == [0.25, 0.25]
    assert loop.web.asked[0].body["response_format"]["json_schema"]["schema"] == schema


def rated(text: str) -> str:
    """Clear and not short; the second answer is wrong besides."""
    return json.dumps({"clear": "met", "short": "not", "wrong": "not" if "a?" in text else "met"})


@pytest.mark.parametrize("kind", ["verifier", "reward"])
def test_a_rubric_in_one_answer_is_a_weighted_sum(kind: str, judged: Judged) -> None:
    """a: (3 * 1 + 1 * 0 - 1 * 0) / 4; b: (3 - 1) / 4."""
    template = {"text": "{{ completion }}? {{ criteria }} Answer as {{ answer_format }}"}
    loop = judged(judged_by(rated), kind, read=RATED, template=template)

    assert rewards(loop) == [0.75, 0.5]
    [first, _] = prompts(loop)
    assert first.startswith(
        "a? clear: every step is explained\nshort: nothing is said twice\nwrong: there is an error"
    )
    assert '"required": ["clear", "short", "wrong"]' in first
    outcome = loop.outcomes["judge.score"]
    means = {n: v for n, v in outcome.metrics.items() if n.startswith("rubric/")}
    assert means == {"rubric/clear": 1.0, "rubric/short": 0.0, "rubric/wrong": 0.5}
    parts = outcome.outputs["scores"].parts
    assert {name: list(by_row.values()) for name, by_row in parts.items()} == {
        "clear": [1.0, 1.0],
        "short": [0.0, 0.0],
        "wrong": [0.0, 1.0],
    }


@pytest.mark.parametrize("kind", ["verifier", "reward"])
def test_a_rubric_asked_one_by_one_has_a_request_for_each_criterion(
    kind: str, judged: Judged
) -> None:
    def behave(text: str) -> str:
        is_met = "error" not in text if "a?" in text else "twice" not in text
        return "yes" if is_met else "no"

    loop = judged(
        judged_by(behave),
        kind,
        read={**YES, "rubric": RATED["rubric"], "ask": "one_by_one"},
        template={"text": "{{ completion }}? {{ criterion }}"},
    )

    assert rewards(loop) == [1.0, 0.5]  # (3 + 1) / 4 and (3 - 1) / 4
    assert prompts(loop)[:3] == [
        "a? every step is explained",
        "a? nothing is said twice",
        "a? there is an error",
    ]
    if kind == "verifier":
        [row, _] = loop.outcomes["judge.score"].outputs["rollouts"].rows
        assert row.column("completion") == "clear:\nyes\n\nshort:\nyes\n\nwrong:\nno"


def test_a_criterion_without_a_score_leaves_none(judged: Judged) -> None:
    template = {"text": "{{ completion }}? {{ criteria }}"}
    loop = judged(
        judged_by(lambda text: '{"clear": "met", "short": "perhaps", "wrong": "not"}'),
        read={**RATED, "on_no_match": 0.1},
        template=template,
    )

    assert rewards(loop) == pytest.approx([0.1, 0.1])
    assert loop.outcomes["judge.score"].metrics["parse/none"] == 1.0


LISTED = "{% for text in completion %}{{ loop.index }}: {{ text }} {% endfor %}"


@pytest.mark.parametrize("kind", ["verifier", "reward"])
@pytest.mark.parametrize(
    ("read", "said", "expected"),
    [
        ({"json": "scores"}, '{"scores": [0.25, 1]}', [0.25, 1.0]),
        ({"json": "scores"}, '{"scores": [{"score": 0.5, "why": "so"}, {"score": 0}]}', [0.5, 0.0]),
        ({"json": "order", "ranking": True}, '{"order": [2, 1]}', [0.0, 1.0]),
        ({"verdict": "Ranking: (.*)", "ranking": True}, "Ranking: 2 > 1", [0.0, 1.0]),
    ],
)
def test_a_group_is_judged_in_one_request(
    read: Any, said: str, expected: list[float], kind: str, judged: Judged
) -> None:
    loop = judged(
        judged_by(lambda text: said),
        kind,
        read=read,
        template={"text": LISTED},
        join={"gather": "sums"},
        per="row",
    )

    assert rewards(loop) == expected
    assert prompts(loop) == ["1: a 2: b "]


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ({"json": "scores"}, '{"scores": [0.25]}'),
        ({"json": "scores"}, '{"scores": [0.25, 1, 0]}'),
        ({"json": "order", "ranking": True}, '{"order": [1, 1]}'),
        ({"json": "order", "ranking": True}, '{"order": [1, 2, 3]}'),
        ({"verdict": "Ranking: (.*)", "ranking": True}, "Ranking: 1 or 2 or 1"),
        ({"verdict": "Ranking: (.*)", "ranking": True}, "both are fine"),
    ],
)
def test_a_group_that_is_not_judged_as_a_whole_has_no_scores(
    read: Any, said: str, judged: Judged
) -> None:
    loop = judged(
        judged_by(lambda text: said),
        read={**read, "on_no_match": -1.0},
        template={"text": LISTED},
        join={"gather": "sums"},
        per="row",
    )

    assert rewards(loop) == [-1.0, -1.0]
    assert loop.outcomes["judge.score"].metrics["parse/none"] == 1.0


def test_three_rows_rank_in_equal_steps(judged: Judged) -> None:
    loop = judged(
        judged_by(lambda text: '{"order": [3, 1, 2]}'),
        read={"json": "order", "ranking": True},
        template={"text": LISTED},
        join={"gather": "sums"},
        per="row",
    )
    actor = loop.spec.nodes["actor"]
    rollout = actor.rollout.model_copy(update={"completions_per_prompt": 3})
    nodes = {**loop.spec.nodes, "actor": actor.model_copy(update={"rollout": rollout})}
    loop.hosts.write = lambda prompt, k: "abc"[k]
    loop.stand(spec=loop.spec.model_copy(update={"nodes": nodes}))

    assert rewards(loop) == [0.5, 0.0, 1.0]


@pytest.mark.parametrize("kind", ["verifier", "reward"])
def test_prose_without_a_verdict_gets_on_no_match_and_is_counted(kind: str, judged: Judged) -> None:
    loop = judged(
        judged_by(lambda text: "What a nice sum!"), kind, read={**YES, "on_no_match": 0.25}
    )

    assert rewards(loop) == [0.25, 0.25]
    assert loop.outcomes["judge.score"].metrics["parse/none"] == 1.0


@pytest.mark.parametrize("kind", ["verifier", "reward"])
def test_a_refusal_has_no_verdict_and_is_told(kind: str, judged: Judged) -> None:
    loop = judged(lambda one: reply(None, refusal="I won't judge."), kind, read=YES)

    assert rewards(loop) == []  # rows without any score are left out of the update
    assert loop.outcomes["judge.score"].metrics["service/refused"] == 1.0
    assert (
        "service.refuses",
        "judge: its model refuses every request; the first: I won't judge.",
    ) in (loop.alerts)


@pytest.mark.parametrize("kind", ["verifier", "reward"])
def test_a_cut_answer_is_read_as_far_as_it_goes_and_counted(kind: str, judged: Judged) -> None:
    def behave(one: Asked) -> Any:
        return reply('{"score": 0.5', finish_reason="length")

    loop = judged(behave, kind, read={"json": "score", "on_no_match": 0.0})

    assert rewards(loop) == [0.0, 0.0]
    assert loop.outcomes["judge.score"].metrics["service/cut"] == 1.0
    if kind == "verifier":
        assert loop.outcomes["judge.score"].metrics["rollout/finished"] == 0.0
    assert loop.outcomes["judge.score"].metrics["parse/none"] == 1.0


def half(one: Asked) -> Any:
    """A server that fails for one of the answers."""
    return (500, "no") if "a?" in prompt_of(one) else reply("yes")


@pytest.mark.parametrize("kind", ["verifier", "reward"])
def test_a_failure_stops_the_run_and_names_node_and_field(kind: str, judged: Judged) -> None:
    loop = judged(half, kind)
    field = "rollout.chat.url" if kind == "verifier" else "source.url"

    with pytest.raises(ServiceFailed, match=rf"judge: {re.escape(field)}: .*status 500") as told:
        loop.step()
    assert (told.value.node, told.value.field) == ("judge", field)


@pytest.mark.parametrize(("on_error", "instead"), [("skip_row", []), ({"score": -1.0}, [-1.0])])
@pytest.mark.parametrize("kind", ["verifier", "reward"])
def test_a_failed_request_follows_the_nodes_policy(
    kind: str, on_error: Any, instead: Any, judged: Judged
) -> None:
    loop = judged(half, kind, on_error=on_error)

    assert rewards(loop) == [*instead, 1.0]
    assert loop.outcomes["judge.score"].metrics["service/failed"] == 1.0
    [(code, message), *_] = [one for one in loop.alerts if one[0] != "rows.missing"]
    if kind == "verifier":
        assert code == "service.requests_failed"
        assert message.startswith("1 of 2 requests failed; the first: judge: rollout.chat.url: ")
    else:
        assert code == "reward.rows_failed"
        assert message.startswith("1 of 2 rows failed; the first: judge, row 0: source.url: ")


def test_a_verdict_that_failed_is_not_counted_as_unread(judged: Judged) -> None:
    loop = judged(half, on_error={"score": -1.0})
    loop.step()

    verdicts = loop.outcomes["judge.score"].outputs["rollouts"].rows
    assert [row.column("completion") for row in verdicts] == ["", "yes"]
    assert loop.outcomes["judge.score"].metrics["parse/none"] == 0.0


def test_a_cost_limit_is_told_once_and_known_answers_stay(judged: Judged) -> None:
    prices = {"input_price": 1.0, "output_price": 1.0, "max_cost": 1e-5, "concurrency": 1}
    loop = judged(
        judged_by(lambda text: "yes"),
        service=prices,
        on_error="skip_row",
        rollout={"temperature": 0.0},
    )

    assert rewards(loop) == [1.0]
    assert rewards(loop) == [1.0]
    [message] = [text for code, text in loop.alerts if code == "service.over_cost"]
    assert "judge: rollout.chat.max_cost: " in message
    assert len(loop.web.asked) == 1
    assert loop.outcomes["judge.score"].metrics["service/total_cost"] == pytest.approx(1.5e-5)


def test_pairs_are_shown_in_both_orders(
    bench: Bench, rows_of: Any, served: Any, scores: Any
) -> None:
    web = served(judged_by(lambda text: "A" if text.startswith("good") else "B"))
    nodes = {
        "pairs": rows_of({"prompt": "p", "chosen": "good", "rejected": "bad"}),
        "judge": {
            "kind": "verifier",
            "method": "generative",
            "template": {"text": "{{ a }} or {{ b }}"},
            "read": {"verdict": "(A|B)", "values": {"A": 1, "B": 0}, "order": "both"},
            "rollout": {"engine": "chat", "chat": {"url": f"http://{web.host}/v1", "model": "m"}},
        },
    }
    loop = bench(nodes, ["pairs.pairs -> judge.comparisons"])

    assert scores(loop.give("judge.scores")) == [1.0, 1.0]
    assert loop.outcomes["judge.score"].metrics["swap/consistent"] == 1.0


def test_answers_are_kept_in_the_folder_of_the_run(judged: Judged, tmp_path: Any) -> None:
    loop = judged(judged_by(lambda text: "yes"))
    loop.context = replace(loop.context, folder=tmp_path / "run")
    assert rewards(loop) == [1.0, 1.0]

    lines = (tmp_path / "run" / "answers" / "judge.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["yes", "yes"]
