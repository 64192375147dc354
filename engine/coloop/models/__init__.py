"""Language models and tokenizers: built from scratch, loaded from folders or the hub, saved.

Knows the `model` section of the spec, but nothing about training, generation or rows.
"""

from coloop.models.build import LoadedModel, build_model
from coloop.models.folder import load_weights, save_hf
from coloop.models.tokenizer import character_tokenizer

__all__ = ["LoadedModel", "build_model", "character_tokenizer", "load_weights", "save_hf"]
