from .analysis import TaskComparison, analyse, standard_loss
from .archive import Archive
from .figure import task_figure
from .files import read_data
from .methods import METHODS, Method, ese_hidden, method, mlp_bgd, mlp_ese_1, mlp_mc
from .prototask import CASES, FAMILIES, SIZES, Prototask, simulated
from .report import Compared, all_compared, compared, page, tables, write_report
from .tasks import run, run_task, task_key

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
    "mlp_mc",
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
