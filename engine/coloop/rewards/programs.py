"""Programs that a policy wrote, by tests: each program runs in limited processes of its own, and
what it should say stays here, where it cannot read it.

    tests: ["assert add(1, 2) == 3"]               the call runs there, the 3 is compared here
           ["assert is_prime(7)"]                  runs there: the program can cheat such a test
           [{"input": "1 2", "output": "3"}]       what it prints is compared here
"""

import ast
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final

from coloop.errors import DataError, UserCodeError
from coloop.rewards.judging import Tick, Verdict, source_of
from coloop.rewards.scoring import Question, Score, ScoringRow, extracted, text_of
from coloop.sandbox.process import Sandbox, wall_here
from coloop.spec import builtins as options

FENCED: Final = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
AT_ONCE: Final = 8
"""Programs that run at the same time."""
WAITS: Final = 4.0
"""By the clock a test has this many times its computing time: what it waits for, a busy machine."""

UNREADABLE: Final = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


@dataclass(frozen=True, slots=True)
class Case:
    """What is run of a program, and what must come out."""

    kind: str
    """`call`, `statement` or `input`."""
    text: str
    expected: Any = None


def code_tests(rows: Sequence[ScoringRow], given: options.CodeTests) -> list[Score | Question]:
    """1 where the program passes all tests of its row; graded: the share that it passes."""
    return [_question(row, given) for row in rows]


def _question(row: ScoringRow, given: options.CodeTests) -> Score | Question:
    text, tests = text_of(row), row.columns.get(given.column)
    if text is None or tests is None:
        return None
    read_tests(tests, given.column)
    code = program_of(text) if given.extract is None else extracted(text, given.extract)
    if code is None or not code.strip():
        return 0.0
    return Question(columns={"code": code, "tests": tests, "column": given.column})


def program_of(text: str) -> str:
    """The last block of code between fences; without fences all of it."""
    blocks = FENCED.findall(text)
    return str(blocks[-1]) if blocks else text


def read_tests(value: Any, column: str) -> list[Case]:
    """Tests as a row brings them.

    Raises:
        DataError: they are none.
    """
    items = [value] if isinstance(value, str | Mapping) else value
    if not isinstance(items, list | tuple) or not items:
        raise DataError(
            f"column `{column}` wants a list of tests (`assert f(1) == 2`, or "
            f'{{"input": "1", "output": "2"}}), found {repr(value)[:80]}'
        )
    return [test for item in items for test in _tests(item, column)]


def _tests(item: Any, column: str) -> list[Case]:
    if isinstance(item, Mapping) and set(item) == {"input", "output"}:
        return [Case("input", str(item["input"]), _lines(str(item["output"])))]
    if not isinstance(item, str):
        raise DataError(
            f"column `{column}`: a test is a text or has `input` and `output`, found "
            f"{repr(item)[:80]}"
        )
    try:
        tree = ast.parse(item)
    except UNREADABLE as error:
        raise DataError(f"column `{column}`: {item[:80]!r} is no Python: {error}") from None
    if not tree.body:
        raise DataError(f"column `{column}`: a test says nothing: {item[:80]!r}")
    calls = [_call(statement) for statement in tree.body]
    known = [call for call in calls if call is not None]
    return known if len(known) == len(calls) else [Case("statement", item)]


def _call(statement: ast.stmt) -> Case | None:
    """`assert f(1) == 2` as a call and its value; None for any other statement."""
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            try:
                return Case("call", ast.unparse(left), ast.literal_eval(right))
            except UNREADABLE:
                return None
    return None


def _lines(text: str) -> list[str]:
    """Output as it is compared: blanks at ends of lines and of the text do not count."""
    return [line.rstrip() for line in text.strip().splitlines()]


class ProgramJudge:
    """Runs programs, several at once, each row's in a process that no other row's sees."""

    def __init__(self, node: str, given: options.CodeTests) -> None:
        self._node = node
        self._given = given

    def verdicts(self, questions: Sequence[Question], tick: Tick) -> list[Verdict]:
        is_over = threading.Event()
        wall_here()  # once, not in each thread
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="programs") as pool:
            try:
                asked = [pool.submit(self._verdict, one.columns, is_over) for one in questions]
                self._await(asked, tick)
            except BaseException:
                is_over.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [one.result() for one in asked]

    def _await(self, asked: Sequence[Future[Verdict]], tick: Tick) -> None:
        left: set[Future[Verdict]] = set(asked)
        while left:
            done, left = wait(left, timeout=0.2)
            for one in done:
                one.result()
            tick()

    def _verdict(self, columns: Mapping[str, Any], is_over: threading.Event) -> Verdict:
        tests = read_tests(columns["tests"], columns["column"])
        passed = 0
        for test in tests:
            if self._passes(str(columns["code"]), test, is_over):
                passed += 1
            elif not self._given.graded:
                return Verdict(score=0.0)
        return Verdict(score=passed / len(tests))

    def _passes(self, code: str, test: Case, is_over: threading.Event) -> bool:
        """A test in a process of its own: what a program left behind helps no other test."""
        with self._sandbox(is_over) as sandbox:
            sandbox.load()  # a machine without a wall is an error, a program that fails is none
            question = {"code": code, "kind": test.kind, "test": test.text}
            try:
                [said] = sandbox.write([question], cpu_seconds=self._given.timeout_seconds)
            except UserCodeError:
                return False
        out = said.get("out") if said is not None else None
        return isinstance(out, str) and _is_right(test, out)

    def _sandbox(self, is_over: threading.Event) -> Sandbox:
        def tick() -> None:
            if is_over.is_set():
                raise UserCodeError(f"{self._node}: the run ends", self._node)

        return Sandbox(
            source_of("programs"),
            function="judge",
            node=self._node,
            timeout_seconds=WAITS * self._given.timeout_seconds,
            memory_mib=self._given.memory_mib,
            tick=tick,
        )

    def close(self) -> None: ...


def _is_right(test: Case, out: str) -> bool:
    match test.kind:
        case "statement":
            return out == "True"
        case "input":
            return bool(_lines(out) == test.expected)
    try:
        return bool(ast.literal_eval(out) == test.expected)
    except UNREADABLE:
        return False
