"""One call to all processes of a pool: who is waited for, who is not, and what the answers make."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from tests.engine.numerics import assert_near
from tests.engine.rank_processes import fork_servers_of, ranks_of

from coloop.algorithms.batch import completion_sequence
from coloop.errors import (
    CheckpointError,
    PlacementTimeout,
    RequestRefused,
    StageStalled,
    StopRequested,
    WeightsNotUpdated,
    WorkerDied,
)
from coloop.plan.compile import compile_plan
from coloop.spec.io import parse
from coloop.workers.cluster import Deadlines, local
from coloop.workers.cluster.fork_server import ForkServer
from coloop.workers.cluster.local import LocalCluster
from coloop.workers.cluster.processes import start_fork_server
from coloop.workers.cluster.ranks import Cluster, RankEnded
from coloop.workers.generators import own_part, own_requests
from coloop.workers.messages import LearnRequest, Poll, PromptRequest, Sampling, TooLong
from coloop.workers.settings import HostSettings
from coloop.workers.sync import WeightChecksum
from coloop.workers.training import Ranks
from coloop.workers.worker import Worker
from coloop.workers.worker_api import MERGES, WorkerApi

LONG_WAIT = 60.0
SOON = Deadlines(start_seconds=0.3, stalled_after_seconds=0.3, settle_seconds=0.3)
LATE = Deadlines(settle_seconds=0.3)


class FakeCrew:
    """Ranks that answer when a test says so."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.tickets: list[Future[Any]] = []
        self.said: list[Poll | None] = [Poll(done=0, total=0, unit="")] * size
        self.asked_to_stop = 0
        self.is_killed = False
        self.has_begun = threading.Event()
        self.was_asked = threading.Event()

    def address(self) -> str:
        return "nowhere"

    def begin(self, method: str, arguments: tuple[Any, ...]) -> list[Future[Any]]:
        self.tickets = [Future() for _ in range(self.size)]
        self.has_begun.set()
        return self.tickets

    def answer(self, ticket: Future[Any]) -> Any:
        return ticket.result()

    def polls(self) -> list[Poll | None]:
        return self.said

    def interrupt(self) -> None:
        self.asked_to_stop += 1
        self.was_asked.set()

    def kill(self) -> None:
        self.is_killed = True

    def close(self) -> None: ...


def on_call(crew: FakeCrew, does: Callable[[FakeCrew], None]) -> None:
    """Let something happen once a call has begun."""

    def wait() -> None:
        assert crew.has_begun.wait(LONG_WAIT)
        does(crew)

    threading.Thread(target=wait).start()


class OnePool(Cluster):
    """A cluster of one pool of fake ranks."""

    def __init__(self, crew: FakeCrew, deadlines: Deadlines = LATE) -> None:
        super().__init__(["main"], deadlines)
        self._add("main", crew)

    def start(self) -> None:
        self._open("main")

    def restart(self, pool: str) -> None:
        raise NotImplementedError(pool)


def test_what_ranks_answer_is_put_together_in_their_order() -> None:
    crew = FakeCrew(3)

    def answer(crew: FakeCrew) -> None:
        for rank in (2, 0, 1):
            crew.tickets[rank].set_result([rank])

    on_call(crew, answer)

    assert OnePool(crew).asking()("main", WorkerApi.step_ends) == [0, 1, 2]


def test_a_rank_that_died_is_named_and_nobody_is_waited_for() -> None:
    crew = FakeCrew(3)

    def die(crew: FakeCrew) -> None:
        crew.tickets[0].set_exception(RuntimeError("connection closed by peer"))
        crew.tickets[1].set_exception(RankEnded("by SIGKILL"))

    on_call(crew, die)
    pool = OnePool(crew, Deadlines())

    with pytest.raises(WorkerDied, match=r"pool main, rank 1 of 3: .* ended: by SIGKILL") as raised:
        pool.asking()("main", WorkerApi.learn)

    assert crew.is_killed
    assert (raised.value.pool, raised.value.rank) == ("main", 1)
    with pytest.raises(WorkerDied, match=r"pool main has ended: .*rank 1 of 3"):
        pool.asking()("main", WorkerApi.version)


def test_where_one_failed_the_others_are_asked_to_give_up() -> None:
    crew = FakeCrew(2)

    def fail(crew: FakeCrew) -> None:
        crew.tickets[1].set_exception(RequestRefused("row-7 is empty"))
        assert crew.was_asked.wait(LONG_WAIT)
        crew.tickets[0].set_exception(StopRequested("stopped"))

    on_call(crew, fail)

    with pytest.raises(RequestRefused, match="row-7") as raised:
        OnePool(crew).asking()("main", WorkerApi.generate)

    assert not crew.is_killed
    assert raised.value.__notes__ == ["(pool main, rank 1 of 2)"]


def test_who_waits_for_one_that_failed_is_ended_with_its_pool() -> None:
    crew = FakeCrew(2)
    on_call(crew, lambda crew: crew.tickets[1].set_exception(ValueError("bad row")))
    pool = OnePool(crew)

    with pytest.raises(ValueError, match="bad row"):
        pool.asking()("main", WorkerApi.learn)

    assert crew.is_killed
    with pytest.raises(WorkerDied, match="rank 0 waited for rank 1, which failed"):
        pool.asking()("main", WorkerApi.version)


def test_a_rank_that_is_not_heard_of_is_named_and_ended() -> None:
    crew = FakeCrew(2)
    polls = (Poll(done=number, total=1000, unit="rows") for number in range(1000))
    crew.polls = lambda: [next(polls), None]  # type: ignore[method-assign]
    told = r"pool main, rank 1 of 2: learn: no sign of life for 0 s"

    with pytest.raises(StageStalled, match=told) as raised:
        OnePool(crew, SOON).asking()("main", WorkerApi.learn)

    assert crew.is_killed
    assert raised.value.rank == 1


def test_where_nobody_gets_any_further_who_is_behind_is_named() -> None:
    crew = FakeCrew(2)
    crew.said = [Poll(done=3, total=8, unit="rows"), Poll(done=2, total=8, unit="rows")]

    with pytest.raises(StageStalled, match=r"rank 1 of 2: learn: no progress .* \(at 2 of 8\)"):
        OnePool(crew, SOON).asking()("main", WorkerApi.learn)


def test_a_rank_that_does_not_come_is_named() -> None:
    crew = FakeCrew(2)
    crew.said = [Poll(done=0, total=0, unit=""), None]

    with pytest.raises(
        PlacementTimeout, match="pool main, rank 1 of 2: it did not join within 0 s"
    ):
        OnePool(crew, SOON).start()


def test_who_waits_sees_how_far_all_ranks_are_together() -> None:
    crew = FakeCrew(2)
    crew.said = [
        Poll(done=3, total=8, unit="rows", pid=5, rss_bytes=100, held_bytes=100),
        Poll(done=2, total=8, unit="rows", pid=6, rss_bytes=10, held_bytes=10),
    ]
    seen: list[Poll | None] = []

    def tick(poll: Poll | None) -> bool:
        seen.append(poll)
        for ticket in crew.tickets if len(seen) == 1 else ():
            ticket.set_result(4)
        return True

    assert OnePool(crew).asking(tick)("main", WorkerApi.version) == 4
    together, at_end = seen
    assert together == Poll(done=5, total=8, unit="rows", pid=5, rss_bytes=110, held_bytes=100)
    assert at_end is not None
    assert len(at_end.rank_seconds) == 2
    assert crew.asked_to_stop == 1


def test_each_method_of_a_host_says_what_its_answers_make_together() -> None:
    public = {name for name in dir(Worker) if not name.startswith("_")}

    asked = {name for name in vars(WorkerApi) if not name.startswith("_")}
    assert public - {"poll", "interrupt", "close"} == asked
    assert asked >= set(MERGES)


def test_ranks_whose_engines_differ_stop_the_run() -> None:
    held = [WeightChecksum(version=3, fingerprint=7), WeightChecksum(version=3, fingerprint=8)]

    with pytest.raises(WeightsNotUpdated, match="rank 1 of 2 has other weights than rank 0"):
        MERGES["receive"](held)
    assert MERGES["receive"]([held[0], held[0]]) is held[0]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_ranks_share_texts_in_order_and_evenly(size: int) -> None:
    requests = [
        PromptRequest(id=f"r{n}", prompt="1" * (n % 5), seeds=tuple(range(n, n + 4)))
        for n in range(6)
    ]

    parts = [own_requests(requests, 8, Ranks(rank=rank, size=size)) for rank in range(size)]

    together = [
        (place, seed) for part in parts for place, own in part.items() for seed in own.seeds
    ]
    assert together == [(place, seed) for place in range(6) for seed in requests[place].seeds]
    lengths = [
        sum(len(own.seeds) * (8 + len(str(own.prompt))) for own in part.values()) for part in parts
    ]
    assert max(lengths) - min(lengths) <= 2 * 12, "no more than a text at each cut"


def test_ranks_that_share_an_engine_have_the_same_texts_and_one_of_them_speaks() -> None:
    requests = [PromptRequest(id=f"r{n}", prompt="1", seeds=(n, n + 10)) for n in range(6)]
    every = [Ranks(rank=rank, size=4, tensor=2) for rank in range(4)]

    parts = [own_requests(requests, 8, ranks) for ranks in every]

    assert parts[0] == parts[1] == own_requests(requests, 8, Ranks(rank=0, size=2))
    assert parts[2] == parts[3] == own_requests(requests, 8, Ranks(rank=1, size=2))
    assert [ranks.speaks for ranks in every] == [True, False, True, False]


def test_with_fewer_texts_than_ranks_some_have_none() -> None:
    parts = [own_part([5, 5], Ranks(rank=rank, size=4)) for rank in range(4)]

    assert [[0, 1][part] for part in parts] == [[], [0], [], [1]]
    assert [[][own_part([], Ranks(rank=rank, size=2))] for rank in range(2)] == [[], []]


# --- real processes

LOOP = """
coloop: 1
name: small
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 4}, rows_per_step: 2}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {name: grpo, kl: {coefficient: 0.1}}
    training: {optimizer: {name: sgd, lr: 0.1}}
  start: {kind: reference, model: {type: snapshot, of: actor, refresh: never}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - actor.rollouts -> start.rollouts
  - start.log_probs -> actor.reference
  - exact.scores -> actor.rewards
schedule: {steps: 1}
hardware: {preset: cpu, pools: {main: {workers: 1}}}
"""
REQUESTS = [PromptRequest(id=f"r{n}", prompt=f"{n}+1=", seeds=(n, n + 50, 7)) for n in range(3)]
SHORT = Sampling(max_new_tokens=4)


def cluster_of(workers: int, root: Path, **deadlines: float) -> LocalCluster:
    """A cluster that has not started yet."""
    spec = parse(LOOP.replace("workers: 1", f"workers: {workers}")).spec
    assert spec is not None
    plan = compile_plan(spec)
    settings = HostSettings(
        spec=spec, weights=plan.weights, root=root, seed=0, threads=1, log=root / "engine.log"
    )
    return LocalCluster(plan, {"main": settings}, Deadlines(**deadlines))


@pytest.mark.parametrize(
    ("kind", "size", "threads"), [("local", 1, 2), ("local", 2, 1), ("on_ray", 1, 1)]
)
def test_a_driver_beside_processes_computes_with_one_thread(
    kind: str, size: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster: Any = cluster_of(size, tmp_path)
    if kind == "on_ray":
        module = pytest.importorskip("coloop.workers.ray.ray_cluster")
        cluster = module.RayCluster(cluster._plan, cluster._settings, run_id="never-started")
        for part in ("_connect", "_place"):
            monkeypatch.setattr(cluster, part, lambda *given: None)
    before = torch.get_num_threads()
    for part in ("_crew", "_add", "_open"):
        monkeypatch.setattr(cluster, part, lambda *given: None)
    torch.set_num_threads(2)
    try:
        cluster.start()
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    """The same pool as one host and as two ranks."""
    clusters = [cluster_of(size, tmp_path_factory.mktemp(f"ranks{size}")) for size in (1, 2)]
    try:
        for one in clusters:
            one.start()
        yield clusters[0], clusters[1]
    finally:
        for one in clusters:
            one.close()


def learn_order(texts: list[list[Any]], count: int) -> LearnRequest:
    """One update from the first completions; rewards by their place."""
    written = [one for own in texts for one in own][:count]
    items = tuple(
        completion_sequence(
            id=f"row{place}",
            prompt_ids=one.prompt_ids,
            completion_ids=one.token_ids,
            loss_mask=one.loss_mask,
            log_probs_rollout=one.log_probs,
            log_probs_reference=one.log_probs - np.float32(0.1),
            advantages=1.0 - place,
        )
        for place, one in enumerate(written)
    )
    return LearnRequest(group="actor", items={("actor", "rewards"): items}, seed=0)


def streamed(cluster: LocalCluster) -> dict[int, list[list[int]]]:
    """What is written a moment at a time, by the place of its request."""
    found: dict[int, list[list[int]]] = {}
    asked: list[PromptRequest] = REQUESTS
    while True:
        finished = cluster.asking()("main", WorkerApi.write, "actor", "actor", asked, SHORT)
        for place, texts in finished.replies:
            assert place not in found, "a reply is whole"
            found[place] = [one.token_ids.tolist() for one in texts]
        if not finished.unfinished:
            return dict(sorted(found.items()))
        asked = []


def test_two_processes_write_score_learn_and_save_as_one(
    pair: tuple[LocalCluster, LocalCluster], tmp_path: Path
) -> None:
    found = []
    for place, cluster in enumerate(pair):
        texts = cluster.asking()("main", WorkerApi.generate, "actor", "actor", REQUESTS, SHORT)
        one = completion_sequence(
            id="a", prompt_ids=[1, 2], completion_ids=[3, 4, 5], loss_mask=[True] * 3
        )
        scored = cluster.asking()("main", WorkerApi.score, "start", "start", [one] * 3, 1.0)
        nothing = cluster.asking()("main", WorkerApi.score, "start", "start", [], 1.0)
        ids = [own.token_ids for request in texts for own in request]
        ends = cluster.asking()("main", WorkerApi.step_ends, "actor", "actor", ids, "1")
        learned = [cluster.asking()("main", WorkerApi.learn, learn_order(texts, n)) for n in (5, 1)]
        before = cluster.asking()("main", WorkerApi.sync, "actor")
        folder = tmp_path / str(place)
        files = cluster.asking()("main", WorkerApi.save, str(folder))
        cluster.asking()("main", WorkerApi.load, str(folder))
        later = cluster.asking()("main", WorkerApi.generate, "actor", "actor", REQUESTS[:1], SHORT)
        found.append(
            {
                "texts": [[one.token_ids.tolist() for one in request] for request in texts],
                "versions": (texts[0][0].version, later[0][0].version),
                "streamed": streamed(cluster),
                "ends": ends,
                "nothing": nothing,
                "files": sorted(files),
                "there": sorted(p.name for p in (folder / "actor").iterdir()),
                "rows": [(one.samples, one.tokens, one.version) for one in learned],
                "changed": cluster.asking()("main", WorkerApi.has_changed, "actor"),
                "later": [one.token_ids.tolist() for one in later[0]],
            }
        )
        found[-1]["numbers"] = {
            "scored": [one.tolist() for one in scored],
            "losses": [one.metrics["actor"]["loss"] for one in learned],
            "norms": [one.metrics["actor"]["grad_norm"] for one in learned],
            "evidence": [end.scores.tolist() for end in before],
        }
    numbers = [one.pop("numbers") for one in found]

    assert found[0] == found[1]
    for name, expected in numbers[0].items():
        assert_near(numbers[1][name], expected, terms=10_000)


def test_an_error_of_one_rank_is_the_pools_and_it_works_on(
    pair: tuple[LocalCluster, LocalCluster], tmp_path: Path
) -> None:
    cluster = pair[1]
    unknown = [PromptRequest(id=f"row-{n}", prompt=sign, seeds=(1,)) for n, sign in enumerate("1ж")]

    with pytest.raises(RequestRefused, match="ж") as raised:
        cluster.asking()("main", WorkerApi.generate, "actor", "actor", unknown, SHORT)
    assert "(pool main, rank 1 of 2)" in raised.value.__notes__
    with pytest.raises(CheckpointError, match="actor"):
        cluster.asking()("main", WorkerApi.load, str(tmp_path))
    with pytest.raises(KeyError):
        cluster.asking()("main", WorkerApi.version, "nobody")
    assert cluster.asking()("main", WorkerApi.version, "actor") == pair[0].asking()(
        "main", WorkerApi.version, "actor"
    )


def test_a_wish_to_give_up_reaches_all_ranks_and_only_that_call(
    pair: tuple[LocalCluster, LocalCluster],
) -> None:
    requests = [PromptRequest(id=f"r{n}", prompt="1+1=", seeds=tuple(range(40))) for n in range(10)]
    seen: list[Poll] = []

    def tick(poll: Poll | None) -> bool:
        if poll is not None and poll.total:
            seen.append(poll)
        return bool(seen)

    with pytest.raises(StopRequested):
        pair[1].asking(tick)(
            "main", WorkerApi.generate, "actor", "actor", requests, Sampling(max_new_tokens=400)
        )

    assert seen[-1].total == 400, "the rows of all ranks"
    texts = pair[1].asking()("main", WorkerApi.generate, "actor", "actor", REQUESTS, SHORT)
    assert [len(one) for one in texts] == [3, 3, 3]
    assert not any(isinstance(one, TooLong) for one in texts)


def test_how_far_a_call_was_is_not_told_of_the_next(
    pair: tuple[LocalCluster, LocalCluster],
) -> None:
    cluster = pair[1]
    cluster.asking()("main", WorkerApi.generate, "actor", "actor", REQUESTS, SHORT)
    crew: Any = cluster._pools["main"].crew
    for rank in crew._ranks:
        while rank.poll(crew._number) is not None or rank._asked_for is None:
            """Asked until an answer is still on its way, be it of an earlier question."""
        assert rank._control.poll(LONG_WAIT), "it is there, and nobody has read it"
    requests = [PromptRequest(id=f"r{n}", prompt="1+1=", seeds=tuple(range(40))) for n in range(10)]
    totals: list[int] = []

    def tick(poll: Poll | None) -> bool:
        totals.extend([poll.total] if poll is not None else [])
        return 400 in totals

    with pytest.raises(StopRequested):
        cluster.asking(tick)(
            "main", WorkerApi.generate, "actor", "actor", requests, Sampling(max_new_tokens=400)
        )

    assert set(totals) <= {0, 200, 400}, "of no rank, one or both"


@pytest.mark.slow
def test_a_rank_that_hangs_is_named_and_nothing_stays_behind(tmp_path: Path) -> None:
    before = set(ranks_of(psutil.Process()))
    cluster = cluster_of(2, tmp_path, stalled_after_seconds=5.0)
    try:
        cluster.start()
        ranks = sorted(set(ranks_of(psutil.Process())) - before, key=lambda one: one.pid)
        texts = cluster.asking()("main", WorkerApi.generate, "actor", "actor", REQUESTS, SHORT)
        os.kill(ranks[1].pid, signal.SIGSTOP)

        with pytest.raises(StageStalled, match="pool main, rank 1 of 2: learn: no sign of life"):
            cluster.asking()("main", WorkerApi.learn, learn_order(texts, 4))
    finally:
        cluster.close()
    _, alive = psutil.wait_procs(ranks, timeout=LONG_WAIT)
    assert alive == []


class Unreadable:
    """What another process cannot open."""

    def __reduce__(self) -> Any:
        return os.open, ("/nowhere/at-all", os.O_RDONLY)


@pytest.mark.slow
def test_a_rank_that_cannot_be_built_says_what_kept_it(tmp_path: Path) -> None:
    cluster = cluster_of(2, tmp_path)
    settings: Any = {"main": replace(cluster._settings["main"], device=Unreadable())}
    (tmp_path / "engine.log").write_text("what an earlier run said\n", encoding="utf-8")

    with pytest.raises(WorkerDied) as raised, closing(LocalCluster(cluster._plan, settings)) as one:
        one.start()

    told = str(raised.value)
    assert told.startswith("pool main, rank 0 of 2: its worker process ended: exit code 1, before")
    assert f"fix the error and run again; the end of {tmp_path / 'engine.log'}" in told
    assert "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/at-all'" in told
    assert "an earlier run" not in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "number", "last"),
    [
        (
            "sys.stderr.write('libgomp.so.1: cannot open\\n')\nos._exit(7)",
            7,
            "libgomp.so.1: cannot open",
        ),
        (
            "def fork(): raise BlockingIOError(11, 'no more processes')\nos.fork = fork",
            1,
            "BlockingIOError: [Errno 11] no more processes",
        ),
    ],
)
def test_a_rank_that_cannot_begin_says_so(
    code: str, number: int, last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import os, sys\n{code}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(WorkerDied) as raised, closing(cluster_of(2, tmp_path)) as cluster:
        cluster.start()

    told = str(raised.value)
    assert f"rank 0 of 2: its worker process ended: exit code {number}, before it answered" in told
    assert told.endswith(f"\n    {last}")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_stem_that_does_not_begin_a_rank_is_asked_for_no_other(tmp_path: Path) -> None:
    cluster = cluster_of(2, tmp_path)
    with closing(cluster):
        cluster.start()
        first, (hangs,) = fork_server_of(cluster), fork_servers_of(psutil.Process())[-1:]
        hangs.suspend()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            first.start(theirs.fileno(), theirs.fileno()).kill()

        second = fork_server_of(cluster)

        assert second is not first
        assert fork_server_of(cluster) is second
        hangs.resume()
        assert (
            len(cluster.asking()("main", WorkerApi.generate, "actor", "actor", REQUESTS, SHORT))
            == 3
        )
    assert first.has_ended
    assert second.has_ended


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
@pytest.mark.timeout(120)
def test_ranks_that_their_fork_server_never_begins_are_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(fork_servers_of(psutil.Process()))

    def hangs(log: Path | None) -> ForkServer | None:
        fork_server = start_fork_server(log)
        for one in set(fork_servers_of(psutil.Process())) - before:
            one.suspend()
        return fork_server

    monkeypatch.setattr(local, "start_fork_server", hangs)
    cluster = cluster_of(2, tmp_path, start_seconds=2.0)

    with pytest.raises(PlacementTimeout, match="rank 0 of 2: it did not join within 2 s"):
        cluster.start()

    assert set(fork_servers_of(psutil.Process())) == before


def fork_server_of(cluster: LocalCluster) -> ForkServer:
    """From which its next ranks stem."""
    fork_server = cluster._living_fork_server(cluster._settings["main"])
    assert fork_server is not None
    return fork_server
