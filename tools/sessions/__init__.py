# SPDX-License-Identifier: BSD-3-Clause
"""Builds wheels, fills the environments of sessions, and runs the tests of packages there."""
