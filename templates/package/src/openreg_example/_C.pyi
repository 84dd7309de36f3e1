# SPDX-License-Identifier: BSD-3-Clause
# Exports nothing: importing it registers the operator.
