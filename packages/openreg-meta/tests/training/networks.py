# SPDX-License-Identifier: BSD-3-Clause
"""Small networks of common kinds, each with a batch; seeded, without dropout."""

import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x))


class Attention(nn.Module):
    """Causal self-attention whose heads share keys in pairs."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q = self.query(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k, v = self.key_value(x).view(batch, length, self.heads, self.size).transpose(1, 2).chunk(2, dim=1)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.output(y.transpose(1, 2).reshape(batch, length, width))


class Decoder(nn.Module):
    """A language model whose output layer is its embedding."""

    def __init__(self, vocabulary=17, width=32, heads=4, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2 * layers + 1))
        self.attention = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for i, (attention, gate, down) in enumerate(zip(self.attention, self.gates, self.down, strict=True)):
            x = x + attention(self.norms[2 * i](x))
            value, opening = gate(self.norms[2 * i + 1](x)).chunk(2, dim=-1)
            x = x + down(value * functional.silu(opening))
        return self.head(self.norms[-1](x)).transpose(1, 2)


class Tagger(nn.Module):
    """A bidirectional LSTM of two layers over embedded tokens."""

    def __init__(self, vocabulary=17, width=12, classes=5):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0]).transpose(1, 2)


class Encoder(nn.Module):
    """Layers of torch.nn's transformer, then a mean over the sequence."""

    def __init__(self, width=32, heads=4, classes=5):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.layers(x).mean(dim=1))


def mlp():
    model = nn.Sequential(
        nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 5)
    )
    return model, torch.randn(24, 16), torch.randint(5, (24,))


def resnet():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        Residual(8, 8, 1),
        Residual(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )
    return model, torch.randn(12, 3, 16, 16), torch.randint(5, (12,))


def encoder():
    return Encoder(), torch.randn(8, 10, 32), torch.randint(5, (8,))


def decoder():
    tokens = torch.randint(17, (6, 13))
    return Decoder(), tokens[:, :-1], tokens[:, 1:]


def lstm():
    return Tagger(), torch.randint(17, (6, 9)), torch.randint(5, (6, 9))


NETWORKS = {"mlp": mlp, "resnet": resnet, "encoder": encoder, "decoder": decoder, "lstm": lstm}


def make(name, seed=0):
    """A model in training mode, its input and its target, on the CPU; the same ones each time."""
    torch.random.default_generator.manual_seed(seed)
    return NETWORKS[name]()
