// SPDX-License-Identifier: BSD-3-Clause
// The includes that the file of an operator family needs to register its operators.
#pragma once

#include "registration/foreach.h"
#include "registration/function.h"
#include "registration/non_strided.h"
#include "registration/structured.h"
#include "registration/torch.h"
#include "registration/unstructured.h"
#include "support/as_out.h"
#include "support/compute_dtype.h"
#include "support/pointwise_spec.h"
