# SPDX-License-Identifier: BSD-3-Clause
"""Arguments for operators of neural networks with an out= overload, as in structured_samples.py."""

import torch


def network_samples():
    image = torch.log_softmax(torch.randn(2, 3, 4, 5), 1)
    target, total = torch.randint(3, (2, 4, 5)), torch.tensor(40.0)
    x, weight, bias = torch.randn(3, 4, 5), torch.rand(4) + 0.5, torch.randn(4)
    return {
        "_native_batch_norm_legit.no_stats": [(x, weight, bias, True, 0.1, 1e-3)],
        "native_batch_norm": [(x, weight, bias, torch.randn(4), torch.rand(4) + 0.5, True, 0.1, 1e-3)],
        "nll_loss2d_backward": [(torch.tensor(1.0), image, target, None, 1, -100, total)],
        "nll_loss2d_forward": [(image, target, None, 1, -100), (image, target, torch.rand(3) + 0.1, 0, 1)],
    }
