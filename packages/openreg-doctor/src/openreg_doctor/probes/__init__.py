# SPDX-License-Identifier: BSD-3-Clause
"""What runs in the children: each exercise is a call whose failure says that something is missing."""
