"""Rewards as people write them for other trainers: coroutines, dataclasses, helpers, chats."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from coloop.errors import UserCodeError
from coloop.sandbox.code_files import read_code
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import Sandbox, available_isolation
from coloop.spec.reward import CODE_MEMORY_MIB

TEXTS = ["it is 42", "no"]


def scores(code: str, **options: Any) -> list[Any]:
    prompts = options.pop("prompts", ["1+1="] * len(TEXTS))
    columns: Mapping[str, Any] = {"prompts": prompts, "completions": TEXTS}
    with Sandbox(
        code, function="reward", node="mine", **{"timeout_seconds": 30.0, **options}
    ) as box:
        return box.score(columns, len(TEXTS))


def failure(code: str, **options: Any) -> str:
    with pytest.raises(UserCodeError) as caught:
        scores(code, **options)
    return str(caught.value)


ASYNC = """
import asyncio
async def one(text):
    await asyncio.sleep(0.01)
    return await asyncio.to_thread(len, text)
async def reward(completions, **columns):
    return await asyncio.gather(*map(one, completions))
"""
RUNS = """
import asyncio
def reward(completions, **columns):
    async def one():
        return [1.0 for _ in completions]
    return asyncio.run(one())
"""


@pytest.mark.parametrize("isolation", [Isolation.NAMESPACES, Isolation.CALLS, Isolation.NONE])
def test_coroutines_are_awaited_without_a_socket(isolation: Isolation) -> None:
    if isolation is Isolation.NAMESPACES and available_isolation().isolation is not isolation:
        pytest.skip("this machine gives no namespaces")
    assert scores(ASYNC, isolation=isolation) == [8.0, 2.0]
    assert scores(RUNS, isolation=isolation) == [1.0, 1.0]


def test_rows_of_a_batch_wait_at_the_same_time() -> None:
    """Each row goes on only when all have begun: one after the other they would wait for ever."""
    code = """
import asyncio
async def reward(completions, **columns):
    begun, all_begun = [], asyncio.Event()
    async def one(text):
        begun.append(text)
        if len(begun) == len(completions):
            all_begun.set()
        await all_begun.wait()
        return 1.0
    return await asyncio.gather(*map(one, completions))
"""
    assert scores(code) == [1.0, 1.0]


def test_a_loop_of_the_code_opens_no_connection() -> None:
    code = """
import asyncio
async def reward(completions, **columns):
    await asyncio.open_connection("127.0.0.1", 80)
"""
    assert "no network" in failure(code)


DATACLASS = """
from __future__ import annotations
import pickle
from dataclasses import dataclass, field
from typing import NamedTuple, get_type_hints
@dataclass
class Weights:
    right: float = 1.0
    others: list[float] = field(default_factory=list)
class Pair(NamedTuple):
    left: Weights
def reward(completions, **columns):
    assert get_type_hints(Weights)["right"] is float
    again = pickle.loads(pickle.dumps(Weights(0.5)))
    return [again.right if "42" in text else 0.0 for text in completions]
"""


def test_names_of_the_module_are_found_by_those_who_look_for_them() -> None:
    assert scores(DATACLASS) == [0.5, 0.0]


CHAT = "def reward(completions, **columns):\n    return [{} for c in completions]\n"


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        ("float(len(c[0]['content']))", [8.0, 2.0]),
        ("float(len(c[-1]['content']))", [8.0, 2.0]),
        ("float(c[0].get('role') == 'assistant')", [1.0, 1.0]),
        ("float(len(c))", [8.0, 2.0]),
        ("float(c[0] == 'i' and c[:2] == 'it')", [1.0, 0.0]),
        ("float('42' in c)", [1.0, 0.0]),
    ],
)
def test_a_reply_to_a_chat_is_read_as_text_and_as_messages(
    reads: str, expected: list[float]
) -> None:
    chats = [[{"role": "user", "content": "?"}]] * 2
    assert scores(CHAT.format(reads), prompts=chats) == expected


def test_a_text_that_is_read_as_messages_is_explained() -> None:
    told = failure(CHAT.format("len(c[0]['content'])"))

    assert "`completions` holds texts here" in told
    assert "line 2" in told


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("code", "told", "instead"),
    [
        ("from multiprocessing import Pool\nPool(2)", "no other processes", "threads"),
        ("import multiprocessing as m\nm.Process(target=print).start()", "no other", "threads"),
        ("import subprocess\nsubprocess.run(['true'])", "no other programs", "`code_tests`"),
        ("import os\nos.system('true')", "no other programs", "`code_tests`"),
        ("import tempfile\ntempfile.NamedTemporaryFile()", "no files", "io.StringIO"),
        ("import tempfile\ntempfile.mkdtemp()", "no files", "io.StringIO"),
        ("open('/etc/passwd')", "no files", "io.StringIO"),
        ("import urllib.request as r\nr.urlopen('http://x')", "no network", "type: remote"),
        ("import socket\nsocket.create_connection(('x', 1))", "no network", "type: remote"),
    ],
)
def test_what_is_closed_is_told_with_what_to_use_instead(
    code: str, told: str, instead: str
) -> None:
    lines = "\n    ".join(code.split("\n"))
    words = failure(f"def reward(completions, **columns):\n    {lines}\n")

    assert told in words
    assert instead in words
    assert "Errno" not in words


DRAWS = """
import random
def reward(completions, **columns):
    with open("/dev/urandom", "rb") as drawn:
        assert len(drawn.read(4)) == 4
    return [float(0 <= random.SystemRandom().random() < 1) for _ in completions]
"""


@pytest.mark.parametrize("device", ["/dev/urandom", "/dev/random"])
def test_where_no_file_is_read_random_numbers_are_told_to_come_from_elsewhere(device: str) -> None:
    code = DRAWS.replace("/dev/urandom", device)

    words = failure(code, isolation=Isolation.CALLS)

    assert "this code runs in a limited process with no files" in words
    assert "`os.urandom`" in words
    assert "Errno" not in words
    without = code.replace(f'open("{device}", "rb")', "io.BytesIO(os.urandom(4))")
    assert scores(f"import io, os\n{without}", isolation=Isolation.CALLS) == [1.0, 1.0]


def test_random_numbers_of_the_machine_can_be_read() -> None:
    if available_isolation().isolation is not Isolation.NAMESPACES:
        pytest.skip("this machine gives no namespaces")
    code = DRAWS
    assert scores(code) == [1.0, 1.0]
    assert "PermissionError" in failure(code.replace('"rb"', '"wb"')) or "no files" in failure(
        code.replace('"rb"', '"wb"')
    )


@pytest.mark.sample(1)
@pytest.mark.skipif(not find_spec("torch"), reason="torch is not installed")
@pytest.mark.parametrize("isolation", [Isolation.NAMESPACES, Isolation.CALLS])
@pytest.mark.parametrize("function", ["reward", "keep", "write"])
def test_torch_is_imported_within_the_memory_that_code_gets(
    function: str, isolation: Isolation
) -> None:
    if isolation is Isolation.NAMESPACES and available_isolation().isolation is not isolation:
        pytest.skip("this machine gives no namespaces")
    code = f"import torch\ndef {function}(**columns):\n    return torch.ones(1).tolist()\n"
    options: dict[str, Any] = {"memory_mib": CODE_MEMORY_MIB, "timeout_seconds": 60.0}
    with Sandbox(code, function=function, node="mine", isolation=isolation, **options) as box:
        box.load()


@pytest.mark.parametrize("error", ["MemoryError()", "RuntimeError('std::bad_alloc')"])
@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("reward", "it needs more memory than `memory_mib` allows (1024 MiB)"),
        ("keep", "it needs more memory than the 1024 MiB that its process has"),
    ],
)
def test_too_little_memory_is_told_with_what_to_set(function: str, told: str, error: str) -> None:
    code = f"def {function}(**columns):\n    raise {error}\n"
    with (
        Sandbox(code, function=function, node="mine", memory_mib=1024) as box,
        pytest.raises(UserCodeError, match=re.escape(told)),
    ):
        box.keep([{}]) if function == "keep" else box.score(
            {"prompts": [""], "completions": [""]}, 1
        )


def test_modules_beside_the_file_are_imported(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("from texts.numbers import last\n")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "__init__.py").write_text("")
    (tmp_path / "texts" / "numbers.py").write_text(
        "from .words import split\ndef last(text):\n    return split(text)[-1]\n"
    )
    (tmp_path / "texts" / "words.py").write_text("def split(text):\n    return text.split()\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('not this one')\n")
    path = tmp_path / "mine.py"
    path.write_text(
        "import json\nfrom helper import last\n"
        "def reward(completions, **columns):\n"
        "    return [float(last(text) == '42') for text in completions]\n"
    )
    read = read_code(path)

    assert sorted(read.modules) == ["helper", "texts.__init__", "texts.numbers", "texts.words"]
    assert scores(read.source, modules=read.modules) == [1.0, 0.0]
    assert scores(read.source, modules=read.modules, isolation=Isolation.CALLS) == [1.0, 0.0]


def test_a_link_beside_the_file_is_not_followed_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("KEY = 1\n")
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "helper.py").symlink_to(tmp_path / "secret.py")
    (folder / "mine.py").write_text("import helper\n")

    assert read_code(folder / "mine.py").modules == {}


def test_what_is_printed_is_kept_until_it_is_taken() -> None:
    code = (
        "print('loaded')\n"
        "def reward(completions, **columns):\n    print('row')\n    return [0, 0]\n"
    )
    with Sandbox(code, function="reward", node="mine", timeout_seconds=30.0) as box:
        columns = {"prompts": ["", ""], "completions": TEXTS}
        box.score(columns, 2)
        box.score(columns, 2)

        assert box.take_printed() == "loaded\nrow\nrow\n"
        assert box.take_printed() == ""
