"""DELVE (Rasmussen et al. 1996): learning methods on families of tasks, their results archived, compared and drawn."""

from jaxgen.delve.archive import Archive
from jaxgen.delve.methods import METHODS, Method, method, mlp_bgd
from jaxgen.delve.prototask import CASES, FAMILIES, SIZES, Prototask, simulated
from jaxgen.delve.report import Compared, all_compared, compared, page, tables, write_report
from jaxgen.delve.tasks import run, run_task, task_key

__all__ = ["CASES", "FAMILIES", "METHODS", "SIZES", "Archive", "Compared", "Method", "Prototask", "all_compared", "compared", "method", "mlp_bgd", "page", "run", "run_task", "simulated", "tables", "task_key", "write_report"]
