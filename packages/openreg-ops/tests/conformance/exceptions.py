# SPDX-License-Identifier: BSD-3-Clause
"""What is known to differ from the CPU, and why. Reviewed by hand; a name here that passes fails the run."""

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
DIFFERENCES = {}

# Entries that give a result in common dtypes for which neither the CPU nor PyTorch's table of CUDA has one.
OTHER_DTYPES = {
    "stft": "transforms of half precision are computed in single precision, as other entries of torch.fft",
}

# Entries whose refusal of an uncommon dtype is another kind of RuntimeError than the CPU's, which is another operator's.
OTHER_ERRORS = {
    "native_dropout_backward": "the CPU multiplies by the mask, and fails to find a common dtype",
    "nn.functional.hardtanh": "the CPU copies the bounds, and fails to copy",
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
