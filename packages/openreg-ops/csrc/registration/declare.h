// SPDX-License-Identifier: BSD-3-Clause
// All that the file of a family needs to declare its operators.
#pragma once

#include "common/as_out.h"
#include "common/compute_dtype.h"
#include "common/pointwise_spec.h"
#include "declare/described.h"
#include "declare/function.h"
#include "declare/layout.h"
#include "declare/listwise.h"
#include "declare/structured.h"
#include "declare/torch.h"
