"""Two texts of a loop, line by line."""

from collections.abc import Iterator
from difflib import SequenceMatcher

from coloop_server.loops.schemas import DiffLine

CONTEXT = 3


def compare_texts(old: str, new: str) -> list[DiffLine]:
    """What changed, with a few lines around it; nothing where the texts are the same."""
    before, after = old.splitlines(), new.splitlines()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    lines: list[DiffLine] = []
    shown = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        first = group[0][1]
        if first > shown:
            lines.append(DiffLine(kind="gap", text=count_lines(first - shown)))
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                lines += told("same", before[start:end])
            else:
                lines += told("removed", before[start:end])
                lines += told("added", after[new_start:new_end])
        shown = group[-1][2]
    if lines and shown < len(before):
        lines.append(DiffLine(kind="gap", text=count_lines(len(before) - shown)))
    return lines


def told(kind: str, texts: list[str]) -> Iterator[DiffLine]:
    return (DiffLine.model_validate({"kind": kind, "text": text}) for text in texts)


def count_lines(count: int) -> str:
    return "1 line that is the same" if count == 1 else f"{count} lines that are the same"
