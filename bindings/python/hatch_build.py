"""Builds the C library of Epitome with cargo, and adds it to the wheel.

The wheel runs on every Python 3 of one platform, so its tag is `py3-none-PLATFORM`. With `EPITOME_LIBRARY=PATH` the build takes
that library, and does not run cargo.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = {"win32": "epitome_c.dll", "darwin": "libepitome_c.dylib"}


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the library to a wheel, and gives the wheel the tag of the platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        name = FILES.get(sys.platform, "libepitome_c.so")
        given = os.environ.get("EPITOME_LIBRARY")
        library = Path(given).resolve() if given else build(Path(self.root), name)
        if not library.is_file():
            raise FileNotFoundError(f"no library at {library}; unset EPITOME_LIBRARY to build it with cargo")
        if version == "editable":
            # An editable installation imports the package from its sources.
            shutil.copy2(library, Path(self.root, "src", "epitome", name))
        else:
            build_data["force_include"][str(library)] = f"epitome/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"


def build(root: Path, name: str) -> Path:
    """Builds the library with cargo, and returns its path."""
    workspace = root.parent.parent
    manifest = workspace / "Cargo.toml"
    if not manifest.is_file():
        raise FileNotFoundError(f"no {manifest}: build the wheel in a checkout of Epitome, or set EPITOME_LIBRARY=PATH")
    cargo = shutil.which("cargo")
    if cargo is None:
        raise FileNotFoundError("cargo was not found: install Rust from https://rustup.rs, or set EPITOME_LIBRARY=PATH")
    environment = dict(os.environ, CARGO_PROFILE_RELEASE_DEBUG="0", CARGO_PROFILE_RELEASE_STRIP="symbols")
    common = ["--locked", "--manifest-path", str(manifest)]
    subprocess.run([cargo, "build", "--release", "-p", "epitome-c", *common], env=environment, check=True)
    metadata = subprocess.run(
        [cargo, "metadata", "--format-version", "1", "--no-deps", *common], check=True, stdout=subprocess.PIPE
    )
    folder = Path(json.loads(metadata.stdout)["target_directory"])
    triple = os.environ.get("CARGO_BUILD_TARGET", "")
    return folder / triple / "release" / name


def platform_tag() -> str:
    """Returns the platform of the wheel, like `linux_x86_64`; cargo builds for one processor, also where Python has two."""
    tag = sysconfig.get_platform()
    if tag.endswith("universal2"):
        tag = tag.replace("universal2", platform.machine())
    return tag.replace("-", "_").replace(".", "_")
