"""The user's Python with what it imports: read as a run reads it, and never run.

What is installed is asked of this machine; a run elsewhere may find more, so what is missing is a
warning.
"""

import ast
import os
import pkgutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from coloop.plan.settings.facts import config_in
from coloop.plan.settings.families import refusal_of
from coloop.sandbox.code_files import CodeFile, file_of, needed_by, read_code
from coloop.sandbox.foreseen import closed_calls
from coloop.sandbox.inside.closed import INSTEAD, sentence
from coloop.spec.diagnostics import Change, Diagnostic, Fix, Severity, did_you_mean
from coloop.spec.model import PretrainedModel
from coloop.spec.remotes import (
    AllowedRemotes,
    refusal,
    refusal_of_secret,
    secret_value,
    secret_variable,
)
from coloop.validate.facts import Facts, found
from coloop.validate.texts import code_file_of, codes_of, path_of_code

REWARD = "reward"
"""The function of rewards, which are told what to use instead of what is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Code:
    """Code of a node, with the modules beside its file."""

    node: str
    field: str
    file: str | None
    """As the loop names it; None of code in the loop."""
    folder: Path | None
    read: CodeFile
    is_reward: bool

    def parts(self) -> Iterator[tuple[str | None, str, str]]:
        """File, package and source of each part."""
        yield self.file, "", self.read.source
        for name, source in self.read.modules.items():
            yield file_of(name), name.rpartition(".")[0], source

    def has_beside(self, name: str) -> bool:
        modules = self.read.modules
        return name in modules or any(one.startswith(f"{name}.") for one in modules)


def code_files_can_be_read(facts: Facts) -> Iterator[Diagnostic]:
    """Files of Python are in their encoding, and so is what they import; that compiles."""
    for name, node in facts.nodes.items():
        named = code_file_of(node)
        path = path_of_code(facts, named.file) if named is not None else None
        if named is None or path is None:
            continue
        try:
            modules = read_code(path).modules
        except OSError:
            continue
        except ValueError as error:
            yield found("text.code_syntax", f"{error}", node=name, field=named.field)
            continue
        for module, source in modules.items():
            problem = _why_not_compiled(source)
            if problem is not None:
                message = f"`{file_of(module)}` does not compile{problem}"
                yield found("text.code_syntax", message, node=name, field=named.field)


def code_has_what_it_uses(facts: Facts) -> Iterator[Diagnostic]:
    """What code imports lies beside it or is installed, and what it calls is there in its limited
    process."""
    for code in _codes(facts):
        for file, package, source in code.parts():
            yield from _not_found(code, file, package, source)
            yield from _closed(code, file, source)


def _not_found(code: _Code, file: str | None, package: str, source: str) -> Iterator[Diagnostic]:
    for need in sorted(needed_by(source, package), key=lambda one: one.line):
        first = need.name.partition(".")[0]
        is_beside = code.has_beside(first)
        if code.has_beside(need.name) or (not is_beside and _is_installed(first)):
            continue
        yield found(
            "text.code_import",
            f"{_shown(file)} imports `{need.name}` in line {need.line}, which is neither next to "
            "the file nor installed here",
            severity=Severity.WARNING,
            hint=_nearest(code, need.name)
            or "a run fails there unless the module is installed on the machine that runs it",
            node=code.node,
            field=code.field,
            text_line=need.line if file is None else None,
        )


def _closed(code: _Code, file: str | None, source: str) -> Iterator[Diagnostic]:
    for call in closed_calls(source):
        yield found(
            "text.code_closed",
            f"{_shown(file)} calls `{call.name}` in line {call.line}: {sentence(call.what)}",
            severity=Severity.WARNING,
            hint=INSTEAD[call.what] if code.is_reward else None,
            node=code.node,
            field=code.field,
            text_line=call.line if file is None else None,
        )


def _shown(file: str | None) -> str:
    return "the code" if file is None else f"`{file}`"


def _codes(facts: Facts) -> Iterator[_Code]:
    """All code of a loop that can be read."""
    for name, node in facts.nodes.items():
        for place in codes_of(node):
            read = CodeFile(place.content, {})
            yield _Code(
                node=name,
                field=place.field,
                file=None,
                folder=None,
                read=read,
                is_reward=place.function == REWARD,
            )
        named = code_file_of(node)
        path = path_of_code(facts, named.file) if named is not None else None
        if named is None or path is None:
            continue
        try:
            read = read_code(path)
        except (OSError, ValueError):
            continue
        yield _Code(
            node=name,
            field=named.field,
            file=named.file,
            folder=path.parent,
            read=read,
            is_reward=named.function == REWARD,
        )


def _why_not_compiled(source: str) -> str | None:
    try:
        compile(ast.parse(source), "<loop>", "exec")
    except SyntaxError as error:
        return f" in line {error.lineno}, column {error.offset}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f": {error}"
    return None


@cache
def _libraries() -> list[str]:
    return [*dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib"))]


def _is_installed(first: str) -> bool:
    """Whether the limited process would find a module of this name."""
    if first in sys.stdlib_module_names or first == "__future__":
        return True
    return PathFinder.find_spec(first, _libraries()) is not None


def _nearest(code: _Code, name: str) -> str | None:
    """Of what lies beside the file and of what is installed."""
    beside = [] if code.folder is None else _modules_in(code.folder)
    first, _, rest = name.partition(".")
    if rest and code.has_beside(first) and code.folder is not None:
        inner = [f"{first}.{one}" for one in _modules_in(code.folder / first)]
        return did_you_mean(name, inner)
    installed = {one.name for one in pkgutil.iter_modules(_libraries())} | sys.stdlib_module_names
    others = sorted(one for one in installed if not one.startswith("_"))
    return did_you_mean(first, [*dict.fromkeys([*beside, *others])])


def _modules_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = (one.name.removesuffix(".py") for one in entries if _may_be_module(one))
            return sorted(name for name in names if name.isidentifier())
    except OSError:
        return []


def _may_be_module(entry: "os.DirEntry[str]") -> bool:
    return entry.name.endswith(".py") or entry.is_dir()


RULES = (code_files_can_be_read, code_has_what_it_uses)


# What a loop lets in from outside: Python that a model brings, services on other machines.


def models_bring_no_code(facts: Facts) -> Iterator[Diagnostic]:
    """`trust_remote_code` hands the process of the engine to whoever wrote the model's folder."""
    for name in facts.nodes:
        model = facts.model(name)
        if not getattr(model, "trust_remote_code", False):
            continue
        change = Change(op="remove", path=f"nodes.{name}.model.trust_remote_code")
        yield found(
            "foreign.model_code",
            f"`{name}` runs the Python in the folder of `{model.path}` inside the engine, with all "
            "permissions of your user and no sandbox",
            hint=(
                "do so only if you have read that code; models that transformers supports need none"
            ),
            severity=Severity.WARNING,
            node=name,
            field="model.trust_remote_code",
            fixes=(Fix(title="Do not run the model's code", changes=(change,)),),
        )


def models_are_of_a_type_that_runs(facts: Facts) -> Iterator[Diagnostic]:
    """What a model's folder says of its type is looked at before anything is loaded."""
    for name in facts.nodes:
        model = facts.model(name)
        if not isinstance(model, PretrainedModel) or facts.is_outside(model.path):
            continue
        config = config_in(model.path, facts.root)
        reason = None if config is None else refusal_of(config)
        if reason is None or (model.trust_remote_code and "auto_map" in (config or {})):
            continue
        yield found(
            "foreign.architecture",
            f"the model of `{name}` cannot run: {reason}",
            hint=(
                "use a causal language model, such as one of type llama, qwen3, gemma3, mixtral or "
                "gpt_oss"
            ),
            node=name,
            field="model.path",
        )


def services_are_allowed(facts: Facts) -> Iterator[Diagnostic]:
    """Services that score or write are called only where the owner of this machine lists them."""
    allowed = AllowedRemotes.from_environment()
    for name, node in facts.nodes.items():
        source, rollout = getattr(node, "source", None), facts.rollout(name)
        if getattr(source, "type", None) == "remote":
            yield from _checked(name, "source", source, allowed)
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
        yield found(
            "foreign.service",
            f"the service of `{node}` is not allowed: {refused.found}",
            hint=refused.hint,
            node=node,
            field=field,
        )
    if secret is not None and secret_value(secret) is None:
        variable = secret_variable(secret)
        yield found(
            "foreign.secret",
            f"the secret `{secret}` for the service of `{node}` is not set",
            hint=f"set {variable} where the run starts, or put it into a file "
            f"`{variable.lower()}` in COLOOP_SECRETS_DIR",
            severity=Severity.WARNING,
            node=node,
            field=f"{section}.secret",
        )


FOREIGN_RULES = (models_bring_no_code, models_are_of_a_type_that_runs, services_are_allowed)
