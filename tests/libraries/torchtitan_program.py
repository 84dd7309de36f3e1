# SPDX-License-Identifier: BSD-3-Clause
"""Trains torchtitan's smallest Llama on the device, in the current folder. Prints the device, then each step's loss."""

import json
import os
import random
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.models.llama3 import model_registry
from torchtitan.models.llama3.config_registry import llama3_debugmodel

import torch_openreg  # noqa: F401  (brings the device up)

STEPS = 6


def write_assets():
    """Writes texts, and a tokenizer for them, where torchtitan's configuration looks for its own."""
    numbers = random.Random(0)
    words = ["the", "cat", "dog", "sat", "ran", "on", "under", "mat", "and", "then", "it", "was", "red", "blue"]
    texts = [" ".join(numbers.choice(words) for _ in range(400)) for _ in range(100)]
    data, assets = Path("tests/assets/c4_test"), Path("tests/assets/tokenizer")
    data.mkdir(parents=True)
    assets.mkdir()
    (data / "data.json").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    ends = {"bos_token": "<begin>", "eos_token": "<end>"}
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=300, special_tokens=list(ends.values())))
    tokenizer.save(str(assets / "tokenizer.json"))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (assets / "tokenizer_config.json").write_text(json.dumps(ends | kind), "utf-8")


def configuration():
    """torchtitan's debug model with short texts, and with attention that has no list of devices."""
    config = llama3_debugmodel()
    config.model_spec = model_registry("debugmodel")
    for layer in config.model_spec.model.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    config.training.seq_len = 128
    config.training.local_batch_size = 2
    config.training.steps = STEPS
    config.training.disable_cuda_graphs = True
    config.dump_folder = "out"
    return config


def printing(log):
    """A function that prints the loss of a step, and logs as before."""

    def print_and_log(step, loss, *rest, **more):
        print(loss)
        log(step, loss, *rest, **more)

    return print_and_log


def main():
    """Runs the steps in a process group of one process."""
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="0")
    if not hasattr(torch.distributed, "set_timeout"):  # torchtitan calls it after its first step; torch 2.13 has none
        torch.distributed.set_timeout = lambda timeout, group=None: None
    write_assets()
    trainer = configuration().build()
    print(trainer.device.type)
    trainer.metrics_processor.log = printing(trainer.metrics_processor.log)
    trainer.train()
    trainer.close()


main()
