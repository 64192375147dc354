"""The user's Python in its own process: whatever it does, a clear message in time."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coloop.data.rewards.user_code import reward_columns, score_rows
from coloop.errors import StopRequested, UserCodeError
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import Sandbox, Scored
from coloop.spec.reward import ScoreAs

HEAD = "def reward(prompts, completions, **columns):\n"
COLUMNS = {"prompts": ["1+1=", "2+2=", "3+3="], "completions": ["2", "4", "7"]}


def body(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


def sandbox(code: str, **options: Any) -> Sandbox:
    return Sandbox(code, function="reward", node="mine", **{"timeout_seconds": 5.0, **options})


def failure(code: str, **options: Any) -> UserCodeError:
    with sandbox(code, **options) as child, pytest.raises(UserCodeError) as caught:
        child.score(COLUMNS, 3)
    assert caught.value.node == "mine"
    assert str(caught.value).startswith("mine")
    return caught.value


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_scores_come_back_in_order() -> None:
    with sandbox(body("return [len(c) for c in completions]")) as child:
        assert child.score({**COLUMNS, "completions": ["a", "bb", ""]}, 3) == [1.0, 2.0, 0.0]


def test_columns_are_given_by_name_and_a_list_is_one_number_a_step() -> None:
    code = (
        "def reward(prompts, completions, answer, **columns):\n"
        "    return [None if a is None else [1, True, None] if a == c else 0.5\n"
        "            for c, a in zip(completions, answer)]\n"
    )
    with sandbox(code) as child:
        scores = child.score({**COLUMNS, "answer": ["2", "3", None]}, 3)

    assert scores == [[1.0, 1.0, None], 0.5, None]


def test_a_function_without_further_columns_gets_only_what_it_names() -> None:
    code = (
        "def reward(completions, answer):\n"
        "    return [float(a == c) for c, a in zip(completions, answer)]\n"
    )
    with sandbox(code) as child:
        assert child.score({**COLUMNS, "answer": ["2", "4", "6"]}, 3) == [1.0, 1.0, 0.0]


def test_a_column_that_is_not_there_is_named() -> None:
    code = "def reward(prompts, completions, gold):\n    return [0.0] * 3"

    assert "`reward` has a parameter `gold` without a column" in str(failure(code))


def test_common_modules_can_be_imported() -> None:
    code = body(
        "import collections, dataclasses, datetime, difflib, fractions, itertools, json, math",
        "import re, statistics, string, textwrap, unicodedata",
        "return [float(fractions.Fraction(1, 2))] * len(prompts)",
    )
    with sandbox(code) as child:
        assert child.score(COLUMNS, 3) == [0.5, 0.5, 0.5]


def test_state_of_the_module_lives_on_between_calls() -> None:
    with sandbox("calls = []\n" + body("calls.append(1)", "return [len(calls)] * 3")) as child:
        assert child.score(COLUMNS, 3) == [1.0] * 3
        assert child.score(COLUMNS, 3) == [2.0] * 3


def test_random_draws_and_the_order_of_sets_are_the_same_each_time() -> None:
    code = body("import random", "return [random.random(), hash('a'), float(len(set('ab')))]")
    with sandbox(code) as one, sandbox(code) as other:
        assert one.score(COLUMNS, 3, seed=7) == other.score(COLUMNS, 3, seed=7)
        assert one.score(COLUMNS, 3, seed=7) != one.score(COLUMNS, 3, seed=8)


def test_an_exception_is_told_with_the_users_own_line() -> None:
    error = failure(body("values = [1, 0]", "return [1 / v for v in values]"))

    assert "ZeroDivisionError: division by zero (line 3)" in str(error)
    assert error.traceback is not None
    assert "line 3, in reward: return [1 / v for v in values]" in error.traceback
    assert "child.py" not in error.traceback


def test_a_syntax_error_is_told_with_its_line() -> None:
    assert "SyntaxError: invalid syntax (line 2)" in str(failure("x = 1\ndef reward(a b): pass"))


def test_a_missing_function_is_told_with_those_that_are_there() -> None:
    message = str(failure("def score(prompts, completions): return []"))

    assert "has no function `reward`; it has score" in message


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("line", "message", "row"),
    [
        ("return None", "returned None, expected a list of 3 scores", None),
        ("return 1.0", "returned a float, expected a list of 3 scores", None),
        ("return 'good'", "returned the text 'good', expected a list of 3 scores", None),
        ("return [1.0]", "returned 1 scores for 3 rows", None),
        ("return [1.0] * 4", "returned 4 scores for 3 rows", None),
        ("return [1.0, float('nan'), 0.0]", "returned nan, and a finite number is expected", 1),
        ("return [1.0, 0.0, float('inf')]", "between -1e+19 and 1e+19 is expected: bound it", 2),
        ("return [1.0, -2e19, 0.0]", "returned -2e+19, and a number between -1e+19 and", 1),
        ("return [1.0, [0.0, 1e308], 0.0]", "returned 1e+308, and a number between", 1),
        ("return __import__('numpy').ones(3)", "list of 3 scores; use its `.tolist()`", None),
        ("return ['1.0', 0.0, 0.0]", "returned the text '1.0', expected a number", 0),
        ("return [1.0, {}, 0.0]", "returned a dict, expected a number", 1),
        ("return [1.0, [0.0, 'x'], 0.0]", "returned the text 'x', expected a number or None", 1),
        ("return [1.0, [[1.0]], 0.0]", "returned a list, expected a number or None a step", 1),
        ("return [1.0, 10 ** 400, 0.0]", "returned an int, expected a number", 1),
        ("return [1.0, 10 ** 400, 0.0]", "float); bound it, e.g. `min(1.0, x)`", 1),
    ],
)
def test_a_wrong_result_says_what_was_found_and_expected(
    line: str, message: str, row: int | None
) -> None:
    error = failure(body(line))

    assert message in str(error)
    assert error.row == row
    if row is not None:
        assert str(error).startswith(f"mine, row {row}: ")


def test_an_infinite_loop_is_stopped_and_the_process_is_gone() -> None:
    child = sandbox(body("while True:", "    pass"), timeout_seconds=0.5)
    child.load()
    process_id = child.process_id
    assert process_id is not None

    with pytest.raises(UserCodeError, match=r"did not answer within 0\.5 seconds and was stopped"):
        child.score(COLUMNS, 3)

    assert child.process_id is None
    assert not is_alive(process_id)


def test_an_endless_top_level_is_stopped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coloop.sandbox.process.DEFAULT_TIMEOUT_SECONDS", 0.5)

    assert "did not answer within" in str(failure("while True: pass", timeout_seconds=0.5))


def test_after_a_death_the_next_call_starts_a_new_process() -> None:
    code = body("while completions[0] == 'loop':", "    pass", "return [1.0] * 3")
    with sandbox(code, timeout_seconds=0.5) as child:
        with pytest.raises(UserCodeError, match="did not answer"):
            child.score({**COLUMNS, "completions": ["loop"] * 3}, 3)

        assert child.score(COLUMNS, 3) == [1.0] * 3


def test_eating_memory_ends_in_a_memory_error() -> None:
    message = str(failure(body("hog = [0] * 10 ** 9", "return [0.0] * 3"), memory_mib=256))

    assert (
        "MemoryError: it needs more memory than `memory_mib` allows (256 MiB) (line 2)" in message
    )


def test_a_slow_eater_of_memory_is_stopped_as_well() -> None:
    code = body("hog = []", "while True:", "    hog.append('x' * 1000000)")

    assert "MemoryError" in str(failure(code, memory_mib=128))


def test_printing_megabytes_is_cut_and_never_blocks() -> None:
    code = body(
        "print('x' * 5_000_000)", "import sys; sys.stderr.write('y' * 1000)", "return [1] * 3"
    )
    with sandbox(code) as child:
        assert child.score(COLUMNS, 3) == [1.0] * 3

        assert child.printed.startswith("xxx")
        assert len(child.printed) < 70_000
        assert "characters more were printed and cut" in child.printed


def test_writing_to_the_bare_descriptors_goes_nowhere() -> None:
    code = body("import os", "os.write(1, b'x' * 100000)", "os.write(2, b'x')", "return [1] * 3")
    with sandbox(code) as child:
        assert child.score(COLUMNS, 3) == [1.0] * 3


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["open('/etc/passwd').read()"], "no files: open('/etc/passwd')"),
        (["open('/tmp/x', 'w')"], "no files: open"),
        (["import os; os.open('/etc/passwd', 0)"], "no files: open"),
        (["import pathlib; pathlib.Path('/etc/hosts').read_text()"], "no files: open"),
        (["import os; os.listdir('/')"], "no files: os.listdir"),
        (["import os; os.remove('/tmp/x')"], "no files: os.remove"),
        (["import os; open(os.__file__, 'a')"], "no files: open"),
        (["import os; os.fork()"], "no other processes: os.fork"),
        (["import os; os.system('true')"], "no other programs: os.system"),
        (["import os; os.kill(1, 9)"], "os.kill"),
        (["import os; os.execv('/bin/true', ['true'])"], "no other programs: os.exec"),
        (["import subprocess; subprocess.run(['true'])"], "no other programs: subprocess.Popen"),
        (["import _posixsubprocess; _posixsubprocess.fork_exec()"], "no other programs"),
        (["import socket; socket.socket()"], "no network: socket"),
        (["import urllib.request; urllib.request.urlopen('http://x')"], "no network"),
        (["import resource; resource.setrlimit(9, (-1, -1))"], "resource.setrlimit"),
    ],
)
def test_reaching_out_of_the_process_is_refused(lines: list[str], told: str) -> None:
    assert told in str(failure(body(*lines, "return [0.0] * 3")))


def test_without_an_isolation_foreign_code_is_refused() -> None:
    assert "ctypes" in str(
        failure(body("import ctypes", "return [0.0] * 3"), isolation=Isolation.NONE)
    )


def test_a_file_of_the_standard_library_can_be_read_only() -> None:
    code = body("import json", "return [float(bool(open(json.__file__).read()))] * 3")
    with sandbox(code) as child:
        assert child.score(COLUMNS, 3) == [1.0] * 3


def test_the_environment_of_the_server_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLOOP_TOKEN", "secret")
    code = body("import os", "return [float('COLOOP_TOKEN' in os.environ)] * 3")
    with sandbox(code) as child:
        assert child.score(COLUMNS, 3) == [0.0] * 3


def test_no_descriptor_of_ours_is_inherited(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    with secret.open("rb") as held:
        os.set_inheritable(held.fileno(), True)
        code = body(
            "import os",
            "try:",
            f"    os.fstat({held.fileno()})",
            "except OSError:",
            "    return [0.0] * 3",
            "return [1.0] * 3",
        )
        with sandbox(code) as child:
            child.load()
            if held.fileno() > 6:
                assert child.score(COLUMNS, 3) == [0.0] * 3


def test_leaving_by_sys_exit_is_told() -> None:
    assert "it called sys.exit(3)" in str(failure(body("import sys", "sys.exit(3)")))


def test_leaving_by_os_exit_is_told() -> None:
    assert "ended its process (os._exit(3))" in str(failure(body("import os", "os._exit(3)")))


def test_dying_by_a_signal_is_told() -> None:
    message = str(failure(body("import os", "os.abort()", "return [0.0] * 3")))

    assert "its process ended by SIG" in message


def test_closing_every_descriptor_is_told() -> None:
    message = str(failure(body("import os", "os.closerange(0, 100)", "return [0.0] * 3")))

    assert "its process ended" in message or "ended its process" in message


def test_deep_recursion_is_told_in_a_few_lines() -> None:
    error = failure(body("return reward(prompts, completions)"))

    assert "RecursionError" in str(error)
    assert error.traceback is not None
    assert len(error.traceback.splitlines()) < 15


@pytest.mark.slow
def test_a_huge_answer_is_refused() -> None:
    message = str(
        failure(body("return [[1.0] * 2_000_000] * 3"), memory_mib=1024, timeout_seconds=60)
    )

    assert "returned more than 16 MiB" in message


def test_values_that_json_lacks_reach_the_code_as_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    with sandbox(body("return [float(x == 'odd') for x in columns['extra']]")) as child:
        assert child.score({**COLUMNS, "extra": [Odd(), Odd(), 1]}, 3) == [1.0, 1.0, 0.0]


def test_a_large_batch_goes_through_the_pipes() -> None:
    rows = 2000
    with sandbox(body("return [len(c) for c in completions]")) as child:
        scores = child.score({"prompts": ["p"] * rows, "completions": ["x" * 5000] * rows}, rows)

    assert scores == [5000.0] * rows


def test_a_failing_row_is_found_among_the_others() -> None:
    with sandbox(body("return [1.0 / (int(c) - 4) for c in completions]")) as child:
        with pytest.raises(UserCodeError, match=r"mine, row 1: ZeroDivisionError.*\(line 2\)") as e:
            score_rows(child, COLUMNS, 3)

        assert e.value.row == 1


def test_skipped_rows_have_no_score_and_are_told() -> None:
    with sandbox(body("return [1.0 / (int(c) - 4) for c in completions]")) as child:
        scored = score_rows(child, COLUMNS, 3, on_error="skip_row")

    assert scored.scores == [-0.5, None, pytest.approx(1 / 3)]
    assert [failed.row for failed in scored.failures] == [1]
    assert "row 1: ZeroDivisionError" in scored.failures[0].message


def test_failed_rows_may_get_a_fixed_score() -> None:
    with sandbox(body("return [float('nan') if c == '4' else 1.0 for c in completions]")) as child:
        scored = score_rows(child, COLUMNS, 3, on_error=ScoreAs(score=-1.0))

    assert scored.scores == [1.0, -1.0, 1.0]


def test_a_row_that_never_ends_does_not_take_the_others_with_it() -> None:
    code = body("while '4' in completions:", "    pass", "return [1.0] * len(prompts)")
    with sandbox(code, timeout_seconds=0.5) as child:
        scored = score_rows(child, COLUMNS, 3, on_error="skip_row")

    assert scored.scores == [1.0, None, 1.0]
    assert "did not answer within 0.5 seconds" in scored.failures[0].message


def test_a_pause_of_the_machine_does_not_end_the_trial_of_single_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The machine sleeps for an hour after each call."""
    clock, slept = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock() + slept[0])

    class Sleepy(Sandbox):
        def score(self, *given: Any, **more: Any) -> list[Scored]:
            try:
                return super().score(*given, **more)
            finally:
                slept[0] += 3600.0

    code = body("return [1.0 / (int(c) - 4) for c in completions]")
    with Sleepy(code, function="reward", node="mine", timeout_seconds=5.0) as child:
        scored = score_rows(child, COLUMNS, 3, on_error="skip_row")

    assert scored.scores == [-0.5, None, pytest.approx(1 / 3)]


def test_rows_that_each_take_their_time_are_not_tried_for_ever() -> None:
    """Of 9 that never end 4 timeouts are waited for, and the one that is under way."""
    code = body("while True:", "    pass")
    rows = {"prompts": ["1+1="] * 9, "completions": ["2"] * 9}
    with sandbox(code, timeout_seconds=0.1) as child:
        with pytest.raises(UserCodeError, match=r"mine: did not answer within 0\.1 seconds"):
            score_rows(child, rows, 9, on_error="skip_row")

        assert child.waited_seconds >= 0.5


def test_a_failure_of_the_whole_batch_alone_is_told_without_a_row() -> None:
    with sandbox(body("return [0.0] if len(prompts) == 1 else 1 / 0")) as child:
        with pytest.raises(UserCodeError, match="mine: ZeroDivisionError") as caught:
            score_rows(child, COLUMNS, 3)

        assert caught.value.row is None


def test_a_wrong_number_of_scores_is_never_skipped() -> None:
    with (
        sandbox(body("return [1.0]")) as child,
        pytest.raises(UserCodeError, match="mine: returned 1 scores for 3 rows"),
    ):
        score_rows(child, COLUMNS, 3, on_error="skip_row")


def test_code_that_does_not_load_is_never_skipped() -> None:
    with sandbox("def reward(") as child, pytest.raises(UserCodeError, match="mine: SyntaxError"):
        score_rows(child, COLUMNS, 3, on_error="skip_row")


def test_no_rows_start_no_process() -> None:
    child = sandbox(body("return []"))

    assert score_rows(child, {"prompts": [], "completions": []}, 0).scores == []
    assert child.process_id is None


def test_rows_become_the_arguments_of_a_reward() -> None:
    rows = [{"prompt": "p", "completion": "c", "n": 1}, {"prompt": "q", "completion": "d"}]

    assert reward_columns(rows) == {
        "prompts": ["p", "q"],
        "completions": ["c", "d"],
        "n": [1, None],
    }


def test_keep_says_true_or_false_of_each_row() -> None:
    code = (
        "def keep(n, text='', **columns):\n    return n is not None and n > 1 and 'x' not in text"
    )
    with Sandbox(code, function="keep", node="f") as child:
        assert child.keep([{"n": 2}, {"n": 1}, {"n": 5, "text": "x"}, {}]) == [
            True,
            False,
            False,
            False,
        ]


def test_keep_that_answers_something_else_names_the_row() -> None:
    with Sandbox("def keep(**c): return c['n'] or 'no'", function="keep", node="f") as child:
        with pytest.raises(UserCodeError, match="f, row 1: returned the text 'no'") as caught:
            child.keep([{"n": 1}, {"n": 0}])

        assert caught.value.row == 1


def test_write_gives_columns_or_cuts_the_row() -> None:
    code = (
        "def write(n, **rest):\n    return {'prompt': [str(n), 'not'], 'm': n + 1} if n else None"
    )
    with Sandbox(code, function="write", node="t") as child:
        assert child.write([{"n": 1}, {"n": 0}]) == [{"prompt": ["1", "not"], "m": 2}, None]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def write(**c): return 'text'", "t, row 0: returned the text 'text', expected a dict"),
        ("def write(**c): return {1: 2}", "t, row 0: returned the column name 1"),
        ("def write(**c): return {'a': object()}", "returned a value of type object as column `a`"),
        ("def write(**c): return {'a': float('nan')}", "returned the number nan as column `a`"),
        ("def write(**c): return c['n'].upper()", "t, row 0: AttributeError"),
    ],
)
def test_write_that_answers_something_else_is_told(code: str, told: str) -> None:
    with Sandbox(code, function="write", node="t") as child, pytest.raises(UserCodeError) as caught:
        child.write([{"n": 1}])

    assert told in str(caught.value)


def test_who_waits_is_asked_a_few_times_a_second_and_may_give_up() -> None:
    """The code would sleep for a minute; the second look ends it, and its process with it."""
    looks: list[int] = []

    def tick() -> None:
        looks.append(1)
        if len(looks) % 2 == 0:
            raise StopRequested("enough")

    code = "import time\n" + body("time.sleep(60)")
    with sandbox(code, timeout_seconds=50.0, tick=tick) as child:
        with pytest.raises(StopRequested):
            child.score(COLUMNS, 3)
        assert child.process_id is None


def test_threads_that_share_a_sandbox_ask_it_one_after_another() -> None:
    code = body("import time; time.sleep(0.01); return [len(c) for c in completions]")
    ticks: list[int] = []
    both = threading.Barrier(2)

    def ask(length: int) -> list[list[Scored]]:
        both.wait()
        said = []
        for _ in range(10):
            with child.held(lambda: ticks.append(length)) as own:
                said.append(own.score({**COLUMNS, "completions": ["a" * length] * 3}, 3))
        return said

    with sandbox(code) as child, ThreadPoolExecutor(2) as threads:
        first, second = threads.map(ask, (1, 2))

    assert first == [[1.0] * 3] * 10
    assert second == [[2.0] * 3] * 10


def test_who_waits_for_a_sandbox_may_give_up() -> None:
    def give_up() -> None:
        raise StopRequested

    with (
        sandbox(body("return [0] * len(completions)")) as child,
        child.held(lambda: None),
        ThreadPoolExecutor(1) as threads,
        pytest.raises(StopRequested),
    ):
        threads.submit(child.held(give_up).__enter__).result()
