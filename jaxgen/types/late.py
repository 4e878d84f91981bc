"""Libraries that load when they are first used, so that the statistics alone begin in the time that NumPy takes.

SciPy's parts do the same by themselves, after `import scipy`.
"""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    import pandas
    import sklearn.metrics
else:
    pandas = lazy_loader.load("pandas")
    sklearn = lazy_loader.load("sklearn")

__all__ = ["pandas", "sklearn"]
