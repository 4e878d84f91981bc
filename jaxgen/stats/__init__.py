"""Estimates, intervals and tests: functions of one or two loss matrices, in double precision on the host."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
