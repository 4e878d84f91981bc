from . import compare, conformal, estimate, interval, metrics, planning

__all__ = ["compare", "conformal", "estimate", "interval", "metrics", "planning"]
