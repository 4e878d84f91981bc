"""The values that pass along the corridor: Data, Plan, Learner, Losses.

Axis letters, used in every docstring and annotation of the package:
`Q` independent data sets, `R` resamplings, `N` cases, `D` inputs, `K` outputs,
`H` hidden units, `M` ensemble members, `S` saved iterations or samples.
"""

from jaxgen.types.data import Data
from jaxgen.types.learner import Freedom, Key, Learner, Loss, Minimum, Params, as_learner
from jaxgen.types.losses import Losses
from jaxgen.types.plan import Plan, as_labels, as_weights
from jaxgen.types.value import Value

__all__ = [
    "Data",
    "Freedom",
    "Key",
    "Learner",
    "Loss",
    "Losses",
    "Minimum",
    "Params",
    "Plan",
    "Value",
    "as_labels",
    "as_learner",
    "as_weights",
]
