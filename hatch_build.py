"""The build hook: compiles the libraries and the generator, tags the wheel from what they need; puts the Go modules into the sdist."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

from build_backend import native, toolchain


class BuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    @property
    def _root(self) -> Path:
        return Path(self.root).resolve()

    def dependencies(self) -> list[str]:
        """Asked by pip before the build: the packages that carry Go and zig, where this machine lacks a tool."""
        try:
            if self.target_name == "sdist":
                return toolchain.missing(self._root, compiler=False) if native.unvendored(self._root) else []
            return toolchain.missing(self._root)
        except toolchain.BuildError as error:
            sys.exit(str(error))

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            if self.target_name == "sdist":
                self._sdist(build_data)
            else:
                self._wheel(version, build_data)
        except toolchain.BuildError as error:
            sys.exit(str(error))

    def _sdist(self, build_data: dict[str, Any]) -> None:
        wanted = native.unvendored(self._root)
        for module in (self._root, self._root / native.GENERATOR_MODULE):
            vendor = module / "vendor"
            name = vendor.relative_to(self._root)
            if module in wanted:
                vendor = self._root / "build" / "vendored" / name
                shutil.rmtree(vendor, ignore_errors=True)
                native.vendor(self._root, module, vendor)
            if (vendor / "modules.txt").exists():
                build_data["force_include"][str(vendor)] = str(name)

    def _wheel(self, version: str, build_data: dict[str, Any]) -> None:
        built = native.build(self._root, self.metadata.version)
        build_data["pure_python"] = False
        if version == "editable":
            for path in (built.core, built.golib):
                target = self._root / "python" / "dlferry" / path.name
                # A new file, not new content: a running interpreter may have the old one mapped.
                fresh = target.with_name(target.name + ".new")
                shutil.copy2(path, fresh)
                fresh.replace(target)
            return
        build_data["tag"] = built.tag
        include = build_data["force_include"]
        include[str(built.core)] = f"dlferry/{native.CORE}"
        include[str(built.golib)] = f"dlferry/{native.GOLIB}"
        include[str(built.generator)] = f"dlferry/{native.GENERATOR}"
        for name, path in built.go_module.items():
            include[str(path)] = f"dlferry/{native.GO_MODULE}/{name}"
        name = self.metadata.core.name.replace("-", "_")
        include[str(built.licences)] = f"{name}-{self.metadata.version}.dist-info/licenses/{native.LICENCES}"

    def clean(self, versions: list[str]) -> None:
        shutil.rmtree(self._root / "build", ignore_errors=True)
        for name in (native.CORE, native.GOLIB):
            (self._root / "python" / "dlferry" / name).unlink(missing_ok=True)
