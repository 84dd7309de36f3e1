// SPDX-License-Identifier: BSD-3-Clause
// All that the file of a family needs to declare its operators.
#pragma once

#include "registration/described.h"
#include "registration/function.h"
#include "registration/layout.h"
#include "registration/listwise.h"
#include "registration/structured.h"
#include "registration/torch.h"
#include "support/as_out.h"
#include "support/compute_dtype.h"
#include "support/pointwise_spec.h"
