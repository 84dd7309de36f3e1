# SPDX-License-Identifier: BSD-3-Clause
"""The code of child processes. An exercise is a call that fails if a hook, name or registration is missing."""
