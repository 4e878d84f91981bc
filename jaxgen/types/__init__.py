"""The values that pass along the corridor: Data, Plan, Learner, Losses.

Axis letters, used in every docstring and annotation of the package:
`Q` independent data sets, `R` resamplings, `N` cases, `D` inputs, `K` outputs,
`H` hidden units, `M` ensemble members, `S` saved iterations or samples.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
