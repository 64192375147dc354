"""A process in which a host works keeps the memory that tensors leave behind."""

import os
import platform
import subprocess
import sys

import pytest

MIB = 2**20
FREED = """
import psutil
from coloop.cluster.environment import keep_memory
keep_memory()
before = psutil.Process().memory_info().rss
held = [bytearray(b"x") * 2**26 for _ in range(2)]
held.clear()
print(psutil.Process().memory_info().rss - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="tells glibc what to keep")
@pytest.mark.parametrize("is_told_otherwise", [False, True])
def test_freed_memory_stays_with_the_process(is_told_otherwise: bool) -> None:
    environment = {name: one for name, one in os.environ.items() if "MALLOC" not in name}
    if is_told_otherwise:
        environment |= {"MALLOC_MMAP_THRESHOLD_": str(MIB), "MALLOC_TRIM_THRESHOLD_": "0"}

    told = subprocess.run(
        [sys.executable, "-c", FREED], env=environment, capture_output=True, text=True, timeout=60
    )

    kept = int(told.stdout)
    assert kept < 32 * MIB if is_told_otherwise else kept > 96 * MIB
