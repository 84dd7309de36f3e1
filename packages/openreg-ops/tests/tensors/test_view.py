# SPDX-License-Identifier: BSD-3-Clause
"""Views share memory with their base and launch nothing."""

import pytest
import torch
from parity import DEVICE, check_failure, launches_of

pytestmark = pytest.mark.no_fallback

VIEWS = {
    "view": lambda t: t.view(6, 4),
    "view dtype": lambda t: t.view(torch.int32),
    "reshape": lambda t: t.reshape(4, 6),
    "as_strided": lambda t: t.as_strided((2, 2), (1, 5), 3),
    "unfold": lambda t: t.unfold(2, 2, 1),
    "transpose": lambda t: t.transpose(0, 1),
    "slice": lambda t: t[1, 1:, ::2],
    "squeeze": lambda t: t[:1].squeeze(0),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "expand": lambda t: t[:1].expand(3, -1, -1),
    "diagonal": lambda t: t.diagonal(0, 1, 2),
    "split": lambda t: t.split(2, 1)[1],
    "unbind": lambda t: t.unbind(1)[2],
    "detach": lambda t: t.detach(),
    "alias": lambda t: torch.ops.aten.alias(t),
    "flatten": lambda t: t.flatten(1),
    "movedim": lambda t: t.movedim(0, -1),
}


@pytest.mark.covers("registration.the minimal set of operators")
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shares_memory_and_launches_nothing(name):
    x = torch.arange(24.0).view(2, 3, 4)
    ours = x.to(DEVICE)
    expected, views = VIEWS[name](x), []
    assert launches_of(lambda: views.append(VIEWS[name](ours))) == (0, 0)
    (view,) = views
    assert (view.shape, view.stride(), view.storage_offset()) == (
        expected.shape,
        expected.stride(),
        expected.storage_offset(),
    )
    assert view.untyped_storage().data_ptr() == ours.untyped_storage().data_ptr()
    assert view.cpu().equal(expected)
    if name != "expand":
        expected.zero_()
        view.zero_()
        assert ours.cpu().equal(x)


def test_complex_as_real_and_back():
    z = torch.tensor([1 + 2j, 3 - 4j], device=DEVICE)
    parts = torch.view_as_real(z)
    assert parts.cpu().tolist() == [[1, 2], [3, -4]]
    parts[0, 0] = 9
    assert torch.view_as_complex(parts).cpu().tolist() == [9 + 2j, 3 - 4j]
    assert z.real.cpu().tolist() == [9, 3]


def test_tensors_are_set_to_each_other_if_they_are_the_same_view_of_the_same_memory():
    x = torch.arange(6.0, device=DEVICE)
    others = {"itself": x, "alias": x.view(6), "shape": x.view(2, 3), "part": x[1:], "copy": x.clone()}
    assert [name for name, other in others.items() if x.is_set_to(other)] == ["itself", "alias"]
    assert not x.view(2, 3).is_set_to(x.view(3, 2).t())


def test_a_view_that_does_not_fit_is_refused():
    x = torch.arange(6.0)
    check_failure(lambda t: t.view(4, 2), x)
    check_failure(lambda t: t.view(2, 3).t().view(6), x)
    check_failure(lambda t: t.as_strided((10,), (1,)), x)


def test_views_of_views_and_their_gradients():
    x = torch.arange(6.0, device=DEVICE, requires_grad=True)
    y = x.view(2, 3).t()[1:]
    y.mul(torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=DEVICE)).sum().backward()
    assert x.grad.cpu().tolist() == [0, 1, 3, 0, 2, 4]


def test_in_place_work_on_a_view_is_seen_by_autograd():
    x = torch.ones(4, device=DEVICE, requires_grad=True)
    y = x * 1
    y[:2].mul_(3)
    y.sum().backward()
    assert x.grad.cpu().tolist() == [3, 3, 1, 1]
