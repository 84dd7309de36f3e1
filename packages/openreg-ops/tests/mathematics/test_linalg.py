# SPDX-License-Identifier: BSD-3-Clause
"""Unstructured operators of linear algebra give the CPU's results. test_structured.py covers the others."""

from types import SimpleNamespace

import pytest
import torch
from parity import DEVICE, check, check_failure, is_busy, move_all

pytestmark = pytest.mark.no_fallback

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
DTYPES = [torch.float32, torch.complex64]
# torch 2.13 has torch.cholesky still.
CHOLESKY = torch.cholesky if hasattr(torch.ops.aten, "cholesky") else torch.linalg.cholesky
SINCE_14 = pytest.mark.skipif(
    not hasattr(torch.ops.aten, "linalg_polar"), reason="torch 2.13 has neither polar decompositions nor square roots"
)


def random(*shape, dtype=torch.float32):
    torch.manual_seed(5)
    return torch.randn(shape, dtype=dtype)


def positive(*batch, n=4, dtype=torch.float32):
    a = random(*batch, n, n, dtype=dtype)
    return a @ a.mH + n * torch.eye(n)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.filterwarnings("ignore:.*cholesky is deprecated")
def test_cholesky(upper, dtype):
    for batch in ((), (2, 3)):
        a = positive(*batch, dtype=dtype)
        for factorize in {CHOLESKY, torch.linalg.cholesky}:
            check(lambda t, f=factorize: f(t, upper=upper), a.requires_grad_(), tolerance=CLOSE)
        factor = torch.linalg.cholesky(a.detach(), upper=upper)
        check(lambda t: torch.cholesky_inverse(t, upper), factor.requires_grad_(), tolerance=CLOSE)
        b = random(4, 2, dtype=dtype).requires_grad_()
        check(lambda t, f: torch.cholesky_solve(t, f, upper), b, factor.detach(), tolerance=CLOSE)


@pytest.mark.filterwarnings("ignore:.*cholesky is deprecated")
def test_a_matrix_without_a_factor_or_inverse_shows_on_the_calling_line():
    singular = torch.zeros(2, 3, 3, device=DEVICE)
    operations = {
        "cholesky.*not positive-definite": lambda: CHOLESKY(singular),
        "cholesky_inverse: .*element 0.*element 1": lambda: torch.cholesky_inverse(singular),
        "linalg.inv.*singular": lambda: torch.linalg.inv(singular),
    }
    for message, operation in operations.items():
        with pytest.raises(torch.linalg.LinAlgError, match=message):
            operation()
    with pytest.raises(RuntimeError, match="NaN"):
        torch.linalg.eig(singular / 0)
    torch.openreg.synchronize()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_householder_reflectors(dtype):
    a = random(2, 5, 3, dtype=dtype)
    check(torch.geqrf, a, tolerance=CLOSE)
    reflectors, tau = torch.geqrf(a)
    check(torch.linalg.householder_product, reflectors.requires_grad_(), tau.requires_grad_(), tolerance=CLOSE)
    reflectors, tau = reflectors.detach(), tau.detach()
    for left, other in ((True, random(2, 5, 4, dtype=dtype)), (False, random(2, 4, 5, dtype=dtype))):
        for transpose in (False, True):
            check(lambda q, t, o, left=left, tr=transpose: torch.ormqr(q, t, o, left, tr), reflectors, tau, other)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_solve_triangular(upper, left, dtype):
    a = positive(3, n=3, dtype=dtype)
    b = random(3, 2, dtype=dtype) if left else random(2, 3, dtype=dtype)
    for unitriangular in (False, True):
        options = {"upper": upper, "left": left, "unitriangular": unitriangular}
        check(torch.linalg.solve_triangular, a.requires_grad_(), b.requires_grad_(), tolerance=CLOSE, **options)


@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("shape", [(3, 3), (2, 1, 1), (2, 4, 4)], ids=str)
def test_lu_solve_of_complex_numbers(shape, left, adjoint):
    """The CPU's kernel leaves its output to be conjugated."""
    factor, pivots = torch.linalg.lu_factor(random(*shape, dtype=torch.complex64))
    b = random(*shape[:-1], 1, dtype=torch.complex64)
    b = b if left else b.mT.contiguous()
    solve = torch.linalg.lu_solve
    check(lambda f, p, t: solve(f, p, t, left=left, adjoint=adjoint), factor, pivots, b, strides=False, tolerance=CLOSE)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver, dtype):
    for a, b in (
        (random(5, 3, dtype=dtype), random(5, 2, dtype=dtype)),
        (random(2, 5, 3, dtype=dtype), random(2, 5, dtype=dtype)),
        (random(2, 3, 5, dtype=dtype), random(2, 3, 2, dtype=dtype)),
        (random(0, 5, 3, dtype=dtype), random(0, 5, 2, dtype=dtype)),
    ):
        check(lambda x, y: torch.linalg.lstsq(x, y, driver=driver), a, b, strides=False, tolerance=CLOSE)


@pytest.mark.parametrize("driver", ["gelsd", "gelss"])
def test_least_squares_of_a_matrix_without_full_rank_has_no_residuals(driver):
    a, b = torch.ones(4, 2, device=DEVICE), torch.ones(4, 1, device=DEVICE)
    result = torch.linalg.lstsq(a, b, driver=driver)
    assert result.residuals.shape == (0,)
    assert result.rank.item() == 1


def test_eigenvalues_and_vectors():
    for a in (random(3, 3), random(2, 4, 4), random(3, 3, dtype=torch.complex128)):
        values, vectors = torch.linalg.eig(a.to(DEVICE))
        assert values.dtype == vectors.dtype == a.dtype.to_complex()
        torch.testing.assert_close(a.to(DEVICE).to(values.dtype) @ vectors, vectors * values[..., None, :], **CLOSE)
        check(torch.linalg.eigvals, a, tolerance=CLOSE)
        check(lambda t: torch.linalg.eigvals(t).abs().sum(), a.requires_grad_(), tolerance=CLOSE)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_matrix_exponential(dtype):
    for a in (random(3, 3, dtype=dtype), random(2, 3, 3, dtype=dtype).mT, random(0, 3, 3, dtype=dtype)):
        check(torch.linalg.matrix_exp, a.requires_grad_(), tolerance=CLOSE)


@SINCE_14
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_polar_decomposition(dtype):
    for a in (random(5, 3, dtype=dtype), random(2, 3, 4, dtype=dtype).mT, random(0, 3, 2, dtype=dtype)):
        check(torch.linalg.polar, a.requires_grad_(), tolerance=CLOSE)
    factor, root = torch.linalg.polar(random(2, 4, 3, dtype=dtype).to(DEVICE))
    torch.testing.assert_close((factor @ root).cpu(), random(2, 4, 3, dtype=dtype), **CLOSE)


@SINCE_14
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_square_root_of_a_hermitian_matrix(dtype):
    for a in (positive(dtype=dtype), positive(2, 3, dtype=dtype).mT, random(0, 3, 3, dtype=dtype)):
        root = check(torch.linalg.matrix_sqrth, a.requires_grad_(), tolerance=CLOSE)
        torch.testing.assert_close((root @ root).detach().cpu(), a.detach(), **CLOSE)
        out = torch.empty(0, dtype=dtype, device=DEVICE)
        torch.ops.aten.linalg_matrix_sqrth.out(a.detach().to(DEVICE), out=out)
        assert out.cpu().equal(root.detach().cpu())


@pytest.mark.parametrize("dtype", [*DTYPES, torch.int64], ids=str)
def test_addbmm(dtype):
    one, two = (random(3, 2, 4) * 3).to(dtype), (random(3, 4, 5) * 3).to(dtype)
    for self in ((random(2, 5) * 3).to(dtype), torch.ones(1, dtype=dtype)):
        check(lambda s, a, b: torch.addbmm(s, a, b, beta=2, alpha=3), self, one, two, tolerance=CLOSE)
        # In place, `self` takes the size of the product.
        check(lambda s, a, b: s.addbmm_(a, b), self.clone(), one, two, tolerance=CLOSE)
        check(lambda s, a, b: torch.addbmm(s, a, b, out=torch.empty_like(s[:0])), self, one, two, tolerance=CLOSE)


OUT_FORMS = {
    "geqrf": (lambda: (random(4, 3),), torch.geqrf, 2),
    "solve_triangular": (
        lambda: (positive(n=3), random(3, 2)),
        lambda a, b, out: torch.linalg.solve_triangular(a, b, upper=True, out=out),
        1,
    ),
    "householder_product": (lambda: torch.geqrf(random(4, 3)), torch.linalg.householder_product, 1),
    "ormqr": (lambda: (*torch.geqrf(random(4, 3)), random(4, 2)), torch.ormqr, 1),
    "cholesky_inverse": (lambda: (torch.linalg.cholesky(positive()),), torch.cholesky_inverse, 1),
    "eigvals": (lambda: (positive(),), torch.linalg.eigvals, 1),
    "lstsq": (lambda: (random(5, 3), random(5, 2)), torch.linalg.lstsq, 4),
}


@pytest.mark.parametrize("name", OUT_FORMS)
def test_out(name):
    make, operation, count = OUT_FORMS[name]
    args = make()
    expected = operation(*args, out=None)
    expected = [expected] if count == 1 else list(expected)
    outs = [torch.empty(0, dtype=t.dtype, device=DEVICE) for t in expected]
    operation(*move_all(args, DEVICE), out=outs[0] if count == 1 else tuple(outs))
    for out, reference in zip(outs, expected, strict=True):
        torch.testing.assert_close(out.cpu(), reference, **CLOSE)


def test_geqrf_writes_into_outputs_of_a_wider_dtype():
    a = random(4, 3)
    outs = [torch.empty(0, dtype=torch.float64, device=DEVICE) for _ in range(2)]
    torch.geqrf(a.to(DEVICE), out=tuple(outs))
    for out, reference in zip(outs, torch.geqrf(a), strict=True):
        torch.testing.assert_close(out.cpu(), reference.double(), **CLOSE)


def test_cholesky_inverse_writes_over_a_part_of_its_operand():
    factor = torch.linalg.cholesky(positive(n=3))
    memory = torch.zeros(12, device=DEVICE)
    memory[:9].copy_(factor.flatten().to(DEVICE))
    out = memory[3:].view(3, 3)
    torch.cholesky_inverse(memory[:9].view(3, 3), out=out)
    torch.testing.assert_close(out.cpu(), torch.cholesky_inverse(factor), **CLOSE)


@pytest.mark.parametrize(
    "operation",
    [
        lambda m: torch.geqrf(m.tau),
        lambda m: torch.linalg.matrix_exp(m.a),
        lambda m: torch.linalg.matrix_exp(m.square.int()),
        lambda m: torch.linalg.solve_triangular(m.square, m.a, upper=True),
        lambda m: torch.linalg.householder_product(m.a.mT, m.tau),
        lambda m: torch.linalg.householder_product(m.a, m.tau.double()),
        lambda m: torch.ormqr(m.a, m.tau, m.square),
        lambda m: torch.linalg.lstsq(m.a, m.square),
        lambda m: torch.linalg.lstsq(m.a, m.b, driver="fast"),
        lambda m: torch.addbmm(m.square, m.batch, m.batch[:1].mT),
        pytest.param(lambda m: torch.linalg.polar(m.a.mT), marks=SINCE_14),
        pytest.param(lambda m: torch.linalg.polar(m.tau), marks=SINCE_14),
        pytest.param(lambda m: torch.linalg.polar(m.a.int()), marks=SINCE_14),
        pytest.param(lambda m: torch.linalg.polar(m.a, out=(m.a.double(), m.square)), marks=SINCE_14),
        pytest.param(lambda m: torch.linalg.matrix_sqrth(m.a), marks=SINCE_14),
        pytest.param(lambda m: torch.linalg.matrix_sqrth(m.tau), marks=SINCE_14),
        pytest.param(lambda m: torch.linalg.matrix_sqrth(m.square.int()), marks=SINCE_14),
        pytest.param(lambda m: torch.linalg.matrix_sqrth(m.square.half()), marks=SINCE_14),
    ],
)
def test_mistakes_fail_on_the_calling_line(operation):
    square, batch = positive(n=3), random(2, 3, 4)
    values = {"a": random(5, 3), "b": random(5, 2), "square": square, "tau": random(3), "batch": batch}
    check_failure(lambda matrices: operation(SimpleNamespace(**matrices)), values)


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (lambda x: torch.linalg.solve_triangular(x, x.double(), upper=True), "dtype"),
        (lambda x: torch.linalg.eigvals(x, out=torch.empty(0, device=DEVICE)), "ComplexFloat can't be cast"),
        (lambda x: torch.addbmm(x, x.new_ones(2, 3, 4), x.new_ones(2, 3, 4)), "3x4"),
        # The CPU's kernel reads and writes beside such pivots.
        (lambda x: torch.lu_unpack(x, x.new_ones(2, 3, dtype=torch.int32)), r"LU_pivots of shape \[3\]"),
        (lambda x: torch.lu_unpack(x, x.new_ones(4, dtype=torch.int32)), r"LU_pivots of shape \[3\]"),
    ],
)
def test_mistakes_told_in_other_words_than_the_cpus(operation, said):
    x = positive(n=3).to(DEVICE)
    with pytest.raises(RuntimeError, match=said):
        operation(x)
    torch.openreg.synchronize()


def test_dtypes_that_lapack_lacks_fail_on_the_calling_line():
    a, tau = random(2, 2).half().to(DEVICE), random(2).half().to(DEVICE)
    operations = [
        lambda: torch.geqrf(a),
        lambda: torch.linalg.householder_product(a, tau),
        lambda: torch.ormqr(a, tau, a),
        lambda: torch.linalg.solve_triangular(a, a, upper=True),
        lambda: torch.cholesky_inverse(a),
        lambda: torch.cholesky_solve(a, a),
        lambda: torch.linalg.eigvals(a),
        lambda: torch.addbmm(a > 0, a[None] > 0, a[None] > 0),
    ]
    for operation in operations:
        with pytest.raises((NotImplementedError, RuntimeError), match=r"not implemented for|Low precision"):
            operation()
    torch.openreg.synchronize()


def test_a_launch_returns_before_its_kernel_ran(gate):
    a, b = positive().to(DEVICE), random(4, 2).to(DEVICE)
    gate.close()
    torch.geqrf(a)
    torch.linalg.solve_triangular(a, b, upper=True)
    torch.linalg.matrix_exp(a)
    assert is_busy()


def test_what_must_wait_is_refused_in_a_capture():
    a = positive().to(DEVICE)
    for operation in (torch.linalg.eig, lambda t: torch.linalg.lstsq(t[:, :2], t, driver="gelsd")):
        graph = torch.openreg.Graph()
        with pytest.raises(RuntimeError, match="captur"), torch.openreg.graph(graph):
            operation(a)
