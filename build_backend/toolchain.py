"""The package's own `_toolchain.py`, loaded without the package, which is not built yet."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlferry._toolchain import *  # noqa: F403
else:
    _spec = importlib.util.spec_from_file_location(__name__, Path(__file__).resolve().parents[1] / "python" / "dlferry" / "_toolchain.py")
    sys.modules[__name__] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[__name__])
