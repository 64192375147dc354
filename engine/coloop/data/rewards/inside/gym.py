"""Scores answers with the verifiers of reasoning-gym, in a sandbox; the caller limits the time.

A verifier may evaluate the text of an answer, so it runs here only. Generator and problem come from
the driver, pickled, because verifiers compare tuples and sets that JSON does not have.
"""

import base64
import pickle
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class Unused(ModuleType):
    """Stands for cellpylib, with which one generator makes problems, and which imports matplotlib,
    which needs files of its own."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class UnusedFinder(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        return ModuleSpec(name, self) if name == "cellpylib" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Unused(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


sys.meta_path.insert(0, UnusedFinder())
warnings.simplefilter("ignore")

from reasoning_gym.factory import DATASETS  # noqa: E402


def judge(text: str, gym: str, config: str, entry: str) -> dict[str, float]:
    """`score` between 0 and 1 as the verifier of the generator gives it."""
    verifier = object.__new__(DATASETS[gym][0])  # a whole one reads files
    verifier.config = loaded(config)
    score = verifier.score_answer(text, loaded(entry))
    return {"score": float(score)}


def loaded(text: str) -> object:
    return pickle.loads(base64.b64decode(text))
