"""How the threads of a process wait for each other."""

import os
import subprocess
import sys

import pytest

from coloop.workers import openmp
from coloop.workers.openmp import POLICY, SPIN_COUNT, SPINS, THREADS


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """This process's environment, put back at the end."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in (SPINS, POLICY, THREADS):
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
