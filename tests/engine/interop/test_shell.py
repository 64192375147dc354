"""Shell scripts as commands, without running them."""

import pytest

from coloop.errors import ImportRefused
from coloop.interop.shell import commands


def words(script: str) -> list[list[str]]:
    return [[word.text for word in command] for command in commands(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("train a=1 \\\n  b=2", [["train", "a=1", "b=2"]]),
        ("train a=1 \\\n  # a comment\n  b=2", [["train", "a=1", "b=2"]]),
        ("N=4\ntrain n=$N m=${N} k=${K:-7}", [["train", "n=4", "m=4", "k=7"]]),
        ("A=$((1024 * 2 + 1))\ntrain a=$A b=$((A / 2))", [["train", "a=2049", "b=1024"]]),
        ('L=(a=1 "b=x y")\nL+=(c=3)\ntrain ${L[@]}', [["train", "a=1", "b=x y", "c=3"]]),
        ("train a='x $N' b=\"['p','q']\"", [["train", "a=x $N", "b=['p','q']"]]),
        ("A='--x 1 --y 2'\ntrain $A", [["train", "--x", "1", "--y", "2"]]),
        ("A='--x 1'\ntrain \"$A\"", [["train", "--x 1"]]),
        (
            "read -r -d '' CMD <<EOF\ntrain --a 1 \\\n  --b 2\nEOF\npython -m $CMD",
            [["python", "-m", "train", "--a", "1", "--b", "2"]],
        ),
        ("X=1 train a=$(date) b=$HOME/x", [["train", "a=$(date)", "b=~/x"]]),
        ("if [ $1 ]; then M=a; else M=b; fi\ntrain m=$M", [["[", "$1", "]"], ["train", "m=a"]]),
        ("A=$A\ntrain a=$A", [["train", "a=$A"]]),
    ],
)
def test_words_of_commands(script: str, expected: list[list[str]]) -> None:
    assert words(script) == expected


def test_words_have_their_lines() -> None:
    command = commands("#!/bin/bash\nL=(\n  a=1\n  b=2\n)\ntrain ${L[@]} \\\n  c=3")[0]

    assert [(word.text, word.line) for word in command] == [
        ("train", 6),
        ("a=1", 3),
        ("b=2", 4),
        ("c=3", 7),
    ]


def test_an_open_quote_is_named_with_its_line() -> None:
    with pytest.raises(ImportRefused, match="line 2: the quote"):
        commands("train a=1\ntrain b='2")


def test_variables_in_a_circle_end() -> None:
    assert words("A='$B'\nB='$A'\ntrain $A") in ([["train", "$A"]], [["train", "$B"]])
