# SPDX-License-Identifier: BSD-3-Clause
"""Calibration finds efficiencies again from measurements that were computed with them, and validates models."""

import dataclasses
import json
import os
from pathlib import Path

import pytest
import torch

import openreg_predict
from openreg_predict import __main__, cost, cpu_calibration, cpu_validation_models, description, fit, validate
from openreg_predict.published import data, models
from openreg_predict.work import OperatorWork
from openreg_predict.write_description import with_efficiencies

COPY = os.environ.get("PUBLISHED_MEASUREMENTS", "")
CHIP = openreg_predict.load("a100")
DEPTHS = (1024, 4096, 16384)
WIDTHS = (1024, 2048, 4096, 8192, 16384, 32768, 65536)
HEADER = "OPName,Latency,Device,B,M,N,K"


def product(rows, columns, depth):
    size = 4 * (rows * depth + depth * columns + rows * columns)
    return OperatorWork("matmul", "float32", "matrix", 2 * rows * columns * depth, size, (1, rows, columns, depth))


def test_the_efficiency_of_products_is_found_again():
    works = [product(m, n, k) for m in (256, 1024, 4096) for n in (512, 2048, 8192) for k in (256, 1024, 4096)]
    truth = CHIP.efficiency("matmul")
    samples = [fit.Sample(work, cost.cost_of(CHIP, work).seconds) for work in works]
    found = fit.fit(CHIP, samples, "measured", "made up")["matmul"]
    again = dataclasses.replace(CHIP, efficiencies={**CHIP.efficiencies, "matmul": found})
    errors = [cost.cost_of(again, work).seconds / cost.cost_of(CHIP, work).seconds - 1 for work in works]
    assert sum(map(abs, errors)) / len(errors) < 0.05
    assert truth.compute.points != found.compute.points


def test_what_wide_products_lose_is_found_again():
    """As on a chip whose caches do not hold them: half of the rate from 16384 columns on."""
    works = [product(m, n, k) for m in DEPTHS for n in WIDTHS for k in DEPTHS]
    samples = [
        fit.Sample(work, cost.cost_of(CHIP, work).seconds * (1 if work.product[2] < 16384 else 2)) for work in works
    ]
    found = fit.fit(CHIP, samples, "measured", "made up")["matmul"]
    assert found.columns.at(65536) / found.columns.at(1024) == pytest.approx(0.5, rel=0.15)
    again = dataclasses.replace(CHIP, efficiencies={**CHIP.efficiencies, "matmul": found})
    errors = [cost.cost_of(again, sample.work).seconds / sample.seconds - 1 for sample in samples]
    assert sum(map(abs, errors)) / len(errors) < 0.1


def test_the_power_limits_what_was_not_measured():
    """A chip of 100 W and 10 pJ for an operation computes 10 TFLOP/s for long, whatever its peak is."""
    work = product(4096, 4096, 4096)
    power = description.Power(description.Quantity(100.0, "assumed"), description.Quantity(1e-11, "assumed"))
    chip = dataclasses.replace(CHIP.plain(), power=power)
    assert cost.cost_of(chip, work).seconds == pytest.approx(work.flops / 10e12)
    assert cost.cost_of(CHIP.plain(), work).seconds == pytest.approx(work.flops / 19.5e12)
    # What was measured was limited already, and what another chip lends was not.
    measured = dataclasses.replace(CHIP, power=power)
    assert cost.cost_of(measured, work) == cost.cost_of(CHIP, work)
    borrowing = dataclasses.replace(chip, efficiencies=CHIP.lent())
    assert cost.cost_of(borrowing, work).seconds > cost.cost_of(CHIP, work).seconds


def test_the_fraction_of_the_bandwidth_is_found_again():
    sizes = [10**exponent for exponent in range(5, 11)]
    bandwidth = CHIP.memory_bandwidth.value
    samples = [
        fit.Sample(OperatorWork("softmax", size=size), size / bandwidth / 0.6 + CHIP.launch_device.value)
        for size in sizes
    ]
    found = fit.fit(CHIP, samples, "measured", "made up")["softmax"]
    assert [fraction for _, fraction in found.memory.points] == pytest.approx([0.6] * len(sizes), rel=1e-2)


def test_outliers_do_not_count():
    assert fit.curve([(1e6, 0.5), (1.1e6, 0.5), (1.2e6, 19.0)], "measured", "").points == ((1e6, 0.5),)


def test_what_was_not_measured_is_borrowed_and_said_so():
    found = fit.with_reference_efficiencies({"matmul": CHIP.efficiency("matmul")}, openreg_predict.load("v100"))
    assert found["softmax"].memory.source == "assumed"
    assert found["softmax"].memory.note == "that of v100"
    assert found["matmul"] is CHIP.efficiency("matmul")


def test_a_description_keeps_its_numbers_when_efficiencies_change():
    path = openreg_predict.description.FOLDER / "a100.toml"
    text = with_efficiencies(path.read_text("utf-8"), CHIP.efficiencies)
    again = openreg_predict.description.parse(text, "text", "a100")
    assert again.efficiencies == CHIP.efficiencies
    assert again.rates == CHIP.rates
    assert again.validations == ()  # they were of other efficiencies


@pytest.fixture
def copy(tmp_path):
    """A copy of measurements with one model on one chip, made up."""
    (tmp_path / "operators").mkdir()
    device = "NVIDIA A100-PCIE-40GB"
    rows = [f"linear,{1e3 * 2 * m * 1024**2 / 15e12},{device},1,{m},1024,1024" for m in (512, 1024, 2048, 4096)]
    rows += [f"bmm,{1e3 * 2 * m * 1024**2 / 10e12},{device},1,{m},1024,1024" for m in (512, 1024, 2048, 4096)]
    for name in ("linear", "bmm"):
        own = [row for row in rows if row.startswith(name)]
        (tmp_path / "operators" / f"{name}.csv").write_text("\n".join([HEADER, *own]), "utf-8")
    moved = [f"{name},{1e3 * 8 * 2**24 / 1.2e12},{device},{2**14},{2**10}" for name in ("ln", "softmax", "relu")]
    for name, row in zip(("ln", "softmax", "elem"), moved, strict=True):
        (tmp_path / "operators" / f"{name}.csv").write_text(f"OPName,Latency,Device,B,H\n{row}", "utf-8")
    label = tmp_path / "label" / "NVIDIA_A100-PCIE-40GB"
    label.mkdir(parents=True)
    (label / "bert_large-inf-512-8.json").write_text(json.dumps({"e2e_latency": 200.0}), "utf-8")
    (label / "bert_large-inf-512-8-fusion.json").write_text(json.dumps({"e2e_latency": 150.0}), "utf-8")
    return tmp_path


def test_a_copy_calibrates_and_judges(copy, tmp_path, capsys):
    chip = tmp_path / "a100.toml"
    assert __main__.main(["calibrate", str(chip), "--data", str(copy), "--device", "a100"]) == 0
    efficiency = openreg_predict.load(chip).efficiency("softmax").memory
    assert efficiency.source == "measured"
    assert efficiency.at(1e8) == pytest.approx(1.2e12 / 1.555e12, rel=0.05)
    capsys.readouterr()
    assert __main__.main(["validate", "--data", str(copy), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    methods = {item["method"] for item in found["cases"]}
    assert set(validate.PREDICTION_METHODS) < methods == {item["method"] for item in found["summaries"]}
    assert all(method.startswith(validate.LENDER) for method in methods - set(validate.PREDICTION_METHODS))
    case = next(item for item in found["cases"] if item["method"] == "calibrated")
    assert case["error"] == pytest.approx(case["predicted"] / 0.2 - 1)
    assert "compiled" in found["left_out"]["NVIDIA_A100-PCIE-40GB/bert_large-inf-512-8-fusion.json"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("operators/linear.csv", f"{HEADER}\nlinear,x,NVIDIA A100-PCIE-40GB,1,2,3,4", "has no number"),
        ("operators/linear.csv", "OPName,Device\nlinear,NVIDIA A100-PCIE-40GB", "there is no column Latency"),
        (
            "operators/linear.csv",
            "OPName,Latency,Device,B,N,K\nlinear,1,NVIDIA A100-PCIE-40GB,1,2,3",
            r"linear\.csv, line 2: there is no column M",
        ),
        (
            "operators/linear.csv",
            f"{HEADER}\nlinear,1,NVIDIA A100-PCIE-40GB,1,2",
            r"linear\.csv, line 2: there is no column N, K",
        ),
        ("operators/linear.csv", None, "cannot be read"),
    ],
)
def test_a_copy_that_is_not_as_expected_is_named(copy, file, content, message):
    (copy / file).unlink()
    if content is not None:
        (copy / file).write_text(content, "utf-8")
    with pytest.raises(data.DataError, match=message):
        data.samples(copy, "a100")


def test_a_latency_that_is_no_number_is_named(copy):
    (copy / "label" / "NVIDIA_A100-PCIE-40GB" / "bert_large-inf-512-8.json").write_text("{}", "utf-8")
    with pytest.raises(data.DataError, match="no number e2e_latency"):
        data.cases(copy)


def test_errors_are_summarized_by_their_size():
    summary = validate.summarize("a", "training", "calibrated", [-0.2, 0.1, 0.0, 0.1])
    assert (summary.mean, summary.median, summary.percentile_90, summary.worst) == pytest.approx((0.1, 0.1, 0.2, 0.2))


def test_what_judges_did_not_calibrate():
    table = data.split()
    assert all(file.startswith("operators/") for file in table["calibrates"]["files"])
    assert set(table["validates"]["models"]) == set(models.SHAPES)
    assert set(table["devices"].values()) <= set(openreg_predict.built_in())


def test_this_machines_operators_can_be_measured():
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    found = cpu_calibration.measured(
        [cpu_calibration.Benchmark("mm", lambda _: x @ y, 1), cpu_calibration.Benchmark("add", lambda _: x + y, 1)], 2
    )
    assert [sample.work.kind for sample in found] == ["matmul", "elementwise"]
    assert all(sample.seconds > 0 for sample in found)


@pytest.mark.endurance
def test_this_machine_describes_itself(tmp_path):
    path = tmp_path / "this.toml"
    assert __main__.main(["calibrate", str(path)]) == 0
    assert len(cpu_validation_models.MODELS) >= 8
    assert __main__.main(["validate", "--device", str(path), "--write"]) == 0
    assert {item.mode for item in openreg_predict.load(path).validations} == {"inference", "training"}


@pytest.mark.endurance
@pytest.mark.skipif(not COPY, reason="PUBLISHED_MEASUREMENTS names no copy of the published measurements")
def test_published_models_are_predicted_as_the_descriptions_say():
    outcomes, _ = validate.compare(Path(COPY))
    found = {(item.device, item.mode, item.method): item for item in validate.summaries(outcomes)}
    shipped = {name: openreg_predict.load(name).validations for name in data.split()["devices"].values()}
    described = {(name, item.mode): item for name, validations in shipped.items() for item in validations}
    assert {key[:2] for key in found if key[0] != "all"} == set(described)
    for (device, mode), said in described.items():
        item = found[device, mode, "calibrated"]
        assert item.mean == pytest.approx(said.mean, abs=2e-3)
        assert item.mean <= 0.10
        assert item.percentile_90 <= 0.25
        assert item.mean <= found[device, mode, "plain roofline"].mean / 2
        assert found[device, mode, "other chip"].mean <= 0.25
        assert found[device, mode, "data sheet"].mean <= 0.35
