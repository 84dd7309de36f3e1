# SPDX-License-Identifier: BSD-3-Clause
"""What is known to differ from the CPU, and why. Reviewed by hand; a name here that passes fails the run."""

import torch
from torch.torch_version import TorchVersion

# Entries that may fail. At most ten.
MOST_EXCEPTIONS = 10
SPARSE = "takes or gives sparse tensors; the device stores strided ones only"
OF_A_GPU = "an internal operator of CUDA with no CPU kernel to compare with; scaled_dot_product_attention does the same"
UNKNOWN_TO_THE_CPU = "of complex numbers: a GPU sums them, the CPU refuses, so that there is nothing to compare with"
AS_ON_A_GPU = "bool + bool into out= of another dtype: PyTorch refuses it for every device but the CPU"
EXCEPTIONS = {
    "sparse.mm.reduce": SPARSE,
    "sparse.sampled_addmm": SPARSE,
    "to_sparse": SPARSE,
    "nansum": UNKNOWN_TO_THE_CPU,
    "nanmean": UNKNOWN_TO_THE_CPU,
    "add": AS_ON_A_GPU,
    "torch.ops.aten._efficient_attention_forward": OF_A_GPU,
    "torch.ops.aten._flash_attention_forward": OF_A_GPU,
}
# Reasons for which there is nothing to compare an entry with, in any dtype.
WITHOUT_REFERENCE = {SPARSE, OF_A_GPU, UNKNOWN_TO_THE_CPU}

# Entries whose wrong inputs are found by the kernel, because they depend on the data: the exception is an
# AcceleratorError at the next synchronisation.
INDEX = "an index beyond the tensor"
LATE = {
    "masked_fill": "a number on the device that the dtype cannot hold",
    "multinomial": "weights that are no probabilities",
    "gather": INDEX,
    "scatter": INDEX,
    "scatter_add": INDEX,
}

# What differs for one entry, by the name that the check reports; the whole run asks that it does. Results are right.
OF_A_VOLUME = (
    "the CPU's kernel settles the strides of a volume without a batch; a GPU's gives a contiguous one, as we do"
)
BY_SIZE = "the CPU chooses between kernels by size, and their strides differ; a GPU's are contiguous, as ours"
OF_ONE_KERNEL = (
    "our kernel serves three dimensions, where the CPU multiplies matrices, whose order shows in the strides"
)
REFUSES_ITSELF = "the CPU's kernel refuses strides that PyTorch gave its operand; ours takes them, as a GPU's does"
ONE_SHAPE = "the CPU's kernel does not resize these outputs, and fails inside"
BEYOND = "the CPU's kernel writes beyond a batch that is expanded; we refuse it"
ONE_DNN = "oneDNN refuses strides that overlap; we go through a temporary"
RESIDUALS = "the CPU's kernel leaves residuals that it does not compute in the shape that they had"
EXPANDED_BATCH = {"writes: in-place self expanded": BEYOND, "writes: out expanded": BEYOND}
ROWS = {"writes: out overlapping rows": "the CPU's kernel writes beyond rows that overlap; we go through a temporary"}
SEVERAL_TIMES = "the CPU's kernel writes one place several times; we refuse it as for other reductions"
WARNS_FIRST = "the CPU warns before it refuses the output"
WARNING_OF_BETA = {"writes: out partly overlaps operand 0": "the CPU refuses the output before it warns"}
CHUNKED = "the gradient of a transposed weight is summed in a contiguous tensor"
DIFFERENCES = {
    "native_group_norm": {"layouts: error": REFUSES_ITSELF},
    "nn.functional.nll_loss": {"layouts: error": REFUSES_ITSELF},
    "nn.functional.pad.reflect": {"layouts: result": OF_A_VOLUME, "layouts: gradient": OF_A_VOLUME},
    "nn.functional.pad.replicate": {"layouts: result": OF_A_VOLUME},
    "nn.functional.pad.replicate_negative": {"layouts: result": OF_A_VOLUME},
    "nn.functional.max_pool3d": {"layouts: result": OF_A_VOLUME},
    "nn.functional.conv_transpose3d": {"layouts: result": BY_SIZE, "layouts: gradient": BY_SIZE},
    "nn.functional.scaled_dot_product_attention": {
        "layouts: result": OF_ONE_KERNEL,
        "layouts: gradient": OF_ONE_KERNEL,
    },
    "nn.functional.gelu": {"writes: out overlapping rows": ONE_DNN},
    "native_batch_norm": {
        "writes: out more dimensions": ONE_SHAPE,
        "writes: out flat": ONE_SHAPE,
        "writes: out no elements of two dimensions": ONE_SHAPE,
    },
    "_native_batch_norm_legit": {
        "writes: out more dimensions": ONE_SHAPE,
        "writes: out flat": ONE_SHAPE,
        "writes: out no elements of two dimensions": ONE_SHAPE,
    },
    "tril": {**EXPANDED_BATCH, **ROWS},
    "triu": {**EXPANDED_BATCH, **ROWS},
    "linalg.lu": ROWS,
    "lu_unpack": ROWS,
    "nn.functional.avg_pool3d": ROWS,
    "addmv": {"writes: in-place self expanded": SEVERAL_TIMES},
    "mv": {"writes: out expanded": SEVERAL_TIMES},
    "matmul": {"writes: out expanded": SEVERAL_TIMES},
    "mm": {"writes: out expanded": SEVERAL_TIMES},
    "multinomial": {"writes: out expanded": SEVERAL_TIMES},
    "linalg.vector_norm": {"writes: out expanded": SEVERAL_TIMES},
    "linalg.multi_dot": {"writes: out expanded": SEVERAL_TIMES},
    **{f"index_reduce.{mode}": WARNING_OF_BETA for mode in ("amax", "amin", "mean", "prod")},
    "norm": {"writes: out expanded": SEVERAL_TIMES},
    "norm.inf": {"writes: out expanded": SEVERAL_TIMES},
    "triangular_solve": {"writes: out expanded": WARNS_FIRST},
    "nn.functional.linear_cross_entropy": {"layouts: gradient": CHUNKED},
    "nn.functional.linear_cross_entropy.chunked": {"layouts: gradient": CHUNKED},
    "nn.functional.linear_cross_entropy.chunked_none": {"layouts: gradient": CHUNKED},
    "linalg.lstsq": {"writes: out no elements of two dimensions": RESIDUALS},
}
if torch.__version__ >= TorchVersion("2.14"):  # whose table has such a sample
    NOTHING_TO_ADD = "the CPU looks for overlaps in the product, which it skips for matrices without columns"
    DIFFERENCES["addbmm"] = {"writes: out partly overlaps operand 0": NOTHING_TO_ADD}

OF_MORE_ROWS = "the CPU's solution is the first rows of a tensor of as many as there are equations; ours has its own"
if torch.__version__ >= TorchVersion("2.15"):  # whose table has such samples, and whose kernel has such a temporary
    NO_ADDEND = "the CPU looks for overlaps where it copies the addend, which a factor of zero spares it"
    IN_A_TEMPORARY = "the CPU solves in a temporary since 2.15; we refuse the output as for other operators"
    DIFFERENCES["baddbmm"] = {"writes: out partly overlaps operand 0": NO_ADDEND}
    DIFFERENCES["linalg.solve_triangular"] = {"writes: out partly overlaps operand 0": IN_A_TEMPORARY}
    DIFFERENCES["linalg.lstsq"]["layouts: result"] = OF_MORE_ROWS
    DIFFERENCES["linalg.lstsq.grad_oriented"] = {"layouts: result": OF_MORE_ROWS}

# Strides of results that random calls meet and the chosen samples do not.
WITH_INDICES = "without a gradient the CPU has a kernel of its own; a GPU pools a row as an image, and so do we"
OTHER_STRIDES = {
    "linalg.lstsq": OF_MORE_ROWS,
    "linalg.lstsq.grad_oriented": OF_MORE_ROWS,
    "nn.functional.max_pool1d": WITH_INDICES,
}

# Entries that PyTorch computes in Python, for every dtype, under deterministic algorithms, but for tensors of the CPU.
DETERMINISTIC_FORMULAS = ("nn.functional.interpolate.bilinear", "nn.functional.interpolate.trilinear")

# Entries that give a result in common dtypes for which neither the CPU nor PyTorch's table of CUDA has one.
OTHER_DTYPES = {
    "stft": "transforms of half precision are computed in single precision, as other entries of torch.fft",
    "nn.functional.dropout": "one kernel serves native_dropout too, for which the CPU takes complex numbers",
    "nn.functional.max_pool1d": "the CPU pools integers with indices and refuses them without; we pool both in one way",
}

# Entries that we refuse in uncommon dtypes, and the CPU does not.
MOVES_BYTES = "the CPU moves the bytes of dtypes which it does not copy otherwise"
REFUSED_DTYPES = dict.fromkeys(("narrow_copy", "roll", "fft.fftshift", "fft.ifftshift"), MOVES_BYTES)

# Entries whose refusal of an uncommon dtype is another kind of RuntimeError: the CPU's comes from another operator.
RANK_FIRST = "the CPU looks for the precision of the rank before it looks at the dtype of the matrix"
BY_THE_MASK = "the CPU multiplies by the mask, and fails to find a common dtype"
OTHER_ERRORS = {
    "native_dropout": BY_THE_MASK,
    "native_dropout_backward": BY_THE_MASK,
    "nn.functional.hardtanh": "the CPU copies the bounds, and fails to copy",
    "linalg.lstsq": RANK_FIRST,
    "linalg.lstsq.grad_oriented": RANK_FIRST,
}

# Where rounding differs more than PyTorch's own tests grant for the dtype: relative and absolute tolerance.
CHUNKS = "the product is made in chunks, each rounded"
FLASH = "a tensor with strides takes the flash kernel here and the formula on the CPU, which rounds every score"
SUMS = "gradients are summed in another order where the operand has strides"
TOLERANCES = {
    "native_group_norm": (SUMS, {"bfloat16": (6e-2, 6e-2)}),
    "nn.functional.linear_cross_entropy.chunked": (CHUNKS, {"float16": (1e-2, 1e-2), "bfloat16": (5e-2, 5e-2)}),
    "nn.functional.linear_cross_entropy.chunked_none": (CHUNKS, {"float16": (1e-2, 1e-2), "bfloat16": (5e-2, 5e-2)}),
    "nn.functional.scaled_dot_product_attention": (
        FLASH,
        {"float32": (1e-4, 2e-4), "float16": (3e-2, 3e-2), "bfloat16": (1e-1, 1e-1)},
    ),
}

# torch.lu() copies its results into out= operands by itself, wherever they are.
COPIES_TO_ANY_DEVICE = {"lu"}
