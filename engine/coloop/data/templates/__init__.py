"""Jinja texts of a loop, and the chat templates of models: which part of Jinja they have, and how
much each may do.

    source -> grammar (length, depth, kinds of nodes; every step gets a check) -> compiled code
    compiled code -> filters, operators, methods, each from a list and measured -> text

`chat.py` renders the template of a model's folder as transformers does, under the same limits.

Knows nothing of nodes, rows or roles. Invariants, for any source and any values of a row:
- whatever repeats, calls, writes or compares looks at the clock first;
- no single act handles more than its limit, so none is long after the clock was looked at;
- all texts and lists that one rendering makes are counted in bytes, kept or not;
- nothing is worked out while a source is read or compiled.
"""
