# SPDX-License-Identifier: BSD-3-Clause
"""The page docs/layouts.md is current: it shows which operators support sparse, nested and quantized tensors."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "layouts.py"


@pytest.fixture(scope="module")
def layouts():
    spec = importlib.util.spec_from_file_location("layouts", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["layouts"] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["layouts"]


def test_the_page_is_what_the_script_gives(layouts):
    page, release = layouts.PAGE.read_text("utf-8"), str(torch.__version__).partition("+")[0]
    if f"PyTorch {release};" not in page:
        pytest.skip(f"the page is of another release of PyTorch than {release}")
    assert page == layouts.render(), "run python packages/openreg-ops/tools/layouts.py"


@pytest.mark.parametrize("family", ["sparse, COO", "sparse, compressed", "nested, strided layout", "quantized"])
def test_the_device_has_every_operator_that_the_cpu_has(layouts, family):
    theirs, ours = map(layouts.registered, layouts.KEYS[family])
    assert theirs - ours == set()


def test_calls_that_wait_that_launch_and_that_are_refused_are_distinguished(layouts):
    x = torch.eye(2, device="openreg")
    assert layouts.behavior(x.exp) == "launches"
    assert layouts.behavior(x.nonzero) == "waits"
    assert layouts.behavior(lambda: x @ torch.ones(3, 3, device="openreg")) is None
