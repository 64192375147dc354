"""coloop: a training-loop composer for RL post-training and co-training of language models.

Importing this package loads nothing heavy; torch, Ray and transformers stay below the light line.
"""

__version__ = "0.1.0"
