"""The task `images`: a rectangle in a one-bit image, with a caption or a question about its size.

An image is a list of rows of 0 and 1, so that loops with images can be tried without files.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from coloop.data.tasks.base import Part, Problem, Stratum, Task, answer_checker, decode, stable_hash
from coloop.spec.tasks import ImagesTask

LETTERS: Final = "ABCD"

Block = tuple[int, int, int, int]
"""Left edge, top edge, width, height."""


def _strata_of(make: Callable[[Block], dict[str, Any]]) -> Callable[..., Sequence[Stratum]]:
    def strata(parameters: ImagesTask) -> Sequence[Stratum]:
        pixels = parameters.pixels

        def problem(index: int) -> Problem | None:
            left, top, width, height = decode(index, [pixels] * 4)
            block = (left, top, width + 1, height + 1)
            if left + width >= pixels or top + height >= pixels:
                return None
            columns = {"figure": _figure(block, pixels), **make(block)}
            return Problem(key=str(block), columns=columns)

        return [Stratum(size=pixels**4, problem=problem)]

    return strata


def _figure(block: Block, pixels: int) -> list[list[int]]:
    left, top, width, height = block
    return [
        [int(left <= x < left + width and top <= y < top + height) for x in range(pixels)]
        for y in range(pixels)
    ]


def _captioned(block: Block) -> dict[str, Any]:
    left, top, width, height = block
    return {"caption": f"a block {width} wide and {height} high at {left}, {top}"}


def _questioned(block: Block) -> dict[str, Any]:
    rng = random.Random(stable_hash(str(block)))
    side = rng.randrange(2)
    right = block[2 + side]
    wrong = rng.sample([number for number in range(1, right + 5) if number != right], 3)
    numbers = sorted([right, *wrong])
    options = " ".join(f"{letter}={n}" for letter, n in zip(LETTERS, numbers, strict=True))
    question = f"how {('wide', 'high')[side]} is the block?"
    return {
        "prompt": f"{question} {options} answer:",
        "question": question,
        "options": options,
        "answer": LETTERS[numbers.index(right)],
    }


IMAGES: Final = Task(
    name="images",
    parameters=ImagesTask,
    main=Part(strata=_strata_of(_captioned)),
    parts={"items": Part(strata=_strata_of(_questioned))},
    check=answer_checker(),
)
