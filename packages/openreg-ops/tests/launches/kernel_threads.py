# SPDX-License-Identifier: BSD-3-Clause
"""Prints the processor time of each thread for large calls of this package's kernels with loops, as JSON.

test_kernel_threads.py runs it in processes of its own: threads that wait must not spin, and kernels are chosen when the
package is loaded.
"""

import json
from pathlib import Path

import torch

import openreg_ops.functional

DEVICE = "openreg"
COUNT = 1 << 20
ENGINE = "openreg_compute"  # the name of the thread of the compute engine


def random(*shape, dtype=torch.float32):
    return torch.rand(*shape, device=DEVICE).add_(0.1).to(dtype)


def gradients(function, *operands):
    """A call of the backward alone."""
    operands = [operand.requires_grad_() for operand in operands]
    results = function(*operands)
    results = results if isinstance(results, tuple) else (results,)
    ones = [torch.ones_like(result) for result in results]
    return lambda: torch.autograd.grad(results, operands, ones, retain_graph=True)


def attention_with_dropout():
    query = random(1, 4, 512, 16)
    return lambda: torch.nn.functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5)


def sgd():
    parameters = [random(COUNT)]
    optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, fused=True)
    parameters[0].grad = random(COUNT)
    return optimizer.step


def calls():
    """Source of ours to the calls of its loops."""
    x = random(COUNT)
    square = random(1024, 1024)
    weight = random(1024)
    indices = torch.randint(1000, (100_000,), device=DEVICE)
    table = random(1000, 64)
    few = random(COUNT // 8)
    ours = openreg_ops.functional
    embedding = torch.nn.functional.embedding
    return {
        "kernels/abs.cpp": [lambda: square.to(torch.complex64).abs()],
        "kernels/add_rms_norm.cpp": [
            lambda: ours.add_rms_norm(square, square, weight),
            gradients(ours.add_rms_norm, random(1024, 1024), random(1024, 1024), random(1024)),
        ],
        "kernels/choice.cpp": [
            lambda: torch.randperm(COUNT // 4, device=DEVICE),
            lambda: torch.multinomial(weight, COUNT // 4, replacement=True),
        ],
        "kernels/distributions.cpp": [
            lambda: x.clone().normal_(),
            lambda: x.clone().log_normal_(),
            lambda: x.clone().exponential_(),
            lambda: x.clone().cauchy_(),
            lambda: x.clone().geometric_(0.5),
            lambda: x.clone().bernoulli_(0.5),
            lambda: torch.bernoulli(x.clamp(0, 1)),
            lambda: x.clone().random_(),
            lambda: torch.native_dropout(x, 0.5, True),
            attention_with_dropout(),
        ],
        "kernels/embedding.cpp": [lambda: embedding(indices, table), gradients(lambda t: embedding(indices, t), table)],
        "kernels/matmul.cpp": [lambda: torch.mm(random(256, 256), random(256, 256))],
        "kernels/samplers.cpp": [
            lambda: torch.poisson(few),
            lambda: torch.binomial(few, few.clamp(0, 1)),
            lambda: torch._standard_gamma(few),
            lambda: torch._sample_dirichlet(few.view(-1, 64)),
        ],
        "kernels/sgd.cpp": [sgd()],
        "kernels/softmax.cpp": [lambda: square.softmax(1), gradients(lambda s: s.softmax(1), random(1024, 1024))],
        "kernels/sum.cpp": [lambda: random(1024, 1024).sum(1)],
        "kernels/swiglu.cpp": [lambda: ours.swiglu(x, x), gradients(ours.swiglu, random(COUNT), random(COUNT))],
        "kernels/uniform.cpp": [lambda: x.clone().uniform_()],
    }


def processor_time():
    """Returns the nanoseconds that each thread which executes kernels has run: the engine's, and those of OpenMP.

    OpenMP's threads have the name of the engine's thread, which starts them. Other threads do not count: that of
    autograd launches kernels, and the copy engine has nothing to compute.
    """
    tasks = [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text().strip() == ENGINE]
    return {int(task.name): int((task / "schedstat").read_text().split()[0]) for task in tasks}


def measure(call):
    """Returns the times of two calls on the threads that execute kernels, the longest first."""
    call()
    torch.openreg.synchronize()
    before = processor_time()
    for _ in range(2):
        call()
        torch.openreg.synchronize()
    after = processor_time()
    return sorted((time - before.get(task, 0) for task, time in after.items()), reverse=True)


def main(sources=()):
    """Of the kernels in these sources; of all where none is given."""
    made = {source: each for source, each in calls().items() if not sources or source in sources}
    print(json.dumps({source: [measure(call) for call in each] for source, each in made.items()}))


if __name__ == "__main__":
    main()
