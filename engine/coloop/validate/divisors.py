"""Whole numbers that divide another one, for hints."""

from math import isqrt
from typing import Final

MOST_TRIED: Final = 2**20
"""With this, all divisors of numbers up to 10^12 are found; of a larger one, some."""


def divisors(number: int) -> list[int]:
    """Divisors of a positive number, in rising order; 1 and itself are always among them."""
    small = [n for n in range(1, min(isqrt(number), MOST_TRIED) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})
