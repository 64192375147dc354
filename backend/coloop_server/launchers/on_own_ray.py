"""Runs a loop on the server's own Ray: `coloop run SPEC ... --address 127.0.0.1:port`.

    somebody looks at a loop --> Ray starts; a spare driver loads, joins it, and loads hosts
    Run -----------------------> the spare driver is told which run it is, and begins at once

The driver is a process of the server's that outlives it, as with `--local`; its Ray lists it among
its jobs, and goes on as long as it does.
"""

import json
import logging
import secrets
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from coloop_server.launchers.local_ray import START_SECONDS, LocalRay
from coloop_server.launchers.process import ProcessLauncher, prepare_log
from coloop_server.launchers.protocol import Handle, LaunchFailed, Liveness, Order
from coloop_server.own_ray.folder import Head
from coloop_server.private import ensure_private_file, ensure_private_folder
from coloop_server.processes import MARK_OPTION, end_group, identity, of_a_launch
from coloop_server.runs.folder import RunFolder
from coloop_server.settings import DRIVER, Settings

LOOK_SECONDS = 0.2
END_SECONDS = 5.0


class Spare:
    def __init__(self, mark: str, log: Path, environment: Mapping[str, str]) -> None:
        """
        Args:
            mark: of the launch that it is to be.
            log: to which goes what it prints before it has its run.
        """
        self.mark = mark
        self.lock = threading.Lock()
        self.head: Head | None = None
        self.has_run = False
        """Whether it is the driver of a run."""
        ensure_private_folder(log.parent)
        ensure_private_file(log)
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "coloop.cli.spare", MARK_OPTION, mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                **of_a_launch(mark, environment),
            )
        self.started = identity(self.process.pid) or "gone"

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def join(self, head: Head, hosts: int) -> None:
        """Tell it once to join a Ray and load this many hosts; see `joined`."""
        with self.lock:
            if self.head is None:
                self.head = head
                self.say(address=head.joined_at, hosts=hosts)

    def joined(self, seconds: float, is_over: Callable[[], bool]) -> str | None:
        """Wait until it has joined; returns None, or why it has not."""
        answers = self.process.stdout
        assert answers is not None
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(answers, selectors.EVENT_READ)
            while not selector.select(LOOK_SECONDS):
                if is_over():
                    return "the server ended"
                if time.monotonic() > deadline:
                    return f"its driver did not join it within {seconds:.0f} s"
        line = answers.readline()
        if not line:
            return f"its driver ended with exit code {self.process.wait()}"
        told: dict[str, Any] = json.loads(line)
        return None if told["joined"] else str(told["reason"])

    def become(self, arguments: Sequence[str], log: Path) -> "subprocess.Popen[bytes]":
        """The process, now the driver of a run. Raises OSError if it has just ended."""
        self.say(arguments=list(arguments), log=str(log))
        self.has_run = True
        self.let_go()
        return self.process

    def say(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def let_go(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def end(self) -> None:
        self.let_go()
        end_group(self.process.pid, self.started, seconds=END_SECONDS)
        self.process.wait()


logger = logging.getLogger(__name__)

WARMING = "warm-ray"
HOSTS = 2
"""Hosts loaded ahead; a CPU loop has one or two."""
TRIES = 2
"""Attempts at starting a Ray that ends before a driver has joined."""


class OwnRayLauncher(ProcessLauncher):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.local = LocalRay(settings.data_dir / "ray")
        self.warms = settings.warm_ray
        """Whether to prepare Ray and a driver before a run."""
        self.warming: threading.Thread | None = None
        self.spare: Spare | None = None
        self.planned: dict[str, Spare] = {}
        """Spare drivers of starting runs, by mark."""
        self.going_on: dict[str, Handle] = {}
        """Runs known to this server, by mark."""

    def warm(self) -> None:
        with self.lock:
            is_free = not (self.planned or self.is_busy())
            is_due = self.warms and is_free and not self.has_spare()
            if not is_due or (self.warming is not None and self.warming.is_alive()):
                return
            self.warming = threading.Thread(target=self.prepare, name=WARMING, daemon=True)
            self.warming.start()

    def prepare(self) -> None:
        """Errors are reported to the run that needs it."""
        try:
            spare = self.new_spare(secrets.token_hex(8)) if self.takes_spares() else None
            with self.lock:
                self.spare = spare
            head = self.local.ensure(lambda _: None)
            if spare is not None:
                spare.join(head, HOSTS if self.spare is spare else 0)
            self.warms = self.takes_spares()  # Ray itself stays, a spare driver may end
        except (LaunchFailed, OSError) as error:
            self.warms = False
            logger.warning("Ray was not started ahead of a run: %s", error)

    def plan(self, run_id: str, attempt: int) -> Handle:
        with self.lock:
            if not self.has_spare():
                return super().plan(run_id, attempt)
            spare, self.spare = self.spare, None
            assert spare is not None
            self.planned[spare.mark] = spare
            return {"run_id": run_id, "mark": spare.mark}

    def start(self, order: Order, planned: Handle) -> Handle:
        for left in reversed(range(TRIES)):
            spare = self.spare_of(planned)
            try:
                head = self.local.ensure(order.tell, self.is_busy)
                spare = self.at(head, spare)
                try:
                    return self.start_at(head, order, planned, spare)
                except LaunchFailed as error:
                    if self.local.is_well(head):
                        raise
                    logger.warning("Ray ended before a driver joined it: %s", error)
                    if not left:
                        what = "Ray ended twice before it took the run"
                        raise self.local.failed(what) from error
            finally:
                if spare is not None and not spare.has_run:
                    spare.end()
            ended = self.local.failed("Ray ended before it took the run")
            order.tell(f"{ended}; it is started again")
        raise AssertionError("TRIES is 1 or more")

    def spare_of(self, planned: Handle) -> Spare | None:
        """The spare driver of this run, which loads while Ray may still start."""
        spare = self.planned.pop(planned["mark"], None)
        if spare is not None and spare.is_alive:
            return spare
        return self.new_spare(planned["mark"]) if self.takes_spares() else None

    def at(self, head: Head, spare: Spare | None) -> Spare | None:
        """The driver, or another one if it joined a Ray that is gone."""
        if spare is None or spare.head in (None, head):
            return spare
        spare.end()
        return self.new_spare(spare.mark)

    def start_at(self, head: Head, order: Order, planned: Handle, spare: Spare | None) -> Handle:
        handle = {**planned, "address": head.address}
        if spare is None:
            handle = self.spawn(order, handle, "--address", head.joined_at)
        else:
            handle = self.become(spare, head, order, handle)
        self.follow(handle, RunFolder(order.folder))
        return handle

    def become(self, spare: Spare, head: Head, order: Order, planned: Handle) -> Handle:
        order.tell("its driver is loading the engine")
        try:
            spare.join(head, 0)  # a run that waits has the hosts that it needs, and no others
            reason = spare.joined(START_SECONDS, self.local.is_closing.is_set)
            if reason is not None:
                raise LaunchFailed(f"Ray at {head.joined_at} was not joined: {reason}")
            prepare_log(order.log)
            options = [*order.options(), "--address", head.joined_at]
            child = spare.become(["run", str(order.spec), *options], order.log)
        except OSError as error:
            raise LaunchFailed(f"its driver ended before it took the run: {error}") from error
        return self.started(child, planned)

    def check(self, handle: Handle) -> Liveness:
        liveness = super().check(handle)
        address = handle.get("address")
        if liveness.is_alive or address is None or self.is_ray_alive(address):
            return liveness
        return Liveness(False, self.local.gone_words(address))

    def follow(self, handle: Handle, folder: RunFolder) -> None:
        self.local.claim()
        with self.lock:
            self.going_on[handle["mark"]] = handle

    def let_go(self, handle: Handle) -> None:
        super().let_go(handle)
        with self.lock:
            self.going_on.pop(handle["mark"], None)

    def close(self, *, runs_go_on: bool) -> None:
        self.local.is_closing.set()
        with self.lock:
            spares = [*self.planned.values(), *([self.spare] if self.spare else [])]
        for spare in spares:
            spare.end()
        super().close(runs_go_on=runs_go_on)
        if runs_go_on:
            self.local.leave()
        else:
            self.local.stop()

    def environment(self) -> dict[str, str]:
        return self.local.environment()

    def takes_spares(self) -> bool:
        """Whether the driver is coloop; nothing else can be loaded ahead."""
        return self.driver == DRIVER

    def new_spare(self, mark: str) -> Spare:
        return Spare(mark, self.local.folder.spare_log, self.environment())

    def has_spare(self) -> bool:
        return self.spare is not None and self.spare.is_alive

    def is_ray_alive(self, address: str) -> bool:
        head = self.local.known()
        return head is not None and head.address == address

    def is_busy(self) -> bool:
        return bool(self.going_on)
