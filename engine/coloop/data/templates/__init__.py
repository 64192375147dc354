"""Jinja for the texts of loops and the chat templates of models, with limits on time and memory.

    source -> grammar: limits length, depth and node types; inserts checks -> compiled code
    compiled code -> filters, operators and methods, each allowed and measured -> text

`chat.py` renders chat templates as transformers does, with the same limits.

Invariants, for any source and any values:
- everything that repeats, calls, writes or compares checks the time first;
- no single operation handles more than its limit, so none takes long after such a check;
- the bytes of all texts and lists that a rendering creates are counted;
- nothing is evaluated while a source is parsed or compiled.
"""
