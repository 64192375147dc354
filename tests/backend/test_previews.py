"""Previews: the same numbers as a run, in processes that can do no harm and end when told."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.backend.servers import settings_in
from tests.backend.signed_in import found_run, signed_in

from coloop.runtime.checkpoints.run_folder import RunRequest
from coloop.runtime.start import run
from coloop.spec.io import parse
from coloop_server.errors import Invalid, ServerError, TooMany
from coloop_server.previews.inside.overlap import compared
from coloop_server.previews.queue import MAX_RUNNING, MAX_WAITING, PreviewQueue
from coloop_server.previews.schemas import MIB, ROLLOUT, SHORT, AskRows, AskScores, Job, Limits
from coloop_server.settings import Settings

MINE = """\
def reward(prompts, completions, answer, **columns):
    print('hello')
    return [len(set(text) & set(right)) / 4 for text, right in zip(completions, answer)]
"""
LOOP = """\
coloop: 1
name: two-rewards
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 6}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, split: test}}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {engine: torch, completions_per_prompt: 4, max_new_tokens: 6}
    algorithm: {rewards: {name: grpo}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
  short: {kind: reward, source: {type: builtin, name: length, max: 9}}
  mine: {kind: reward, source: {type: python, timeout_seconds: 1, code: CODE}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - actor.rollouts -> short.rollouts
  - actor.rollouts -> mine.rollouts
  - exact.scores -> actor.rewards
  - {from: short.scores, to: actor.rewards, weight: 0.5}
  - {from: mine.scores, to: actor.rewards, weight: -0.25}
schedule: {steps: 2}
run: {seed: 3}
hardware: {preset: cpu}
"""
PASTED = [
    {"prompt": "1+1=", "completion": "2", "answer": "2"},
    {"prompt": "1+2=", "completion": "0", "answer": "3"},
]


def loop_with(code: str) -> str:
    return LOOP.replace("CODE", json.dumps(code))


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(tmp_path_factory.mktemp("previews"))


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[TestClient]:
    """One for all of them: what previews stem from loads the engine once."""
    (settings.allowed_roots[0]).mkdir(parents=True)
    with signed_in(settings) as client:
        yield client


@pytest.fixture(scope="module")
def recorded(settings: Settings, client: TestClient) -> list[dict[str, Any]]:
    """Samples of a real run, of its last step."""
    text = loop_with(MINE)
    spec = parse(text).spec
    assert spec is not None
    request = RunRequest(
        spec=spec,
        text=text,
        root=settings.allowed_roots[0],
        runs_dir=settings.runs_dir,
        run_id="earlier",
        cluster="local",
        threads=1,
    )
    assert run(request).state == "finished"
    found_run(client, "earlier")
    rows: list[dict[str, Any]] = client.get("/api/runs/earlier/samples?step=2").json()["rows"]
    assert len(rows) == 24
    return rows


def asked(client: TestClient, what: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/api/previews/{what}", json={"yaml": loop_with(MINE), **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def scored(client: TestClient, code: str = MINE, **rows: Any) -> dict[str, Any]:
    given = rows or {"type": "pasted", "rows": PASTED}
    return asked(client, "scores", yaml=loop_with(code), learner="actor", rows=given)


def by_node(scores: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {source["node"]: source for source in scores["sources"]}


# ---- the same numbers


@pytest.mark.slow
def test_a_preview_says_of_rows_what_a_run_said_of_them(
    client: TestClient, recorded: list[dict[str, Any]]
) -> None:
    """Columns of the rows come from the dataset again: `mine` reads `answer`, which no sample
    has. The control is another reward on the same rows."""
    other = MINE.replace("/ 4", "/ 5")
    wanted = {"type": "of_run", "run": "earlier", "step": 2}

    found, changed = scored(client, **wanted), scored(client, other, **wanted)

    said, control = by_node(found), by_node(changed)
    for node in ("exact", "short", "mine"):
        assert said[node]["scores"] == [row["scores"][node] for row in recorded], node
    assert found["totals"] == pytest.approx([row["reward"] for row in recorded])
    assert found["note"] is None
    assert control["exact"]["scores"] == said["exact"]["scores"]
    assert control["mine"]["scores"] != said["mine"]["scores"]
    assert any(said["mine"]["scores"])


def test_rows_of_a_dataset_are_scored_as_if_the_right_answer_had_been_written(
    client: TestClient,
) -> None:
    found = scored(client, type="of_dataset", node="held_out", count=5)

    assert by_node(found)["exact"]["scores"] == [1.0] * 5
    assert "target" in found["note"]


def test_the_models_of_a_small_loop_write_rows_now(
    client: TestClient, recorded: list[dict[str, Any]]
) -> None:
    """Of the run that is over the weights are others than those at the beginning."""
    begun = scored(client, type="rolled_out", count=4)
    taught = scored(client, type="rolled_out", count=4, run="earlier")

    for found in (begun, taught):
        assert len(found["rows"]) == 4
        assert all(one["error"] is None for one in found["sources"])
    assert [row["prompt"] for row in begun["rows"]] == [row["prompt"] for row in taught["rows"]]


def test_large_models_are_not_asked_and_it_is_said_why(client: TestClient) -> None:
    large = loop_with(MINE).replace("hardware: {preset: cpu}", "hardware: {preset: 8xH100-80GB}")

    answer = client.post(
        "/api/previews/scores",
        json={"yaml": large, "learner": "actor", "rows": {"type": "rolled_out"}},
    )

    assert answer.status_code == 422
    assert answer.json()["code"] == "preview.not_here"
    assert "8xH100-80GB" in answer.json()["message"]


# ---- what is wrong with a reward is part of the answer


def test_each_row_that_fails_is_told_with_the_line_of_the_code(client: TestClient) -> None:
    code = (
        "def reward(prompts, completions, **columns):\n"
        "    found = []\n"
        "    for text in completions:\n"
        "        found.append(1 / int(text))\n"
        "    return found\n"
    )

    found = scored(client, code)

    mine = by_node(found)["mine"]
    assert mine["scores"] == [0.5, None]
    assert mine["error"] is None
    assert [(one["row"], one["line"]) for one in mine["failures"]] == [(1, 4)]
    assert "division by zero" in mine["failures"][0]["message"]
    assert found["totals"][0] == pytest.approx(1 + 0.5 * 7 / 9 - 0.25 * 0.5)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("code", "says", "line"),
    [
        ("def reward(prompts, completions, **columns)\n    pass\n", "SyntaxError", 1),
        ("import no_such_module\ndef reward(**columns): pass\n", "no_such_module", 1),
        ("def reward(prompts, completions, **columns):\n    while True: pass\n", "1 seconds", None),
        (
            "def reward(prompts, completions, **columns):\n    return [len('a' * 2**34)]\n",
            "MemoryError",
            2,
        ),
        (
            "import os\ndef reward(prompts, completions, **columns):\n    while True: os.fork()\n",
            "",
            None,
        ),
        (
            "def reward(prompts, completions, **columns):\n    return [len(open('/etc/shadow')"
            ".read())]\n",
            "",
            None,
        ),
        (
            "import socket\ndef reward(prompts, completions, **columns):\n"
            "    socket.create_connection(('127.0.0.1', 80))\n",
            "",
            None,
        ),
    ],
)
def test_code_that_is_broken_or_hostile_costs_its_own_scores_alone(
    client: TestClient, code: str, says: str, line: int | None
) -> None:
    found = by_node(scored(client, code))

    assert found["mine"]["error"], found["mine"]
    assert says in found["mine"]["error"]
    assert found["mine"]["scores"] == [None, None]
    assert line is None or found["mine"]["line"] == line
    assert found["exact"]["scores"] == [1.0, 0.0]


@pytest.mark.slow
def test_what_code_prints_is_told_up_to_a_limit(client: TestClient) -> None:
    code = MINE.replace("'hello'", "'x' * 10_000_000")

    printed = by_node(scored(client, code))["mine"]["printed"]

    assert 0 < len(printed) <= 70_000
    assert by_node(scored(client))["mine"]["printed"] == "hello\n"


@pytest.mark.parametrize("begin", ["def reward(prompts, **columns):\n    ", ""])
def test_what_code_prints_before_it_fails_is_told(begin: str, client: TestClient) -> None:
    code = f"{begin}print('hello'); raise ValueError('no')\n"

    found = by_node(scored(client, code))["mine"]

    assert "ValueError: no" in found["error"]
    assert found["printed"].startswith("hello\n")


# ---- processes


SLEEPS = "import time\ndef reward(prompts, completions, **columns):\n    time.sleep(40)\n"


def job_of(code: str = SLEEPS) -> bytes:
    text = loop_with(code).replace("timeout_seconds: 1", "timeout_seconds: 50")
    rows = {"type": "pasted", "rows": PASTED}
    wanted = AskScores.model_validate({"yaml": text, "learner": "actor", "rows": rows})
    return Job(asked=wanted, root="/").model_dump_json().encode()


def below(pid: int) -> set[int]:
    """Processes that stem from one, itself left out."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in ("Z", "X"):
            parents[int(entry.name)] = int(fields[1])
    found, size = {pid}, 0
    while len(found) > size:
        size = len(found)
        found |= {one for one, above in parents.items() if above in found}
    return found - {pid}


async def until(question: Callable[[], Any], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not question():
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def on_a_desk(client: TestClient) -> Iterator[Callable[..., None]]:
    """Tell what happens at a queue that shares what previews stem from with the client's."""
    with asyncio.Runner() as runner:

        async def told(story: Callable[[PreviewQueue], Any], ending: threading.Event) -> None:
            queue = PreviewQueue(ending)
            queue.fork_server = client.app.state.previews.fork_server  # type: ignore[attr-defined]
            await queue.prepare()
            await story(queue)

        yield lambda story, ending=None: runner.run(told(story, ending or threading.Event()))


async def never() -> None:
    await asyncio.Event().wait()


@pytest.mark.slow
def test_a_preview_ends_with_its_client_its_time_and_its_server(
    on_a_desk: Callable[..., None],
) -> None:
    """Its process, and that of the user's code; what they stem from goes on."""
    ending = threading.Event()
    lasting = Limits(seconds=100.0)

    async def story(queue: PreviewQueue) -> None:
        fork_server = queue.fork_server.process_id
        assert fork_server is not None

        async def at_work() -> None:
            await until(lambda: len(below(fork_server)) >= 3)  # the child, the isolation, the code

        async def ended_by(what: str, limits: Limits, gone: Callable[[], Any]) -> None:
            work = asyncio.ensure_future(queue.ask(job_of(), limits, gone))
            if what == "server.ending":
                await at_work()
                ending.set()
            with pytest.raises(ServerError) as told:
                await work
            assert told.value.body.code == what
            await until(lambda: not below(fork_server))

        await ended_by("preview.cancelled", lasting, at_work)
        await ended_by("preview.late", Limits(seconds=1.0), never)
        cancelled = asyncio.ensure_future(queue.ask(job_of(), lasting, never))
        await at_work()
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        await until(lambda: not below(fork_server))
        await ended_by("server.ending", lasting, never)
        assert queue.fork_server.process_id == fork_server

    on_a_desk(story, ending)


@pytest.mark.slow
def test_few_are_at_work_some_wait_and_the_rest_are_refused(
    on_a_desk: Callable[..., None],
) -> None:
    async def story(queue: PreviewQueue) -> None:
        limits = Limits(seconds=100.0)
        fork_server = queue.fork_server.process_id
        assert fork_server is not None
        asked = [
            asyncio.ensure_future(queue.ask(job_of(), limits, never))
            for _ in range(MAX_RUNNING + MAX_WAITING)
        ]
        await until(lambda: len(below(fork_server)) >= 3 * MAX_RUNNING)

        with pytest.raises(TooMany):
            await queue.ask(job_of(), limits, never)
        assert len(below(fork_server)) == 3 * MAX_RUNNING
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        assert json.loads(await queue.ask(job_of(MINE), limits, never))["answer"]

    on_a_desk(story)


@pytest.mark.slow
def test_what_previews_stem_from_is_started_anew_where_it_was_killed(
    on_a_desk: Callable[..., None],
) -> None:
    """And takes its children with it."""

    async def story(queue: PreviewQueue) -> None:
        work = asyncio.ensure_future(queue.ask(job_of(), Limits(seconds=100.0), never))
        first = queue.fork_server.process_id
        assert first is not None
        await until(lambda: len(below(first)) >= 3)
        children = below(first)
        queue.fork_server._process.kill()  # type: ignore[union-attr]
        with pytest.raises(Invalid):
            await work
        await until(lambda: not any(Path(f"/proc/{one}/cwd").exists() for one in children))

        said = json.loads(await queue.ask(job_of(MINE), Limits(), never))

        assert said["answer"]["sources"]
        assert queue.fork_server.process_id != first

    on_a_desk(story)


@pytest.mark.slow
def test_a_preview_that_needs_more_memory_than_it_may_says_so(
    tmp_path: Path, on_a_desk: Callable[..., None]
) -> None:
    rows = tmp_path / "rows.jsonl"
    line = json.dumps({"prompt": "a" * 1000}) + "\n"
    rows.write_text(line * 60_000, encoding="utf-8")
    source = f"{{type: file, path: {rows}}}"
    text = LOOP.replace("{type: task, task: arithmetic}", source).replace("CODE", json.dumps(MINE))
    wanted = Job(asked=AskRows(yaml=text, node="problems"), root="/").model_dump_json().encode()

    async def story(queue: PreviewQueue) -> None:
        enough = json.loads(await queue.ask(wanted, Limits(), never))
        assert enough["answer"]["total"] == 60_000
        try:
            told = json.loads(await queue.ask(wanted, Limits(memory_bytes=40 * MIB), never))
        except Invalid as ended:
            told = {"message": str(ended)}
        assert "memory" in told["message"]

    on_a_desk(story)


@pytest.mark.slow
def test_the_service_answers_meanwhile(client: TestClient) -> None:
    slow = SLEEPS.replace("40", "0.6") + "    return [1.0] * len(completions)\n"

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(scored, client, slow) for _ in range(2)]
        waited = []
        while not all(one.done() for one in both):
            began = time.monotonic()
            assert client.get("/api/loops").status_code == 200
            waited.append(time.monotonic() - began)

    assert [by_node(one.result())["mine"]["scores"] for one in both] == [[1.0, 1.0]] * 2
    assert len(waited) > 3
    assert sorted(waited)[len(waited) // 2] < 0.5


# ---- datasets


def test_a_page_of_a_dataset_says_what_each_column_is_used_for(
    client: TestClient, settings: Settings
) -> None:
    rows = settings.allowed_roots[0] / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"question": f"{n}+1=", "gold": str(n + 1)}) + "\n" for n in range(30)),
        encoding="utf-8",
    )
    source = "{type: file, path: rows.jsonl}, columns: {prompt: question, answer: gold}"
    text = loop_with(MINE).replace("{type: task, task: arithmetic}", source)

    page = asked(client, "rows", yaml=text, node="problems", offset=10, count=5)
    lacking = asked(client, "rows", yaml=text.replace(", answer: gold", ""), node="problems")

    assert page["total"] == 30
    assert [row["prompt"] for row in page["rows"]] == [f"{n}+1=" for n in range(10, 15)]
    columns = {one["name"]: one for one in page["columns"]}
    assert columns["prompt"]["source"] == "question"
    assert {"node": "actor", "reads": "what it writes to"} in columns["prompt"]["used"]
    assert {one["node"] for one in columns["answer"]["used"]} == {"exact", "mine"}
    assert columns["question"]["used"] == []
    assert page["unread"] == []
    assert lacking["unread"] == ["answer"]


CHATS = """\
coloop: 1
name: chats
nodes:
  talks:
    kind: dataset
    source:
      type: inline
      rows:
        - target:
            - {role: user, content: "ab"}
            - {role: assistant, content: "cd"}
            - {role: user, content: "e"}
            - {role: assistant, content: "fgh"}
        - target:
            - {role: user, content: "TOO LONG"}
            - {role: assistant, content: "LONG"}
    columns: {target: target}
  actor: {kind: actor, model: {type: scratch, architecture: tiny-qwen3}}
edges: [talks.rows -> actor.demonstrations]
schedule: {steps: 1}
hardware: {preset: cpu}
"""


def test_tokens_show_which_of_them_are_learned(client: TestClient) -> None:
    """Of a chat what the assistant says, by the chat template of the model."""
    found = asked(client, "tokens", yaml=CHATS, node="talks", offset=0, count=1)

    assert found["readers"] == ["actor.demonstrations"]
    text = found["texts"][0]
    learned = "".join(one["text"] for one in text["tokens"] if one["is_learned"])
    others = "".join(one["text"] for one in text["tokens"] if not one["is_learned"])
    assert "cd" in learned
    assert "fgh" in learned
    assert "ab" in others
    assert text["learned"] == sum(one["is_learned"] for one in text["tokens"])
    assert text["count"] == len(text["tokens"])
    lengths = found["lengths"]
    assert lengths["measured"] == sum(lengths["bins"]) == 2
    assert lengths["limit"] == 512
    assert lengths["over"] == 0


@pytest.mark.slow
def test_prompts_have_room_for_what_may_be_written(client: TestClient) -> None:
    """509 new tokens leave three of 512 positions: prompts of six are over."""
    text = loop_with(MINE).replace("max_new_tokens: 6", "max_new_tokens: 509")

    lengths = asked(client, "tokens", yaml=text, node="problems", measure=50)["lengths"]

    assert lengths["limit"] == 3
    assert lengths["over"] == lengths["measured"] == 50


@pytest.mark.slow
def test_rows_that_two_datasets_share_are_found(client: TestClient) -> None:
    same = loop_with(MINE).replace(", split: test", "")

    apart = asked(client, "overlap", train="problems", test="held_out")
    alike = asked(client, "overlap", yaml=same, train="problems", test="held_out")

    assert (apart["leaked"], apart["near"]) == (0, 0)
    assert alike["leaked"] == alike["test_rows"] > 0
    assert apart["columns"] == ["prompt"]


def test_case_blanks_and_a_changed_word_do_not_hide_a_leak() -> None:
    story = "the quick brown fox jumps over the lazy dog while seven old wizards look on in awe"
    near = story.replace("awe", "fear")
    far = " ".join(reversed(story.split()))

    found = compared(
        ["one", story, "one"], [f"  {story.upper()}\n", near, far, "two"], ["prompt"], (3, 4)
    )

    assert (found.leaked, found.near, found.train_twice, found.test_twice) == (1, 1, 1, 0)
    assert [(one.train, one.test) for one in found.pairs] == [(1, 0), (1, 1)]
    assert found.pairs[0].similarity == 1.0
    assert 0.8 <= found.pairs[1].similarity < 1.0


def test_what_a_preview_reads_lies_inside_the_folders_of_the_server(client: TestClient) -> None:
    text = loop_with(MINE).replace(
        "{type: task, task: arithmetic}", "{type: file, path: /etc/hosts, format: text}"
    )

    answer = client.post("/api/previews/rows", json={"yaml": text, "node": "problems"})

    assert answer.status_code == 403
    assert answer.json()["code"] == "path.outside"


def test_the_page_is_told_when_a_preview_is_stopped(client: TestClient) -> None:
    told = client.get("/api/previews/limits").json()["seconds"]

    kinds = {"pasted", "of_dataset", "of_run", "rolled_out"}
    assert told == dict.fromkeys(kinds - {"rolled_out"}, SHORT.seconds) | {
        "rolled_out": ROLLOUT.seconds
    }
