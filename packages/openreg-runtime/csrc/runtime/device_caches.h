// SPDX-License-Identifier: BSD-3-Clause
// The caches of all devices.
#pragma once

#include <c10/core/Device.h>

#include "device_cache.h"

namespace openreg::runtime {

// The cache of a device whose index has been checked. It lives as long as the process.
DeviceCache& device_cache(c10::DeviceIndex index);

}  // namespace openreg::runtime
