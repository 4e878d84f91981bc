"""Real data as `Data`: bundled sets, arrays, data frames, CSV files, OpenML.

Every reader ends in `from_arrays`, so all data pass the same checks. Values are float64 on the host, in their own
units; nothing is scaled, filled in or shuffled. Messages count rows from 0 in the order of the data, whatever the
index of a frame says and without the header of a file.
"""

from jaxgen.datasets.arrays import from_arrays
from jaxgen.datasets.bundled import breast_cancer, diabetes, digits, wine
from jaxgen.datasets.tables import from_frame, openml, read_csv

__all__ = ["breast_cancer", "diabetes", "digits", "from_arrays", "from_frame", "openml", "read_csv", "wine"]
