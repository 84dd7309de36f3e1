# SPDX-License-Identifier: BSD-3-Clause
"""Copies code into the pages of the guide, and checks that readers can follow them."""
