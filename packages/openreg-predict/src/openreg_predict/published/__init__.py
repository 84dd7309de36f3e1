# SPDX-License-Identifier: BSD-3-Clause
"""Reads published measurements of chips and defines the models that were measured.

``split.toml`` lists the files that calibrate descriptions and those that validate them. The package contains no
measurements: it reads a copy that the user has downloaded.
"""
