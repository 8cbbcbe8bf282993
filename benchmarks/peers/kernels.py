# SPDX-License-Identifier: MIT
"""What other memories are made of, in PyTorch: attention to the nearest of many remembered keys
[Wu et al. 2022], a product-key memory [Lample et al. 2019] and the gated delta rule by chunks [Yang
et al. 2024; 2025]. Written from the equations, with what PyTorch offers that is fast on a CPU. Each
class makes its own case, computes it, and says what it found.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import Tensor


class Kernel:
    """A computation of a case's tensors. Those that are named in `wanted` take a gradient."""

    wanted: tuple[str, ...] = ()

    def __init__(self, metadata: dict[str, str], tensors: dict[str, Tensor], compiled: bool):
        fields = dataclasses.fields(self.Sizes)
        self.sizes = self.Sizes(**{f.name: int(metadata[f.name]) for f in fields})
        self.tensors = tensors
        for name in self.wanted:
            tensors[name].requires_grad_()
        self.call = torch.compile(self.whole) if compiled else self.whole

    def whole(self) -> dict[str, Tensor]:
        """All outputs, by name."""
        raise NotImplementedError

    def forward(self) -> None:
        with torch.no_grad():
            self.call()

    def backward(self) -> dict[str, Tensor]:
        """A scalar that every output has a part in, and its gradients."""
        for name in self.wanted:
            self.tensors[name].grad = None
        outputs = self.call()
        weighed = [(y * self.tensors[f"weight.{name}"]).sum() for name, y in outputs.items()]
        sum(weighed).backward()
        return outputs

    def results(self) -> dict[str, Tensor]:
        outputs = self.backward()
        grads = {f"grad.{name}": self.tensors[name].grad for name in self.wanted}
        # A gradient by rows may list a row more than once.
        return outputs | {k: g.to_dense() if g.is_sparse else g for k, g in grads.items()}


class Retrieval(Kernel):
    """Each head's queries attend to the k of all remembered keys that they meet best."""

    @dataclasses.dataclass(frozen=True)
    class Sizes:
        batch: int = 1
        length: int = 256
        heads: int = 8
        head_dim: int = 64
        keys: int = 32768  # remembered by a row, shared by its heads
        k: int = 32
        product: int = 2048

    QUICK = Sizes(length=16, heads=2, head_dim=16, keys=256, k=4, product=256)
    wanted = ("queries",)

    @staticmethod
    def case(s: Sizes) -> dict[str, Tensor]:
        inner = s.heads * s.head_dim
        return {
            # So that several of the k have a part in the answer.
            "queries": torch.randn(s.batch, s.length, inner) / math.sqrt(s.head_dim),
            "entries": torch.randn(s.batch, s.keys, 2 * s.head_dim),  # keys, and then values
            "weight.output": torch.randn(s.batch, s.length, s.heads, s.head_dim),
        }

    def __init__(self, *arguments: object):
        super().__init__(*arguments)
        # As they are remembered: the search wants keys, and values, one behind the other.
        keys, values = self.tensors["entries"].split(self.sizes.head_dim, -1)
        self.keys, self.values = keys.contiguous(), values.contiguous()

    def found(self, queries: Tensor) -> Tensor:
        """The k nearest of each query, [L H, k], a row of the batch by itself."""
        with torch.no_grad():
            # Some queries at a time: all scores of all queries would be gigabytes.
            parts = [
                [(part @ keys.mT).topk(self.sizes.k)[1] for part in row.split(512)]
                for row, keys in zip(queries, self.keys)
            ]
        return torch.stack([torch.cat(row) for row in parts])

    def whole(self) -> dict[str, Tensor]:
        s = self.sizes
        q = self.tensors["queries"].view(s.batch, -1, s.head_dim)  # [B, L H, D]
        found = self.found(q)
        rows = torch.arange(s.batch)[:, None, None]
        keys, values = self.keys[rows, found], self.values[rows, found]  # [B, L H, k, D]
        weights = (keys @ q[..., None]).squeeze(-1).softmax(-1)
        output = (weights[..., None, :] @ values).squeeze(-2)
        return {"output": output.view(s.batch, s.length, s.heads, s.head_dim)}


class ProductKeys(Kernel):
    """k of n² slots a head, by two searches among n; a sum of their values by a softmax."""

    @dataclasses.dataclass(frozen=True)
    class Sizes:
        batch: int = 4
        length: int = 256
        dim: int = 256
        heads: int = 4
        key_dim: int = 256
        sub_keys: int = 256  # n
        k: int = 32
        product: int = 2048

    QUICK = Sizes(length=16, dim=16, heads=2, key_dim=16, sub_keys=16, k=4, product=256)
    PARAMETERS = ("query.maps.0.weight", "query.maps.0.bias", "keys", "values")
    wanted = ("x", *(f"parameter.{name}" for name in PARAMETERS))

    @staticmethod
    def case(s: Sizes) -> dict[str, Tensor]:
        wide, half = s.heads * s.key_dim, s.key_dim // 2
        return {
            "x": torch.randn(s.batch, s.length, s.dim),
            "parameter.query.maps.0.weight": torch.randn(wide, s.dim) / math.sqrt(s.dim),
            "parameter.query.maps.0.bias": torch.randn(wide) / math.sqrt(s.dim),
            "parameter.keys": torch.randn(s.heads, 2, s.sub_keys, half) / math.sqrt(half),
            "parameter.values": torch.randn(s.sub_keys**2, s.dim) / math.sqrt(s.dim),
            "weight.output": torch.randn(s.batch, s.length, s.dim),
        }

    def whole(self) -> dict[str, Tensor]:
        s = self.sizes
        weight, bias, keys, values = (self.tensors[f"parameter.{n}"] for n in self.PARAMETERS)
        q = F.linear(self.tensors["x"].flatten(0, 1), weight, bias)
        q = q.view(-1, 2 * s.heads, s.key_dim // 2).transpose(0, 1)  # [2 H, B L, half]
        scores = (q @ keys.flatten(0, 1).mT).transpose(0, 1)  # [B L, 2 H, n]
        best, place = scores.unflatten(1, (s.heads, 2)).topk(s.k)  # [B L, H, 2, k]
        pairs = (best[..., 0, :, None] + best[..., 1, None, :]).flatten(-2)
        score, pair = pairs.topk(s.k)  # [B L, H, k]
        first = place[..., 0, :].gather(-1, pair // s.k)
        second = place[..., 1, :].gather(-1, pair % s.k)
        slots, weights = (first * s.sub_keys + second).flatten(1), score.softmax(-1).flatten(1)
        # Gradients by rows: one of all of the table costs more than all the rest.
        y = F.embedding_bag(slots, values, per_sample_weights=weights, mode="sum", sparse=True)
        return {"output": y.view(s.batch, s.length, s.dim)}


class DeltaRule(Kernel):
    """S ← e^g S; S ← S + k (β (v - Sᵀk))ᵀ; o = Sᵀq / √K, chunk by chunk: within one, what is
    written, U, solves (I + A) U = β (V - E K S₀)."""

    @dataclasses.dataclass(frozen=True)
    class Sizes:
        batch: int = 4
        length: int = 1024
        heads: int = 4
        key_dim: int = 64
        value_dim: int = 64
        chunk: int = 64
        product: int = 2048

    QUICK = Sizes(length=32, heads=2, key_dim=16, value_dim=16, chunk=8, product=256)
    wanted = ("query", "key", "value", "beta", "decay", "state")

    @staticmethod
    def case(s: Sizes) -> dict[str, Tensor]:
        places = (s.batch, s.length, s.heads)
        state = (s.batch, s.heads, s.key_dim, s.value_dim)
        return {
            "query": F.normalize(torch.randn(*places, s.key_dim), dim=-1),
            "key": F.normalize(torch.randn(*places, s.key_dim), dim=-1),
            "value": torch.randn(*places, s.value_dim),
            "beta": torch.rand(places),
            "decay": -0.1 * F.softplus(torch.randn(places)),
            "state": torch.randn(state),
            "weight.output": torch.randn(*places, s.value_dim),
            "weight.state": torch.randn(state),
        }

    def whole(self) -> dict[str, Tensor]:
        s = self.sizes
        # [B, L, H, ...] -> [B, H, chunks, C, ...]
        split = lambda x: x.transpose(1, 2).unflatten(2, (-1, s.chunk))
        q, k, v, beta, g = (split(self.tensors[n]) for n in self.wanted[:-1])
        state, beta = self.tensors["state"], beta[..., None]
        total = g.cumsum(-1)  # G
        fades = (total[..., :, None] - total[..., None, :]).tril().exp().tril()  # e^(G_i - G_j)
        opening = total.exp()[..., None]
        closing = (total[..., -1:] - total).exp()[..., None]
        within = (beta * (k @ k.mT) * fades).tril(-1)  # A; what solves it need not know of the I
        solve = lambda x: torch.linalg.solve_triangular(
            within, x, upper=False, unitriangular=True
        )
        written, reads = solve(torch.cat([beta * v, beta * opening * k], -1)).split(
            [s.value_dim, s.key_dim], -1
        )
        scores = q @ k.mT * fades / math.sqrt(s.key_dim)
        asking, writing = opening * q / math.sqrt(s.key_dim), closing * k
        answers = []
        for c in range(s.length // s.chunk):
            u = written[:, :, c] - reads[:, :, c] @ state
            answers.append(asking[:, :, c] @ state + scores[:, :, c] @ u)
            state = opening[:, :, c, -1:] * state + writing[:, :, c].mT @ u
        return {"output": torch.cat(answers, 2).transpose(1, 2), "state": state}


KERNELS = {"retrieval": Retrieval, "product_keys": ProductKeys, "delta_rule": DeltaRule}
