"""What was assessed, as tables, as text, and as one page of HTML."""

from jaxgen.report.document import as_html, html
from jaxgen.report.judged import View, views
from jaxgen.report.tables import comparison_table, comparisons, intervals, page, summaries

__all__ = ["View", "as_html", "comparison_table", "comparisons", "html", "intervals", "page", "summaries", "views"]
