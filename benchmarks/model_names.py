# SPDX-License-Identifier: BSD-3-Clause
"""Names the models of workloads/models.py, for the scripts that do not import torch."""

MODELS = ("MLP", "convnet", "encoder", "decoder", "LSTM")
