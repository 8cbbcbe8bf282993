# SPDX-License-Identifier: MIT
"""infty's local adaptation beside the same steps in PyTorch, one question at a time, on one thread.

A classifier adapts a copy of itself to the neighbours of each question by L steps of gradient
descent on their mean loss and lambda |W~ - W|^2, and answers (MbPA). First it shows that both
answer the same, then it times them in turns. `./dev bench peers adaptation` runs it.
"""

import argparse
import datetime
import functools
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ["THP_MEM_ALLOC_ENABLE"] = "1"  # PyTorch's switch for huge pages, which it reads but once
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from compare import commit, machine, quartiles, table
from runs import check_counts, folder_of, run_all

AGREE = 2e-3  # the largest difference of -log p allowed
SIZES = {
    # What examples/lifelong does by default.
    "small": dict(vocabulary=101, classes=12, length=17, width=32, layers=1, heads=2,
                  feed_forward=64, neighbours=16, steps=10, questions=40),
    # K and L of the papers, over an encoder that one core can still turn.
    "papers": dict(vocabulary=4000, classes=33, length=64, width=128, layers=2, heads=4,
                   feed_forward=256, neighbours=32, steps=30, questions=4),
}
RATE, LAMBDA = 0.1, 0.001


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = (
            f(x).view(n, length, self.heads, -1).transpose(1, 2)
            for f in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(n, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, feed_forward: int):
        super().__init__()
        self.mixer = Attention(width, heads)
        self.mixer_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.ModuleDict(
            {"inner": nn.Linear(width, feed_forward), "outer": nn.Linear(feed_forward, width)}
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.mixer_norm(x + self.mixer(x))
        return self.feed_norm(y + self.feed["outer"](F.relu(self.feed["inner"](y))))


class Classifier(nn.Module):
    def __init__(self, s: dict):
        super().__init__()
        self.embedding = nn.ModuleDict(
            {"tokens": nn.Embedding(s["vocabulary"], s["width"]),
             "places": nn.Embedding(s["length"], s["width"])}
        )
        self.body = nn.ModuleList(
            Block(s["width"], s["heads"], s["feed_forward"]) for _ in range(s["layers"])
        )
        self.head = nn.Linear(s["width"], s["classes"])

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding["tokens"](tokens) + self.embedding["places"].weight[: tokens.shape[1]]
        for block in self.body:
            x = block(x)
        return self.head(x[:, 0])


class Adapted:
    """A copy of a model that goes a few steps and begins again. The steps are `torch.optim.SGD`'s
    foreach ones with the regulariser beside them: the quickest of what was tried."""

    def __init__(self, model: nn.Module, s: dict, part: str):
        self.copy = Classifier(s)
        self.origin = [p.detach().clone() for p in model.parameters()]
        self.all = list(self.copy.parameters())
        chosen = [part == "all" or part in name for name, _ in self.copy.named_parameters()]
        for p, adapts in zip(self.all, chosen):
            p.requires_grad_(adapts)
        self.to = [p for p, adapts in zip(self.all, chosen) if adapts]
        self.start = [p for p, adapts in zip(self.origin, chosen) if adapts]

    def adapt(self, tokens: Tensor, labels: Tensor, steps: int) -> nn.Module:
        with torch.no_grad():
            torch._foreach_copy_(self.all, self.origin)
        for _ in range(steps):
            loss = F.cross_entropy(self.copy(tokens), labels)
            gradients = torch.autograd.grad(loss, self.to)
            with torch.no_grad():
                # w -= rate (g + 2 lambda (w - start))
                away = torch._foreach_sub(self.to, self.start)
                torch._foreach_add_(away, gradients, alpha=1 / (2 * LAMBDA))
                torch._foreach_add_(self.to, away, alpha=-2 * LAMBDA * RATE)
        return self.copy


class Peer:
    """infty's process, which waits for lines."""

    def __init__(self, program: Path, case: Path):
        self.process = subprocess.Popen(
            [program, case], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        self.answer()

    def answer(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"adaptation: infty ended, status {self.process.wait()}")
        return line

    def ask(self, line: str) -> list[float]:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return [float(x) for x in self.answer().split()]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def make_case(s: dict, path: Path) -> tuple[nn.Module, dict[str, Tensor]]:
    torch.manual_seed(1)
    model = Classifier(s)
    given = {}
    questions = s["questions"]
    for name, n in (("questions", questions), ("neighbours", questions * s["neighbours"])):
        given[name] = torch.randint(s["vocabulary"], (n, s["length"]))
        given[f"{name}.labels"] = torch.randint(s["classes"], (n,))
    weights = {renamed(k): v for k, v in model.state_dict().items()}
    save_file(
        {f"parameter.{k}": v for k, v in weights.items()} | given,
        path,
        {k: str(v) for k, v in s.items()},
    )
    return model, given


def renamed(name: str) -> str:
    """infty's name of a parameter."""
    return name.replace("body.", "body.layers.", 1) if name.startswith("body.") else name


def run(s: dict, part: str, options: argparse.Namespace) -> dict:
    path = options.out / "adaptation.safetensors"
    model, given = make_case(s, path)
    peer = Peer(options.infty, path)
    asked = f"{s['steps']} {RATE} {LAMBDA} {part}"
    adapted = Adapted(model, s, part)
    k = s["neighbours"]

    def each(answer):
        out = []
        for i in range(s["questions"]):
            near = slice(i * k, (i + 1) * k)
            copy = adapted.adapt(given["neighbours"][near], given["neighbours.labels"][near],
                                 s["steps"])
            with torch.no_grad():
                out.append(answer(copy(given["questions"][i : i + 1]), i))
        return out

    theirs = each(lambda y, i: F.cross_entropy(y, given["questions.labels"][i : i + 1]).item())
    ours = peer.ask(f"losses {asked}")
    apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    if not apart <= AGREE:
        raise SystemExit(f"adaptation: losses differ by {apart:.1e}: {ours} {theirs}")
    seconds = {"infty": [], "PyTorch": []}
    processors = {"infty": [], "PyTorch": []}
    for i in range(options.rounds):
        for name in ("infty", "PyTorch") if i % 2 == 0 else ("PyTorch", "infty"):
            if name == "infty":
                wall, used, _ = peer.ask(f"adapt {asked}")
            else:
                begin, before = time.perf_counter(), time.process_time()
                each(lambda y, _: y.argmax(-1).item())
                wall, used = time.perf_counter() - begin, time.process_time() - before
            seconds[name].append(wall)
            processors[name].append(used)
    peer.close()
    return {"apart": apart, "seconds": seconds, "processors": processors}


def measure(title: str, s: dict, part: str, options: argparse.Namespace, results: dict) -> None:
    """A case, and the machine's load when it is done."""
    print(title, file=sys.stderr)
    results["cases"][title] = run(s, part, options) | {"questions": s["questions"]}
    results["load"][1] = os.getloadavg()[0]


def report(results: dict) -> str:
    rows = []
    for title, found in results["cases"].items():
        n = found["questions"]
        cells = []
        for name in ("infty", "PyTorch"):
            taken = found["processors"][name]
            cells.append(f"{1e3 * statistics.median(taken) / n:.3g} ({1e3 * min(taken) / n:.3g})")
        pairs = zip(found["processors"]["infty"], found["processors"]["PyTorch"])
        low, middle, high = quartiles([b / a for a, b in pairs])
        rows.append([title, *cells, f"{middle:.2f} ({low:.2f} to {high:.2f})",
                     f"{found['apart']:.1e}"])
    return (
        f"{results['machine']}, one thread each, PyTorch {results['pytorch']}, infty "
        f"{results['commit']}, {results['date']}, load {results['load'][0]:.1f} at the beginning "
        f"and {results['load'][1]:.1f} at the end\n\n"
        f"Milliseconds of processor time a question: medians of {results['rounds']} rounds in "
        "turns (and the best); medians (quartiles) of each round's ratio; the largest difference "
        "of -log p of an answer.\n\n"
        + table(["", "infty", "PyTorch", "PyTorch / infty", "apart"], rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--infty", type=Path, required=True, help="the program adaptation_peer")
    parser.add_argument("--out", type=Path, default=Path("build/peers/results"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--quick", action="store_true", help="a round of two steps, to OUT/quick")
    options = parser.parse_args()
    check_counts(parser, options, "rounds")
    options.out = folder_of(options)
    # Both on one core, as they go in turns: whoever starts more threads than one gains nothing.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    options.infty = options.infty.resolve()
    torch.set_num_threads(1)
    results = {
        "machine": machine(),
        "pytorch": torch.__version__,
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "rounds": 1 if options.quick else options.rounds,
        "load": [os.getloadavg()[0]] * 2,
        "cases": {},
    }
    options.rounds, todo = results["rounds"], []
    for name in options.only:
        s = SIZES[name] | ({"steps": 2, "questions": 2} if options.quick else {})
        for part, words in (("all", "all parameters"), ("head.", "the head")):
            title = (f"{name}: width {s['width']}, {s['layers']} layers, {s['length']} tokens, "
                     f"K {s['neighbours']}, L {s['steps']}, {words}")
            todo.append(functools.partial(measure, title, s, part, options, results))
    run_all(todo, results, "cases", report, options.out / "adaptation")


if __name__ == "__main__":
    main()
