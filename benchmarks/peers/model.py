# SPDX-License-Identifier: MIT
"""The ∞-former in PyTorch: layers of relative attention over a segment and the short-term memory
[Dai et al. 2019], each beside a long-term memory [Martins et al. 2022]. Parameters have infty's
names. A segment is as long as the short-term memory, so that one replaces the other.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from layer import LongTermMemory, Sizes, divergence


class State(NamedTuple):
    """What one layer remembers, nothing at first; no gradient flows into it."""

    recent: Tensor | None = None  # [B, L, d], the short-term memory
    leaving: Tensor | None = None  # [B, L, d], is written first thing in the next segment
    coefficients: Tensor | None = None  # [B, N, d], the long-term memory


def distance_encoding(longest: int, dim: int) -> Tensor:
    """Sines and cosines of the distances longest, ..., 0 -> [longest + 1, d]."""
    distance = torch.arange(longest, -1, -1, dtype=torch.float64)
    frequency = 10000 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = distance[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], -1).to(torch.get_default_dtype())


class RelativeAttention(nn.Module):
    def __init__(self, sizes: Sizes, attention: str):
        super().__init__()
        d, longest = sizes.dim, 2 * sizes.length
        self.heads, self.head_dim, self.attention = sizes.heads, sizes.head_dim, attention
        for name in ("query", "key", "value", "position", "out"):
            self.add_module(name, nn.Linear(d, d, bias=False))
        future = torch.ones(sizes.length, longest, dtype=torch.bool).triu(sizes.length + 1)
        self.register_buffer("future", future, persistent=False)

    def forward(
        self, queries: Tensor, context: Tensor, u: Tensor, w: Tensor, encoding: Tensor
    ) -> Tensor:
        """queries [B, L, H D] over a context [B, K, d] -> [B, L, d]"""
        length, keys = queries.shape[1], context.shape[1]
        split = lambda x: x.unflatten(-1, (self.heads, self.head_dim)).transpose(-2, -3)
        q, k, v = split(queries), split(self.key(context)), split(self.value(context))
        r = split(self.position(encoding[-keys - 1 :]))  # [H, K + 1, D]
        future, halves = self.future[:, -keys:], []
        for rows in (slice(length // 2), slice(length // 2, length)):
            # The first half does not multiply the keys that only the second one sees.
            seen = keys - length + rows.stop
            part = k[:, :, :seen], v[:, :, :seen], r[:, -seen - 1 :]
            halves.append(self.attend(q[:, :, rows], *part, u, w, future[rows, :seen]))
        return self.out(torch.cat(halves, 2).transpose(1, 2).flatten(2))

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, r: Tensor, u: Tensor, w: Tensor, future: Tensor
    ) -> Tensor:
        """q [B, H, L, D] over k, v [B, H, K, D], the last query at the last key -> [B, H, L, D]"""
        scale = 1 / math.sqrt(self.head_dim)
        # r has one distance more than there is: then a row of scores is one longer than the shift
        # needs, and to shift each by its query's place is a view, without padding or copying.
        by_distance = (q + w[:, None]) * scale @ r.mT  # [B, H, L, K + 1]
        position = by_distance.flatten(2)[..., q.shape[2] :].unflatten(2, future.shape)
        if self.attention == "sdpa":
            bias = position.masked_fill(future, -math.inf)
            return F.scaled_dot_product_attention(q + u[:, None], k, v, attn_mask=bias)
        scores = (q + u[:, None]) * scale @ k.mT
        return scores.add_(position).masked_fill_(future, -math.inf).softmax(-1) @ v


class FeedForward(nn.Module):
    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.inner, self.outer = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(F.relu(self.inner(x)))


class Mixer(nn.Module):
    """Attention, and beside it the long-term memory, which takes in what leaves the former."""

    def __init__(self, sizes: Sizes, attention: str):
        super().__init__()
        self.attention = RelativeAttention(sizes, attention)
        self.memory = LongTermMemory(sizes)

    def forward(
        self, x: Tensor, state: State, u: Tensor, w: Tensor, encoding: Tensor
    ) -> tuple[Tensor, Tensor, State]:
        """x [B, L, d] -> [B, L, d], the divergence of the long-term read, and the next state."""
        moved = self.observe(x, state)
        context = x if state.recent is None else torch.cat([state.recent, x], 1)
        queries = self.attention.query(x)
        z = self.attention(queries, context, u, w, encoding)
        if moved.coefficients is None:
            return z, x.new_zeros(()), moved
        read, density = self.memory.read(moved.coefficients, queries)
        return z + read, divergence(density), moved

    def observe(self, x: Tensor, state: State) -> State:
        """The next state alone."""
        coefficients = state.coefficients
        if state.leaving is not None:
            coefficients = self.memory.write(coefficients, state.leaving)
        return State(x.detach(), state.recent, coefficients)


class Layer(nn.Module):
    def __init__(self, sizes: Sizes, attention: str):
        super().__init__()
        self.mixer = Mixer(sizes, attention)
        self.mixer_norm = nn.LayerNorm(sizes.dim)
        self.feed = FeedForward(sizes.dim, sizes.feed_forward)
        self.feed_norm = nn.LayerNorm(sizes.dim)

    def forward(
        self, x: Tensor, state: State, u: Tensor, w: Tensor, encoding: Tensor
    ) -> tuple[Tensor, Tensor, State]:
        """x [B, L, d] -> [B, L, d], the divergence of the long-term read, and the next state."""
        z, kl, moved = self.mixer(x, state, u, w, encoding)
        x = self.mixer_norm(x + z)
        return self.feed_norm(x + self.feed(x)), kl, moved


class TransformerLM(nn.Module):
    def __init__(self, sizes: Sizes, attention: str = "softmax"):
        super().__init__()
        vocabulary, d = sizes.symbols + 1, sizes.dim
        self.embedding = nn.Embedding(vocabulary, d)
        self.layers = nn.ModuleList(Layer(sizes, attention) for _ in range(sizes.layers))
        # All layers', and named in the first one, as infty does.
        for name in ("content_bias", "position_bias"):
            bias = nn.Parameter(torch.randn(sizes.heads, sizes.head_dim) * 0.02)
            self.layers[0].mixer.attention.register_parameter(name, bias)
        self.output_weight = nn.Parameter(torch.randn(vocabulary, d) / math.sqrt(d))
        self.output_bias = nn.Parameter(torch.zeros(vocabulary))
        nn.init.normal_(self.embedding.weight, std=1 / math.sqrt(d))
        encoding = distance_encoding(2 * sizes.length, d)
        self.register_buffer("encoding", encoding, persistent=False)

    def shared(self) -> tuple[Tensor, Tensor, Tensor]:
        """What all layers share: the biases of content and position scores, and the encoding."""
        first = self.layers[0].mixer.attention
        return first.content_bias, first.position_bias, self.encoding

    def fresh(self) -> list[State]:
        return [State() for _ in self.layers]

    def embed(self, tokens: Tensor) -> Tensor:
        return self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)

    def forward(self, tokens: Tensor, states: list[State]) -> tuple[Tensor, Tensor]:
        """Scores of the next token [B, L, vocabulary], and the divergence of all reads."""
        x, kl = self.embed(tokens), torch.zeros(())
        for layer, state in zip(self.layers, states):
            x, more, _ = layer(x, state, *self.shared())
            kl = kl + more
        return F.linear(x, self.output_weight, self.output_bias), kl

    @torch.no_grad()
    def observe(self, tokens: Tensor, states: list[State]) -> list[State]:
        """Reads a segment that only the memory is to see."""
        x, moved = self.embed(tokens), []
        for layer, state in zip(self.layers[:-1], states):
            x, _, state = layer(x, state, *self.shared())
            moved.append(state)
        return [*moved, self.layers[-1].mixer.observe(x, states[-1])]
