# SPDX-License-Identifier: BSD-3-Clause
"""The code of child processes, which ``child`` runs step by step.

A step is an import, or a *probe*, which examines the device. Most probes are *exercises*: calls from Python that fail
if a hook, name or registration is missing.
"""
