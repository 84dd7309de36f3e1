# SPDX-License-Identifier: BSD-3-Clause
"""The conformance kit reads manifests, and refuses an invalid entry with the accepted form."""

import re
from pathlib import Path

import pytest

from openreg_testing.conformance import command, manifest, spyre
from openreg_testing.conformance.manifest import Exclusion, ManifestError, OperatorExpectations

WHOLE = """
device = "npu"
import = ["torch_npu"]
environment = { NPU_QUEUE = "1" }

[expect]
native = { float32 = 100 }
most_failing = 3

[flags]
environment = { NPU_HOLD = "1" }
table = "large:TABLE"
[[flags.read_late]]
flag = "torch.backends.mkldnn.enabled"
operators = ["mm"]
reason = "asks"
effect = "last bits"

[reasons]
sparse = "takes sparse tensors"
asks = "the kernel asks"

[operators."to_sparse"]
fails = "sparse"
comparable = false

[operators."fft.*"]
skip = "there is no library for it yet"
since = "2.14"

[operators."mm"]
dtypes = ["float32", "bfloat16"]
tolerances = { bfloat16 = [1e-2, 1] }
differs = { "layouts: result" = "the order of sums", "out" = { reason = "not resized", since = "2.15" } }

[operators."softmax"]
differs = { "layouts: error" = { reason = "refuses these strides", before = "2.15" } }

[tests]
"streams::*" = { skip = "it has one stream" }
"events::test_y" = { fails = "now and then", strict = false }

[pytorch]
"test_view_ops::TestViewOps*::test_view_copy*" = { fails = "no such kernel" }
"""


def written(tmp_path, text, name="npu.toml"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def test_all_of_it_is_read(tmp_path):
    found = manifest.read(written(tmp_path, WHOLE), "2.13.0+cpu")
    assert (found.device, found.imports) == ("npu", ("torch_npu",))
    assert found.environment == {"NPU_QUEUE": "1"}
    assert (found.flags_environment, found.flag_table) == ({"NPU_HOLD": "1"}, "large:TABLE")
    assert (found.native, found.most_failing) == ({"float32": 100}, 3)
    assert (found.flag_readings[0].operators, found.flag_readings[0].reason) == (("mm",), "the kernel asks")
    assert found.operator("to_sparse") == OperatorExpectations(fails="takes sparse tensors", comparable=False)
    assert found.operator("mm").tolerances == {"bfloat16": (0.01, 1.0)}
    assert found.operator("mm").dtypes == ("float32", "bfloat16")
    assert found.test("streams::test_a_stream_has_a_priority").skip == "it has one stream"
    assert found.test("events::test_x") == Exclusion()
    assert found.test("events::test_y") == Exclusion(fails="now and then", strict=False)
    assert found.pytorch_test("test_view_ops::TestViewOpsNPU::test_view_copy_npu").fails == "no such kernel"


def test_the_one_in_the_readme_is_read():
    found = manifest.read(Path(__file__).with_name("npu.toml"), "2.13.0")
    assert found.operator("fft.fft").skip == "there is no library for it yet"


def test_what_pytorchs_test_framework_asks_is_read(tmp_path):
    text = """
bypass_device_restrictions = false
hw_classification = ["accelerator", "GENERIC"]
[capabilities]
"dtype.fp8" = false
"""
    found = manifest.read(written(tmp_path, text))
    assert found.bypass_device_restrictions is False
    assert found.hw_classification == ("ACCELERATOR", "GENERIC")
    assert found.capabilities == {"dtype.fp8": False}
    assert manifest.Manifest().bypass_device_restrictions is None


def test_what_some_releases_need_holds_for_them_only(tmp_path):
    path = written(tmp_path, WHOLE)
    old, new = manifest.read(path, "2.13.1"), manifest.read(path, "2.15.0")
    assert (old.operator("fft.fft").skip, new.operator("fft.fft").skip) == ("", "there is no library for it yet")
    assert list(old.operator("mm").differs) == ["layouts: result"]
    assert new.operator("mm").differs == {"layouts: result": "the order of sums", "out": "not resized"}
    assert old.operator("softmax").differs == {"layouts: error": "refuses these strides"}
    assert not new.operator("softmax").differs


def test_one_reason_may_explain_many_operators(tmp_path):
    text = """
[operators."index_*"]
late = "an index"
[[differing]]
check = "arguments: lost"
reason = "an index that only the kernel sees"
operators = ["index_add", "take"]
"""
    found = manifest.read(written(tmp_path, text))
    for name in ("index_add", "take"):
        assert found.operator(name).differs == {"arguments: lost": "an index that only the kernel sees"}
    assert found.operator("index_add").allows_asynchronous_error == "an index"
    assert found.operator("take").allows_asynchronous_error == ""
    assert not found.operator("index_copy").differs


def test_a_reason_for_many_operators_may_hold_for_some_releases(tmp_path):
    text = (
        '[[differing]]\ncheck = "out"\nreason = "it is resized"\noperators = ["take"]\nsince = "2.14"\nbefore = "2.15"'
    )
    path = written(tmp_path, text)
    found = [bool(manifest.read(path, release).operator("take").differs) for release in ("2.13.1", "2.14.0", "2.15.0")]
    assert found == [False, True, False]


def test_an_exact_name_goes_before_a_pattern(tmp_path):
    text = '[operators."a*"]\nfails = "all of them"\n[operators."abs"]\nlate = "this one alone"\n'
    found = manifest.read(written(tmp_path, text))
    assert (found.operator("add").fails, found.operator("abs").fails) == ("all of them", "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("devise = 'npu'", "the file has an unknown key 'devise'; accepted are device, import,"),
        ("[capabilities]\n'dtype.fp8' = 'no'", "[capabilities] dtype.fp8 = 'no' has to be true or false"),
        ("[capabilities]\nfp8 = true", "[capabilities] names 'fp8'; a name has a category and is in quotation marks"),
        ("[capabilities]\ndtype.fp8 = true", "[capabilities] names 'dtype'; a name has a category and is in quotation"),
        ("hw_classification = 'CPU'", "hw_classification = 'CPU' has to be a list"),
        ("[expect]\nfloat32 = 3", "[expect] has an unknown key 'float32'; accepted are native, most_failing"),
        (
            "[operators.abs]\nfail = 'no kernel'",
            "[operators.'abs'] has an unknown key 'fail'; accepted are fails, skip,",
        ),
        ("[operators.abs]\nfails = true", "[operators.'abs'] fails = True has to be text"),
        ("[operators.abs]\nfails = 'sparse'", "is 'sparse'; it has to be a reason, or a name under [reasons]: none"),
        ("[reasons]\na = 'b c'\n[operators.abs]\nskip = 'b'", "or a name under [reasons]: a"),
        ("[operators.abs]\ndtypes = ['half']", "names an unknown dtype 'half'; accepted are float64, float32,"),
        ("[operators.abs]\ntolerances = {float32 = 1}", "tolerances float32 = 1 has to be [relative, absolute]"),
        ("[operators.abs]\ntolerances = {float32 = [1, 'a']}", "has to be [relative, absolute], two numbers"),
        ("[operators.abs]\ndiffers = {out = {why = 'so it is'}}", "differs 'out' has an unknown key 'why'"),
        (
            "[tests]\n'a::b' = {late = 'it is so'}",
            "[tests.'a::b'] has an unknown key 'late'; accepted are fails, skip,",
        ),
        ("[tests]\n'a::b' = 'it is so'", "[tests.'a::b'] is 'it is so'; it has to be a table"),
        ("[expect]\nnative = {float32 = 'all'}", "[expect] native float32 = 'all' has to be a whole number"),
        ("import = [1]", "import = [1] has to be a list of texts"),
        ("[[flags.read_late]]\nflag = 'a'", "[[flags.read_late]] lacks operators, reason, effect"),
        ("[[differing]]\ncheck = 'out'", "[[differing]] lacks reason, operators"),
        (
            "[[differing]]\ncheck = 'out'\nreason = 'it is so'\noperators = []\nbefore = '3'",
            "[[differing]] 'out' before = '3' has to be a release of torch, such as \"2.14\"",
        ),
        (
            "[operators.abs]\nskip = 'it is so'\nsince = '2'",
            "[operators.'abs'] since = '2' has to be a release of torch",
        ),
        ("[tests]\n'a::b' = {skip = 'it is so', before = 'v2.14'}", "[tests.'a::b'] before = 'v2.14' has to be a"),
        ("[operators.abs]\ndiffers = {out = {reason = 'it is so', since = '2'}}", "differs 'out' since = '2' has to"),
        (
            "[[flags.read_late]]\nflag = 'a'\noperators = []\neffect = 'b'\nreason = 'no'",
            "[[flags.read_late]] reason is 'no'; it has to be a reason, or a name under [reasons]",
        ),
        ("device =", "is not TOML"),
    ],
)
def test_a_mistake_is_reported_with_the_accepted_form(tmp_path, text, told):
    path = written(tmp_path, text)
    with pytest.raises(ManifestError, match=re.escape(told)) as caught:
        manifest.read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(ManifestError, match=r"absent\.toml: the file cannot be read"):
        manifest.read(tmp_path / "absent.toml")


def test_unknown_operators_are_reported_with_near_ones(tmp_path):
    found = manifest.read(written(tmp_path, '[operators."nn.functional.relu7"]\nfails = "it is so"'))
    with pytest.raises(ManifestError, match=r"'nn\.functional\.relu7' names no entry .* nn\.functional\.relu6"):
        found.refuse_unknown("operators", ["nn.functional.relu6", "nn.functional.relu"])
    found.refuse_unknown("operators", ["nn.functional.relu7"])


SPYRE = """
test_suite_config:
  labels: [regression]
  files:
    - path: ${TORCH_ROOT}/test/test_binary_ufuncs.py
      unlisted_test_mode: skip
      tests:
        - names:
            - TestBinaryUfuncs::test_scalar_support
          mode: mandatory_success
          tags: [model_1]
        - names: [TestBinaryUfuncs::test_pow]
          mode: xfail
          edits: {dtypes: {exclude: [{name: bool}]}}
        - names: [TestBinaryUfuncs::test_floor]
          mode: xfail_strict
    - path: ${TORCH_ROOT}/test/inductor/test_codecache.py
      unlisted_test_mode: xfail
  global:
    supported_dtypes:
      - name: float16
        precision: {atol: 1e-2, rtol: 2e-2}
      - name: int64
      - name: bool
        force_xfail: true
    supported_ops:
      - name: add
        dtypes:
          - name: float16
            precision:
              atol: 1e-3
              rtol: 2e-3
      - name: mul
        force_xfail: true
      - name: eq
        dtypes: [{name: float16, force_xfail: true}, {name: bool}]
      - name: ne
        dtypes: [{name: float16, force_xfail: true}]
"""


def test_the_form_of_torch_spyre_is_read(tmp_path):
    found = spyre.read(written(tmp_path, SPYRE, "config.yaml"))
    assert found.runs("add")
    assert found.runs("mul.variant")
    assert not found.runs("sub")
    found.refuse_unknown("operators", ["add", "mul.variant", "eq", "ne"])
    with pytest.raises(ManifestError, match="'mul' names no entry"):
        found.refuse_unknown("operators", ["add", "multiply", "eq", "ne"])
    assert found.operator("add").dtypes == ("float16",)
    assert found.operator("add").tolerances == {"float16": (2e-3, 1e-3)}
    assert found.operator("mul").dtypes == ("float16", "int64")
    assert "force_xfail" in found.operator("mul").fails
    assert (found.operator("eq").dtypes, found.operator("eq").fails) == (("bool",), "")
    assert (found.operator("ne").dtypes, "force_xfail" in found.operator("ne").fails) == (("float16",), True)
    assert found.pytorch_test("inductor/test_codecache::TestCache::test_hash").fails
    suite = "test_binary_ufuncs::TestBinaryUfuncsPRIVATEUSE1"
    assert found.pytorch_test(f"{suite}::test_scalar_support_spyre") == Exclusion()
    known = found.pytorch_test(f"{suite}::test_pow_spyre_float16")
    assert "mode: xfail" in known.fails
    assert not known.strict
    assert found.pytorch_test(f"{suite}::test_floor_spyre").strict
    assert "unlisted_test_mode: skip" in found.pytorch_test(f"{suite}::test_other_spyre").skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "is not YAML"),
        ("suite: 1", "has an unknown key 'suite'; accepted are test_suite_config"),
        ("test_suite_config: 3", "test_suite_config is 3; it has to be a table"),
        ("test_suite_config: {global: {ops: []}}", "accepted are devices, supported_dtypes, supported_modules,"),
        ("test_suite_config: {global: {supported_ops: [{dtypes: []}]}}", "has an entry without a name"),
        ("test_suite_config: {global: {supported_dtypes: [{name: half}]}}", "names an unknown dtype 'half'"),
        ("test_suite_config: {files: [{path: a, unlisted_test_mode: maybe}]}", "accepted are mandatory_success, skip,"),
        ("test_suite_config: {files: [{path: a, tests: [{names: [x]}]}]}", "has to be a list of Class::test"),
    ],
)
def test_mistakes_in_the_form_of_torch_spyre_are_reported(tmp_path, text, told):
    with pytest.raises(ManifestError, match=re.escape(told)):
        spyre.read(written(tmp_path, text, "config.yml"))


@pytest.mark.parametrize("name", ["config.yaml", "config.yml"])
def test_the_name_of_a_file_says_in_which_form_it_is(tmp_path, name):
    assert command.read_manifest(written(tmp_path, SPYRE, name), "2.13.0").variants
    assert command.read_manifest(written(tmp_path, WHOLE), "2.13.0") == manifest.read(tmp_path / "npu.toml", "2.13.0")
