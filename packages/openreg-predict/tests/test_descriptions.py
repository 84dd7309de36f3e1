# SPDX-License-Identifier: BSD-3-Clause
"""The built-in chip descriptions can be read, and an error in a description is reported with the accepted form."""

import pytest

import openreg_predict
from openreg_predict import description
from openreg_predict.write_description import whole

GOOD = """
schema = 1
title = "A chip that does not exist yet"
[compute]
parallel_units = { value = 8, source = "assumed" }
[compute.vector]
float32 = { value = 2, unit = "TFLOP/s", source = "assumed", note = "wished for" }
[memory]
size = { value = 16, unit = "GiB", source = "data sheet" }
bandwidth = { value = 500, unit = "GB/s", source = "data sheet" }
[launch]
host = { value = 5, unit = "us", source = "assumed" }
device = { value = 2, unit = "us", source = "assumed" }
graph = { value = 1, unit = "us", source = "assumed" }
[copy]
engines = { value = 1, source = "assumed" }
[efficiency.matmul]
compute = { points = [[1e6, 0.1], [1e8, 0.5], [1e10, 0.9]], source = "assumed" }
tiles = [[64, 64]]
columns = { value = 1.0, source = "assumed" }
[efficiency.elementwise]
memory = { value = 0.8, source = "assumed" }
[power]
limit = { value = 300, unit = "W", source = "data sheet" }
energy = { value = 15, unit = "pJ", source = "assumed" }
[[validated]]
mode = "inference"
dtype = "float32"
count = 3
mean = 0.05
percentile_90 = 0.1
worst = 0.2
note = "made up"
classes = ["matmul"]
"""


def parse(text):
    return description.parse(text, "chip.toml", "chip")


@pytest.mark.parametrize("name", openreg_predict.built_in())
def test_a_built_in_description_is_complete(name):
    chip = openreg_predict.load(name)
    quantities = [chip.memory_size, chip.memory_bandwidth, chip.launch_host, chip.launch_device, *chip.rates.values()]
    assert {item.source for item in quantities} <= {"data sheet", "measured", "assumed"}
    assert chip.rate("matrix", "float32") is not None


def test_numbers_come_in_si_units_with_their_source():
    chip = parse(GOOD)
    assert chip.rates["vector", "float32"] == description.Quantity(2e12, "assumed", "wished for")
    assert chip.memory_size.value == 16 * 2**30
    assert chip.launch_host.value == pytest.approx(5e-6)


def test_a_curve_is_joined_in_the_logarithm_of_the_work():
    curve = parse(GOOD).efficiency("matmul").compute
    assert [curve.at(work) for work in (1, 1e6, 1e7, 1e9, 1e12)] == pytest.approx([0.1, 0.1, 0.3, 0.7, 0.9])


def test_a_class_without_efficiency_takes_that_of_its_substitute():
    chip = parse(GOOD)
    assert chip.efficiency("attention") is chip.efficiency("matmul")
    assert chip.efficiency("softmax") is chip.efficiency("elementwise")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 1", "schema = 2", r"schema is 2; this package reads schema = 1"),
        ('title = "A chip that does not exist yet"', 'title = ""', "title is empty"),
        ("bandwidth = { value = 500", "# { value = 500", r"memory\.bandwidth is missing; it has to be { value ="),
        ("value = 500", "value = -500", r"memory\.bandwidth\.value is -500; .* not negative"),
        ("value = 500", "value = nan", r"memory\.bandwidth\.value is nan"),
        ("value = 500", "value = inf", r"memory\.bandwidth\.value is inf"),
        ("value = 500", "value = true", r"memory\.bandwidth\.value is True; it has to be a number"),
        ("value = 500", 'value = "fast"', r"memory\.bandwidth\.value is 'fast'; it has to be a number"),
        ("value = 500", "value = 5e12", r"memory\.bandwidth\.value with its unit is 5e\+21; .* check the unit"),
        ('"GB/s"', '"furlongs"', r"memory\.bandwidth\.unit 'furlongs' is no known unit; write one of MB/s, GB/s"),
        ('"GB/s"', '"GiB"', r"memory\.bandwidth\.unit 'GiB' is a unit of size, not of bandwidth"),
        ('500, unit = "GB/s", source = "data sheet"', '500, unit = "GB/s"', r"memory\.bandwidth\.source is missing"),
        ('500, unit = "GB/s", source = "data sheet"', '500, unit = "GB/s", source = "a friend"', "one of data sheet"),
        ("[copy]", "[copy2]", r"copy2 is no key of a description; did you mean 'copy'"),
        ("float32 =", "float33 =", r"compute\.vector\.float33 is no key .* did you mean 'float32'"),
        ("float32 =", "float16 =", r"compute\.vector\.float32 is missing"),
        ("value = 8,", "value = 8.5,", r"compute\.parallel_units\.value is 8\.5; a count is a whole number"),
        ("value = 8,", "value = 0,", r"compute\.parallel_units\.value with its unit is 0"),
        ("[efficiency.matmul]", "[efficiency.softmax]", r"efficiency\.matmul is missing"),
        ("[1e8, 0.5]", "[1e5, 0.5]", r"points\[1\] has the work 100000\.0; .* grows"),
        ("[1e8, 0.5]", "[1e8, 50]", r"points\[1\] is 50; it has to be a fraction"),
        ("[1e8, 0.5]", "[1e8]", r"points\[1\] is \[100000000\.0\]; a point is"),
        ("tiles = [[64, 64]]", "tiles = [[64]]", r"tiles\[0\] is \[64\]; a tile is"),
        ("{ value = 0.8,", "{ value = 0.8, points = [[1, 1]],", r"elementwise\.memory needs either value or points"),
        ("[copy]", "[copy", "is no TOML"),
        (
            'limit = { value = 300, unit = "W"',
            'limit = { value = 300, unit = "kg"',
            r"power\.limit\.unit 'kg' is no known",
        ),
        ("value = 15", "value = -15", r"power\.energy\.value is -15; .* not negative"),
        ("energy =", "# energy =", r"power\.energy is missing"),
        ("columns = { value = 1.0", "columns = { value = 0", r"columns\.value is 0; it has to be a fraction"),
        ('classes = ["matmul"]', 'classes = ["cooking"]', r"validated\[0\]\.classes has 'cooking'; .* softmax"),
        ('classes = ["matmul"]', 'classes = "matmul"', r"validated\[0\]\.classes is 'matmul'; it has to be a list"),
        ("mean = 0.05", "mean = 500", r"validated\[0\]\.mean is 500\.0; it has to lie between 0 and 100"),
    ],
)
def test_what_is_wrong_is_named(old, new, message):
    assert old in GOOD
    with pytest.raises(openreg_predict.DescriptionError, match=rf"(?s)chip\.toml.*{message}"):
        parse(GOOD.replace(old, new, 1))


def test_an_unknown_name_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(openreg_predict.DescriptionError, match=r"there is no description 'h101'; give one of .*h100"):
        openreg_predict.load("h101")
    with pytest.raises(openreg_predict.DescriptionError, match="cannot be read"):
        openreg_predict.load(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(openreg_predict.DescriptionError, match="cannot be read"):
        openreg_predict.load(tmp_path / "binary.toml")


@pytest.mark.parametrize("name", openreg_predict.built_in())
def test_a_description_that_is_written_can_be_read_again(name):
    chip = openreg_predict.load(name)
    again = description.parse(whole(chip), "written", name)
    assert again.efficiencies == chip.efficiencies
    assert again.validations == chip.validations
    assert (again.title, again.copy_engines, again.parallel_units) == (
        chip.title,
        chip.copy_engines,
        chip.parallel_units,
    )

    def values(which):
        found = [which.memory_size, which.memory_bandwidth, which.launch_host, which.launch_device, which.launch_graph]
        found += [which.rates[key] for key in sorted(which.rates)]
        found += [item for link in which.links.values() for item in (link.bandwidth, link.latency)]
        found += [cache.size for cache in which.caches]
        found += [which.power.limit, which.power.energy] if which.power else []
        return [item.value for item in found]

    assert values(again) == pytest.approx(values(chip), rel=1e-4)


def test_a_cache_keeps_its_bandwidth_when_it_is_written():
    text = GOOD.replace("[launch]", CACHE + "[launch]")
    assert description.parse(whole(parse(text)), "written", "chip").bandwidth_of(1000) == pytest.approx(2e12)


CACHE = """
[[cache]]
level = 2
size = { value = 4, unit = "MiB", source = "assumed" }
bandwidth = { value = 2, unit = "TB/s", source = "assumed" }
"""
