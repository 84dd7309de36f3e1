# SPDX-License-Identifier: BSD-3-Clause
"""Sparse tensors of all layouts and structures, and calls of each registered operator on them."""

import functools

import torch

COO, COMPRESSED = "SparsePrivateUse1", "SparseCsrPrivateUse1"
CPU_KEYS = {COO: "SparseCPU", COMPRESSED: "SparseCsrCPU"}
NOT_OF_A_DEVICE = {"_pin_memory"}  # moves tensors of the CPU


def numbers(shape, dtype, filled=0.5, seed=0):
    """Small numbers that every dtype has, about so many of them not zero."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(1, 6, shape, generator=generator)
    signs = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    values = values * (torch.rand(shape, generator=generator) < filled)
    if dtype.is_signed:
        values = values * signs
    if dtype.is_floating_point or dtype.is_complex:
        return (values.to(torch.complex64 if dtype.is_complex else torch.float32) / 4).to(dtype)
    return values.to(dtype)


def coo(shape, sparse_dim, count, dtype, *, coalesced=False, seed=0):
    """Elements at random places; some stand for one place, unless they are to be coalesced."""
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(0, max(size, 1), (count,), generator=generator) for size in shape[:sparse_dim]]
    places = torch.stack(rows) if rows else torch.zeros(0, count, dtype=torch.long)
    if coalesced:
        places = torch.unique(places, dim=1).contiguous()  # as kernels for the CPU take them to be
    values = numbers((places.shape[1], *shape[sparse_dim:]), dtype, 0.9, seed)
    return torch.sparse_coo_tensor(places, values, shape, is_coalesced=coalesced or None, check_invariants=True)


def matrix(dtype):
    return numbers((4, 6), dtype)


def square(dtype):
    return numbers((4, 4), dtype)


def hybrid(dtype):
    return numbers((4, 6, 2), dtype)


def batch(dtype):
    return matrix(dtype).expand(2, 4, 6).clone()


def csr_of_int32(dtype):
    places = [torch.tensor(each, dtype=torch.int32) for each in ([0, 1, 3], [0, 0, 1])]
    return torch.sparse_csr_tensor(*places, numbers((3,), dtype, 1), (2, 2))


# One of each kind, on the CPU.
KINDS = {
    "coo": lambda dtype: coo((4, 6), 2, 7, dtype),
    "coo coalesced": lambda dtype: coo((4, 6), 2, 7, dtype, coalesced=True),
    "coo square": lambda dtype: square(dtype).to_sparse(),
    "coo hybrid": lambda dtype: coo((4, 3, 2), 2, 6, dtype),
    "coo hybrid coalesced": lambda dtype: coo((4, 3, 2), 1, 3, dtype, coalesced=True),
    "coo vector": lambda dtype: coo((5,), 1, 3, dtype),
    "coo volume": lambda dtype: coo((2, 4, 6), 3, 9, dtype, coalesced=True),
    "coo number": lambda dtype: coo((), 0, 1, dtype),
    "coo without elements": lambda dtype: coo((4, 6), 2, 0, dtype),
    "coo without rows": lambda dtype: coo((0, 3), 2, 0, dtype),
    "csr": lambda dtype: matrix(dtype).to_sparse_csr(),
    "csr square": lambda dtype: square(dtype).to_sparse_csr(),
    "csr batch": lambda dtype: batch(dtype).to_sparse_csr(),
    "csr hybrid": lambda dtype: hybrid(dtype).to_sparse_csr(dense_dim=1),
    "csr without elements": lambda dtype: torch.zeros(4, 6, dtype=dtype).to_sparse_csr(),
    "csr int32": csr_of_int32,
    "csc": lambda dtype: matrix(dtype).to_sparse_csc(),
    "csc square": lambda dtype: square(dtype).to_sparse_csc(),
    "csc batch": lambda dtype: batch(dtype).to_sparse_csc(),
    "bsr": lambda dtype: matrix(dtype).to_sparse_bsr((2, 2)),
    "bsr square": lambda dtype: square(dtype).to_sparse_bsr((2, 2)),
    "bsr batch": lambda dtype: batch(dtype).to_sparse_bsr((2, 2)),
    "bsr hybrid": lambda dtype: hybrid(dtype).to_sparse_bsr((2, 2), dense_dim=1),
    "bsr without elements": lambda dtype: torch.zeros(4, 6, dtype=dtype).to_sparse_bsr((2, 2)),
    "bsc": lambda dtype: matrix(dtype).to_sparse_bsc((2, 3)),
}


@functools.cache
def sample(kind, dtype=torch.float32):
    """One of a kind, on the CPU; to be left as it is."""
    return KINDS[kind](dtype)


def members(tensor):
    """The ordinary tensors that a sparse one is made of."""
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()


def flat(value):
    """A result as a list that can be compared: of a sparse tensor all that makes it, of others their values."""
    if isinstance(value, (tuple, list)):
        return [item for each in value for item in flat(each)]
    if not isinstance(value, torch.Tensor):
        return [value]
    if value.layout == torch.strided:
        return [value.detach()]
    facts = [value.layout, tuple(value.shape), value.dtype, value.sparse_dim(), value.dense_dim()]
    if value.layout == torch.sparse_coo:
        facts.append(value.is_coalesced())
    return [*facts, *(member.detach() for member in members(value))]


def dense(x, *shape, value=1):
    """A strided tensor of this shape where the sparse one is, of its dtype."""
    return torch.full(shape, value, dtype=x.dtype, device=x.device)


def matrix_for(x, columns=3):
    """What the sparse tensor can be multiplied by."""
    return dense(x, *x.shape[:-2], x.shape[-1], columns)


def own_strided(x):
    """A strided tensor of the same size."""
    return x.to_dense() + 1


def places_of(x, *places):
    return torch.tensor(places, dtype=torch.long, device=x.device)


def like(x):
    """The same elements with other values."""
    return x * 2


def dimensions(x):
    """Returns dimensions to reduce. Not both at once if there are no elements, because then the result is undefined."""
    return (0, 1, (0, 1)) if x._nnz() else (0, 1)


def options(x):
    return {"dtype": x.dtype, "layout": x.layout, "device": x.device}


def matrices(x):
    """What sampled_addmm() multiplies."""
    return dense(x, *x.shape[:-1], 3), dense(x, *x.shape[:-2], 3, x.shape[-1], value=2)


# How an operator is called, by its name without forms: the sparse tensor to a list of argument tuples; by default with
# the tensor alone. A dictionary at the end of a tuple names arguments.
CALLS = {
    "_coalesced_": lambda x: [(x.clone(), False)],
    "_sparse_broadcast_to": lambda x: [(x, (2, *x.shape))],
    "_sparse_coo_tensor_with_dims": lambda x: [(2, 1, (3, 4, 5), options(x))],
    "_sparse_coo_tensor_with_dims_and_tensors": lambda x: [
        (x.sparse_dim(), x.dense_dim(), x.shape, x._indices(), x._values(), options(x))
    ],
    "_sparse_csr_prod": lambda x: [(x, dim, True) for dim in dimensions(x)],
    "_sparse_csr_sum": lambda x: [
        *((x, dim, True) for dim in dimensions(x)),
        (x, 0, True, {"dtype": torch.float64}),
    ],
    "_sparse_log_softmax": lambda x: [(x, 0, False), (x, -1, False)],
    "_sparse_log_softmax_backward_data": lambda x: [(like(x), x, dim, x) for dim in (0, -1)],
    "_sparse_mask_projection": lambda x: [(x, like(x), accumulate) for accumulate in (False, True)],
    "_sparse_mm_reduce_impl": lambda x: [(x, matrix_for(x), how) for how in ("sum", "mean", "amax", "amin", "prod")],
    "_sparse_mm_reduce_impl_backward": lambda x: [
        (x, dense(x, x.shape[0], 3), matrix_for(x), how, x.col_indices()[:0], mask)
        for how, mask in (("sum", (True, True)), ("mean", (False, True)), ("sum", (True, False)))
    ],
    "_sparse_softmax": lambda x: [(x, 0, False), (x, -1, False)],
    "_sparse_softmax_backward_data": lambda x: [(like(x), x, dim, x) for dim in (0, -1)],
    "_sparse_sparse_matmul": lambda x: [(x, x.t()), (x.t(), x)],
    "_sparse_sum_backward": lambda x: [
        (x, x, ()),
        (torch._sparse_sum(x, 0), x, (0,)),
        (torch._sparse_sum(x, -1), x, (-1,)),
        (dense(x), x, tuple(range(x.dim()))),
    ],
    "_to_dense": lambda x: [(x,), (x, torch.float64)],
    "_to_sparse_bsc": lambda x: [(x, (2, 2)), (x, (2, 3)), (x, (2, 2), 1)],
    "_to_sparse_bsr": lambda x: [(x, (2, 2)), (x, (2, 3)), (x, (2, 2), 1)],
    "_to_sparse_csc": lambda x: [(x,), (x, 1)],
    "_to_sparse_csr": lambda x: [(x,), (x, 1)],
    "_to_sparse.sparse_dim": lambda x: [(x, 1), (x, 2)],
    "add": lambda x: [(x, x), (x, like(x), {"alpha": 2}), (own_strided(x), x), (x, own_strided(x))],
    "addmm": lambda x: [
        (dense(x, x.shape[0], 3), x, matrix_for(x), {"alpha": 2, "beta": 3}),
        (dense(x, x.shape[0], 3, value=2), x, matrix_for(x), {"beta": 0}),
        (x.to_dense(), x, x),
        (x.to_dense(), x.to_dense(), x),
    ],
    "addmv": lambda x: [(dense(x, x.shape[0]), x, dense(x, x.shape[-1]), {"alpha": 2, "beta": 3})],
    "bmm": lambda x: [(x, dense(x, x.shape[0], x.shape[-1], 3))],
    "cat": lambda x: [([x, x],), ([x, x], 1), ([x, like(x), x], -1)],
    "copy_": lambda x: [
        (torch.zeros_like(x), x),
        (x.clone(), like(x)),
        (x.clone(), x.cpu()),
        (x.clone(), x.to_dense()),
    ],
    "copy_sparse_to_sparse_": lambda x: [(torch.zeros_like(x), x)],
    "div.Tensor": lambda x: [(x, places_of(x, 2)[0])],
    "div.Tensor_mode": lambda x: [
        (x, places_of(x, 2)[0], {"rounding_mode": mode}) for mode in ("floor", "trunc", None)
    ],
    "fill_.Scalar": lambda x: [(x.clone(), 3)],
    "floor_divide": lambda x: [(x, places_of(x, 2)[0])],
    "hspmm": lambda x: [(x, matrix_for(x))],
    "index_select": lambda x: [
        (x, 0, places_of(x, 0, 1, 1)),
        (x, -1, places_of(x, 1, 0)),
        (x, 0, places_of(x)),
        (x, 1, places_of(x, 0, 1, 2).repeat(30)),
    ],
    "linear_backward": lambda x: [
        (dense(x, 3, x.shape[-1]), dense(x, 3, x.shape[0]), x, (True, True, True)),
        (x, dense(x, x.shape[0], 3), dense(x, 3, x.shape[-1]), (True, True, True)),
    ],
    "mm": lambda x: [(x, matrix_for(x)), (x, dense(x, 3, x.shape[-1]).t()), (x, x.t()), (dense(x, 3, x.shape[0]), x)],
    "mul.Scalar": lambda x: [(x, 3)],
    "mul": lambda x: [
        (x, x),
        (x, like(x)),
        (x, x.to_dense()),
        (own_strided(x), x),
        (x, places_of(x, 2)[0]),
        (x, dense(x, *x.shape[-1:])),
        (dense(x, 2, *x.shape), x),
    ],
    "mv": lambda x: [(x, dense(x, x.shape[-1]))],
    "narrow_copy": lambda x: [(x, 0, 1, 2), (x, -1, 0, 1)],
    "native_norm": lambda x: [(x,), (x, 1)],
    "native_norm.ScalarOpt_dim_dtype": lambda x: [(x, 2, tuple(range(x.dim())), False, None)],
    "norm.ScalarOpt_dim": lambda x: [(x, 2, tuple(range(x.dim())))],
    "norm.ScalarOpt_dim_dtype": lambda x: [(x, 2, (), {"dtype": x.dtype})],
    "permute": lambda x: [(x, tuple(reversed(range(x.dim()))))],
    "pow.Tensor_Scalar": lambda x: [(x, 2), (x, 3.0)],
    "resize_": lambda x: [(x.clone(), (8, 8))],
    "resize_as_sparse_": lambda x: [(torch.zeros_like(x), x)],
    "select": lambda x: [(x, 0, 1), (x, 1, 1)],
    "select_copy": lambda x: [(x, 0, 1), (x, 1, 1)],
    "sparse_mask": lambda x: [(own_strided(x), x), (x, x), (like(x), x), (x, like(x))],
    "sparse_resize_": lambda x: [(x.clone(), (8, 8), 2, 0), (x.clone(), x.shape, x.sparse_dim(), x.dense_dim())],
    "sparse_resize_and_clear_": lambda x: [(x.clone(), (8, 8), 2, 0)],
    "sparse_sampled_addmm": lambda x: [(x, *matrices(x), {"alpha": 2, "beta": 0.5}), (x, *matrices(x))],
    "sspaddmm.out": lambda x: [
        (product := (x @ matrix_for(x)).to_sparse(), x, matrix_for(x), {"out": torch.empty_like(product)})
    ],
    "sub": lambda x: [(x, like(x)), (own_strided(x), x)],
    "sum": lambda x: [(x,), (x, {"dtype": torch.float64})],
    "sum.dim_IntList": lambda x: [(x, dim) for dim in (0, 1, -1, (0, 1))] + [(x, 0, True)],
    "threshold_backward": lambda x: [(x, like(x), 0)],
    "triangular_solve": lambda x: [
        (dense(x, x.shape[0], 2), x, upper, transpose, unit, {"X": dense(x, x.shape[0], 2), "M": dense(x, 0)})
        for upper, transpose, unit in ((True, False, False), (False, True, True))
        if x.shape[0] == x.shape[1]  # of others the CPU gives something
    ],
    "unsqueeze": lambda x: [(x, 0), (x, -1)],
    "zeros.out": lambda x: [((3, 4), {"out": x.clone()})],
}
# Their results hold what the memory held, or random numbers.
UNDEFINED = {"empty.memory_format", "empty_like", "normal_", "resize_", "resize_as_sparse_"}
CALLS |= {
    "empty.memory_format": lambda x: [((4, 4), options(x))],
    "normal_": lambda x: [(x.clone(),)],
}


def registered(key):
    """Names "add.out" of what the CPU has for such tensors, in PyTorch's own namespace."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return sorted(name.removeprefix("aten::") for name in names if name.startswith("aten::"))


def cpu_key_of(kind):
    """The key of the CPU for samples of this kind."""
    return CPU_KEYS[COO if kind.startswith("coo") else COMPRESSED]


def overload_of(name):
    operator, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, operator), overload or "default")


def calls_of(name, x):
    """Calls of an operator in this form on a sparse tensor, each without arguments left."""
    operator, _, overload = name.partition(".")
    base = operator.rstrip("_")
    known = CALLS.get(name) or CALLS.get(f"{base}.{overload}") or CALLS.get(operator) or CALLS.get(base)
    if overload == "out_mode":
        known = CALLS[f"{base}.Tensor_mode"]
    elif overload == "Tensor_Scalar_out":
        known = CALLS[f"{base}.Tensor_Scalar"]
    function = overload_of(name)
    for arguments in known(x) if known else [(x,)]:
        args, kwargs = list(arguments), {}
        if args and isinstance(args[-1], dict):
            kwargs = args.pop()
        yield complete(function, base, args, dict(kwargs))


def complete(function, base, args, kwargs):
    """The call, with an output where the form wants one, on a copy where it changes its operand."""
    arguments = function._schema.arguments
    outputs = [argument.name for argument in arguments if argument.kwarg_only and argument.alias_info]

    def call():
        if arguments and arguments[0].alias_info and arguments[0].alias_info.is_write:
            args[0] = args[0].clone()
        named = dict(kwargs)
        if outputs and outputs[0] not in named:
            named[outputs[0]] = torch.empty_like(getattr(torch.ops.aten, base)(*args, **kwargs))
        return function(*args, **named)

    return call
