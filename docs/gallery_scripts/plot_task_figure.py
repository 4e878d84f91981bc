"""
Methods on tasks of several sizes
=================================

Three methods on one of DELVE's families with 64 and 128 training cases, in the format of Rasmussen 1996: the expected loss of each method with its standard
error, and below the p-values of all pairs.
"""

import tempfile

from jaxgen import delve, learn

tasks = delve.simulated("kin", inputs=8, sizes=(64, 128))
ridge = delve.Method("ridge", learn.Normalised(learn.LeastSquares(ridge=10.0)))
with tempfile.TemporaryDirectory() as folder:
    archive = delve.run(folder, [tasks], [delve.METHODS["lin-1"], delve.METHODS["knn-cv-1"], ridge])
    comparison = delve.compared(archive, tasks.name)
delve.task_figure(comparison.tasks, tasks.name)
