"""How the threads of a process wait for each other, and how many products it keeps."""

import os
import subprocess
import sys

import pytest

from coloop.plan.settings.processor import INSTRUCTIONS, processor_here
from coloop.workers import openmp
from coloop.workers.openmp import POLICY, PRODUCTS, SPIN_COUNT, SPINS, THREADS


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """This process's environment, put back at the end."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in (SPINS, POLICY, THREADS, *PRODUCTS):
        os.environ.pop(name, None)


def test_threads_spin_for_a_short_time():
    openmp.set_default_threads(2)

    assert os.environ[THREADS] == "2"
    assert os.environ[SPINS] == str(SPIN_COUNT)
    assert openmp.environment_of(3)[THREADS] == "3"
    assert openmp.environment_of(3)[SPINS] == str(SPIN_COUNT), "workers elsewhere do not inherit it"


def test_what_the_user_set_stays():
    os.environ |= {THREADS: "4", SPINS: "7"}

    openmp.set_default_threads(2)

    assert (os.environ[THREADS], os.environ[SPINS]) == ("4", "7")
    assert openmp.environment_of(1)[SPINS] == "7"


def test_a_policy_that_the_user_set_decides():
    os.environ[POLICY] = "ACTIVE"

    openmp.set_default_threads(2)

    assert SPINS not in os.environ
    assert SPINS not in openmp.environment_of(2)


SPIED = """
import os, sys
sys.addaudithook(lambda event, told: event == "import" and told[0] == "torch" and print(
    os.environ.get("GOMP_SPINCOUNT")))
sys.argv = ["coloop", "run", "no-such-loop.yaml"]
from coloop.cli.app import main
main()
"""


def test_the_command_line_says_how_threads_wait_before_torch_is_imported():
    environment = {name: value for name, value in os.environ.items() if name != SPINS}

    done = subprocess.run(
        [sys.executable, "-c", SPIED], env=environment, capture_output=True, text=True
    )

    assert done.stdout.split()[:1] == [str(SPIN_COUNT)], done.stderr


def test_few_products_are_kept_unless_the_user_set_how_many():
    name = "LRU_CACHE_CAPACITY"
    openmp.set_default_threads(1)
    assert os.environ[name] == PRODUCTS[name] == "64"

    os.environ[name] = "512"
    openmp.set_default_threads(1)
    assert (os.environ[name], openmp.environment_of(1)[name]) == ("512", "512")


GROWS = """
import random, torch
from pathlib import Path
torch.set_num_threads(1)
weight = torch.randn(768, 512, dtype=torch.bfloat16, requires_grad=True)
def resident():
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])
def learn(rows):
    row = torch.randn(rows, 512, dtype=torch.bfloat16)
    torch.nn.functional.linear(row, weight).sum().backward()
learn(900)
before = resident()
for rows in range(300, 900, 6):
    learn(rows)
print(resident() - before)
"""


@pytest.mark.slow
def test_products_with_many_numbers_of_rows_do_not_fill_the_memory():
    """100 numbers of rows, forward and backward: some 0.6 MiB for each product that is kept."""
    os.environ.pop(INSTRUCTIONS, None)
    if not processor_here().has_bf16:
        pytest.skip("products in bfloat16 are not oneDNN's on this processor")

    def grown(environment):
        done = subprocess.run(
            [sys.executable, "-c", GROWS], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    all_kept = {**os.environ, **dict.fromkeys(PRODUCTS, "1024")}
    assert grown({**os.environ, **openmp.settings()}) < grown(all_kept) / 2
