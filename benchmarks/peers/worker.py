# SPDX-License-Identifier: MIT
"""PyTorch's side of compare.py: `worker.py KIND CASE.safetensors [OPTION...]`, of a layer, a model or
a kernel of kernels.py. It speaks as infty_peer does: "ready" and a name, and then one line of an
answer to every line on standard input.
"""

import argparse
import os
import sys
import time

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from kernels import KERNELS
from layer import LongTermMemory, Sizes, divergence
from model import TransformerLM

LEARNING_RATE, MAX_NORM = 2.5e-4, 0.25


class Case:
    """Sizes and tensors of a file; weights stand behind "parameter."."""

    def __init__(self, path: str):
        with safe_open(path, "pt") as file:
            self.metadata = file.metadata()
            self.tensors = {name: self.exact(file.get_tensor(name)) for name in file.keys()}

    @property
    def sizes(self) -> Sizes:
        fields = Sizes.__dataclass_fields__
        return Sizes(**{name: int(self.metadata[name]) for name in fields})

    @staticmethod
    def exact(x: Tensor) -> Tensor:
        return x.to(torch.get_default_dtype()) if x.is_floating_point() else x

    def load(self, module: nn.Module) -> None:
        prefix = "parameter."
        module.load_state_dict(
            {k.removeprefix(prefix): v for k, v in self.tensors.items() if k.startswith(prefix)}
        )


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {f"grad.{name}": p.grad for name, p in module.named_parameters() if p.grad is not None}


def autocast(bfloat16: bool) -> torch.autocast:
    """Of a forward pass alone, as PyTorch wants it: each operation goes back in the type that it has
    gone forward in."""
    return torch.autocast("cpu", torch.bfloat16, enabled=bfloat16)


class LayerWork:
    """The long-term memory alone: a later write, a read, and the divergence from the prior."""

    def __init__(self, case: Case, compiled: bool, attention: str, bfloat16: bool):
        self.bfloat16 = bfloat16
        self.memory = LongTermMemory(case.sizes)
        case.load(self.memory)
        self.x, self.queries = (case.tensors[k].requires_grad_() for k in ("x", "queries"))
        self.weight, self.kl_weight = case.tensors["weight"], float(case.metadata["kl_weight"])
        with torch.no_grad():
            self.old = self.memory.write(None, case.tensors["earlier"])
        self.call = torch.compile(self.whole) if compiled else self.whole

    def whole(self) -> tuple[Tensor, ...]:
        with autocast(self.bfloat16):
            coefficients = self.memory.write(self.old, self.x)
            context, density = self.memory.read(coefficients, self.queries)
        loss = (context * self.weight).sum() + self.kl_weight * divergence(density)
        return loss, context, density, coefficients

    def forward(self) -> None:
        with torch.no_grad():
            self.call()

    def backward(self) -> None:
        self.memory.zero_grad()
        self.x.grad = self.queries.grad = None
        self.call()[0].backward()

    def results(self) -> dict[str, Tensor]:
        self.backward()
        _, context, density, coefficients = self.call()
        inputs = {"grad.x": self.x.grad, "grad.queries": self.queries.grad}
        outputs = {"context": context, "density": density, "coefficients": coefficients}
        return outputs | inputs | gradients(self.memory)


class ModelWork:
    """A whole training step: the earlier segments are observed, the last one is learned from."""

    def __init__(self, case: Case, compiled: bool, attention: str, bfloat16: bool):
        self.bfloat16 = bfloat16
        sizes = case.sizes
        self.model = TransformerLM(sizes, attention)
        case.load(self.model)
        self.earlier = case.tensors["earlier"].split(sizes.length, 1)
        self.last, self.targets = case.tensors["last"], case.tensors["targets"]
        # 1e-5 of the mean over rows, heads and queries, as in presets::sorting.
        self.kl_weight = 1e-5 / (sizes.batch * sizes.heads * sizes.length)
        self.adam = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE, fused=True)
        wrap = torch.compile if compiled else (lambda f: f)
        self.observe, self.learn = wrap(self.model.observe), wrap(self.loss)

    def loss(self, states: list) -> tuple[Tensor, Tensor]:
        with autocast(self.bfloat16):
            logits, kl = self.model(self.last, states)
            entropy = F.cross_entropy(logits.flatten(0, 1), self.targets.flatten())  # in float
        return entropy + self.kl_weight * kl, logits

    def step(self) -> None:
        self.adam.zero_grad()
        states = self.model.fresh()
        for tokens in self.earlier:
            with autocast(self.bfloat16):
                states = self.observe(tokens, states)
        loss, logits = self.learn(states)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), MAX_NORM)
        self.adam.step()
        self.last_step = loss.item(), norm.item(), logits.detach()

    def results(self) -> dict[str, Tensor]:
        """Losses and norms of three steps; logits and clipped gradients of the first."""
        found: dict[str, Tensor] = {}
        losses, norms = [], []
        for step in range(3):
            self.step()
            losses.append(self.last_step[0])
            norms.append(self.last_step[1])
            if step == 0:
                found = {"logits": self.last_step[2]} | gradients(self.model)
                found = {name: value.clone() for name, value in found.items()}
        return found | {"losses": torch.tensor(losses), "norms": torch.tensor(norms)}


def status(name: str) -> str:
    """A line of /proc/self/status, in kB."""
    with open("/proc/self/status") as file:
        return next((line.split()[1] for line in file if line.startswith(name + ":")), "0")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["layer", "model", *KERNELS])
    parser.add_argument("case")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--attention", choices=["softmax", "sdpa"], default="softmax")
    parser.add_argument("--bfloat16", action="store_true", help="under autocast")
    parser.add_argument("--double", action="store_true", help="compute in float64")
    options = parser.parse_args()
    if options.double:
        torch.set_default_dtype(torch.float64)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    case = Case(options.case)
    if options.kind in KERNELS:
        work = KERNELS[options.kind](case.metadata, case.tensors, options.compile)
    else:
        work = {"layer": LayerWork, "model": ModelWork}[options.kind](
            case, options.compile, options.attention, options.bfloat16
        )
    product = int(case.metadata["product"])
    square = torch.ones(product, product)
    before = status("VmRSS")
    print("ready", "MKL" if torch.backends.mkl.is_available() else "no MKL", flush=True)
    for line in sys.stdin:
        command, _, path = line.strip().partition(" ")
        if command == "memory":
            print(before, status("VmHWM"), flush=True)
        elif command == "save":
            found = work.results()
            save_file({k: v.detach().contiguous() for k, v in found.items()}, path)
            print("saved", flush=True)
        else:
            call = (lambda: square @ square) if command == "product" else getattr(work, command)
            start = time.perf_counter()
            call()
            print(1e3 * (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
