# SPDX-License-Identifier: BSD-3-Clause
"""Models on the device are exported with dynamic shapes, and onnxruntime computes what the device computes."""

import pytest
import torch
import transformers
from exports import DEVICE
from torch.export import Dim
from workloads.models import MODELS

transformers.logging.set_verbosity_error()

SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
BATCH, LENGTH = Dim("batch", min=1, max=64), Dim("length", min=1, max=128)
# Of the benchmark's models, the dimensions that may change. Of an LSTM PyTorch fixes the length, on every device.
DYNAMIC = {
    "MLP": {0: BATCH},
    "convnet": {0: BATCH},
    "encoder": {0: BATCH, 1: LENGTH},
    "decoder": {0: BATCH, 1: LENGTH},
    "LSTM": {0: BATCH},
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_the_benchmark(check, name):
    task = MODELS[name](torch.device(DEVICE))
    batch, dynamic = task.batch, DYNAMIC[name]
    smaller = batch[:3, :5].contiguous() if 1 in dynamic else batch[:3]
    larger = torch.cat([smaller] * 2, dim=1 if 1 in dynamic else 0)
    program = check(
        task.model.eval(), ((batch[:4],), {}), [((x,), {}) for x in (smaller, larger)], dynamic_shapes=(dynamic,)
    )
    shape = program.model.graph.inputs[0].shape
    assert [str(shape[dim]) for dim in dynamic] == ["batch", "length"][: len(dynamic)]


def tokens(batch, length):
    return torch.randint(SMALL["vocab_size"], (batch, length), device=DEVICE)


def of_sequences(batch, length):
    return {"input_ids": tokens(batch, length), "attention_mask": torch.ones_like(tokens(batch, length))}


def of_two_sequences(batch, length):
    return {"input_ids": tokens(batch, length), "decoder_input_ids": tokens(batch, length + 1)}


def bert():
    return transformers.BertModel(
        transformers.BertConfig(**SMALL, intermediate_size=64, max_position_embeddings=64)
    ), of_sequences


def llama():
    config = transformers.LlamaConfig(
        **SMALL, num_key_value_heads=2, intermediate_size=64, max_position_embeddings=64, use_cache=False
    )
    return transformers.LlamaForCausalLM(config), of_sequences


def t5():
    config = transformers.T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, use_cache=False
    )
    return transformers.T5ForConditionalGeneration(config), of_two_sequences


TRANSFORMERS = {"BERT": bert, "Llama": llama, "T5": t5}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_model_of_transformers(check, name):
    model, inputs = TRANSFORMERS[name]()
    examples = inputs(2, 9)
    dynamic = {key: {0: BATCH, 1: LENGTH} for key in examples}
    if "decoder_input_ids" in dynamic:
        dynamic["decoder_input_ids"] = {0: BATCH, 1: Dim("decoder_length", min=1, max=128)}
    others = [((), inputs(*sizes)) for sizes in ((3, 5), (1, 17))]
    check(model.eval().to(DEVICE), ((), examples), others, dynamic_shapes=dynamic)
