"""Error messages for what the sandbox refuses: the kernel only says `[Errno 1] Operation not
permitted`; these name the module that needed it, and what to use instead."""

import errno
from collections.abc import Iterator
from typing import Final

LIMITED: Final = "this code runs in a limited process with"

FILES: Final = "no files"
NETWORK: Final = "no network"
PROGRAMS: Final = "no other programs"
PROCESSES: Final = "no other processes"

INSTEAD: Final = {
    FILES: "keep the data in the code, or in memory (`io.StringIO`, `io.BytesIO`)",
    NETWORK: "let a service score instead (`source: {type: remote, url: ...}`)",
    PROGRAMS: (
        "to run programs against tests use the built-in reward `code_tests`, or let a service "
        "score (`source: {type: remote, url: ...}`)"
    ),
    PROCESSES: "use a loop, or threads (`concurrent.futures.ThreadPoolExecutor`)",
}
"""Alternatives for rewards."""

MODULES: Final = {
    "subprocess": PROGRAMS,
    "_posixsubprocess": PROGRAMS,
    "pty": PROGRAMS,
    "multiprocessing": PROCESSES,
    "concurrent.futures.process": PROCESSES,
    "tempfile": FILES,
    "shutil": FILES,
    "pathlib": FILES,
    "sqlite3": FILES,
    "socket": NETWORK,
    "ssl": NETWORK,
    "http": NETWORK,
    "urllib.request": NETWORK,
    "ftplib": NETWORK,
    "smtplib": NETWORK,
    "requests": NETWORK,
    "urllib3": NETWORK,
    "httpx": NETWORK,
    "httpcore": NETWORK,
    "aiohttp": NETWORK,
    "openai": NETWORK,
}
"""What a module and its submodules need, which the sandbox lacks."""

EVENTS: Final = {
    "socket.": NETWORK,
    "http.": NETWORK,
    "urllib.": NETWORK,
    "subprocess.": PROGRAMS,
    "os.system": PROGRAMS,
    "os.exec": PROGRAMS,
    "os.posix_spawn": PROGRAMS,
    "os.fork": PROCESSES,
    "ctypes.": "no foreign code",
}
"""What is unavailable, by the prefix of an audit event; for other events, files."""

CLOSED: Final = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EROFS, errno.EFBIG})
"""Error numbers of calls that the sandbox refuses."""


def sentence(what: str) -> str:
    return f"{LIMITED} {what}"


def of_event(event: str) -> str:
    return next((why for start, why in EVENTS.items() if event.startswith(start)), FILES)


def why_closed(error: BaseException, *, is_reward: bool) -> str | None:
    """What an error needed and the sandbox lacks; for rewards also what to use instead. None for
    errors with another cause."""
    for cause in _chain(error):
        if (reason := _reason(cause)) is not None:
            words, what = reason
            return f"{words}; {INSTEAD[what]}" if is_reward and what in INSTEAD else words
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(8):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _reason(error: BaseException) -> tuple[str, str] | None:
    """A sentence, and what is unavailable: as the audit hook said, or by the outermost module in
    MODULES on the stack. That module may also be the one that could not be imported, because with
    `Isolation.CALLS` nothing can be imported while the code runs. None for other errors."""
    words = str(error)
    if words.startswith(LIMITED):
        return words, next((what for what in INSTEAD if sentence(what) in words), "")
    names = [error.name or ""] if isinstance(error, ModuleNotFoundError) else _modules_on(error)
    for name in names:
        known = next(
            (module for module in MODULES if name == module or name.startswith(f"{module}.")), None
        )
        if known is not None:
            return f"{known}: {sentence(MODULES[known])}", MODULES[known]
    return None


def _modules_on(error: BaseException) -> Iterator[str]:
    """Modules on the stack of a refused call, outermost first; none for other errors."""
    here = error.__traceback__ if _is_closed(error) else None
    while here is not None:
        yield here.tb_frame.f_globals.get("__name__", "")
        here = here.tb_next


def _is_closed(error: BaseException) -> bool:
    if not isinstance(error, OSError):
        return False
    if isinstance(error, PermissionError) or error.errno in CLOSED:
        return True
    return "No usable temporary directory" in str(error) or "resolution" in str(error)
