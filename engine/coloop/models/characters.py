"""The vocabulary of models made from scratch: 128 single characters.

Printable ASCII, newline and tab, the symbols that procedural tasks write, and four marks. The
marks are spelled with brackets that are no ASCII, so no ASCII text reads as one. Ids are fixed: a
checkpoint depends on them.
"""

from __future__ import annotations

PAD, BOS, EOS, UNKNOWN = "⟨pad⟩", "⟨bos⟩", "⟨eos⟩", "⟨unk⟩"
MARKS = (PAD, BOS, EOS, UNKNOWN)
ASCII = "\n\t" + "".join(chr(code) for code in range(32, 127))
SYMBOLS = "×÷±≤≥≠≈→⇒√π∞°²³·–—‘’“”…€∧∨¬"  # noqa: RUF001 - these are the characters meant
VOCABULARY = (*MARKS, *ASCII, *SYMBOLS)

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
