"""DELVE (Rasmussen et al. 1996): learning methods on families of tasks, their results archived, compared and drawn."""

from jaxgen.delve.analysis import TaskComparison, analyse, standard_loss
from jaxgen.delve.archive import Archive
from jaxgen.delve.figure import task_figure
from jaxgen.delve.files import read_data
from jaxgen.delve.methods import METHODS, Method, ese_hidden, method, mlp_bgd, mlp_ese_1
from jaxgen.delve.prototask import CASES, FAMILIES, SIZES, Prototask, simulated
from jaxgen.delve.report import Compared, all_compared, compared, page, tables, write_report
from jaxgen.delve.tasks import run, run_task, task_key

__all__ = [
    "CASES",
    "FAMILIES",
    "METHODS",
    "SIZES",
    "Archive",
    "Compared",
    "Method",
    "Prototask",
    "TaskComparison",
    "all_compared",
    "analyse",
    "compared",
    "ese_hidden",
    "method",
    "mlp_bgd",
    "mlp_ese_1",
    "page",
    "read_data",
    "run",
    "run_task",
    "simulated",
    "standard_loss",
    "tables",
    "task_figure",
    "task_key",
    "write_report",
]
