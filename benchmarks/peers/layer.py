# SPDX-License-Identifier: MIT
"""The long-term memory of the ∞-former in PyTorch [Martins et al. 2022, §3].

Written for speed with what PyTorch offers: scores are folded into one vector a head, the write is
the linear map that sampling and fitting amount to, and both widths of the basis share what they
can. Parameters have infty's names. If `thin` it does what infty does, too: a write goes by thin factors
of its matrices, and a read by fewer functions.
"""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The paper's sorting experiment (§4.1)."""

    batch: int = 8
    length: int = 1024  # vectors of a segment, and of the short-term memory
    heads: int = 6
    head_dim: int = 50
    basis: int = 1024
    samples: int = 512
    layers: int = 3
    feed_forward: int = 300
    segments: int = 4  # of a sequence; the last one is learned from
    symbols: int = 20
    product: int = 2048  # of the square matrices that show the machine's limit
    thin: int = 0  # whether PyTorch has infty's thin factors and fewer functions, too

    @property
    def dim(self) -> int:
        return self.heads * self.head_dim


WIDTHS, TAU, RIDGE, SIGMA0, FLOOR = (0.01, 0.05), 0.75, 1.0, 0.05, 1e-6


def design(t: Tensor, basis: int) -> Tensor:
    """psi_j(t_i), [positions, N], in float64: every width at every centre, centre by centre."""
    centres = torch.linspace(0, 1, basis // len(WIDTHS), dtype=t.dtype)
    width = torch.tensor(WIDTHS, dtype=t.dtype)
    z = (t[:, None, None] - centres[:, None]) / width
    return (torch.exp(-0.5 * z.square()) / (width * math.sqrt(2 * math.pi))).flatten(1)


def ridge(inside: Tensor, outside: Tensor, basis: int) -> Tensor:
    """Gᵀ [N, inside] of the fit B = Gᵀ X, where the signal is drawn to zero outside (Eq. 5)."""
    f, beyond = design(inside, basis), design(outside, basis)
    a = f.mT @ f + beyond.mT @ beyond + RIDGE * torch.eye(basis, dtype=f.dtype)
    return torch.linalg.solve(a, f.mT)


def first_matrix(length: int, basis: int) -> Tensor:
    """Gᵀ [N, L] of a first write."""
    t = (torch.arange(2 * length, dtype=torch.float64) + 0.5) / length - 0.5
    begin = length // 2
    return ridge(t[begin : begin + length], torch.cat([t[:begin], t[begin + length :]]), basis)


def next_matrices(length: int, samples: int, basis: int) -> tuple[Tensor, Tensor]:
    """A [N, N] and Gᵀ [N, L] of a later write, B' = A B + Gᵀ X (Eq. 13-15)."""
    even = torch.arange(1, samples + 1, dtype=torch.float64) / samples
    new = TAU + (1 - TAU) * torch.arange(1, length + 1, dtype=torch.float64) / length
    shift = 1 / (2 * length + samples)
    grid = torch.linspace(-0.5 + shift, 1.5 - shift, 2 * (length + samples), dtype=torch.float64)
    g = ridge(torch.cat([TAU * even, new]), grid[(grid < 0) | (grid > 1)], basis)
    return g[:, :samples] @ design(even, basis), g[:, samples:]


def thin_factors(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """[m, r] and [r, n], by singular values, to a quarter of float's rounding."""
    u, s, vt = torch.linalg.svd(matrix, full_matrices=False)
    rank = int((s > s[0] * 2**-26).sum())
    return u[:, :rank] * s[:rank], vt[:rank]


def fewer_functions(width: float, basis: int) -> tuple[Tensor, Tensor]:
    """Places of Gaussians of half the variance, and [M, N / widths] by which functions of a width are
    sums of them."""
    share = 2**-25
    step = width * math.pi / math.sqrt(2 * math.log(2 / share))
    reach = math.ceil(width * math.sqrt(-math.log(share)) / step)
    places = step * torch.arange(-reach, reach + math.ceil(1 / step) + 1, dtype=torch.float64)
    centres = torch.linspace(0, 1, basis // len(WIDTHS), dtype=torch.float64)
    z = (places[:, None] - centres) / width
    return places, step * torch.exp(-z.square()) / (width * math.sqrt(math.pi))


def uniform(*shape: int, fan_in: int) -> nn.Parameter:
    bound = 1 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))


class LongTermMemory(nn.Module):
    def __init__(self, sizes: Sizes):
        super().__init__()
        self.thin = bool(sizes.thin)
        d, basis = sizes.dim, sizes.basis
        self.heads, self.head_dim = sizes.heads, sizes.head_dim
        self.gate_weight = uniform(3, d, d, fan_in=3 * d)
        self.gate_bias = uniform(d, fan_in=3 * d)
        self.key = nn.Linear(d, d, bias=False)
        self.value = nn.Linear(d, d, bias=False)
        self.density_weight = uniform(2, basis, fan_in=basis)
        self.out = nn.Linear(d, d, bias=False)
        carry, new = next_matrices(sizes.length, sizes.samples, basis)
        buffers = {"first": first_matrix(sizes.length, basis)}
        if self.thin:
            buffers["carry_left"], buffers["carry_right"] = thin_factors(carry)
            buffers["new_left"], buffers["new_right"] = thin_factors(new)
            for i, width in enumerate(WIDTHS):
                buffers[f"centres{i}"], buffers[f"sums{i}"] = fewer_functions(width, basis)
        else:
            buffers |= {"carry": carry, "new": new}
            buffers["centres"] = torch.linspace(0, 1, basis // len(WIDTHS), dtype=torch.float64)
        for name, value in buffers.items():
            value = value.to(torch.get_default_dtype()).contiguous()
            self.register_buffer(name, value, persistent=False)

    def gate(self, x: Tensor) -> Tensor:
        """sigmoid(conv(x)) x, the convolution of width 3 as one product (Eq. 18)."""
        padded = F.pad(x, (0, 0, 1, 1))
        windows = torch.cat([padded[:, :-2], x, padded[:, 2:]], -1)  # [B, L, 3 d]
        weight = self.gate_weight.transpose(0, 1).flatten(1)  # [d, 3 d]
        return torch.sigmoid(F.linear(windows, weight, self.gate_bias)) * x

    def write(self, old: Tensor | None, x: Tensor) -> Tensor:
        """Coefficients [B, N, d] from the old ones and new vectors [B, L, d]."""
        x = self.gate(x)
        if old is None:
            return self.first @ x
        if self.thin:
            past = self.carry_left @ (self.carry_right @ old)
            return past + self.new_left @ (self.new_right @ x)
        return self.carry @ old + self.new @ x

    def read(self, coefficients: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
        """What projected queries [B, L, H D] read, [B, L, d], and their densities [2, B, H, L]."""
        density = self.density(coefficients, queries)
        if self.thin:
            read = self.expectation_by_fewer(density[0], density[1], coefficients)
        else:
            values = self.value(coefficients)  # [B, N, H D]
            read = self.expectation(density[0], density[1], self.split(values))
        return self.out(read.transpose(1, 2).flatten(2)), density

    def density(self, coefficients: Tensor, queries: Tensor) -> Tensor:
        """mu and sigma² (Eq. 9, 10): w · (K q) = (Kᵀ w) · q, so that no scores are formed."""
        # In float, whatever the rest is in: eight bits of mu are no place among N functions.
        with torch.autocast("cpu", enabled=False):
            float_ = torch.get_default_dtype()
            folded = self.key(self.density_weight @ coefficients.to(float_))  # [B, 2, H D]
            scores = self.split(queries.to(float_)) @ self.split(folded).mT / math.sqrt(self.head_dim)
        mu, variance = scores.unbind(-1)  # [B, H, L]
        return torch.stack([torch.sigmoid(mu), F.softplus(variance).clamp_min(FLOOR)])

    def expectation(self, mu: Tensor, variance: Tensor, values: Tensor) -> Tensor:
        """sum_j N(mu; centre_j, width_j² + sigma²) values_j, [B, H, L, D] (Eq. 6, 11).

        The squared distance is the same for all widths, and the factor in front of the exponential
        is applied to what was read, not to all N.
        """
        squared = (mu[..., None] - self.centres).square()  # [B, H, L, N / widths]
        read = torch.zeros(())
        for i, width in enumerate(WIDTHS):
            total = (width * width + variance)[..., None]
            bumps = torch.exp(squared * (-0.5 / total))
            read = read + bumps @ values[:, :, i :: len(WIDTHS)] * torch.rsqrt(2 * math.pi * total)
        return read

    def expectation_by_fewer(self, mu: Tensor, variance: Tensor, coefficients: Tensor) -> Tensor:
        """The same by the functions that those of each width are sums of."""
        read = torch.zeros(())
        for i, width in enumerate(WIDTHS):
            sums, centres = getattr(self, f"sums{i}"), getattr(self, f"centres{i}")
            values = self.split(self.value(sums @ coefficients[:, i :: len(WIDTHS)]))
            total = (width * width / 2 + variance)[..., None]
            bumps = torch.exp((mu[..., None] - centres).square() * (-0.5 / total))
            read = read + bumps @ values * torch.rsqrt(2 * math.pi * total)
        return read

    def split(self, x: Tensor) -> Tensor:
        """[B, n, H D] -> [B, H, n, D]"""
        return x.unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)


def divergence(density: Tensor) -> Tensor:
    """KL(N(mu, sigma²) || N(mu, SIGMA0²)), summed over all densities (Eq. 20, 21)."""
    ratio = density[1] / SIGMA0**2
    return 0.5 * (ratio - torch.log(ratio) - 1).sum()
