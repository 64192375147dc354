"""Honest code behind each isolation: what it needs is there."""

import sysconfig
from pathlib import Path

import pytest

from coloop.errors import UserCodeError
from coloop.sandbox.inside.isolation import Isolation, _outermost
from coloop.sandbox.inside.modules import imports_of
from coloop.sandbox.process import WORDS, Sandbox, available_isolation

ISOLATIONS = (Isolation.NAMESPACES, Isolation.CALLS)
ONE = {"prompts": ["a"], "completions": ["b"]}


def value(isolation: Isolation, *lines: str) -> float:
    body = "".join(f"    {line}\n" for line in lines)
    code = f"def reward(prompts, completions):\n{body}"
    with Sandbox(
        code, function="reward", node="mine", isolation=isolation, timeout_seconds=30
    ) as child:
        try:
            child.load()
        except UserCodeError as error:
            if "only Linux" in str(error) or "not permitted" in str(error):
                pytest.skip(f"this machine gives no {isolation} isolation: {error}")
            raise
        (score,) = child.score(ONE, 1)
        assert isinstance(score, float)
        return score


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_modules_that_the_code_names_can_be_imported_where_it_names_them(
    isolation: Isolation,
) -> None:
    lines = ("import decimal", "from collections import abc", "from xml.etree import ElementTree")

    assert value(isolation, *lines, "return [float(decimal.Decimal('0.5'))]") == 0.5


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_functions_that_import_late_work(isolation: Isolation) -> None:
    lines = ("import datetime", "at = datetime.datetime.strptime('2026', '%Y')")

    assert value(isolation, *lines, "return [float(at.year)]") == 2026.0


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_threads_work(isolation: Isolation) -> None:
    lines = (
        "import concurrent.futures as futures",
        "with futures.ThreadPoolExecutor(2) as pool:",
        "    return [float(sum(pool.map(len, ['a', 'bb', 'ccc'])))]",
    )

    assert value(isolation, *lines) == 6.0


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_numpy_computes(isolation: Isolation) -> None:
    if not (Path(sysconfig.get_paths()["purelib"]) / "numpy").exists():
        pytest.skip("numpy is not among this environment's own packages")
    lines = ("import numpy", "return [float((numpy.eye(3) @ numpy.ones(3)).sum())]")

    assert value(isolation, *lines) == 3.0


def test_sympy_computes() -> None:
    """It imports parts of itself while it works, so only a file system of its own will do."""
    if not (Path(sysconfig.get_paths()["purelib"]) / "sympy").exists():
        pytest.skip("sympy is not among this environment's own packages")
    lines = ("import sympy", "x = sympy.Symbol('x')", "return [float(sympy.solve(x - 2)[0])]")

    assert value(Isolation.NAMESPACES, *lines) == 2.0


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_time_alarms_and_draws_work(isolation: Isolation) -> None:
    lines = (
        "import signal, time, random, os",
        "seen = []",
        "signal.signal(signal.SIGALRM, lambda *a: seen.append(1))",
        "signal.setitimer(signal.ITIMER_REAL, 0.01)",
        "end = time.monotonic() + 20",
        "while not seen and time.monotonic() < end: time.sleep(0.01)",
        "return [float(len(seen) + len(os.urandom(4)) + 0 * random.random())]",
    )

    assert value(isolation, *lines) == 5.0


def test_a_module_that_is_named_nowhere_is_not_there_behind_the_list_of_calls() -> None:
    lines = (
        "import importlib",
        "try:",
        "    importlib.import_module('wave')",
        "except ImportError:",
        "    return [0.0]",
        "return [1.0]",
    )

    assert value(Isolation.CALLS, *lines) == 0.0
    assert value(Isolation.NAMESPACES, *lines) == 1.0


def test_a_module_that_is_imported_too_late_is_told_to_stand_at_the_top() -> None:
    lines = ("import importlib", "importlib.import_module('wave')")

    with pytest.raises(UserCodeError, match="or imported too late: import it at the top"):
        value(Isolation.CALLS, *lines)


def test_the_strongest_isolation_is_taken() -> None:
    here = available_isolation().isolation
    with Sandbox("def keep(**c): return True", function="keep", node="n") as child:
        if here is Isolation.NONE:
            pytest.skip(f"this machine gives no isolation: {available_isolation().reason}")
        assert child.keep([{}]) == [True]
    assert set(WORDS) == set(Isolation)


def test_names_are_found_wherever_they_are_imported() -> None:
    source = (
        "import a.b, c as d\n"
        "from e.f import g\n"
        "from . import no\n"
        "def one():\n"
        "    if True:\n"
        "        import h\n"
    )

    assert imports_of(source) == ["a.b", "c", "e.f", "e.f.g", ".", ".no", "h"]
    assert imports_of("def broken(") == []


def test_of_folders_within_one_another_the_outermost_are_shown(tmp_path: Path) -> None:
    inner, other = tmp_path / "outer" / "inner", tmp_path / "other"
    inner.mkdir(parents=True)
    other.mkdir()
    asked = [inner, other, inner.parent, tmp_path / "absent"]

    assert _outermost([str(path) for path in asked]) == [str(other), str(inner.parent)]
