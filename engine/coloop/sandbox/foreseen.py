"""Finds calls in user code that the sandbox will refuse, without running it.

Only calls of imported names are found; calls inside libraries fail at run time.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from coloop.sandbox.inside.closed import NETWORK, PROCESSES, PROGRAMS
from coloop.sandbox.inside.modules import tree_of

HTTP: Final = ("get", "post", "put", "patch", "delete", "head", "options", "request")

CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    PROGRAMS: (
        *("subprocess.run", "subprocess.call", "subprocess.check_call"),
        *("subprocess.check_output", "subprocess.Popen", "subprocess.getoutput"),
        *("subprocess.getstatusoutput", "os.system", "os.popen", "pty.spawn"),
        *("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    ),
    PROCESSES: (
        *("multiprocessing.Pool", "multiprocessing.Process", "multiprocessing.Manager"),
        *("multiprocessing.pool.Pool", "concurrent.futures.ProcessPoolExecutor"),
        *("concurrent.futures.process.ProcessPoolExecutor", "os.fork"),
    ),
    NETWORK: (
        *(f"{module}.{verb}" for module in ("requests", "httpx") for verb in HTTP),
        *("requests.Session", "httpx.Client", "httpx.AsyncClient", "httpx.stream"),
        *("aiohttp.ClientSession", "urllib3.PoolManager", "urllib3.request"),
        *("urllib.request.urlopen", "urllib.request.urlretrieve", "http.client.HTTPConnection"),
        *("http.client.HTTPSConnection", "socket.socket", "socket.create_connection"),
        *("asyncio.open_connection", "ftplib.FTP", "smtplib.SMTP", "openai.OpenAI"),
        *("openai.AsyncOpenAI",),
    ),
}
"""Calls that fail in the sandbox, by what they need."""
NEEDS: Final = {name: what for what, names in CALLS.items() for name in names}


@dataclass(frozen=True, slots=True)
class ClosedCall:
    name: str
    line: int
    what: str
    """What the sandbox lacks for it: PROGRAMS, PROCESSES or NETWORK of `inside.closed`."""


def closed_calls(source: str) -> Iterator[ClosedCall]:
    """Calls in a source that the sandbox will refuse, each name once, by line; none for invalid
    Python."""
    tree = tree_of(source)
    if tree is None:
        return
    bound = _imported(tree)
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _dotted(node.func, bound)
            if name in NEEDS:
                lines[name] = min(lines.get(name, node.lineno), node.lineno)
    for name, line in sorted(lines.items(), key=itemgetter(1)):
        yield ClosedCall(name, line, NEEDS[name])


def _imported(tree: ast.Module) -> dict[str, str]:
    """The full name of each imported name."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    first = alias.name.partition(".")[0]
                    bound[alias.asname or first] = alias.name if alias.asname else first
            case ast.ImportFrom(module=str(module), level=0, names=names):
                bound |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in names}
    return bound


def _dotted(node: ast.expr, bound: Mapping[str, str]) -> str:
    """The full name of an expression such as `a.b.c`; empty if `a` was not imported."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in bound:
        return ""
    return ".".join([bound[node.id], *reversed(parts)])
