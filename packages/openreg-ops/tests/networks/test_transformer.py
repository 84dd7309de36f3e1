# SPDX-License-Identifier: BSD-3-Clause
"""Attention and transformer layers of torch.nn give the CPU's results, in training and on their fast path."""

import copy

import pytest
import torch
from parity import DEVICE, assert_same, check, gradients, move_all, tensors_in
from torch import nn

pytestmark = pytest.mark.no_fallback

aten = torch.ops.aten
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def layer(**options):
    return nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, **{"batch_first": True, **options})


def compare(module, *args, **kwargs):
    """Forward, and backward in training."""
    ours = copy.deepcopy(module).to(DEVICE)
    expected, result = module(*args, **kwargs), ours(*move_all(args, DEVICE), **move_all(kwargs, DEVICE))
    assert_same(result, expected, strides=False, **CLOSE)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors_in(expected)):
        reference = gradients(expected, list(module.parameters()))
        assert_same(gradients(result, list(ours.parameters())), reference, strides=False, **CLOSE)


def masks():
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[1, 3:] = True
    return {"none": {}, "causal": {"src_mask": causal}, "padding": {"src_key_padding_mask": padding}}


@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}, {"batch_first": False}], ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_an_encoder_layer(options, mask, training):
    module, x = layer(**options).train(training), torch.randn(3, 5, 16)
    with torch.set_grad_enabled(training):
        compare(module, x if options.get("batch_first", True) else x.transpose(0, 1), **masks()[mask])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("training", [True, False])
def test_an_encoder_of_a_padded_batch(training):
    """In evaluation it computes on a nested tensor, and leaves zeros where there is padding."""
    module, x = nn.TransformerEncoder(layer(), num_layers=2).train(training), torch.randn(3, 5, 16)
    padding = masks()["padding"]["src_key_padding_mask"]
    ours = copy.deepcopy(module).to(DEVICE)
    with torch.no_grad():
        expected = module(x, src_key_padding_mask=padding)
        result = ours(x.to(DEVICE), src_key_padding_mask=padding.to(DEVICE)).cpu()
    torch.testing.assert_close(result, expected, **CLOSE)


@pytest.mark.parametrize("training", [True, False])
def test_a_decoder_layer(training):
    module = nn.TransformerDecoderLayer(16, 4, 32, dropout=0.0, batch_first=True).train(training)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    with torch.set_grad_enabled(training):
        compare(module, torch.randn(3, 5, 16), torch.randn(3, 7, 16), tgt_mask=mask, tgt_is_causal=True)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("weights", [{"need_weights": False}, {}, {"average_attn_weights": False}], ids=str)
@pytest.mark.parametrize("padded", [False, True])
def test_multihead_attention(weights, padded, training):
    module, x = nn.MultiheadAttention(16, 4, batch_first=True).train(training), torch.randn(3, 5, 16)
    options = {"key_padding_mask": masks()["padding"]["src_key_padding_mask"]} if padded else {}
    with torch.set_grad_enabled(training):
        compare(module, x, x, x, **weights, **options)


def test_attention_to_other_keys_of_other_widths():
    module = nn.MultiheadAttention(16, 4, kdim=6, vdim=7, add_bias_kv=True, batch_first=True)
    compare(module, torch.randn(3, 5, 16), torch.randn(3, 4, 6), torch.randn(3, 4, 7))


def test_attention_weights_on_the_fast_path():
    module, x = nn.MultiheadAttention(16, 4, batch_first=True).to(DEVICE).eval(), torch.randn(3, 5, 16, device=DEVICE)
    with torch.no_grad():
        assert module(x, x, x)[1].shape == (3, 5, 5)
        assert module(x, x, x, need_weights=False)[1] is None


def test_dropout_in_training_is_repeatable():
    module, x = layer().to(DEVICE), torch.randn(3, 5, 16, device=DEVICE)
    for part in module.modules():
        part.dropout = 0.5 if isinstance(part, nn.MultiheadAttention) else getattr(part, "dropout", None)

    def run(seed):
        torch.openreg.manual_seed_all(seed)
        return module(x).detach().cpu()

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


@pytest.mark.parametrize(("mask_type", "shape"), [(0, (5, 5)), (1, (3, 5)), (2, (3, 2, 5, 5))])
def test_masked_softmax(mask_type, shape):
    x, mask = torch.randn(3, 2, 5, 5), torch.rand(shape) > 0.7
    mask[..., 0] = False
    result = check(lambda *args: torch._masked_softmax(*args, 3, mask_type), x, mask, tolerance=CLOSE)
    full = (mask if mask_type != 1 else mask[:, None, None]).expand(3, 2, 5, 5)
    check(lambda *args: aten._masked_softmax_backward(*args, 3), x, result.cpu(), full.contiguous(), tolerance=CLOSE)


@pytest.mark.parametrize("dim", [None, -1, 3, 1])
@pytest.mark.parametrize("mask_type", [None, 0, 1, 2])
def test_a_mask_of_the_inputs_own_shape_serves_any_type(mask_type, dim):
    x, mask = torch.randn(3, 2, 5, 5), torch.rand(3, 2, 5, 5) > 0.7
    mask[..., 0] = mask[:, 0] = False
    check(lambda *args: torch._masked_softmax(*args, dim, mask_type), x, mask, tolerance=CLOSE)
    for shape in ((5, 4), (2, 5), (5, 5, 5), (5,)):
        with pytest.raises(RuntimeError, match="does not fit"):
            torch._masked_softmax(x.to(DEVICE), torch.zeros(shape, dtype=torch.bool, device=DEVICE), dim, mask_type)


def test_the_parts_of_a_packed_projection():
    check(aten._transform_bias_rescale_qkv, torch.randn(2, 5, 48), torch.randn(48), 4)


def test_mistakes_are_reported_on_the_calling_line():
    x, weight, bias = (torch.zeros(shape, device=DEVICE) for shape in ((2, 5, 16), (48, 16), (48,)))
    mask = torch.zeros(2, 5, device=DEVICE)
    multi_head = aten._native_multi_head_attention
    with pytest.raises(RuntimeError, match="multiple of the 3 heads"):
        multi_head(x, x, x, 16, 3, weight, bias, weight[:16], bias[:16])
    with pytest.raises(RuntimeError, match=r"shape \(batch, length, 16\)"):
        multi_head(x[0], x, x, 16, 4, weight, bias, weight[:16], bias[:16])
    with pytest.raises(RuntimeError, match="48 rows"):
        multi_head(x, x, x, 16, 4, weight[:16], bias, weight[:16], bias[:16])
    with pytest.raises(RuntimeError, match="mask of bool"):
        multi_head(x, x, x, 16, 4, weight, bias, weight[:16], bias[:16], mask)
    with pytest.raises(RuntimeError, match="boolean"):
        torch._masked_softmax(x, x)
    with pytest.raises(RuntimeError, match="does not fit"):
        torch._masked_softmax(x, mask.bool())
    with pytest.raises(RuntimeError, match="same device"):
        torch._masked_softmax(x, torch.zeros(2, 5, 16, dtype=torch.bool))
    with pytest.raises(RuntimeError, match="one shape"):
        aten._masked_softmax_backward(x, x, mask.bool())
    with pytest.raises(RuntimeError, match="bias of 3"):
        aten._transform_bias_rescale_qkv(x, bias, 4)
