"""DELVE (Rasmussen et al. 1996): learning methods on families of tasks, their results archived, compared and drawn."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
