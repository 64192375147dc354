"""Downloads in processes of their own: cancelling one ends its process, and what has arrived stays
for the next."""

import contextlib
import hashlib
import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coloop_server.errors import NotFound
from coloop_server.hub.schemas import Download, NewDownload, RepoKind
from coloop_server.processes import child_environment

LAST_SECONDS = 10.0
"""For a process that was asked to end."""


@dataclass(kw_only=True)
class _Running:
    shown: Download
    process: "subprocess.Popen[str]"
    reader: threading.Thread | None = None
    is_cancelled: bool = False


class Downloads:
    """All downloads since the server started; at most one of each key runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: dict[str, _Running] = {}

    def list(self) -> list[Download]:
        with self._lock:
            return [running.shown.model_copy() for running in self._all.values()]

    def start(self, wanted: NewDownload, folder: Path) -> Download:
        """Begin or continue a download; one that runs already is returned.

        Args:
            folder: where the files of a dataset are put.
        """
        key = key_of(wanted)
        with self._lock:
            known = self._all.get(key)
            if known is not None and known.shown.state == "running":
                return known.shown.model_copy()
            running = _Running(
                shown=Download(
                    key=key,
                    kind=wanted.kind,
                    id=wanted.id,
                    state="running",
                    done=0,
                    total=0,
                    file="",
                    message=None,
                    paths=[],
                ),
                process=subprocess.Popen(
                    command_of(wanted, folder),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=child_environment(),
                    start_new_session=True,
                ),
            )
            running.reader = threading.Thread(target=self._follow, args=(running,), daemon=True)
            self._all[key] = running
            running.reader.start()
            return running.shown.model_copy()

    def cancel(self, key: str) -> None:
        """End a download; raises `NotFound` for one that was never asked for."""
        with self._lock:
            running = self._all.get(key)
            if running is None:
                raise NotFound("download.not_found", f"there is no download {key}")
            running.is_cancelled = True
        self._end(running)

    def close(self) -> None:
        for running in list(self._all.values()):
            running.is_cancelled = True
            self._end(running)

    def _end(self, running: _Running) -> None:
        if running.process.poll() is None:
            running.process.terminate()
            try:
                running.process.wait(LAST_SECONDS)
            except subprocess.TimeoutExpired:
                running.process.kill()
        if running.reader is not None:
            running.reader.join(LAST_SECONDS)

    def _follow(self, running: _Running) -> None:
        assert running.process.stdout is not None
        assert running.process.stderr is not None
        with running.process:
            for line in running.process.stdout:
                with contextlib.suppress(ValueError, TypeError):
                    self._note(running, json.loads(line))
            errors = running.process.stderr.read()
        code = running.process.returncode
        with self._lock:
            shown = running.shown
            if running.is_cancelled:
                shown.state = "cancelled"
            elif code == 0:
                shown.state = "finished"
            else:
                shown.state = "failed"
                lines = [line for line in errors.splitlines() if line.strip()]
                shown.message = lines[-1].removeprefix("error: ") if lines else f"code {code}"

    def _note(self, running: _Running, told: dict[str, Any]) -> None:
        with self._lock:
            for name in ("done", "total", "file", "paths"):
                if name in told:
                    setattr(running.shown, name, told[name])


def key_of(wanted: NewDownload) -> str:
    """The same for the same files."""
    words = (wanted.kind, wanted.id, wanted.revision, wanted.config, wanted.split)
    return hashlib.sha256(repr(words).encode()).hexdigest()[:16]


def command_of(wanted: NewDownload, folder: Path) -> list[str]:
    kinds: dict[RepoKind, str] = {"model": "models", "dataset": "datasets"}
    command = [sys.executable, "-m", "coloop", kinds[wanted.kind], "download", "--json"]
    if wanted.kind == "dataset":
        command += ["--to", str(folder), *options_of(wanted.split, wanted.config)]
    if wanted.revision is not None:
        command += ["--revision", wanted.revision]
    return [*command, "--", wanted.id]


def options_of(split: str | None, config: str | None) -> list[str]:
    given = (("--split", split), ("--config", config))
    return [word for name, value in given if value is not None for word in (name, value)]
