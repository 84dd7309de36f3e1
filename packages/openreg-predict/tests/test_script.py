# SPDX-License-Identifier: BSD-3-Clause
"""The commands predict scripts on meta and on the device, compare variants, draw pictures, and refuse invalid input."""

import json

import pytest

from openreg_predict import __main__, what_if
from openreg_predict.description import FOLDER
from openreg_predict.script import ScriptError, program_of

SCRIPT = """
import torch

BATCH = 32
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8)).to("DEVICE")
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.rand(BATCH, 64, device="DEVICE")


def step():
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("DEVICE", "cuda"), "utf-8")
    return str(path)


def run(*arguments):
    return __main__.main([str(item) for item in arguments])


def test_a_script_for_another_device_is_predicted(script, capsys):
    assert run("run", script, "--device", "h100", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mode"] == "training"
    assert found["error"] == "not validated for training in float32 on h100"
    assert found["range"][0] < found["seconds"] < found["range"][1]
    parameters = 4 * (64 * 256 + 256 + 256 * 8 + 8)
    assert found["peak_bytes"] > 4 * parameters  # with gradients and two states of the optimizer
    assert {item["name"] for item in found["operators"]} >= {"aten::addmm", "aten::mm", "aten::_foreach_addcdiv_"}
    assert {item["name"] for item in found["modules"]} >= {"Sequential.0", "Sequential.2"}


def test_the_table_says_how_far_to_trust_it(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.replace("DEVICE", "cuda").replace("BATCH = 32", "BATCH = 262144"), "utf-8")
    assert run("run", path, "--device", "v100") == 0
    assert "validated error: mean" in capsys.readouterr().out


def test_what_ifs_side_by_side(script, capsys):
    changes = ["bandwidth=2", "launch=0.5", "graph", "dtype=bfloat16", "devices=8", "set:BATCH=262144"]
    assert run("compare", script, "--device", "h100", "a100", "--json", "--what-if", *changes) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found)[:3] == ["h100", "h100, bandwidth=2", "h100, launch=0.5"]
    times = {name: item["seconds"] for name, item in found.items()}
    assert times["h100, graph"] < times["h100, launch=0.5"] < times["h100"] <= times["h100, devices=8"]
    assert times["h100, set:BATCH=262144"] > times["h100"]
    assert found["h100, dtype=bfloat16"]["peak_bytes"] == found["h100"]["peak_bytes"] // 2
    assert found["a100, bandwidth=2"]["validated"] is None


def test_a_roofline_is_drawn(script, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib, of the extra `picture`")
    assert run("run", script, "--device", "h100", "--roofline", tmp_path / "roofline.svg") == 0
    assert "NVIDIA H100" in (tmp_path / "roofline.svg").read_text("utf-8")
    assert run("run", script, "--device", "h100", "--roofline", tmp_path / "roofline.strange") == 1
    assert "roofline.strange" in capsys.readouterr().err


@pytest.mark.parametrize("named", ["openreg", "cuda"])
def test_a_script_runs_on_the_device_in_the_chips_time(tmp_path, capsys, named):
    path = tmp_path / "train.py"
    moved = SCRIPT.replace("optimizer =", "model = model.cuda()\noptimizer =")
    path.write_text(moved.replace("DEVICE", named), "utf-8")
    assert run("run", path, "--device", "h100", "--on", "openreg", "--json", "--trace", tmp_path / "trace.json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seconds"] >= found["engines"]["compute"] > 0
    assert found["no_rule"] == []
    assert json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "SCRIPT", "--device", "h101"], "there is no description 'h101'"),
        (["run", "missing.py", "--device", "h100"], "missing.py cannot be run"),
        (["run", "SCRIPT", "--device", "h100", "--trace", "x.json"], "needs --on openreg"),
        (["run", "SCRIPT", "--device", "h100", "--on", "openreg", "--roofline", "x.svg"], "--roofline draws"),
        (["run", "SCRIPT", "--device", "h100", "--on", "openreg", "--assume", "0"], "--assume replaces"),
        (
            ["compare", "SCRIPT", "--device", "h100", "--what-if", "bandwidths=2"],
            "is no what-if; give one of bandwidth=2",
        ),
        (["compare", "SCRIPT", "--device", "h100", "--what-if", "set:SIZE=2"], "has no plain assignment to SIZE"),
        (["calibrate", "chip.txt"], "give a file that ends with .toml"),
        (["calibrate", "chip.toml", "--device", "h100"], "require --data"),
        (["validate"], "give --data DIR"),
        (["validate", "--data", "nowhere"], "has no folder 'label'"),
    ],
)
def test_what_cannot_be_is_said(script, capsys, arguments, message):
    assert run(*[script if item == "SCRIPT" else item for item in arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_script_that_needs_values_is_refused_with_the_way_out(tmp_path, capsys):
    path = tmp_path / "train.py"
    path.write_text("import torch\nx = torch.rand(4)\ndef step():\n    print(x.sum().item())\n", "utf-8")
    assert run("run", path, "--device", "h100") == 1
    assert "--assume 1.0" in capsys.readouterr().err
    assert run("run", path, "--device", "h100", "--assume", "1.0") == 0


def test_a_script_without_a_step_is_recorded_as_a_whole(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import torch\nif __name__ == '__main__':\n    x = torch.rand(4, 4) @ torch.rand(4, 4)\n", "utf-8")
    assert [call.name for call in program_of(path).calls] == ["aten::rand", "aten::rand", "aten::mm"]


LOOP = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
data = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(4, (64,))), batch_size=16, shuffle=True)
model = torch.compile(nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4)).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for epoch in range(2):
    for x, y in data:
        x, y = x.to(device), y.to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    schedule.step()
    print(epoch, loss.item())
raise SystemExit(0)
"""


def test_a_training_loop_as_people_write_it(tmp_path, capsys):
    path = tmp_path / "loop.py"
    path.write_text(LOOP, "utf-8")
    assert run("run", path, "--device", "h100") == 1
    assert "--assume 1.0" in capsys.readouterr().err
    assert run("run", path, "--device", "h100", "--assume", "1.0", "--json") == 0
    out = capsys.readouterr().out
    found = json.loads(out[out.index("{") :])
    assert (found["mode"], found["dtype"]) == ("training", "bfloat16")
    assert found["notes"] == ["predicted without torch.compile: which kernels it would generate is not known"]
    calls = {item["name"]: item["calls"] for item in found["operators"]}
    assert calls["aten::addmm"] == 2 * 2 * 4
    assert calls["aten::_local_scalar_dense"] == 2


def test_a_script_that_fails_is_named(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("def step():\n    raise KeyError('x')\n", "utf-8")
    with pytest.raises(ScriptError, match=r"train\.py failed on meta.*KeyError"):
        program_of(path)
    path.write_text("raise SystemExit('no data')\ndef step():\n    pass\n", "utf-8")
    with pytest.raises(ScriptError, match=r"train\.py ended with the status no data"):
        program_of(path)


SIZES = """
import torch

SIZES = [8]
N = 0


def step():
    for size in SIZES:
        torch.zeros(4096 * size) + 1
    if N is True:
        torch.zeros(1).exp()
"""


def test_a_what_if_sets_any_literal(tmp_path, capsys):
    path = tmp_path / "sizes.py"
    path.write_text(SIZES, "utf-8")
    changes = ["set:SIZES=[64, 128]", "set:SIZES=(64,)", "set:N=1", "set:N=True"]
    assert run("compare", path, "--device", "h100", "--json", "--what-if", *changes) == 0
    found = json.loads(capsys.readouterr().out)
    calls = [sum(part["calls"] for part in item["operators"] if part["name"] == "aten::add") for item in found.values()]
    assert calls == [1, 2, 1, 1, 1]
    exponentials = [any(part["name"] == "aten::exp" for part in item["operators"]) for item in found.values()]
    assert exponentials == [False, False, False, False, True]


def test_a_number_that_is_named_data_stays_on_the_host(tmp_path):
    path = tmp_path / "number.py"
    path.write_text("import torch\nassert torch.tensor(data=1.0).item() == torch.tensor(1.0).item() == 1.0\n", "utf-8")
    assert program_of(path).calls


@pytest.mark.parametrize("move", ["cuda", "xpu", "openreg"])
def test_a_model_that_is_moved_to_an_accelerator_stays_on_meta(tmp_path, move):
    import openreg_ops  # noqa: F401  (the method openreg() exists with the device)

    path = tmp_path / "moved.py"
    path.write_text(
        f"import torch\nmodel = torch.nn.Linear(4, 4).{move}()\nmodel(torch.rand(2, 4).{move}())\n", "utf-8"
    )
    assert "aten::addmm" in [call.name for call in program_of(path).calls]


BRACKETS = """
import torch

NAME = "a"
model = torch.nn.Sequential()
model.add_module("[red]", torch.nn.Linear(64, 64))


def step():
    model(torch.rand(8, 64))
"""


def test_names_with_brackets_are_printed_as_they_are(tmp_path, capsys):
    chip, model = tmp_path / "chip[bold].toml", tmp_path / "model.py"
    text = (FOLDER / "h100.toml").read_text("utf-8")
    chip.write_text(text.replace('title = "NVIDIA H100 SXM 80 GB"', 'title = "Chip [rev b]"'), "utf-8")
    model.write_text(BRACKETS, "utf-8")
    assert run("run", model, "--device", chip) == 0
    out = capsys.readouterr().out
    assert "Chip [rev b]: inference" in out
    assert "on chip[bold]" in out
    assert "Sequential.[red]" in out
    assert run("run", model, "--device", chip, "--on", "openreg") == 0
    assert "Chip [rev b]: one step" in capsys.readouterr().out
    assert run("compare", model, "--device", chip, "--what-if", "set:NAME=[italic]") == 0
    assert "chip[bold], set:NAME=[italic]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    ["", "graph=2", "compute=0", "compute=nan", "devices=0", "dtype=float33", "set:X=", "set:=3", "set:a-b=1"],
)
def test_a_what_if_that_makes_no_sense_is_refused(text):
    with pytest.raises(what_if.WhatIfError, match="is no what-if"):
        what_if.parse(text)
