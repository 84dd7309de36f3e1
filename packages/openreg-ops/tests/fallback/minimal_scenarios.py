# SPDX-License-Identifier: BSD-3-Clause
"""For each operator of the minimal set, a small program that works with the set and fails without the operator.

Run as a program, it tells for every operator how its scenario ends with the whole set, and with all but that operator:
``{"aten::view": [null, "NotImplementedError: ..."], ...}``.
"""

import copy
import json
import multiprocessing
import os

import torch

DEVICE = "openreg"


def numbers():
    return torch.arange(6.0).to(DEVICE)


def reads_a_result():
    assert numbers().cpu().tolist() == [0, 1, 2, 3, 4, 5]


def writes_a_result_that_outgrows_out():
    out = torch.empty(0, device=DEVICE)
    torch.add(numbers(), 1, out=out)
    assert out.cpu().tolist() == [1, 2, 3, 4, 5, 6]


def reads_one_number():
    assert numbers().sum().item() == 15


def reshapes_a_slice():
    x = numbers().view(2, 3)[:, :2]
    assert x.reshape(2, 1, 2).cpu().tolist() == [[[0, 1]], [[3, 4]]]


def transposes():
    assert numbers().view(2, 3).t().cpu().tolist() == [[0, 3], [1, 4], [2, 5]]


def makes_a_tensor():
    assert torch.zeros(2, device=DEVICE).cpu().tolist() == [0, 0]


def moves_a_transposed_tensor():
    assert torch.ones(2, 3).t().to(DEVICE).stride() == (1, 3)


def grows_an_out_tensor():
    out = torch.empty(0, device=DEVICE)
    torch.add(numbers(), 1, out=out)
    assert out.cpu().tolist() == [1, 2, 3, 4, 5, 6]


def looks_at_a_storage():
    x = torch.empty(0, device=DEVICE).set_(numbers().untyped_storage())
    assert x.cpu().tolist() == [0, 1, 2, 3, 4, 5]


def copies_an_object_that_holds_tensors():
    x, y = copy.deepcopy([numbers(), numbers()[2:]])
    assert (x.cpu().tolist(), y.cpu().tolist()) == ([0, 1, 2, 3, 4, 5], [2, 3, 4, 5])


def makes_two_tensors_share_memory():
    x = numbers()
    y = torch.empty(0, device=DEVICE).set_(x)
    y.zero_()
    assert x.cpu().tolist() == [0] * 6


def flattens():
    assert torch.ones(2, 3).to(DEVICE).view(-1).shape == (6,)


SCENARIOS = {
    "aten::_copy_from": reads_a_result,
    "aten::_copy_from_and_resize": writes_a_result_that_outgrows_out,
    "aten::_local_scalar_dense": reads_one_number,
    "aten::_reshape_alias": reshapes_a_slice,
    "aten::as_strided": transposes,
    "aten::empty.memory_format": makes_a_tensor,
    "aten::empty_strided": moves_a_transposed_tensor,
    "aten::resize_": grows_an_out_tensor,
    "aten::set_.source_Storage": looks_at_a_storage,
    "aten::set_.source_Storage_storage_offset": copies_an_object_that_holds_tensors,
    "aten::set_.source_Tensor": makes_two_tensors_share_memory,
    "aten::view": flattens,
}


def ended(name):
    try:
        SCENARIOS[name]()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def run(names, left_out, results):
    """In a process of its own: settings are read once."""
    os.environ.update({"OPENREG_OPS": "minimal", "OPENREG_OPS_LEAVE_OUT": left_out})
    import openreg_ops  # noqa: F401  (after the settings)

    results.put([ended(name) for name in names])


def main():
    # Where the system can fork, torch is imported once.
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if "fork" in methods else "spawn")

    def end(names, left_out):
        results = context.SimpleQueue()
        process = context.Process(target=run, args=(names, left_out, results))
        process.start()
        found = results.get()
        process.join()
        return found

    with_all = dict(zip(SCENARIOS, end(list(SCENARIOS), ""), strict=True))
    print(json.dumps({name: [with_all[name], *end([name], name)] for name in SCENARIOS}))


if __name__ == "__main__":
    main()
