// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg::amp {

// Registers what every operator does while autocast is enabled for this device, under the dispatch
// key AutocastPrivateUse1. Called once per process, while the module is imported; the rules stay
// until the process ends. Throws c10::Error when another library has registered such rules already.
void register_autocast_rules();

}  // namespace openreg::amp
