"""What is refused at run, found in the text of the code."""

import pytest

from coloop.errors import UserCodeError
from coloop.sandbox.foreseen import CALLS, closed_calls
from coloop.sandbox.inside.closed import INSTEAD, sentence
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import Sandbox


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import subprocess as s\ns.run([])\ns.run([])", [("subprocess.run", 2)]),
        ("from subprocess import Popen as P\ndef f():\n    P([])", [("subprocess.Popen", 3)]),
        ("import os.path\nos.system('x')", [("os.system", 2)]),
        ("import urllib.request\nurllib.request.urlopen('x')", [("urllib.request.urlopen", 2)]),
        ("import urllib.request as r\nr.urlopen('x')", [("urllib.request.urlopen", 2)]),
        ("from multiprocessing import pool\npool.Pool()", [("multiprocessing.pool.Pool", 2)]),
        ("import multiprocessing\nmultiprocessing.cpu_count()", []),
        ("import subprocess\nsubprocess.list2cmdline([])", []),
        ("class Pool: ...\nPool()\nrun = print\nrun()", []),
        ("import requests\nclass A:\n    get = 1\nA.get()", []),
        ("def broken(", []),
    ],
)
def test_calls_are_found_by_what_their_names_stand_for(
    source: str, expected: list[tuple[str, int]]
) -> None:
    assert [(one.name, one.line) for one in closed_calls(source)] == expected


ARGUMENTS = {
    "subprocess.run": "['true']",
    "os.system": "'true'",
    "os.fork": "",
    "multiprocessing.Pool": "2",
    "concurrent.futures.ProcessPoolExecutor": "2).submit(len, 'x'",
    "urllib.request.urlopen": "'http://127.0.0.1:9'",
    "socket.socket": "",
    "socket.create_connection": "('127.0.0.1', 9)",
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_found_is_refused_at_run_in_the_same_words(name: str) -> None:
    [what] = [what for what, names in CALLS.items() if name in names]
    module = name.rpartition(".")[0]
    code = f"import {module}\ndef reward(**columns):\n    {name}({ARGUMENTS[name]})\n"

    with (
        Sandbox(
            code, function="reward", node="r", timeout_seconds=30, isolation=Isolation.CALLS
        ) as box,
        pytest.raises(UserCodeError) as caught,
    ):
        box.score({"prompts": [""], "completions": [""]}, 1)

    assert f"{sentence(what)}" in str(caught.value)
    assert INSTEAD[what] in str(caught.value)
