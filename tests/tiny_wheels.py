# SPDX-License-Identifier: BSD-3-Clause
"""Makes wheels without content whose metadata is that of these packages, for every release of torch."""

import json
import os
import subprocess
import sys
import zipfile

from pyproject_metadata import StandardMetadata

from tools import torch_release
from tools.packages import discover, read_toml

# The last one is a release of PyTorch that is not supported yet.
TORCH = ("2.12.1", *(f"{release}.{patch}" for release in torch_release.SUPPORTED for patch in (0, 1)), "2.99.0")


def write_wheel(folder, name, version, metadata="", tag="py3-none-any", files=None):
    """A wheel with this metadata."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    content = {
        f"{info}/METADATA": metadata or f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
        **(files or {}),
    }
    record = "".join(f"{file},,\n" for file in (*content, f"{info}/RECORD"))
    path = folder / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**content, f"{info}/RECORD": record}.items():
            archive.writestr(file, text)
    return path


def write_all(folder, checkout):
    """A folder of wheels as a package index has them after a release; leaves the checkout for the last one."""
    folder.mkdir()
    for release in torch_release.SUPPORTED:
        torch_release.retarget(checkout, release)
        for package in discover(checkout).values():
            tables = read_toml(package.folder / "pyproject.toml")
            metadata = StandardMetadata.from_pyproject(tables, project_dir=package.folder)
            write_wheel(folder, package.name, package.version, str(metadata.as_rfc822()))
    for version in TORCH:
        write_wheel(folder, "torch", version, files={"torch/__init__.py": ""})
    for name, version in {"numpy": "2.4", "packaging": "26.0", "rich": "15.0", "tomli": "2.3"}.items():
        write_wheel(folder, name, version)
    return folder


def run_pip(index, *arguments, **settings):
    """pip with these wheels and no setting of this machine, but the ones that are given, as PIP_NAME="value"."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    env |= {"PIP_CONFIG_FILE": os.devnull, **settings}
    install = ("install", "--no-index", "--find-links", str(index), "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", *install, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def chosen(index, folder, *arguments):
    """What pip would install into an empty folder: name -> version."""
    report = folder / "report.json"
    result = run_pip(index, "--dry-run", "--report", str(report), "--target", str(folder / "target"), *arguments)
    assert result.returncode == 0, result.stderr
    installed = json.loads(report.read_text("utf-8"))["install"]
    return {item["metadata"]["name"]: item["metadata"]["version"] for item in installed}
