# SPDX-License-Identifier: BSD-3-Clause
"""What is known to differ from the CPU, and why. Reviewed by hand; a name here that passes fails the run."""

# Entries that may fail. At most ten.
MOST_EXCEPTIONS = 10
SPARSE = "takes or gives sparse tensors; the device stores strided ones only"
OF_A_GPU = "an internal operator of CUDA with no CPU kernel to compare with; scaled_dot_product_attention does the same"
EXCEPTIONS = {
    "sparse.mm.reduce": SPARSE,
    "sparse.sampled_addmm": SPARSE,
    "to_sparse": SPARSE,
    "torch.ops.aten._efficient_attention_forward": OF_A_GPU,
    "torch.ops.aten._flash_attention_forward": OF_A_GPU,
}

# Entries whose wrong inputs are found by the kernel, because they depend on the data: the exception is an
# AcceleratorError at the next synchronisation.
INDEX = "an index beyond the tensor"
LATE = {
    "gather": INDEX,
    "scatter": INDEX,
    "scatter_add": INDEX,
}
