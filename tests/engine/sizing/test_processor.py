"""What is read of the machine: cores that may be used, and products in bfloat16."""

import os
from pathlib import Path

import pytest

from coloop.errors import SettingInvalid
from coloop.plan.settings import processor
from coloop.plan.settings.processor import cores_here, processor_here


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight cores, of which nothing is said."""
    monkeypatch.delenv(processor.CORES)
    monkeypatch.delenv(processor.INSTRUCTIONS)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(processor, "_quota", lambda groups: None)


@pytest.mark.parametrize(("named", "cores"), [(None, 8), ("3", 3), ("64", 8)])
def test_who_names_cores_gets_as_many_of_those_there_are(
    named: str | None, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if named is not None:
        monkeypatch.setenv(processor.CORES, named)

    assert cores_here() == cores


@pytest.mark.parametrize("named", ["0", "-1", "two", "1.5", ""])
def test_a_number_of_cores_that_is_none_is_refused(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(processor.CORES, named)

    with pytest.raises(SettingInvalid) as refused:
        cores_here()

    assert f"COLOOP_CORES is the number of cores that a loop may use, not {named!r}" in str(
        refused.value
    )
    assert "set it to 1 or more (COLOOP_CORES=1), or unset it to use all 8 cores" in str(
        refused.value
    )


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "350000 100000\n"}, 3),
        ("0::/a\n", {"a/cpu.max": "50000 100000\n"}, 1),
        ("0::/a\n", {"a/cpu.max": "max 100000\n"}, None),
        ("0::/\n", {"cpu.max": "1600000 100000\n"}, 16),
        (
            "3:cpuset:/\n2:cpu,cpuacct:/a\n0::/\n",
            {
                "cpu,cpuacct/a/cpu.cfs_quota_us": "250000",
                "cpu,cpuacct/a/cpu.cfs_period_us": "100000",
            },
            2,
        ),
        ("2:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("nothing that is known\n", {}, None),
    ],
)
def test_a_control_group_gives_whole_cores(
    groups: str,
    files: dict[str, str],
    cores: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    own = tmp_path / "own"
    own.write_text(groups, encoding="utf-8")
    monkeypatch.setattr(processor, "OWN_GROUPS", own)
    for name, text in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    assert processor._quota(tmp_path / "groups") == cores


@pytest.mark.parametrize(
    ("flags", "instructions", "has_bf16", "reason"),
    [
        ("fpu avx512_bf16", None, True, "has instructions for it (AVX512_BF16)"),
        ("amx_bf16 avx512_bf16", "", True, "(AMX_BF16 and AVX512_BF16)"),
        ("avx512_bf16", "AVX512_CORE_BF16", True, "has instructions for it"),
        ("avx512_bf16", "avx512_core", False, "ONEDNN_MAX_CPU_ISA=AVX512_CORE excludes"),
        ("fpu avx2 avx512f", None, False, "has no instructions"),
        (None, None, False, "has no instructions"),
    ],
)
def test_bfloat16_wants_instructions_that_may_be_used(
    flags: str | None,
    instructions: str | None,
    has_bf16: bool,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / f"{flags}-{instructions}"
    if flags is not None:
        file.write_text(f"processor : 0\nflags : {flags}\n\nflags : other\n", encoding="utf-8")
    monkeypatch.setattr(processor, "CPU_INFO", file)
    if instructions is not None:
        monkeypatch.setenv(processor.INSTRUCTIONS, instructions)

    found = processor_here()

    assert found.has_bf16 is has_bf16
    assert reason in found.reason
