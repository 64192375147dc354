"""Stages side by side: what runs at once, what waits, and what a stop or a failure leaves behind.

Roles are scripts that wait for one another by events; no test looks at a clock.
"""

import math
import random
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from coloop.data.tables import Table
from coloop.data.tables.row import root_row
from coloop.errors import StopRequested
from coloop.plan.compile import compile_plan
from coloop.plan.stages import Step
from coloop.plan.types import Stage
from coloop.runtime.roles import CREDIT
from coloop.runtime.roles.protocol import Call, Context, Outcome
from coloop.runtime.schedule.calls import Calls, StepContext
from coloop.runtime.schedule.in_flight import StepInFlight, Work
from coloop.runtime.schedule.scheduler import Lanes, Scheduler
from coloop.runtime.schedule.window import Window
from coloop.spec.io import parse
from coloop.spec.lineage import Lineages

PATIENCE = 60.0
ROWS = 10

TWO_POOLS = """
coloop: 1
name: small
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 2}
  left:
    kind: actor
    pool: one
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: grpo}
  right:
    kind: actor
    pool: two
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm: {name: grpo}
  short: {kind: reward, source: {type: builtin, name: length, max: 3}}
  long: {kind: reward, source: {type: builtin, name: length, max: 9}}
  other: {kind: reward, source: {type: builtin, name: length, max: 5}}
edges:
  - problems.rows -> left.prompts
  - problems.rows -> right.prompts
  - left.rollouts -> short.rollouts
  - left.rollouts -> long.rollouts
  - short.scores -> left.rewards
  - long.scores -> left.rewards
  - right.rollouts -> other.rollouts
  - other.scores -> right.rewards
schedule: {steps: 9}
hardware: {preset: cpu, pools: {one: {workers: 1}, two: {workers: 1}}}
"""

Do = Callable[[Call], Any]


class Script:
    """A role that does what the test says; it remembers how often it has worked."""

    def __init__(self, do: Do) -> None:
        self.do = do
        self.memory = 0

    def run(self, call: Call) -> Outcome:
        self.memory += 1
        found = self.do(call)
        return found if isinstance(found, Outcome) else Outcome()

    def remember(self) -> int:
        return self.memory

    def recall(self, memory: int) -> None:
        self.memory = memory


class EarlyScript(Script):
    """One that can begin with some of its rows."""

    def __init__(self, do: Do, begin: Do) -> None:
        super().__init__(do)
        self.begin = begin

    def can_begin(self, context: Context) -> bool:
        return True


class PartScript(Script):
    """One that can do some of its rows before the others."""

    def __init__(self, do: Do, begin: Do) -> None:
        super().__init__(do)
        self.begin = begin


class ShuffledLanes:
    """Lanes whose works end in an order that chance draws, one of them whenever somebody waits;
    each is done as it begins or as it ends."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._waiting: dict[Future[Any], Callable[[], Any]] = {}

    def room(self, lane: str | None) -> int:
        return 8 if lane is None else 1

    def submit(self, lane: str | None, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        if self._chance.random() < 0.5:
            done = work()
            self._waiting[future] = lambda: done
        else:
            self._waiting[future] = work
        return future

    def wait(
        self, works: Collection[Future[Any]], seconds: float, /
    ) -> tuple[set[Future[Any]], set[Future[Any]]]:
        future = self._chance.choice(list(self._waiting))
        future.set_result(self._waiting.pop(future)())
        return {future}, set()

    def close(self) -> None: ...


class Hosts:
    def with_tick(self, tick: Any) -> "Hosts":
        return self


class Loop:
    """The stages of `TWO_POOLS`, each a script."""

    def __init__(self, staleness: float = 0, stream: bool = False) -> None:
        parsed = parse(TWO_POOLS.replace("steps: 9", f"steps: 9, stream: {str(stream).lower()}"))
        spec = parsed.spec
        assert spec is not None, [one.describe() for one in parsed.diagnostics]
        self.stages = compile_plan(spec).phases[0].stages
        self.context = Context(
            spec=spec,
            lineage=Lineages(spec).at({}),
            groups={"left": "left", "right": "right"},
            hosts=Hosts(),  # type: ignore[arg-type]
            root=Path(),
            seed=0,
        )
        self.scripts: dict[str, Do] = {}
        names = [*spec.nodes, *(f"{CREDIT}{node}" for node in ("left", "right"))]
        self.roles: dict[str, Script] = {name: Script(self._do) for name in names}
        self.group_roles = {node: Script(self._do) for node in ("left", "right")}
        self.lanes = Lanes()
        edges = {edge.key: edge for edge in spec.edges}
        calls = Calls(edges, self.roles, self.group_roles, self.delivered)  # type: ignore[arg-type]
        window = Window(
            staleness=staleness,
            groups=self.context.groups,
            changing=frozenset({"left", "right"}),
        )
        self.scheduler = Scheduler(calls, self.lanes, self, window)  # type: ignore[arg-type]
        self.stop_is_wanted = False
        self.on_start: Callable[[Work], None] = lambda work: None
        self.told: list[str] = []
        self.finished: list[int] = []

    def _do(self, call: Call) -> Any:
        script = self.scripts.get(f"{call.stage}@{call.step}") or self.scripts.get(call.stage)
        return script(call) if script is not None else None

    def run_steps(self, steps: int = 1) -> None:
        """So many steps."""
        ahead = iter(range(1, steps + 1))

        def begin() -> StepInFlight | None:
            step = next(ahead, None)
            if step is None:
                return None
            step_context = StepContext(step=step, phase="main", context=self.context)
            return self.scheduler.flight(Step(stages=self.stages), step_context)

        self.scheduler.run_steps(begin, lambda flight: self.finished.append(flight.step))

    def stage_started(self, work: Work) -> None:
        self.told.append(f"+{work.stage.name}@{work.flight.step}")
        self.on_start(work)

    def stage_finished(self, work: Work, outcome: Outcome) -> None:
        self.told.append(f"-{work.stage.name}@{work.flight.step}")

    def failure_of(self, work: Work, error: BaseException) -> Exception:
        assert isinstance(error, Exception)
        return error

    def ticked(self, at_work: Sequence[Work]) -> None: ...

    def delivered(self, edge: str, rows: int) -> None: ...

    def noticed(self, flight: StepInFlight, node: str, code: str, message: str) -> None: ...


@pytest.fixture
def loop() -> Iterator[Callable[..., Loop]]:
    loops: list[Loop] = []

    def build(**options: Any) -> Loop:
        loops.append(Loop(**options))
        return loops[-1]

    yield build
    for one in loops:
        one.lanes.close()


def meeting(parties: int) -> Callable[[Call], None]:
    """Stages that end only when all of them are at work."""
    barrier = threading.Barrier(parties, timeout=PATIENCE)
    return lambda call: barrier.wait() and None


@pytest.mark.parametrize(
    "stages",
    [
        ("short.score", "long.score"),
        ("left.generate", "right.generate"),
        ("left.learn", "right.learn"),
        ("short.score", "long.score", "right.generate"),
    ],
    ids=lambda stages: "+".join(stages),
)
def test_stages_that_do_not_wait_for_one_another_work_at_once(
    stages: tuple[str, ...], loop: Callable[..., Loop]
) -> None:
    one = loop()
    meet = meeting(len(stages))
    for stage in stages:
        one.scripts[stage] = meet

    one.run_steps()

    assert one.finished == [1]


def test_a_pool_does_one_stage_at_a_time_and_each_after_what_it_waits_for(
    loop: Callable[..., Loop],
) -> None:
    one = loop()
    at_work: dict[str | None, int] = {}

    def started(work: Work) -> None:
        pool = work.stage.pool
        if pool is not None:
            others = [w for w in one.scheduler._at_work.values() if w.stage.pool == pool]
            at_work[pool] = max(at_work.get(pool, 0), len(others) + 1)
        done = {name[1:].partition("@")[0] for name in one.told if name.startswith("-")}
        assert set(work.stage.after) <= done

    one.on_start = started
    one.run_steps()

    assert at_work == {"one": 1, "two": 1}


def test_a_stop_before_anything_was_learned_takes_the_step_back(
    loop: Callable[..., Loop],
) -> None:
    """Neither learner comes so far: each waits for one of the two stages that give up."""
    one = loop()

    def work_until_stopped(call: Call) -> None:
        one.stop_is_wanted = True
        for _ in range(10_000_000):
            call.tick(0, 1)

    one.scripts["short.score@2"] = one.scripts["right.credit@2"] = work_until_stopped
    with pytest.raises(StopRequested):
        one.run_steps(3)

    assert one.finished == [1]
    assert one.roles["short"].memory == 1
    assert one.roles["problems"].memory == 1


def test_a_stop_after_one_of_two_learners_has_learned_lets_the_step_end(
    loop: Callable[..., Loop],
) -> None:
    """What was given up is done again: the step is whole."""
    one = loop()
    tries: list[str] = []
    other_learns, gave_up = threading.Event(), threading.Event()

    def give_up_once(call: Call) -> None:
        tries.append(call.stage)
        assert other_learns.wait(PATIENCE)
        one.stop_is_wanted = True
        try:
            while len(tries) == 1:
                call.tick(0, 1)
        finally:
            gave_up.set()

    def learn(call: Call) -> None:
        other_learns.set()
        assert gave_up.wait(PATIENCE)

    one.scripts["left.learn"] = give_up_once
    one.scripts["right.learn"] = learn
    one.run_steps(2)

    assert tries == ["left.learn", "left.learn"]
    assert one.finished == [1]
    assert one.group_roles["left"].memory == 2  # learn and sync, once each


def test_what_breaks_ends_its_step_and_nothing_is_left_at_work(loop: Callable[..., Loop]) -> None:
    one = loop()
    has_begun = threading.Event()
    ended: list[str] = []

    def go_on(call: Call) -> None:
        has_begun.set()
        try:
            for _ in range(10_000_000):
                call.tick(0, 1)
        finally:
            ended.append(call.stage)

    def breaks(call: Call) -> None:
        assert has_begun.wait(PATIENCE)
        raise ValueError("unhappy")

    one.scripts["long.score"] = go_on
    one.scripts["short.score"] = breaks
    with pytest.raises(ValueError, match="unhappy"):
        one.run_steps(2)

    assert ended == ["long.score"]
    assert one.finished == []
    assert one.roles["problems"].memory == 0


# --- windows of several steps


def test_the_next_step_is_written_while_this_one_is_learned(loop: Callable[..., Loop]) -> None:
    one = loop(staleness=1)
    meet = meeting(2)
    one.scripts["left.learn@1"] = meet
    one.scripts["right.generate@2"] = meet
    one.scripts["left.learn@2"] = one.scripts["right.generate@3"] = meeting(2)

    one.run_steps(3)

    assert one.finished == [1, 2, 3]


def test_the_next_step_is_credited_while_this_one_is_learned(loop: Callable[..., Loop]) -> None:
    """So nothing lies between two updates but new weights on their way."""
    one = loop(staleness=1)
    one.scripts["left.learn@1"] = one.scripts["left.credit@2"] = meeting(2)
    one.scripts["right.learn@1"] = one.scripts["right.credit@2"] = meeting(2)

    one.run_steps(3)

    assert one.finished == [1, 2, 3]
    for node in ("left", "right"):
        credited = [name for name in one.told if name.startswith(f"+{node}.credit")]
        assert credited == [f"+{node}.credit@{step}" for step in (1, 2, 3)]


@pytest.mark.parametrize("staleness", [0, 1, 2])
def test_no_text_is_written_by_weights_that_are_too_old(
    staleness: int, loop: Callable[..., Loop]
) -> None:
    one = loop(staleness=staleness)

    def started(work: Work) -> None:
        if work.stage.verb == "generate":
            step = work.flight.step
            synced = [name for name in one.told if name.startswith(f"-{work.stage.node}.sync")]
            assert step - 1 - len(synced) <= staleness

    one.on_start = started
    one.run_steps(8)

    assert one.finished == list(range(1, 9))


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("staleness", [0.5, 1.3])
def test_a_fraction_bounds_the_rows_between_two_syncs_in_whatever_order_stages_end(
    staleness: float, seed: int, loop: Callable[..., Loop]
) -> None:
    """Rows are numbers from 0 to 9 of each step; nothing is lost or written twice, none is older
    than it may be, and of those that are as old as that there are no more than the fraction."""
    one = loop(staleness=staleness)
    chance = random.Random(f"{staleness} {seed}")
    one.lanes = one.scheduler.lanes = ShuffledLanes(chance)  # type: ignore[assignment]
    synced, written = Counter[str](), Counter[tuple[str, int]]()
    versions: dict[tuple[str, int], list[int]] = {}

    def write(call: Call) -> list[int]:
        node = call.stage.partition(".")[0]
        rows = sum(map(len, call.begun))
        fresh = [synced[node]] * ((math.floor(call.share * ROWS + 1e-9)) - rows)
        written[node, synced[node]] += len(fresh)
        return fresh

    def generate(call: Call) -> None:
        node = call.stage.partition(".")[0]
        early = [version for part in call.begun for version in part]
        versions[node, call.step] = [*early, *write(call)]

    def learn(call: Call) -> None:
        node = call.stage.partition(".")[0]
        late = [synced[node] - version for version in versions.pop((node, call.step))]
        assert len(late) == ROWS
        assert synced[node] == call.step - 1
        assert max(late) <= math.ceil(staleness)
        assert sum(one > int(staleness) for one in late) <= staleness % 1 * ROWS

    for node in ("left", "right"):
        one.roles[node] = PartScript(one._do, write)
        one.scripts[f"{node}.generate"] = generate
        one.scripts[f"{node}.learn"] = learn
        one.scripts[f"{node}.sync"] = lambda call: synced.update([call.stage.partition(".")[0]])
    one.run_steps(8)

    assert one.finished == list(range(1, 9))
    assert not versions
    assert max(written.values()) <= (1 + staleness) * ROWS
    assert sum(written.values()) == 2 * 8 * ROWS


def versions_written(one: Loop, steps: int) -> dict[tuple[str, int], list[int]]:
    """By writer and step, the version of the weights that wrote each of `ROWS` rows."""
    synced: Counter[str] = Counter()
    found: dict[tuple[str, int], list[int]] = {}

    def write(call: Call) -> list[int]:
        node = call.stage.partition(".")[0]
        rows = sum(map(len, call.begun))
        return [synced[node]] * (math.floor(call.share * ROWS + 1e-9) - rows)

    def generate(call: Call) -> None:
        early = [version for part in call.begun for version in part]
        found[call.stage.partition(".")[0], call.step] = [*early, *write(call)]

    for node in ("left", "right"):
        one.roles[node] = PartScript(one._do, write)
        one.scripts[f"{node}.generate"] = generate
        one.scripts[f"{node}.sync"] = lambda call: synced.update([call.stage.partition(".")[0]])
    one.run_steps(steps)
    return found


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("staleness", "oldest", "share"),
    [(0, 0, 1.0), (0.5, 1, 0.5), (1, 1, 1.0), (1.3, 2, 0.3), (2, 2, 1.0)],
)
def test_what_writes_has_the_same_weights_in_whatever_order_stages_end(
    staleness: float, oldest: int, share: float, seed: int, loop: Callable[..., Loop]
) -> None:
    one = loop(staleness=staleness)
    chance = random.Random(f"{staleness} {seed}")
    one.lanes = one.scheduler.lanes = ShuffledLanes(chance)  # type: ignore[assignment]

    found = versions_written(one, 8)

    first = math.floor(share * ROWS + 1e-9)
    assert found == {
        (node, step): [
            *[max(step - 1 - oldest, 0)] * first,
            *[max(step - oldest, 0)] * (ROWS - first),
        ]
        for node in ("left", "right")
        for step in range(1, 9)
    }


@pytest.mark.sample(1)
@pytest.mark.parametrize("is_late", ["writing", "learning"])
@pytest.mark.parametrize("staleness", [1, 2])
def test_new_weights_wait_until_the_writing_ahead_has_begun(
    staleness: int, is_late: str, loop: Callable[..., Loop]
) -> None:
    """Whichever is ready first."""
    one = loop(staleness=staleness)
    learned, written = threading.Event(), threading.Event()
    tell = one.stage_finished

    def finished(work: Work, outcome: Outcome) -> None:
        tell(work, outcome)
        if one.told[-1] == "-left.learn@1":
            learned.set()
        if one.told[-1] == f"-left.generate@{1 + staleness}":
            written.set()

    one.stage_finished = finished  # type: ignore[method-assign]
    if is_late == "writing":
        one.scripts["problems.load@2"] = lambda call: learned.wait(PATIENCE) and None
    else:
        one.scripts["left.learn@1"] = lambda call: written.wait(PATIENCE) and None
    one.run_steps(4)

    assert one.finished == [1, 2, 3, 4]
    assert learned.is_set()
    assert written.is_set()
    begun = [one.told.index(f"+left.generate@{step}") for step in range(2, 2 + staleness)]
    assert max(begun) < one.told.index("+left.sync@1")


def test_steps_that_learn_do_so_in_their_order(loop: Callable[..., Loop]) -> None:
    one = loop(staleness=3)
    one.run_steps(6)

    for group in ("left", "right"):
        learned = [name for name in one.told if name.startswith(f"+{group}.learn")]
        assert learned == [f"+{group}.learn@{step}" for step in range(1, 7)]


def test_a_step_that_breaks_leaves_those_before_it_whole(loop: Callable[..., Loop]) -> None:
    one = loop(staleness=1)
    broke = threading.Event()

    def breaks(call: Call) -> None:
        broke.set()
        raise ValueError("unhappy")

    def learn(call: Call) -> None:
        assert broke.wait(PATIENCE)

    one.scripts["left.learn@1"] = learn
    one.scripts["right.generate@2"] = breaks
    with pytest.raises(ValueError, match="unhappy"):
        one.run_steps(4)

    assert one.finished == [1]
    assert one.roles["problems"].memory == 1


def test_a_stage_says_why_it_waited(loop: Callable[..., Loop]) -> None:
    one = loop()
    starved: dict[str, float] = {}
    one.on_start = lambda work: starved.update({work.stage.name: work.starved})
    one.run_steps()

    learn: Stage = next(stage for stage in one.stages if stage.name == "left.learn")
    assert learn.pool == "one"
    assert starved["left.learn"] > 0.0  # its pool was free while scores were made
    assert starved["problems.load"] >= 0.0


# --- what an interrupt or an error of the watcher leaves behind


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("where", ["stage_started", "ticked"])
def test_no_stage_runs_on_after_an_interrupt_or_an_error_of_the_watcher(
    where: str, error: type[BaseException], loop: Callable[..., Loop], monkeypatch: Any
) -> None:
    one = loop()
    has_begun = threading.Event()
    ended: list[str] = []

    def work_until_cancelled(call: Call) -> None:
        has_begun.set()
        try:
            while True:
                call.tick(0, 1)
        finally:
            threading.Event().wait(0.2)
            ended.append(call.stage)

    def fail(*arguments: object) -> None:
        if has_begun.is_set():
            raise error

    def started(work: Work) -> None:
        if work.stage.name == "right.generate":
            assert has_begun.wait(PATIENCE)
            fail()

    one.scripts["left.generate"] = work_until_cancelled
    if where == "ticked":
        monkeypatch.setattr(one, "ticked", fail)
    else:
        one.on_start = started
    with pytest.raises(error):
        one.run_steps()

    assert ended == ["left.generate"]
    assert not one.scheduler._at_work


def test_the_wait_for_a_stage_that_ignores_an_interrupt_is_bounded(
    loop: Callable[..., Loop], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = loop()
    has_begun, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr("coloop.runtime.schedule.scheduler.END_SECONDS", 0.1)

    def ignore(call: Call) -> None:
        has_begun.set()
        assert may_end.wait(PATIENCE)

    def started(work: Work) -> None:
        if work.stage.name == "right.generate":
            assert has_begun.wait(PATIENCE)
            raise KeyboardInterrupt

    one.scripts["left.generate"] = ignore
    one.on_start = started
    with pytest.raises(KeyboardInterrupt):
        one.run_steps()

    assert not one.scheduler._at_work
    may_end.set()


# --- rows that come before the others


def part(*names: str) -> Table:
    return Table(rows=tuple(root_row("left", name, {}) for name in names))


def ids(call: Call) -> list[str]:
    return [row.id for table in call.tables("rollouts") for row in table.rows]


def hands_on(event: threading.Event, *parts: Table) -> Do:
    """A writer that goes on only when somebody has begun with what it gave before."""

    def write(call: Call) -> Outcome:
        assert call.hand_on is not None
        for table in parts[:-1]:
            call.hand_on(table)
        assert event.wait(PATIENCE)
        whole = Table(rows=tuple(row for table in parts for row in table.rows))
        return Outcome(outputs={"rollouts": whole})

    return write


def test_a_stage_begins_with_rows_that_come_before_the_others(loop: Callable[..., Loop]) -> None:
    one = loop(stream=True)
    has_begun, began, whole = threading.Event(), [], []

    def begin(call: Call) -> list[str]:
        began.extend(ids(call))
        if len(began) == 2:
            has_begun.set()
        return ids(call)

    def score(call: Call) -> None:
        whole.append((ids(call), [name for names in call.begun for name in names]))

    one.roles["short"] = EarlyScript(one._do, begin)
    one.scripts["left.generate"] = hands_on(has_begun, part("a"), part("b"), part("c"))
    one.scripts["short.score"] = score
    one.run_steps()

    assert one.finished == [1]
    assert began == ["left:a", "left:b"]
    assert whole == [(["left:a", "left:b", "left:c"], began)]
    assert one.told.index("+short.score@1") < one.told.index("-left.generate@1")
    assert [name for name in one.told if name == "+short.score@1"] == ["+short.score@1"]
    assert one.told.index("+long.score@1") > one.told.index("-left.generate@1")


def test_without_stream_nothing_is_handed_on(loop: Callable[..., Loop]) -> None:
    one = loop()
    given: list[Any] = []
    one.scripts["left.generate"] = lambda call: given.append(call.hand_on)

    one.run_steps()

    assert given == [None]


@pytest.mark.parametrize("ends", ["breaks", "is stopped"])
def test_what_has_begun_ends_with_its_step(ends: str, loop: Callable[..., Loop]) -> None:
    """The writer waits for it, and hears of the end."""
    one = loop(stream=True)
    ended: list[str] = []

    def write(call: Call) -> None:
        assert call.hand_on is not None
        call.hand_on(part("a"))
        try:
            for _ in range(10_000_000):
                call.tick(0, 1)
        finally:
            ended.append(call.stage)

    def begin(call: Call) -> None:
        if ends == "breaks":
            raise ValueError("unhappy")
        one.stop_is_wanted = True
        for _ in range(10_000_000):
            call.tick(0, 1)

    one.roles["short"] = EarlyScript(one._do, begin)
    one.scripts["left.generate"] = write
    with pytest.raises(ValueError if ends == "breaks" else StopRequested):
        one.run_steps(2)

    assert ended == ["left.generate"]
    assert one.finished == []
    assert not one.scheduler._at_work


def test_what_was_given_up_is_begun_again(loop: Callable[..., Loop]) -> None:
    """A stop that comes as another learner has learned: the writer writes again, and what was begun
    with before is not lost or told twice."""
    one = loop(stream=True)
    has_begun, other_learns, gave_up = (threading.Event() for _ in range(3))
    tries: list[str] = []
    begun: list[str] = []

    def write(call: Call) -> Outcome:
        tries.append(call.stage)
        assert call.hand_on is not None
        call.hand_on(part("a"))
        assert has_begun.wait(PATIENCE)
        assert other_learns.wait(PATIENCE)
        one.stop_is_wanted = True
        try:
            while len(tries) == 1:
                call.tick(0, 1)
        finally:
            gave_up.set()
        return Outcome(outputs={"rollouts": part("a")})

    def begin(call: Call) -> str:
        has_begun.set()
        return call.stage

    def score(call: Call) -> None:
        begun.extend(call.begun)

    def learn(call: Call) -> None:
        other_learns.set()
        assert gave_up.wait(PATIENCE)

    one.roles["short"] = EarlyScript(one._do, begin)
    one.scripts |= {"left.generate": write, "short.score": score}
    one.scripts["right.learn"] = learn
    one.run_steps(1)

    assert tries == ["left.generate"] * 2
    assert "short.score" in begun
    assert [name for name in one.told if name == "+short.score@1"] == ["+short.score@1"]
    assert one.finished == [1]
