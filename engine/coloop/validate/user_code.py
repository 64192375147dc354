"""The user's Python with what it imports, which is read as a run reads it, but never run; also
model code and services from outside.

Modules are looked for on this machine. A run elsewhere may find more, so a missing one is only a
warning.
"""

import os
import pkgutil
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from coloop.plan.settings.facts import config_in
from coloop.plan.settings.families import refusal_of
from coloop.sandbox.code_files import CodeFile, file_of, needed_by, read_code
from coloop.sandbox.foreseen import closed_calls
from coloop.sandbox.inside.closed import INSTEAD, sentence
from coloop.sandbox.inside.parsing import parse_code
from coloop.spec.diagnostics import Diagnostic, Fix, did_you_mean, error, warning
from coloop.spec.groups import chat_service
from coloop.spec.lean import record
from coloop.spec.model import PretrainedModel
from coloop.spec.remotes import (
    AllowedRemotes,
    refusal,
    refusal_of_secret,
    secret_value,
    secret_variable,
)
from coloop.spec.services import Service
from coloop.validate.facts import Facts
from coloop.validate.texts import code_paths_of, codes_of


@record
class _Code:
    """Code of a node, and the modules beside its file."""

    at: str
    file: str | None = None
    """As the loop names it; None for inline code."""
    folder: Path | None = None
    read: CodeFile
    is_reward: bool
    """Whether it is a reward, for which messages say what to use instead of a blocked call."""

    def parts(self) -> Iterator[tuple[str | None, str, str]]:
        """File, package and source of each part."""
        yield self.file, "", self.read.source
        for name, source in self.read.modules.items():
            yield file_of(name), name.rpartition(".")[0], source

    def has_beside(self, name: str) -> bool:
        modules = self.read.modules
        return name in modules or any(module.startswith(f"{name}.") for module in modules)


def code_files_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """Python files and the modules beside them that they import can be decoded; these compile."""
    for name, node in facts.nodes.items():
        for field, _, path in code_paths_of(facts, node):
            at = f"nodes.{name}.{field}"
            try:
                modules = read_code(path).modules
            except OSError:
                continue
            except ValueError as problem:
                yield error("text.code_syntax", at, f"{problem}")
                continue
            for module, source in modules.items():
                if why := _why_not_compiled(source):
                    message = f"`{file_of(module)}` does not compile{why}"
                    yield error("text.code_syntax", at, message)


def code_has_what_it_uses(facts: Facts) -> Iterator[Diagnostic]:
    """Imported modules are beside the file or installed, and calls are possible in the sandbox."""
    for code in _codes(facts):
        for file, package, source in code.parts():
            yield from _not_found(code, file, package, source)
            yield from _closed(code, file, source)


def _not_found(code: _Code, file: str | None, package: str, source: str) -> Iterator[Diagnostic]:
    for need in sorted(needed_by(source, package), key=lambda need: need.line):
        first = need.name.partition(".")[0]
        is_beside = code.has_beside(first)
        if code.has_beside(need.name) or (not is_beside and _is_installed(first)):
            continue
        yield warning(
            "text.code_import",
            code.at,
            f"{_shown(file)} imports `{need.name}` in line {need.line}, which is neither next to "
            "the file nor installed here",
            _nearest(code, need.name)
            or "a run fails there unless the module is installed on the machine that runs it",
            text_line=need.line if file is None else None,
        )


def _closed(code: _Code, file: str | None, source: str) -> Iterator[Diagnostic]:
    for call in closed_calls(source):
        yield warning(
            "text.code_closed",
            code.at,
            f"{_shown(file)} calls `{call.name}` in line {call.line}: {sentence(call.what)}",
            INSTEAD[call.what] if code.is_reward else None,
            text_line=call.line if file is None else None,
        )


def _shown(file: str | None) -> str:
    return "the code" if file is None else f"`{file}`"


def _codes(facts: Facts) -> Iterator[_Code]:
    for name, node in facts.nodes.items():
        is_reward = node.kind == "reward"
        for snippet in codes_of(node):
            at, read = f"nodes.{name}.{snippet.field}", CodeFile(snippet.content, {})
            yield _Code(at=at, read=read, is_reward=is_reward)
        for field, file, path in code_paths_of(facts, node):
            try:
                read = read_code(path)
            except (OSError, ValueError):
                continue
            at = f"nodes.{name}.{field}"
            yield _Code(at=at, file=file, folder=path.parent, read=read, is_reward=is_reward)


def _why_not_compiled(source: str) -> str | None:
    try:
        parse_code(source, is_compiled=True)
    except SyntaxError as error:
        where = f" in line {error.lineno}, column {error.offset}" if error.lineno else ""
        return f"{where}: {error.msg}"
    return None


@cache
def _libraries() -> list[str]:
    return [*dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))]


def _is_installed(first: str) -> bool:
    """Whether the sandbox would find a module of this name."""
    if first in sys.stdlib_module_names or first == "__future__":
        return True
    return PathFinder.find_spec(first, _libraries()) is not None


def _nearest(code: _Code, name: str) -> str | None:
    """The most similar local or installed module."""
    beside = [] if code.folder is None else _modules_in(code.folder)
    first, _, rest = name.partition(".")
    if rest and code.has_beside(first) and code.folder is not None:
        inner = [f"{first}.{module}" for module in _modules_in(code.folder / first)]
        return did_you_mean(name, inner)
    installed = {m.name for m in pkgutil.iter_modules(_libraries())} | sys.stdlib_module_names
    others = sorted(name for name in installed if not name.startswith("_"))
    return did_you_mean(first, [*dict.fromkeys([*beside, *others])])


def _modules_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            modules = (e for e in entries if e.name.endswith(".py") or e.is_dir())
            names = [entry.name.removesuffix(".py") for entry in modules]
            return sorted(filter(str.isidentifier, names))
    except OSError:
        return []


# What a loop lets in from outside: Python that a model brings, services on other machines.


def models_bring_no_code(facts: Facts) -> Iterator[Diagnostic]:
    """`trust_remote_code` runs code from the model's folder in the engine's process."""
    for name in facts.nodes:
        model = facts.model(name)
        if not getattr(model, "trust_remote_code", False):
            continue
        yield warning(
            "foreign.model_code",
            f"nodes.{name}.model.trust_remote_code",
            f"`{name}` runs the Python in the folder of `{model.path}` inside the engine, with all "
            "permissions of your user and no sandbox",
            "do so only if you have read that code; models that transformers supports need none",
            Fix.remove("Do not run the model's code", f"nodes.{name}.model.trust_remote_code"),
        )


def models_are_of_a_type_that_runs(facts: Facts) -> Iterator[Diagnostic]:
    """The model type in a model folder's config is one that can run."""
    for name in facts.nodes:
        model = facts.model(name)
        if not isinstance(model, PretrainedModel):
            continue
        config = config_in(model.path, facts.root)
        reason = None if config is None else refusal_of(config)
        if reason is None or (model.trust_remote_code and "auto_map" in (config or {})):
            continue
        yield error(
            "foreign.architecture",
            f"nodes.{name}.model.path",
            f"the model of `{name}` cannot run: {reason}",
            "use a causal language model, such as one of type llama, qwen3, gemma3, mixtral or "
            "gpt_oss",
        )


def services_are_allowed(facts: Facts) -> Iterator[Diagnostic]:
    """Services that score or generate are on allowed hosts, and their secrets are set."""
    allowed = AllowedRemotes.from_environment()
    for name, node in facts.nodes.items():
        source, rollout = getattr(node, "source", None), facts.rollout(name)
        if isinstance(source, Service):
            yield from _checked(name, "source", source, allowed)
        elif (chat := chat_service(node)) is not None:
            yield from _checked(name, "rollout.chat", chat, allowed)
        if rollout is not None and rollout.engine == "remote" and rollout.url is not None:
            yield from _checked(name, "rollout", rollout, allowed)


def _checked(
    node: str, section: str, service: Any, allowed: AllowedRemotes
) -> Iterator[Diagnostic]:
    url: str = service.url
    field, secret = f"{section}.url", getattr(service, "secret", None)
    refused = refusal(url, allowed)
    if refused is None and secret is not None:
        refused = refusal_of_secret(url)
    if refused is not None:
        yield error(
            "foreign.service",
            f"nodes.{node}.{field}",
            f"the service of `{node}` is not allowed: {refused.found}",
            refused.hint,
        )
    if secret is not None and secret_value(secret) is None:
        variable = secret_variable(secret)
        yield warning(
            "foreign.secret",
            f"nodes.{node}.{section}.secret",
            f"the secret `{secret}` for the service of `{node}` is not set",
            f"set {variable} where the run starts, or put it into a file "
            f"`{variable.lower()}` in COLOOP_SECRETS_DIR",
        )
