# SPDX-License-Identifier: BSD-3-Clause
"""A plug-in that does not load ends `import torch` with its name, its cause and the way out."""

CAUSE = """
def deep():
    raise FileNotFoundError("libvendor.so is gone")

try:
    deep()
except FileNotFoundError as error:
    raise ImportError("cannot start") from error
"""

CATCH = """
try:
    import torch
except RuntimeError as error:
    print(error)
    while error.__cause__ is not None:
        error = error.__cause__
        print(type(error).__name__, error, sep=": ")
"""


def test_the_plugin_and_every_cause_are_shown(site):
    site.runtime()
    site.plugin("openreg-ops", CAUSE)
    result = site.python(CATCH)
    assert result.returncode == 0, result.stderr
    torchs, ours, plugins, root = result.stdout.splitlines()[1:]
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in torchs
    for part in (
        "'openreg_ops'",
        "package openreg-ops",
        "FileNotFoundError: libvendor.so is gone",
        "pip install --force-reinstall --no-deps openreg-ops",
        "pip uninstall openreg-ops",
    ):
        assert part in ours
    assert plugins == "ImportError: cannot start"
    assert root == "FileNotFoundError: libvendor.so is gone"


def test_the_switch_that_the_error_names_helps(site):
    site.runtime()
    site.plugin("openreg-ops", CAUSE)
    assert site.python("import torch").returncode != 0
    result = site.python("import torch; print(torch.ones(2).sum().item())", autoload=False)
    assert result.stdout == "2.0\n", result.stderr


def test_a_plugin_of_another_abi_is_refused_before_it_is_imported(site):
    site.runtime()
    site.plugin("openreg-other-abi", "print('loaded', __name__)")
    result = site.python("import torch")
    assert result.returncode != 0
    assert result.stdout == "loaded openreg_runtime\n"
    assert "compiled for ABI 8, but openreg-runtime has ABI 7. pip install" in result.stderr
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in result.stderr


def test_a_plugin_that_ends_the_process_ends_the_import_with_an_error(site):
    site.runtime()
    site.plugin("openreg-ops", "import sys; sys.exit(0)")
    result = site.python("import torch")
    assert result.returncode == 1
    assert "failed to load: SystemExit: 0. Mend that, or go on without it: pip uninstall" in result.stderr
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in result.stderr


def test_metadata_without_a_name_does_no_harm(site):
    site.runtime()
    site.plugin("openreg-ops")
    (site.folder / "openreg_ops-1.0.dist-info" / "METADATA").write_text("Version: 1.0\n", "utf-8")
    result = site.python("import torch")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "loaded openreg_runtime\nloaded openreg_ops\n"


def test_a_runtime_that_refuses_is_named(site):
    site.runtime("raise ImportError('works with torch 9.9.* only')")
    result = site.python("import torch")
    assert result.returncode != 0
    assert "openreg-runtime" in result.stderr
    assert "works with torch 9.9.* only" in result.stderr


def test_who_imports_the_runtime_first_gets_it_and_a_warning(site):
    site.runtime()
    site.plugin("openreg-ops", CAUSE)
    result = site.python("import openreg_runtime, torch; print(openreg_runtime.ready)")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "True"
    for part in ("RuntimeWarning", "'openreg_ops'", "libvendor.so is gone", "pip"):
        assert part in result.stderr
