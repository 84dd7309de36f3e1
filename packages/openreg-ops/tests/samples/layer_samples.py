# SPDX-License-Identifier: BSD-3-Clause
"""Arguments for unstructured operators of neural networks with an out= overload, by name of the functional overload."""

import torch
from structured_samples import number, spread, unit
from torch.nn import functional

NONE, MEAN = 0, 1


def activation_samples():
    x, grad = number(3, 4) * 2, number(3, 4)
    buffer = torch.ops.aten.log_sigmoid_forward(x)[1]
    return {
        "hardtanh": [(x,), (x, -0.5, 0.75), (torch.tensor([-3, 2, 9]), 0, 6)],
        "hardtanh_backward": [(grad, x, -0.5, 0.75)],
        "hardswish": [(x * 2,)],
        "log_sigmoid_forward": [(x,)],
        "log_sigmoid_backward": [(grad, x, buffer)],
        "glu_backward": [(number(3, 2), number(3, 4), 1), (number(2, 4), number(4, 4), 0)],
    }


def loss_samples():
    p, target, grad = unit(3, 4), unit(3, 4), number(3, 4)
    logits, labels = number(3, 4), torch.tensor([1, 0, 3])
    several = torch.tensor([[1, 3, -1, 0], [0, -1, 2, 1], [2, 1, 0, 3]])
    _, is_target = torch.ops.aten.multilabel_margin_loss_forward(logits, several, MEAN)
    weight = unit(4)
    return {
        "binary_cross_entropy": [(p, target), (p, target, unit(3, 4), NONE), (p, target, None, 2)],
        "binary_cross_entropy_backward": [(grad, p, target, None, NONE), (number(), p, target, unit(3, 4), MEAN)],
        "huber_loss": [(p, target), (p, target, NONE, 0.25), (p, target[:1], NONE)],
        "mse_loss_backward": [(grad, p, target, NONE), (number(), p, target, MEAN)],
        "multi_margin_loss": [(logits, labels), (logits, labels, 2, 0.5, weight, NONE), (number(4), torch.tensor(2))],
        "multi_margin_loss_backward": [
            (number(3), logits, labels, 1, 1, weight, NONE),
            (number(), logits, labels, 2, 1, None, MEAN),
        ],
        "multilabel_margin_loss_forward": [
            (logits, several, MEAN),
            (logits, several, NONE),
            (logits[0], several[0], NONE),
        ],
        "multilabel_margin_loss_backward": [
            (number(), logits, several, MEAN, is_target),
            (number(3), logits, several, NONE, is_target),
        ],
    }


def pooling_samples():
    volume = spread(2, 3, 6, 5, 4)
    pooled, places = functional.max_pool3d(volume, 2, return_indices=True)
    image = spread(2, 3, 6, 4)
    small, where = functional.max_pool2d(image, 2, return_indices=True)
    samples = unit(2, 3, 3)
    fractional, indices = torch.ops.aten.fractional_max_pool3d(volume, [2, 2, 2], [3, 2, 2], samples)
    return {
        "fractional_max_pool3d_backward": [(torch.randn_like(fractional), volume, [2, 2, 2], [3, 2, 2], indices)],
        "max_pool3d_with_indices": [
            (volume, [2, 2, 2]),
            (volume[0], [3], [1], [1]),
            (volume, [2, 3, 1], [2, 1, 1], [1, 1, 0], [1, 2, 1], True),
        ],
        "max_pool3d_with_indices_backward": [
            (torch.randn_like(pooled), volume, [2, 2, 2], [], [0, 0, 0], [1, 1, 1], False, places)
        ],
        "max_unpool2d": [(small, where, [6, 4]), (small[0], where[0], [6, 4])],
        "max_unpool3d": [(pooled, places, [6, 5, 4], [2, 2, 2], [0, 0, 0])],
    }


def padding_samples():
    image, volume = number(2, 3, 5, 4), number(2, 3, 5, 4, 3)
    return {
        "reflection_pad2d": [(image, [1, 2, 3, 0]), (image[0], [2, 1, 1, 1]), (image, [-1, 1, 0, 0])],
        "reflection_pad2d_backward": [(number(2, 3, 8, 7), image, [1, 2, 3, 0])],
        "replication_pad2d_backward": [
            (number(2, 3, 8, 7), image, [1, 2, 3, 0]),
            (number(3, 6, 5), image[0], [1, 0, 1, 0]),
        ],
        "replication_pad3d_backward": [(number(2, 3, 6, 7, 5), volume, [1, 1, 3, 0, 0, 1])],
        "im2col": [(image, [2, 3], [1, 1], [0, 1], [1, 2]), (image[0], [2, 2], [2, 1], [1, 0], [1, 1])],
        "col2im": [(number(2, 12, 12), [5, 4], [2, 2], [1, 1], [0, 0], [1, 1])],
    }


def layer_samples():
    torch.manual_seed(2)
    return activation_samples() | loss_samples() | pooling_samples() | padding_samples()
