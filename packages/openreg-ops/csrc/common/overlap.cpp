// SPDX-License-Identifier: BSD-3-Clause
// The rules are what the CPU does; tests/conformance compares them.
#include "common/overlap.h"

#include <algorithm>
#include <array>

namespace openreg::ops {

namespace {

struct Line {
  std::string_view op;
  OverlapRule rule;
};

constexpr std::array kRules{
    Line{"aten::_linalg_det", kNotItself},
    Line{"aten::_linalg_eigh", kNotItself},
    Line{"aten::_linalg_slogdet", kNotItself},
    Line{"aten::_linalg_solve_ex", kNotItself},
    Line{"aten::_linalg_svd", kNotItself},
    Line{"aten::addmm", kNotItselfNoPart},
    Line{"aten::addmv", kNotItselfNoPart},
    Line{"aten::aminmax", kNotItself},
    Line{"aten::avg_pool2d", kNotItself},
    Line{"aten::baddbmm", kNoPart},
    Line{"aten::cumprod", kNotItselfNoPart},
    Line{"aten::cumsum", kNotItselfNoPart},
    Line{"aten::index_add", kNoPart},
    Line{"aten::index_copy", kNoPart},
    Line{"aten::index_reduce", kNoPart},
    Line{"aten::isin", kNotItself},
    Line{"aten::linalg_cholesky_ex", kNotItself},
    Line{"aten::linalg_cross", kNoOperand},
    Line{"aten::linalg_inv_ex", kNotItself},
    Line{"aten::linalg_ldl_factor_ex", kNotItself},
    Line{"aten::linalg_ldl_solve", kNotItself},
    Line{"aten::linalg_lu", kNotItself},
    Line{"aten::linalg_lu_factor_ex", kNotItself},
    Line{"aten::linalg_lu_solve", kNotItself},
    Line{"aten::linalg_qr", kNotItself},
    Line{"aten::linalg_vector_norm", kNotItselfNoPart},
    Line{"aten::lu_unpack", kNotItself},
    Line{"aten::max", kNotItself},
    Line{"aten::mean", kNotItself},
    Line{"aten::min", kNotItself},
    Line{"aten::mm", kNotItself},
    Line{"aten::renorm", kNotItselfNoPart},
    Line{"aten::scatter", kNoPart},
    Line{"aten::scatter_add", kNoPart},
    Line{"aten::scatter_reduce", kNoPart},
    Line{"aten::sort", kNotItselfNoPart},
    Line{"aten::topk", kNotItself},
    Line{"aten::triangular_solve", kNotItself},
};

}  // namespace

OverlapRule overlap_rule(std::string_view op) {
  const auto* found = std::find_if(kRules.begin(), kRules.end(), [op](const Line& line) { return line.op == op; });
  return found == kRules.end() ? OverlapRule() : found->rule;
}

}  // namespace openreg::ops
