"""A configuration of another framework as a loop, with what became of each of its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import ModuleType
from typing import Any, Final

from coloop.errors import ImportRefused
from coloop.interop import openrlhf, trl, verl
from coloop.interop.draft import Draft
from coloop.interop.reading import MOST_BYTES, File, Source
from coloop.interop.settings import Carried, Fate, Settings, known_names, ours
from coloop.interop.shell import Word, commands, kept_texts
from coloop.interop.values import yaml_data
from coloop.spec.algorithms.registry import FRAMEWORKS, VERSIONS
from coloop.spec.io import parse
from coloop.spec.lean import record

MODULES: Final[Mapping[str, ModuleType]] = {
    "trl": trl,
    "verl": verl,
    "openrlhf": openrlhf,
}
"""By the name that commands take."""
KNOWN: Final = "a TRL script or YAML, a verl command or YAML, or OpenRLHF arguments"
MOST_UNFIT: Final = 20
MOST_SHOWN: Final = 80
DEEPEST: Final = 3


@record
class Imported:
    """A loop made from a configuration."""

    framework: str
    """Name of the framework, as it writes itself."""
    version: str
    """Version whose names and defaults were used."""
    trainer: str
    name: str
    text: str
    """The loop as YAML."""
    settings: tuple[Fate, ...]
    """Every given setting, in the order of the file."""
    assumptions: tuple[str, ...]
    """What the configuration does not say and was assumed."""

    def of_kind(self, kind: str) -> tuple[Fate, ...]:
        return tuple(fate for fate in self.settings if fate.kind == kind)


def import_text(
    text: str,
    *,
    name: str = "imported",
    source: Source | None = None,
    others: Sequence[str] = (),
) -> Imported:
    """The loop that a configuration describes.

    Args:
        name: name of the file; its suffix helps to tell what it is.
        source: where files that it names are, and what is known of the hardware.
        others: further files of the same job (prime-rl's orchestrator and inference).

    Raises:
        ImportRefused: it is none of the known kinds, or cannot be read.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise ImportRefused(
            f"{name} is larger than {MOST_BYTES // 2**20} MiB, which no configuration is: give the "
            "script or the file with the settings alone"
        )
    source = source or Source()
    key, file = recognized(text, name)
    module = MODULES[key]
    if others:
        raise ImportRefused("several files are given: give one")
    trainer, given = module.read(file)
    prefix = module.KEY
    title, version = FRAMEWORKS[prefix], VERSIONS[prefix]
    table = module.table_of(trainer) if hasattr(module, "table_of") else module.TABLE
    settings = Settings(table, given, title=f"{title} {version}", names=known_names(module.NAMES))
    stem = PurePath(name).stem or "imported"
    draft = Draft(stem, f"Imported from {title}.")
    module.shape(settings, draft, source, *((trainer, file) if key != "verl" else ()))
    carry(settings, draft)
    comment = f"Imported from {title} ({trainer}); defaults of {title} {version}."
    loop = _fitting(settings, draft, comment)
    return Imported(
        framework=title,
        version=version,
        trainer=trainer,
        name=draft.name,
        text=loop,
        settings=tuple(sorted(settings.fates, key=lambda fate: fate.line or 0)),
        assumptions=tuple(draft.assumptions),
    )


def shown(value: Any) -> str:
    """A value on one line."""
    text = value if isinstance(value, str) else getattr(value, "text", None) or repr(value)
    line = " ".join(str(text).split())
    return line if len(line) <= MOST_SHOWN else f"{line[: MOST_SHOWN - 1]}…"


def carry(settings: Settings, draft: Draft) -> None:
    """Put the values of settings that are one value of a loop."""
    rows = [
        (name, row)
        for name, row in settings.table.items()
        if isinstance(row, Carried) and "*" not in name
    ]
    for name, row in sorted(rows, key=lambda item: item[1].times is not None):
        value = settings[name]
        if not draft.holds(row.to):
            node = row.to.split(".")[1]
            settings.leave(name, f"there is no {node.replace('_', ' ')} in this loop")
            continue
        if value is None and not settings.is_given(name):
            continue
        scale = 1 if row.times is None else draft.get(row.times)
        if scale is None and row.times is not None:
            scale = draft.default_of(row.times)
        mine = ours(row, value, scale)
        if row.words and isinstance(value, str) and mine not in row.words.values():
            settings.miss(name, f"`{value}` is not known; known are {_listed(row.words)}")
            continue
        if draft.get(row.to) is not None and not settings.is_given(name):
            continue
        if settings.is_given(name) or not draft.is_default(row.to, mine):
            draft.put(row.to, mine)


def _listed(words: Mapping[Any, Any]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _fitting(settings: Settings, draft: Draft, comment: str) -> str:
    """The loop without values that it does not take, which are then not understood."""
    for _ in range(MOST_UNFIT):
        text = draft.text(comment)
        parsed = parse(text)
        if parsed.spec is not None:
            return text
        found = parsed.diagnostics[0]
        path = found.path or ""
        name = settings.given_for(path) if path else None
        if name is None or not draft.remove(path):
            raise ImportRefused(f"{path}: {found.message}" if path else found.message)
        settings.miss(name, f"{found.message}; left out")
    raise ImportRefused(f"more than {MOST_UNFIT} values fit no loop: is this a configuration?")


def recognized(text: str, name: str) -> tuple[str, File]:
    """Which framework a text is for, and the text taken apart."""
    suffix = PurePath(name).suffix.lower()
    if not text.strip():
        raise ImportRefused(f"{name} is empty: give {KNOWN}")
    if suffix == ".py" or (suffix not in (".yaml", ".yml", ".sh") and trl.is_script(text)):
        return "trl", File(text=text)
    if suffix not in (".yaml", ".yml", ".json"):
        found = _command(text)
        if found is not None:
            return found
    if suffix in (".yaml", ".yml", ".json") or _is_mapping(text):
        data = yaml_data(text, "file")
        return _of_mapping(data, name), File(text=text, data=data, name=name)
    raise ImportRefused(f"{name} names no trainer that is known here: give {KNOWN}")


def _is_mapping(text: str) -> bool:
    return re.match(r"\s*(#[^\n]*\n\s*)*[\w.]+\s*:(\s|$)", text) is not None


def _of_mapping(data: Mapping[str, Any], name: str) -> str:
    """The framework of a YAML file, by the sections that it has."""
    if data.get("coloop") is not None:
        raise ImportRefused(f"{name} is a loop of coloop already: open it")
    if "actor_rollout_ref" in data or ("algorithm" in data and "data" in data):
        return "verl"
    if trl.is_config(data):
        return "trl"
    keys = ", ".join(f"`{key}`" for key in list(data)[:5])
    raise ImportRefused(f"{name} has {keys}, which is no configuration known here: give {KNOWN}")


def _command(text: str, depth: int = 0) -> tuple[str, File] | None:
    """The first command that starts a trainer known here, also one that is an argument of another
    (`bash -c "..."`)."""
    bare: list[Word] | None = None
    for words in [*commands(text), *([word] for word in kept_texts(text))]:
        for word in words:
            if depth < DEEPEST and " " in word.text and (inner := _command(word.text, depth + 1)):
                return inner
        found = _program(words)
        if found is not None:
            return found
        if (
            bare is None
            and len(words) > 1
            and all("=" in word.text or word.text.startswith("--") for word in words[:2])
        ):
            bare = words
    if bare is not None:
        return _arguments(bare)
    return None


def _program(words: list[Word]) -> tuple[str, File] | None:
    """Framework and arguments of a command whose words name a trainer."""
    for at, word in enumerate(words):
        for key, module in MODULES.items():
            entry = module.entry_of(word.text, words[at + 1 :])
            if entry is None:
                continue
            rest = words[at + 1 + entry[1] :]
            launcher = _launcher(words[:at])
            file = File(text="", words=rest, program=entry[0], launcher=launcher)
            return key, file
    return None


def _launcher(words: Sequence[Word]) -> dict[str, str]:
    """Options of the launchers before a program: `--num_processes 4` or `--nproc-per-node=8`."""
    options: dict[str, str] = {}
    for at, word in enumerate(words):
        if not word.text.startswith("--"):
            continue
        name, equals, value = word.text[2:].partition("=")
        following = words[at + 1].text if at + 1 < len(words) else ""
        options[name.replace("-", "_")] = value if equals else following
    return options


def _arguments(words: list[Word]) -> tuple[str, File] | None:
    """Arguments without a program: told by their form."""
    if any(re.match(r"\+{0,2}(actor_rollout_ref|algorithm|data|trainer)\.", w.text) for w in words):
        return "verl", File(text="", words=words, program="verl.trainer.main_ppo")
    if any(w.text.startswith("--") for w in words) and openrlhf.is_command(words):
        return "openrlhf", File(text="", words=words, program=openrlhf.program_of(words))
    return None
