"""The classifier: a nonlinear Neyman-Pearson model that learns from one pass over a stream.

>>> from npstream.model import Model, Params
>>> model = Model.create(Params(d=2, tau=0.05))
>>> model.learn_one([0.3, -1.2], -1)
>>> model.decide_one([2.0, 0.1])
-1
"""

from npstream.model.model import Model
from npstream.model.operations import Operations, Outcome
from npstream.model.outcome import Op, Reason
from npstream.model.params import ALGORITHM, MUTABLE, Params
from npstream.model.seed import seeded
from npstream.model.succession import succeeded

__all__ = ["ALGORITHM", "MUTABLE", "Model", "Op", "Operations", "Outcome", "Params", "Reason", "seeded", "succeeded"]
