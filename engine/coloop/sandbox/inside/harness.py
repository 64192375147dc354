"""Runs the user's function in the sandbox, request by request.

    requests --- 8 bytes length, JSON ---> [ audit hook, user's module ] ---> replies

The audit hook turns refused operations into clear messages. It is no protection: hostile code can
remove it, and is then stopped by the kernel (`isolation`). Every reply has the random id of its
request, so that none can be written in advance.
"""

import _posixsubprocess
import io
import json
import os
import random
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, BinaryIO

from coloop.sandbox.inside.closed import FILES, PROGRAMS, of_event, sentence, why_closed
from coloop.sandbox.inside.modules import (
    file_of,
    has_coroutines,
    install_beside,
    install_loop,
    settled,
)
from coloop.sandbox.inside.values import why_no_score, why_not, why_not_name

KEPT_CHARACTERS = 64 * 1024
LARGEST_REPLY = 16 * 2**20
LONGEST_TRACE = 8

REFUSED = (
    *("os.", "socket.", "subprocess.", "shutil.", "pty.", "fcntl.", "resource.", "sqlite3."),
    *("mmap.", "syslog.", "urllib.", "http.", "ftplib.", "smtplib.", "imaplib.", "poplib."),
    *("webbrowser.", "tempfile.", "glob.", "pathlib.", "gc.", "signal.", "sys._current_frames"),
)
DEVICES = frozenset({"/dev/urandom", "/dev/random"})
HARMLESS = frozenset({"os.putenv", "os.unsetenv"})
LISTING = frozenset({"os.listdir", "os.scandir"})


class Kept(io.TextIOBase):
    """A text stream that keeps KEPT_CHARACTERS of output and counts the rest."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.room = KEPT_CHARACTERS
        self.lost = 0

    def write(self, text: str) -> int:
        kept = text[: self.room]
        if kept:
            self.parts.append(kept)
            self.room -= len(kept)
        self.lost += len(text) - len(kept)
        return len(text)

    def take(self) -> str:
        text, lost = "".join(self.parts), self.lost
        self.parts, self.room, self.lost = [], KEPT_CHARACTERS, 0
        return text + (f"\n... {lost} characters more were printed and cut" if lost else "")


def forbid(
    roots: frozenset[str], refused: tuple[str, ...]
) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that raises PermissionError for events in `refused`, and for every `open` but
    reads below `roots` and of random devices."""

    starts = tuple(root + os.sep for root in roots)

    def inside(path: object) -> bool:
        if not isinstance(path, (str, bytes)):
            return False
        full = os.path.abspath(os.fsdecode(path))
        return full in roots or full.startswith(starts)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            reads = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) == 0
            if reads and (inside(path) or (path in DEVICES and os.access(path, os.R_OK))):
                return
            if reads and path in DEVICES:
                raise PermissionError(f"{sentence(FILES)}: read {path} by `os.urandom`")
            raise PermissionError(f"{sentence(of_event(event))}: open({path!r})")
        if not event.startswith(refused) or event in HARMLESS:
            return
        if event in LISTING and inside(args[0]):
            return
        raise PermissionError(f"{sentence(of_event(event))}: {event}")

    return hook


def refuse_fork_exec() -> None:
    """Replace `fork_exec`, the one way to start a program that has no audit event."""

    def fork_exec(*args: object, **kwargs: object) -> None:
        raise PermissionError(sentence(PROGRAMS))

    vars(_posixsubprocess)["fork_exec"] = fork_exec


def receive(pipe: BinaryIO) -> Any:
    """The next request; None at the end of the pipe."""
    header = pipe.read(8)
    if len(header) < 8:
        return None
    return json.loads(pipe.read(int.from_bytes(header, "big")))


def send(pipe: BinaryIO, message: Mapping[str, Any]) -> None:
    """Send a reply; one above LARGEST_REPLY is replaced by an error."""
    payload = json.dumps(message).encode()
    if len(payload) > LARGEST_REPLY:
        mib = LARGEST_REPLY // 2**20
        short = complaint(f"returned more than {mib} MiB")
        payload = json.dumps({**short, "id": message.get("id")}).encode()
    pipe.write(len(payload).to_bytes(8, "big"))
    pipe.write(payload)
    pipe.flush()


def complaint(message: str, row: int | None = None, trace: str | None = None) -> dict[str, Any]:
    return {"ok": False, "message": message, "row": row, "trace": trace}


class Bad(Exception):
    """The function is missing, has wrong parameters, or returned an invalid value."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


TEXTS = (
    "`completions` holds texts here, because the prompts are texts: write `completion` instead of "
    '`completion[0]["content"]`. If prompts are chats, both work'
)


def is_of_messages(error: BaseException) -> bool:
    """Whether code indexed a text like a message: `completion[0]["content"]`."""
    words = str(error)
    return (
        isinstance(error, TypeError) and words.startswith("string indices must be integers")
    ) or (
        isinstance(error, AttributeError)
        and words.startswith("'str' object has no attribute 'get'")
    )


@dataclass(frozen=True)
class Frame:
    """A traceback line in the user's code."""

    file: str
    """A module beside the user's file; empty for that file."""
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}" if self.file else f"line {self.line}"


def own_frames(error: BaseException, sources: Mapping[str, str]) -> Iterator[Frame]:
    """Traceback frames in these sources, outermost first; the line of a SyntaxError last."""
    files = dict(zip(sources, ("", *(name.strip("<>") for name in [*sources][1:])), strict=True))
    here = error.__traceback__
    while here is not None:
        code, line = here.tb_frame.f_code, here.tb_lineno
        if code.co_filename in sources:
            lines = sources[code.co_filename].split("\n")
            text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
            yield Frame(files[code.co_filename], line, f", in {code.co_name}: {text[:200]}")
        here = here.tb_next
    if isinstance(error, SyntaxError) and (error.filename or "") in files:
        text = (error.text or "").strip()
        yield Frame(files[error.filename or ""], error.lineno or 1, f": {text[:200]}")


def place_of(own: Sequence[Frame]) -> str:
    """Where an error was raised, in parentheses: the line in the user's file, then the one in a
    module beside it; empty without frames."""
    places = [frame.place for frame in own if not frame.file][-1:]
    places += [frame.place for frame in own[-1:] if frame.file]
    return f" ({'; '.join(places)})" if places else ""


def told(
    error: BaseException, sources: Mapping[str, str], *, is_reward: bool = False
) -> tuple[str, str]:
    """The message and the traceback of an exception, with frames of the user's code only.
    `sources`: by the file names of the compiled code, the user's file first."""
    own = [*own_frames(error, sources)]
    frames = [frame.place + frame.text for frame in own]
    if len(frames) > LONGEST_TRACE:
        left_out = len(frames) - LONGEST_TRACE
        frames = [*frames[:4], f"... {left_out} frames more", *frames[-4:]]
    kind = type(error).__name__
    hint = f"; {TEXTS}" if is_reward and is_of_messages(error) else ""
    reason = error.msg if isinstance(error, SyntaxError) else str(error)
    what = f"{kind}: {reason[:500]}{hint}" if reason else kind
    closed = why_closed(error, is_reward=is_reward)
    if closed is not None:
        what = closed
    elif isinstance(error, SystemExit):
        what = f"it called sys.exit({reason})"
    elif is_of_memory(error):
        what = f"{kind}: it needs more memory than {most_memory(is_reward=is_reward)}"
    elif isinstance(error, ModuleNotFoundError) and reason.startswith("No module named"):
        what = f"{what}: it is neither beside the file nor installed{late_import()}"
    return what + place_of(own), "\n".join([*frames, what])


def is_of_memory(error: BaseException) -> bool:
    """Whether Python or a library ran out of memory."""
    words = str(error)
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and ("bad_alloc" in words or "allocate memory" in words)
    )


def most_memory(*, is_reward: bool) -> str:
    """The memory limit in words; for rewards with the field that sets it."""
    mib = resource.getrlimit(resource.RLIMIT_AS)[0] // 2**20
    if is_reward:
        return f"`memory_mib` allows ({mib} MiB)"
    return f"the {mib} MiB that its process has"


def late_import() -> str:
    """A hint that a missing module may be imported too late; empty if files can be read here."""
    can_read = any(os.path.isdir(path) for path in sys.path)
    return "" if can_read else ", or imported too late: import it at the top"


class RowFailed(Exception):
    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


MODULE = "user_code"


class Module:
    """The user's code, run at its top level, and the function to call."""

    def __init__(self, source: str, function: str, name: str) -> None:
        self.source = source
        self.name = name
        # Where dataclasses, pickle and typing look up the names of a module.
        module = sys.modules[MODULE] = ModuleType(MODULE)
        space = vars(module)
        exec(compile(source, name, "exec", dont_inherit=True), space)
        self.call: Any = space.get(function)
        if not callable(self.call):
            there = [n for n, v in space.items() if callable(v) and not n.startswith("_")]
            raise Bad(
                f"has no function `{function}`"
                + (f"; it has {', '.join(there[:10])}" if there else "")
            )
        self.function = function
        code = getattr(self.call, "__code__", None)
        self.named: frozenset[str] | None = None
        """Names of the function's parameters; None if it takes any (`**columns`)."""
        self.required: tuple[str, ...] = ()
        if code is not None:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            with_default = len(self.call.__defaults__ or ())
            positional = code.co_varnames[: code.co_argcount - with_default]
            only = code.co_varnames[code.co_argcount : len(names)]
            optional = self.call.__kwdefaults__ or {}
            self.required = (*positional, *(n for n in only if n not in optional))
            if not code.co_flags & 0x08:
                self.named = frozenset(names)

    def value(self, given: Mapping[str, Any]) -> Any:
        """The result of the function; an awaitable is awaited."""
        value = self.call(**given)
        if not hasattr(value, "__await__"):
            return value
        return settled(value)

    def arguments(self, given: Mapping[str, Any], *, absent_is_none: bool) -> Mapping[str, Any]:
        missing = [name for name in self.required if name not in given]
        if missing and not absent_is_none:
            there = ", ".join(sorted(given))
            raise Bad(
                f"`{self.function}` has a parameter `{missing[0]}` without a column; available: "
                f"{there}"
            )
        given = {**given, **dict.fromkeys(missing)} if missing else given
        if self.named is None:
            return given
        return {name: value for name, value in given.items() if name in self.named}


class Reply(str):
    """A completion of a chat prompt: a text that also supports `completion[0]["content"]` and
    `completion[-1]["content"]`, as in TRL."""

    def __getitem__(self, key: Any) -> str:
        part = super().__getitem__(key)
        return Message(part, self) if isinstance(key, int) else part


class Message(str):
    """A character of a reply that also behaves as its only message, a dict of role and content."""

    whole: str

    def __new__(cls, character: str, whole: str) -> "Message":
        made = super().__new__(cls, character)
        made.whole = str(whole)
        return made

    def __getitem__(self, key: Any) -> str:
        if key == "content":
            return self.whole
        if key == "role":
            return "assistant"
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in ("content", "role") else default


class NoReply(Reply):
    def __getitem__(self, key: Any) -> str:
        return Message("", "") if key in (0, -1) else super().__getitem__(key)


def replies(columns: Mapping[str, Any]) -> list[Any]:
    """The completions; those of chat prompts as `Reply`."""
    prompts, completions = columns.get("prompts") or [], columns.get("completions") or []
    return [
        (Reply(text) if text else NoReply(text))
        if isinstance(prompt, list) and isinstance(text, str)
        else text
        for prompt, text in zip(prompts, completions, strict=True)
    ]


def as_score(value: Any, row: int, *, may_be_steps: bool = True) -> Any:
    """A returned score as a float, None, or a list of these, one per step; raises Bad otherwise."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and may_be_steps:
        return [as_score(item, row, may_be_steps=False) for item in value]
    wanted = "a number, None or a list of numbers" if may_be_steps else "a number or None a step"
    if not hasattr(value, "__float__"):
        raise Bad(f"returned {described(value)}, expected {wanted}", row)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        hint = "; bound it, e.g. `min(1.0, x)`" if isinstance(error, OverflowError) else ""
        what = f"returned {described(value)}, expected {wanted} ({error}){hint}"
        raise Bad(what, row) from None
    wrong = why_no_score(number)
    if wrong is not None:
        raise Bad(f"returned {number:g}, and {wrong}", row)
    return number


def described(value: object) -> str:
    kind = type(value).__name__
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def score_batch(module: Module, columns: Mapping[str, Any], count: int) -> list[Any]:
    """Scores by `reward(prompts, completions, **columns)`, called once for all rows."""
    given = {**columns, "completions": replies(columns)}
    value = module.value(module.arguments(given, absent_is_none=False))
    if not isinstance(value, (list, tuple)):
        what = "None" if value is None else described(value)
        hint = "; use its `.tolist()`" if hasattr(value, "tolist") else ""
        raise Bad(f"returned {what}, expected a list of {count} scores{hint}")
    if len(value) != count:
        raise Bad(f"returned {len(value)} scores for {count} rows")
    return [as_score(item, row) for row, item in enumerate(value)]


def keep_row(module: Module, columns: Mapping[str, Any]) -> bool:
    value = module.value(module.arguments(columns, absent_is_none=True))
    if value is None or isinstance(value, (bool, int)):
        return bool(value)
    raise Bad(f"returned {described(value)}, expected True or False")


def write_row(module: Module, columns: Mapping[str, Any]) -> dict[str, Any] | None:
    value = module.value(module.arguments(columns, absent_is_none=True))
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Bad(f"returned {described(value)}, expected a dict of columns or None")
    for name, item in value.items():
        if not isinstance(name, str):
            raise Bad(f"returned the column name {name!r}, expected a text")
        wrong = why_not_name(name)
        if wrong is not None:
            raise Bad(f"returned {wrong} for a column: {name[:60]!r}")
        wrong = why_not(item)
        if wrong is not None:
            raise Bad(f"returned {wrong} as column `{name}`, expected texts, numbers, lists")
    return value


class TooMuchComputing(BaseException):
    """A row took more than its CPU time."""


@contextmanager
def at_most(cpu_seconds: float | None) -> Iterator[None]:
    """Raise TooMuchComputing when the block takes more than this CPU time (None: no limit). Waiting
    does not count, so a busy machine makes no difference. It is raised again every 0.1 seconds, in
    case the code catches it."""
    if cpu_seconds is None:
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise TooMuchComputing(f"it computed for more than {cpu_seconds:g} seconds")

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def each_row(
    module: Module,
    call: Callable[[Module, Mapping[str, Any]], Any],
    rows: Sequence[Mapping[str, Any]],
    seeds: Sequence[int],
    cpu_seconds: float | None,
) -> list[Any]:
    """Results of `call` for each row; an error names the row. Each row has its own seed, so that
    its random numbers do not depend on other rows."""
    values = []
    for row, (columns, seed) in enumerate(zip(rows, seeds, strict=True)):
        seed_draws(seed)
        try:
            with at_most(cpu_seconds):
                values.append(call(module, columns))
        except Bad as bad:
            raise Bad(str(bad), row) from None
        except BaseException as error:
            raise RowFailed(row) from error
    return values


EACH: Mapping[str, Callable[[Module, Mapping[str, Any]], Any]] = {
    "keep": keep_row,
    "write": write_row,
}


def seed_draws(seed: int) -> None:
    random.seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(seed & 0xFFFFFFFF)


def answer(module: Module, request: Mapping[str, Any]) -> list[Any]:
    if request["op"] == "score":
        seed_draws(request["seed"])
        return score_batch(module, request["columns"], request["count"])
    cpu_seconds = request.get("cpu_seconds")
    return each_row(module, EACH[request["op"]], request["rows"], request["seeds"], cpu_seconds)


def prepare(source: str, modules: Mapping[str, str]) -> None:
    """Make `modules` importable, and event loops possible if the code has coroutines."""
    install_beside(modules)
    if has_coroutines({**modules, MODULE: source}):
        install_loop()


def reply_to(state: dict[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Handle one request; every exception becomes a reply."""
    printed: Any = state["printed"]
    sys.stdout = sys.stderr = printed
    try:
        if request["op"] == "load":
            name, source, modules = request["name"], request["source"], request.get("modules") or {}
            files = {file_of(module, modules): text for module, text in modules.items()}
            state.update(sources={name: source, **files}, function=request["function"])
            prepare(source, modules)
            state["module"] = Module(source, request["function"], name)
            value: Any = None
        else:
            value = answer(state["module"], request)
        reply: dict[str, Any] = {"ok": True, "value": value}
    except Bad as bad:
        reply = complaint(str(bad), bad.row)
    except BaseException as error:
        cause, row = error, None
        if isinstance(error, RowFailed) and error.__cause__ is not None:
            cause, row = error.__cause__, error.row
        is_reward = state.get("function") == "reward"
        message, trace = told(cause, state.get("sources", {}), is_reward=is_reward)
        reply = complaint(message, row, trace)
        del cause
    return {**reply, "printed": printed.take()}


def serve(requests: BinaryIO, replies: BinaryIO, first: Mapping[str, Any]) -> None:
    """Handle requests until the pipe ends; `first`, the load request, has already been read."""
    state: dict[str, Any] = {"printed": Kept()}
    request: Any = first
    while request is not None:
        send(replies, {**reply_to(state, request), "id": request["id"]})
        request = receive(requests)


def fence(libraries: Sequence[str], *, is_alone: bool) -> None:
    """Refuse with clear messages what the kernel refuses with error numbers. `is_alone`: there is
    no other isolation, so `ctypes` is refused too."""
    refuse_fork_exec()
    refused: tuple[str, ...] = REFUSED
    if is_alone:
        refused = (*REFUSED, "ctypes.")
        absent: Mapping[str, Any] = {"ctypes": None, "_ctypes": None}
        sys.modules.update(absent)
    roots = frozenset(os.path.abspath(path) for path in libraries)
    sys.addaudithook(forbid(roots, refused))
