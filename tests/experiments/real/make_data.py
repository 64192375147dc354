"""Writes the problems of the loops in this folder: sums of two numbers from 1 to 20, asked as a
chat, and as `7+8=` for a solver without a chat template. Which half of the 400 is held out follows
from a fixed seed."""

import json
import random
from pathlib import Path

DATA = Path(__file__).with_name("data")


def main() -> None:
    pairs = [(a, b) for a in range(1, 21) for b in range(1, 21)]
    random.Random(0).shuffle(pairs)
    for name, part in (("train", pairs[:200]), ("held-out", pairs[200:])):
        lines = [
            json.dumps(
                {
                    "prompt": [
                        {
                            "role": "user",
                            "content": f"What is {a} + {b}? Answer with the number only.",
                        }
                    ],
                    "answer": str(a + b),
                }
            )
            for a, b in part
        ]
        (DATA / f"sums-{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        bare = [json.dumps({"prompt": f"{a}+{b}=", "answer": str(a + b)}) for a, b in part]
        (DATA / f"bare-sums-{name}.jsonl").write_text("\n".join(bare) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
