"""Pure functions on tensors: masks, advantages, KL, losses, preferences, corrections.

They take tensors and keyword floats, and do not depend on spec, roles or devices. Masks are bool,
1 = trained token. Everything is computed in float32 or wider.

Legend of all modules here: ``B`` sequences, ``T`` token positions of prompt plus completion,
``P`` pairs, ``E`` reward events (a number at a token position of a sequence).
"""
