"""A Python session: variables stay, texts are apart, and whatever goes wrong is told."""

from collections.abc import Iterator

import pytest

from coloop.data.tools.builtin import PythonTool
from coloop.data.tools.protocol import Caller, Session, ToolFailure
from coloop.errors import StopRequested

TOOL = PythonTool("sandbox", 5.0)


def opened(timeout_seconds: float = 5.0) -> Session:
    tool = TOOL if timeout_seconds == 5.0 else PythonTool("sandbox", timeout_seconds)
    return tool.open(Caller(columns={}, seed=3, shared_seed=0))


@pytest.fixture
def session() -> Iterator[Session]:
    session = opened()
    yield session
    session.close()


def run(session: Session, code: str) -> str:
    value = session.answer({"code": code}, lambda: None).value
    assert isinstance(value, str)
    return value


def test_variables_stay_from_call_to_call_and_the_last_value_is_shown(session: Session) -> None:
    assert run(session, "import math\nx = math.isqrt(50)") == ""
    assert run(session, "def double(n): return 2 * n") == ""
    assert run(session, "print('so')\ndouble(x)") == "so\n14"
    assert run(session, "None") == ""


def test_what_fails_is_told_with_its_line_and_variables_stay(session: Session) -> None:
    run(session, "x = 3")

    with pytest.raises(ToolFailure, match=r"^before\nZeroDivisionError: division by zero \(line 2"):
        run(session, "print('before')\n1/0")
    with pytest.raises(ToolFailure, match=r"SyntaxError: .* \(line 1\)"):
        run(session, "x = = 3")

    assert run(session, "x") == "3"


def test_files_programs_and_the_network_are_out_of_reach(session: Session) -> None:
    for code in (
        "open('/etc/passwd').read()",
        "import os; os.system('true')",
        "import socket; socket.create_connection(('127.0.0.1', 1))",
    ):
        with pytest.raises(ToolFailure):
            run(session, code)


def test_texts_do_not_see_each_other(session: Session) -> None:
    other = opened()
    run(session, "x = 1\nimport math\nmath.pi = 3")

    assert run(other, "import math\n('x' in globals(), math.pi > 3.1)") == "(False, True)"
    other.close()


def test_code_that_is_too_slow_loses_its_variables_and_is_told_so() -> None:
    session = opened(0.5)
    run(session, "x = 1")

    with pytest.raises(ToolFailure, match=r"did not answer within 0\.5 seconds .*all variables"):
        run(session, "while True: pass")

    with pytest.raises(ToolFailure, match="NameError"):
        run(session, "x")
    session.close()


def test_megabytes_are_kept_up_to_a_limit(session: Session) -> None:
    assert len(run(session, "print('x' * 10_000_000)")) < 70_000
    assert len(run(session, "'y' * 10_000_000")) < 70_000


def test_a_process_that_ends_itself_is_told(session: Session) -> None:
    with pytest.raises(ToolFailure, match=r"ended its process|closed its connection"):
        run(session, "import ctypes, os\nos._exit(3)")


def test_draws_follow_from_the_text_alone() -> None:
    drawn = set()
    for _ in range(2):
        session = opened()
        drawn.add(run(session, "import random\nrandom.random()"))
        session.close()

    assert len(drawn) == 1


def test_a_stop_ends_the_code(session: Session) -> None:
    def stop() -> None:
        raise StopRequested("now")

    with pytest.raises(StopRequested):
        session.answer({"code": "while True: pass"}, stop)
