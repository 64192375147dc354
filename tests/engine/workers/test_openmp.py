"""How the threads of a process wait for each other."""

import os

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
