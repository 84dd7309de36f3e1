// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg::example {

// Makes openreg::example_scale known to PyTorch, for the life of the process.
// Called once, when the package is imported.
void register_operators();

}  // namespace openreg::example
