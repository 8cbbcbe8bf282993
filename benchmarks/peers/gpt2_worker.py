# SPDX-License-Identifier: MIT
"""Hugging Face's side of gpt2.py: `gpt2_worker.py FOLDER [--compile] [--bfloat16]` answers the lines
that gpt2_peer.cpp lists. Generation is the leanest loop that the library allows: the token of highest
score, logits of the last place alone, a cache that the library makes (eager) or one of fixed size
(compiled, which must not compile for every length)."""

import argparse
import os
import sys
import time

import torch
import transformers
from safetensors.torch import save_file
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel, StaticCache

from worker import status


def text(batch: int, length: int, vocabulary: int) -> torch.Tensor:
    """The text of gpt2_peer.cpp."""
    i, b = torch.arange(length)[None], torch.arange(batch)[:, None]
    return (i * 7919 + b * 104729 + 17) % vocabulary


def now() -> torch.Tensor:
    """Milliseconds by the wall's clock, and of processors' time in all threads."""
    return 1e3 * torch.tensor([time.perf_counter(), time.process_time()], dtype=torch.float64)


def numbers(*values: torch.Tensor) -> str:
    return " ".join(map(str, torch.stack(values).t().flatten().tolist()))


class Peer:
    def __init__(self, folder: str, compiled: bool, dtype: torch.dtype):
        self.folder, self.compiled, self.dtype = folder, compiled, dtype
        self.model = self.adam = None

    def load(self) -> GPT2LMHeadModel:
        if self.model is None:
            self.model = GPT2LMHeadModel.from_pretrained(self.folder, dtype=self.dtype).eval()
            wrap = torch.compile if self.compiled else (lambda f: f)
            self.forward, self.learn = wrap(self.model.forward), wrap(self.loss_of)
        return self.model

    @torch.inference_mode()
    def generate(
        self, batch: int, prompt: int, count: int
    ) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
        model = self.load()
        start = now()
        if self.compiled:
            cache = StaticCache(config=model.config, max_cache_len=prompt + count)
        else:
            cache = DynamicCache(config=model.config)
        tokens, chosen, first = text(batch, prompt, model.config.vocab_size), [], None
        for i in range(count):
            out = self.forward(
                input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1
            )
            tokens = out.logits[:, -1].argmax(-1, keepdim=True)
            chosen.append(tokens)
            if i == 0:
                first = now() - start
        rest = now() - start - first
        return first, rest, torch.cat(chosen, 1).flatten().tolist()

    def loss_of(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.model(input_ids=tokens[:, :-1], use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def loss(self, length: int) -> float:
        tokens = text(1, length + 1, self.load().config.vocab_size)
        with torch.no_grad():
            return self.learn(tokens).item()

    def step(self, length: int) -> float:
        """Dropout is off on both sides: `eval` stays."""
        tokens = text(1, length + 1, self.load().config.vocab_size)
        if self.adam is None:
            parameters = self.model.parameters()
            self.adam = torch.optim.AdamW(parameters, lr=1e-5, weight_decay=0.01, fused=True)
        self.adam.zero_grad()
        loss = self.learn(tokens)
        loss.backward()
        # infty's step measures the norm of all gradients, as those do who clip it.
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), float("inf"))
        self.adam.step()
        return loss.item()

    @torch.inference_mode()
    def logits(self, length: int, path: str) -> None:
        model = GPT2LMHeadModel.from_pretrained(self.folder, dtype=torch.float64).eval()
        found = model(text(1, length, model.config.vocab_size)).logits
        save_file({"logits": found.contiguous()}, path)

    def write(self, layers: int, folder: str) -> None:
        torch.manual_seed(1)
        none = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        model = GPT2LMHeadModel(GPT2Config(n_layer=layers, **none))
        for name, value in model.named_parameters():
            if name.endswith("bias"):  # begin as zeros, and would hide a bias that is not read
                torch.nn.init.normal_(value, std=0.02)
        model.save_pretrained(folder)

    def answer(self, command: str, words: list[str]) -> str:
        if command in ("evaluate", "step"):
            start = now()
            (self.loss if command == "evaluate" else self.step)(int(words[0]))
            return numbers(now() - start)
        if command == "losses":
            length = int(words[0])
            return " ".join(map(repr, [self.loss(length), *(self.step(length) for _ in range(3))]))
        if command in ("generate", "tokens"):
            first, rest, chosen = self.generate(*map(int, words))
            return numbers(first, rest) if command == "generate" else " ".join(map(str, chosen))
        getattr(self, command)(int(words[0]), words[1])
        return "written"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bfloat16", action="store_true", help="weights and all that is computed")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    dtype = torch.bfloat16 if options.bfloat16 else torch.float32
    peer, before = Peer(options.folder, options.compile, dtype), status("VmRSS")
    print("ready", "MKL" if torch.backends.mkl.is_available() else "no MKL", flush=True)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "memory":
            print(before, status("VmHWM"), flush=True)
        else:
            print(peer.answer(command, words), flush=True)


if __name__ == "__main__":
    main()
