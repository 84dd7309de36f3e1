# SPDX-License-Identifier: BSD-3-Clause
"""Attention on nested tensors of layout torch.jagged is one launch, and equals attention on each sequence."""

import itertools

import pytest
import torch
from nested_samples import numbers
from parity import DEVICE, launches_of
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention

pytestmark = [
    pytest.mark.no_fallback,
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage"),
]

EFFICIENT = torch.ops.aten._efficient_attention_forward
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
TOLERANCES = {
    torch.float64: {"rtol": 1e-9, "atol": 1e-10},
    torch.float32: CLOSE,
    torch.bfloat16: {"rtol": 0.05, "atol": 0.05},
    torch.float16: {"rtol": 0.01, "atol": 0.01},
}


def rows(device, lengths, *shape, seed, dtype=torch.float32):
    """Rows of all sequences, one behind the other."""
    return numbers(device, sum(lengths), *shape, seed=seed, dtype=dtype).requires_grad_()


def starts(lengths, device=DEVICE):
    return torch.tensor([0, *itertools.accumulate(lengths)]).to(device, non_blocking=True)


def ragged(values, offsets, lengths):
    """(batch, heads, ragged length, width)."""
    known = {"min_seqlen": min(lengths), "max_seqlen": max(lengths)}
    return torch.nested.nested_tensor_from_jagged(values, offsets, **known).transpose(1, 2)


def ours(lengths, key_lengths=None, *, width=8, value_width=8, heads=2, dtype=torch.float32, **options):
    """The result and the gradients of query, key and value."""
    operands = [
        rows(DEVICE, some, heads, last, seed=seed, dtype=dtype)
        for seed, (some, last) in enumerate(
            zip((lengths, key_lengths or lengths, key_lengths or lengths), (width, width, value_width), strict=True)
        )
    ]
    offsets = starts(lengths)
    key_offsets = starts(key_lengths) if key_lengths else offsets
    query = ragged(operands[0], offsets, lengths)
    key, value = (ragged(each, key_offsets, key_lengths or lengths) for each in operands[1:])
    result = attention(query, key, value, **options).transpose(1, 2).values()
    (result * numbers(DEVICE, *result.shape, seed=9, dtype=dtype)).sum().backward()
    return [result.detach(), *(each.grad for each in operands)]


def alone(lengths, key_lengths=None, *, width=8, value_width=8, heads=2, dtype=torch.float32, **options):
    """The same on the CPU, sequence by sequence."""
    key_lengths = key_lengths or lengths
    operands = [
        rows("cpu", some, heads, last, seed=seed, dtype=dtype)
        for seed, (some, last) in enumerate(
            zip((lengths, key_lengths, key_lengths), (width, width, value_width), strict=True)
        )
    ]
    parts = [each.split(some) for each, some in zip(operands, (lengths, key_lengths, key_lengths), strict=True)]
    results = []
    for sequence in zip(*parts, strict=True):
        query, key, value = (part.transpose(0, 1).unsqueeze(0) for part in sequence)
        results.append(attention(query, key, value, **options)[0].transpose(0, 1))
    result = torch.cat(results)
    (result * numbers("cpu", *result.shape, seed=9, dtype=dtype)).sum().backward()
    return [result.detach(), *(each.grad for each in operands)]


def compare(*args, tolerance=CLOSE, **options):
    for mine, expected in zip(ours(*args, **options), alone(*args, **options), strict=True):
        torch.testing.assert_close(mine.cpu(), expected, **tolerance)


@pytest.mark.covers("registration.attention on nested tensors of layout torch.jagged")
@pytest.mark.no_sync(strict=True)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [(2, 3, 1), (7,), (1, 1), (40, 3)], ids=str)
def test_attention_is_that_of_each_sequence(lengths, causal, allow_sync):
    results = ours(lengths, is_causal=causal)
    for mine, expected in zip(results, alone(lengths, is_causal=causal), strict=True):
        with allow_sync():
            torch.testing.assert_close(mine.cpu(), expected, **CLOSE)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_dtypes(dtype, causal):
    compare((2, 3, 1), dtype=dtype, is_causal=causal, tolerance=TOLERANCES[dtype])


@pytest.mark.parametrize("causal", [False, True])
def test_keys_of_other_lengths(causal):
    compare((2, 3, 1), (4, 2, 6), is_causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_widths_and_a_scale(causal):
    compare((2, 5), width=5, value_width=7, heads=3, scale=0.3, is_causal=causal)


def test_sequences_without_rows():
    compare((0, 3))
    result, *gradients = ours((2, 1), (0, 3))
    assert result[:2].abs().max().item() == 0
    assert gradients[0][:2].abs().max().item() == 0


def test_parts_of_one_projection():
    """Query, key and value that are views of one tensor, which the CPU refuses."""
    lengths, offsets = (2, 3), starts((2, 3))
    projected = rows(DEVICE, lengths, 2, 24, seed=1)
    packed = ragged(projected, offsets, lengths).transpose(1, 2)
    result = attention(*(part.transpose(1, 2) for part in packed.chunk(3, -1)), is_causal=True)
    result = result.transpose(1, 2).values()
    result.square().sum().backward()
    again = projected.detach().clone().requires_grad_()
    parts = [ragged(part.contiguous(), offsets, lengths) for part in again.chunk(3, -1)]
    expected = attention(*parts, is_causal=True).transpose(1, 2).values()
    expected.square().sum().backward()
    torch.testing.assert_close(result, expected, **CLOSE)
    torch.testing.assert_close(projected.grad, again.grad, **CLOSE)


def test_the_number_of_sequences_costs_no_launches():
    counts = [launches_of(lambda lengths=lengths: ours(lengths)) for lengths in ((3,), (3,) * 9)]
    assert counts[0] == counts[1]


def test_lengths_that_the_tensor_does_not_know_are_read_from_the_device():
    lengths, offsets = (2, 3), starts((2, 3))
    values = rows(DEVICE, lengths, 2, 8, seed=1)
    unknown = torch.nested.nested_tensor_from_jagged(values, offsets).transpose(1, 2)
    known = ragged(values, offsets, lengths)
    torch.testing.assert_close(attention(unknown, unknown, unknown).values(), attention(known, known, known).values())


def test_rows_of_a_ragged_number_of_heads():
    """(batch, ragged, length, width): PyTorch gives the values to the dense kernel."""
    results = []
    for device in ("cpu", DEVICE):
        values = numbers(device, 5, 6, 8, requires_grad=True)
        operand = torch.nested.nested_tensor_from_jagged(values, starts((2, 3), device), min_seqlen=2, max_seqlen=3)
        result = attention(operand, operand, operand, is_causal=True).values()
        result.square().sum().backward()
        results.append((result.detach().cpu(), values.grad.cpu()))
    for mine, expected in zip(*reversed(results), strict=True):
        torch.testing.assert_close(mine, expected, **CLOSE)


@pytest.mark.parametrize("kernel", [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION])
def test_code_that_asks_for_a_fused_kernel_gets_it(kernel):
    with sdpa_kernel([kernel]):
        results = ours((2, 3), is_causal=True)
    for mine, expected in zip(results, alone((2, 3), is_causal=True), strict=True):
        torch.testing.assert_close(mine.cpu(), expected, **CLOSE)


def test_the_math_path_on_demand():
    with sdpa_kernel([SDPBackend.MATH]):
        compare((2, 3))


def test_what_the_cpu_refuses_is_refused():
    lengths, offsets = (2, 3), starts((2, 3))
    operand = ragged(rows(DEVICE, lengths, 2, 8, seed=1), offsets, lengths)
    with pytest.raises(ValueError, match="Masks"):
        attention(operand, operand, operand, attn_mask=torch.zeros(3, 3, device=DEVICE))
    with pytest.raises(ValueError, match="nested"):
        attention(operand, operand.to_padded_tensor(0.0), operand)
    with pytest.raises(ValueError, match="dtype"):
        attention(operand, operand.double(), operand)
    with pytest.raises(ValueError, match="device"):
        attention(operand, operand.cpu(), operand)
    with sdpa_kernel([SDPBackend.MATH]), pytest.raises(RuntimeError, match="No viable backend"):
        attention(operand, operand, operand, is_causal=True)


def test_other_numbers_of_heads_are_refused_as_on_the_cpu():
    def call(device):
        lengths, offsets = (2, 3), starts((2, 3), device)
        query, key = (ragged(rows(device, lengths, heads, 8, seed=heads), offsets, lengths) for heads in (4, 2))
        attention(query, key, key, enable_gqa=True)

    errors = []
    for device in ("cpu", DEVICE):
        with pytest.raises(RuntimeError) as caught:
            call(device)
        errors.append(caught.type)
    assert errors[0] is errors[1]


# Dropout


def dropout(p, seed, lengths=(2, 3, 1)):
    torch.openreg.manual_seed_all(seed)
    return [each.cpu() for each in ours(lengths, dropout_p=p)]


def test_dropout_is_repeatable_by_seed():
    one, same, other = dropout(0.4, 1), dropout(0.4, 1), dropout(0.4, 2)
    assert all(map(torch.equal, one, same))
    assert not any(map(torch.equal, one, other))


def test_dropout_zeroes_and_scales_and_differs_between_sequences():
    lengths, width = (40, 40), 40
    eye = torch.eye(width, device=DEVICE).repeat(2, 1).unsqueeze(1)
    zeros = torch.zeros_like(eye)
    query, key, value = (ragged(each, starts(lengths), lengths) for each in (zeros, zeros, eye))
    weights = attention(query, key, value, dropout_p=0.25).transpose(1, 2).values().squeeze(1).cpu() * width
    torch.testing.assert_close(weights[weights > 0], torch.full_like(weights[weights > 0], 4 / 3))
    assert abs((weights > 0).float().mean().item() - 0.75) < 0.05
    assert not torch.equal(weights[:40], weights[40:])


def test_gradients_under_dropout_agree_with_differences():
    operands = [rows(DEVICE, (2, 3), 1, 3, seed=seed, dtype=torch.float64) for seed in range(3)]
    offsets = starts((2, 3))

    def function(*tensors):
        torch.openreg.manual_seed_all(5)
        query, key, value = (ragged(each, offsets, (2, 3)) for each in tensors)
        return attention(query, key, value, dropout_p=0.3).transpose(1, 2).values()

    with torch.openreg.fallback_mode("allow"):  # the check itself reduces and selects
        assert torch.autograd.gradcheck(function, [each.detach().requires_grad_() for each in operands])


def test_replays_of_a_graph_drop_anew():
    operands = rows(DEVICE, (4, 5), 2, 8, seed=1)
    operand, seen = ragged(operands, starts((4, 5)), (4, 5)), []
    graph = torch.accelerator.Graph()
    with torch.openreg.Stream(), graph:
        result = attention(operand, operand, operand, dropout_p=0.5).values()
    for _ in range(2):
        graph.replay()
        seen.append(result.detach().cpu())
    assert not torch.equal(*seen)


# The operator itself, which is PyTorch's for GPUs


def dense(length=5, keys=7, dtype=torch.float32):
    return [
        numbers(DEVICE, 2, some, 3, 8, seed=seed, dtype=dtype).requires_grad_()
        for seed, some in enumerate((length, keys, keys))
    ]


def efficient(query, key, value, bias=None, visible=0, p=0.0, **options):
    return EFFICIENT(query, key, value, bias, None, None, None, None, p, visible, True, **options)[0]


@pytest.mark.parametrize("visible", [0, 1, 2])
@pytest.mark.parametrize("lengths", [(5, 7), (7, 5)], ids=str)
def test_a_dense_batch(visible, lengths):
    operands = dense(*lengths)
    result = efficient(*operands, visible=visible)
    result.square().sum().backward()
    heads_first = [each.detach().cpu().transpose(1, 2).requires_grad_() for each in operands]
    mask = torch.ones(lengths).bool().tril(lengths[1] - lengths[0]) if visible == 2 else None
    expected = attention(*heads_first, attn_mask=mask, is_causal=visible == 1)
    seen = torch.ones_like(expected) if mask is None else mask.any(1)[:, None].expand_as(expected)
    expected.where(seen.bool(), torch.zeros(())).square().sum().backward()
    torch.testing.assert_close(result.transpose(1, 2).cpu()[seen.bool()], expected[seen.bool()], **CLOSE)
    for one, other in zip(operands, heads_first, strict=True):
        torch.testing.assert_close(one.grad.transpose(1, 2).cpu(), other.grad.nan_to_num(), **CLOSE)


def test_a_bias_and_its_gradient():
    operands, bias = dense(), numbers(DEVICE, 2, 3, 5, 7, seed=8, requires_grad=True)
    efficient(*operands, bias).square().sum().backward()
    heads_first = [each.detach().cpu().transpose(1, 2) for each in operands]
    expected = bias.detach().cpu().requires_grad_()
    attention(*heads_first, attn_mask=expected).square().sum().backward()
    torch.testing.assert_close(bias.grad.cpu(), expected.grad, **CLOSE)


def test_what_it_keeps_for_the_backward_pass():
    """As PyTorch's functions for shapes say, so that compiled code agrees."""
    packed = [each.detach().flatten(0, 1).unsqueeze(0) for each in dense(5, 5)]
    offsets = starts((4, 6)).int()
    found = EFFICIENT(*packed, None, offsets, offsets, 6, 6, 0.0, 1, True)
    meta = [each.to("meta") for each in (*packed, offsets)]
    expected = EFFICIENT(*meta[:3], None, meta[3], meta[3], 6, 6, 0.0, 1, True)
    assert [each.shape for each in found[:4]] == [each.shape for each in expected[:4]]
    assert found[4:] == expected[4:]
    assert EFFICIENT(*packed, None, offsets, offsets, 6, 6, 0.0, 1, False)[1].shape == (2, 3, 0)


def test_gradients_that_share_a_storage():
    packed = [each.detach().flatten(0, 1).unsqueeze(0) for each in dense(5, 5)]
    offsets = starts((4, 6)).int()
    output, sums, seed, offset, *_ = EFFICIENT(*packed, None, offsets, offsets, 6, 6, 0.0, 1, True)
    backward = torch.ops.aten._efficient_attention_backward
    saved = (None, output, offsets, offsets, 6, 6, sums, 0.0, seed, offset, 1, False)
    alone = backward(output, *packed, *saved)
    together = backward(output, *packed, *saved, shared_storage_dqdkdv=True)
    assert len({each.untyped_storage().data_ptr() for each in together[:3]}) == 1
    for one, other in zip(together[:3], alone[:3], strict=True):
        torch.testing.assert_close(one, other)


def test_mistakes_are_reported_on_the_calling_line():
    query, key, value = (each.detach() for each in dense())
    offsets = starts((4, 6)).int()
    with pytest.raises(RuntimeError, match="same batch and heads"):
        efficient(query, key[:, :, :2], value)
    with pytest.raises(RuntimeError, match="one floating dtype"):
        efficient(query, key.double(), value)
    with pytest.raises(RuntimeError, match="dropout probability"):
        efficient(query, key, value, p=1.5)
    with pytest.raises(RuntimeError, match="custom_mask_type"):
        efficient(query, key, value, visible=3)
    with pytest.raises(RuntimeError, match="broadcasts to the shape of the scores"):
        efficient(query, key, value, torch.zeros(2, 3, 5, 6, device=DEVICE))
    with pytest.raises(RuntimeError, match="bias or a custom_mask_type"):
        efficient(query, key, value, torch.zeros(2, 3, 5, 7, device=DEVICE), 1)
    with pytest.raises(NotImplementedError, match="window_size"):
        efficient(query, key, value, window_size=2)
    output, sums, seed, offset, *_ = EFFICIENT(query, key, value, None, None, None, None, None, 0.0, 0, True)
    saved = (None, output, None, None, 5, 7, sums, 0.0, seed, offset, 0, False)
    with pytest.raises(NotImplementedError, match=r"_efficient_attention_backward: .*window_size"):
        torch.ops.aten._efficient_attention_backward(output, query, key, value, *saved, window_size=2)
    with pytest.raises(RuntimeError, match="together"):
        EFFICIENT(query, key, value, None, offsets, None, 6, 6, 0.0, 0)
    with pytest.raises(RuntimeError, match="batch size 1"):
        EFFICIENT(query, key, value, None, offsets, offsets, 6, 6, 0.0, 0)
    with pytest.raises(RuntimeError, match="max_seqlen_q"):
        EFFICIENT(query[:1], key[:1], value[:1], None, offsets, offsets, None, None, 0.0, 0)
    with pytest.raises(RuntimeError, match="openreg:1"):
        efficient(query, key.to("openreg:1"), value)


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [([0, 3, 2], "do not decrease"), ([0, 4, 99], "from 0 to 10, the rows"), ([0, 9, 10], "max_seqlen_q")],
)
def test_starts_that_leave_the_tensor_break_the_device_and_no_memory(offsets, reason):
    packed = [each.detach().flatten(0, 1).unsqueeze(0) for each in dense(5, 5)]
    wrong = torch.tensor(offsets, device=DEVICE, dtype=torch.int32)
    EFFICIENT(*packed, None, wrong, wrong, 6, 6, 0.0, 0, True)
    with pytest.raises(RuntimeError, match=reason):
        torch.openreg.synchronize()
    torch.openreg.reset_device()


# A model


class Block(nn.Module):
    """A layer of an encoder: attention and a feed-forward network, each behind a norm."""

    def __init__(self, width, heads, p):
        super().__init__()
        self.heads, self.p = heads, p
        self.norms = nn.ModuleList((nn.LayerNorm(width), nn.LayerNorm(width)))
        self.projections = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(p), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        parts = self.projections(self.norms[0](x)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attended = attention(query, key, value, dropout_p=self.p if self.training else 0.0)
        x = x + self.out(attended.transpose(1, 2).flatten(-2))
        return x + self.feed_forward(self.norms[1](x))


class Encoder(nn.Module):
    """Says of each sequence of tokens which of three kinds it is."""

    def __init__(self, p=0.0):
        super().__init__()
        self.embedding = nn.Embedding(10, 16)
        self.blocks = nn.Sequential(Block(16, 2, p), Block(16, 2, p))
        self.head = nn.Linear(16, 3)

    def forward(self, tokens):
        encoded = self.blocks(self.embedding(tokens))
        return self.head(encoded.to_padded_tensor(0.0).sum(dim=1) / tokens.offsets().diff().unsqueeze(-1))


def batches(count):
    """Ragged batches of tokens; a sequence is of the kind that most of its tokens have."""
    generator = torch.Generator().manual_seed(3)
    for _ in range(count):
        kinds = torch.randint(3, (16,), generator=generator)
        lengths = torch.randint(1, 9, (16,), generator=generator).tolist()
        tokens = [
            torch.randint(3, (n,), generator=generator) + 3 * kind for n, kind in zip(lengths, kinds, strict=True)
        ]
        yield tokens, kinds


@pytest.mark.parametrize("p", [0.0, 0.1])
def test_an_encoder_learns_from_ragged_batches(p):
    torch.manual_seed(0)
    model = Encoder(p).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for tokens, kinds in batches(60):
        batch = torch.nested.nested_tensor(tokens, layout=torch.jagged, device=DEVICE)
        loss = nn.functional.cross_entropy(model(batch), kinds.to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    assert torch.stack(losses[-5:]).mean().item() < 0.3 * losses[0].item()
    assert torch.openreg.fallback_stats() == {}


def test_an_encoder_gives_what_it_gives_for_each_sequence():
    torch.manual_seed(0)
    model = Encoder().to(DEVICE).eval()
    (tokens, _), *_ = batches(1)
    batch = torch.nested.nested_tensor(tokens, layout=torch.jagged, device=DEVICE)
    one_by_one = [model(torch.nested.nested_tensor([each], layout=torch.jagged, device=DEVICE)) for each in tokens]
    torch.testing.assert_close(model(batch), torch.cat(one_by_one), **CLOSE)
