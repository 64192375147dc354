"""A process in which a host works keeps the memory that tensors leave behind."""

import os
import platform
import subprocess
import sys

import pytest

from coloop.workers.settings import FORWARDED, forwarded

MIB = 2**20
FREED = """
import psutil
from coloop.workers.settings import keep_memory
keep_memory()
before = psutil.Process().memory_info().rss
held = [bytearray(b"x") * 2**26 for _ in range(2)]
held.clear()
print(psutil.Process().memory_info().rss - before)
"""


@pytest.mark.slow
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


def test_what_gpus_and_libraries_are_told_reaches_hosts_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in list(os.environ):
        if name.startswith(FORWARDED) or name == "PYTHONPATH":
            monkeypatch.delenv(name)
    told = {
        "NCCL_SOCKET_IFNAME": "eth9",
        "NCCL_IB_HCA": "mlx5",
        "HF_HOME": "/data/hf",
        "HF_HUB_OFFLINE": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "PYTHONPATH": "/data/code",
    }
    kept = {"HF_TOKEN": "hf_x", "VLLM_API_KEY": "x", "CUDA_VISIBLE_DEVICES": "3", "HOME": "/root"}
    for name, value in (told | kept).items():
        monkeypatch.setenv(name, value)

    assert forwarded() == told
