# SPDX-License-Identifier: MIT
"""infty beside the same layer, the same training step and the same kernels of memories in PyTorch,
eager and compiled.

First it shows that all compute the same, then it times them in turns, round by round, so that what
else the machine does falls on all alike, and measures peak memory in fresh processes. `./dev bench
peers` runs it; every program is a process of its own that waits while another one works.
"""

import argparse
import contextlib
import dataclasses
import datetime
import functools
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from kernels import KERNELS
from layer import LongTermMemory, Sizes
from model import TransformerLM
from runs import check_counts, folder_of, run_all, say

HERE = Path(__file__).resolve().parent
QUICK = Sizes(batch=2, length=128, heads=2, head_dim=16, basis=128, samples=64, feed_forward=64)
KL_WEIGHT = 1e-3  # of the layer's loss, so that the divergence has a part in every gradient
PROGRAMS = ("infty", "PyTorch", "PyTorch compiled")
BFLOAT16 = tuple(f"{name} bfloat16" for name in PROGRAMS)  # factors of products rounded
# What PyTorch does not compile: 2.15 ends with an error in the sparse gradient of an embedding bag.
NOT_COMPILED = ("product_keys",)
MEASURES = {  # what is timed, by the process that does it
    "layer": {"LTM forward": "forward", "LTM forward + backward": "backward"},
    "model": {"training step": "step"},
} | {
    kind: {f"{title} forward": "forward", f"{title} forward + backward": "backward"}
    for kind, title in {
        "retrieval": "nearest keys and attention to them,",
        "product_keys": "product keys",
        "delta_rule": "gated delta rule",
    }.items()
}
# What the others' numbers are held against. Of a whole step in float64 there is no place for the
# weights of attention on every machine.
REFERENCE = {kind: "PyTorch float64" for kind in MEASURES} | {"model": "PyTorch"}
AGREE = 2e-3  # the largest difference allowed, as a share of a tensor's largest element
AGREE_BFLOAT16 = 0.1  # infty's, or twice PyTorch's of that tensor: what is read is a small sum of large terms
MOST_BFLOAT16 = 1.0  # anybody's


# ---- cases -----------------------------------------------------------------------------------


def make_case(kind: str, sizes: object, path: Path) -> None:
    """A file of sizes, weights and inputs for all programs."""
    torch.manual_seed(1)
    metadata = {name: str(value) for name, value in dataclasses.asdict(sizes).items()}
    if kind in KERNELS:
        save_file(KERNELS[kind].case(sizes), path, metadata)
        return
    module = LongTermMemory(sizes) if kind == "layer" else TransformerLM(sizes)
    tensors = {f"parameter.{name}": value for name, value in module.state_dict().items()}
    if kind == "layer":
        for name in ("earlier", "x", "queries", "weight"):
            tensors[name] = torch.randn(sizes.batch, sizes.length, sizes.dim)
    else:
        # Symbols, a separator, which is one above them, and the answer: each symbol once.
        tokens = torch.randint(sizes.symbols, (sizes.batch, sizes.segments * sizes.length))
        answer = torch.rand(sizes.batch, sizes.symbols).argsort(-1)
        tokens[:, -sizes.symbols :] = answer.roll(1, 1)
        tokens[:, -sizes.symbols] = sizes.symbols
        targets = torch.full((sizes.batch, sizes.length), -100)  # no loss but the answer's
        targets[:, -sizes.symbols :] = answer
        tensors["earlier"] = tokens[:, : -sizes.length].contiguous()
        tensors["last"] = tokens[:, -sizes.length :].contiguous()
        tensors["targets"] = targets
    save_file(tensors, path, metadata | {"kl_weight": str(KL_WEIGHT)})


def layer_flops(s: Sizes) -> tuple[float, float]:
    """Of the layer's large products without any waste, forward and backward. Backward, each product
    is two, but the carried past needs no gradient, nor do the matrices of the fit."""
    gate = 3 * s.length * s.dim
    carry, fit = s.basis**2, s.length * s.basis
    projections, read = (s.basis + s.length) * s.dim, s.length * s.basis
    row = 2 * s.batch * s.dim
    return row * (gate + carry + fit + projections + read), row * (
        2 * gate + fit + 2 * projections + 2 * read
    )


# ---- programs --------------------------------------------------------------------------------


class Program:
    """A process that answers each line with a line."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]):
        self.name = name
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.product = self.answer("starts").removeprefix("ready ")  # what multiplies matrices

    def answer(self, doing: str) -> str:
        """The next line; whoever waits long is told for what."""
        done = threading.Event()

        def report() -> None:
            start = time.monotonic()
            while not done.wait(10):
                say(f"{self.name} {doing}: {time.monotonic() - start:.0f} s", end="")

        threading.Thread(target=report, daemon=True).start()
        line = self.process.stdout.readline()
        done.set()
        if not line:
            raise SystemExit(f"compare: {self.name} ended, status {self.process.wait()}")
        return line.strip()

    def ask(self, command: str, doing: str = "works") -> str:
        with contextlib.suppress(BrokenPipeError):  # it has ended, which answer() says
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        return self.answer(doing)

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


class Session:
    """What all processes of a comparison have in common."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.folder = options, options.out
        self.programs = PROGRAMS + (BFLOAT16 if options.bfloat16 else ())
        if options.eager:
            self.programs = tuple(name for name in self.programs if "compiled" not in name)
        # Whoever starts more threads than agreed gains nothing: all share these cores.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
        threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        self.environment = os.environ | {name: str(options.threads) for name in threads}
        # A waiting thread gives its core up soon; GCC's default can take milliseconds from others.
        self.environment.setdefault("GOMP_SPINCOUNT", "20000")
        # PyTorch's own switch for huge pages: without it, eager mode takes half as long again.
        self.environment["THP_MEM_ALLOC_ENABLE"] = "1"
        self.environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(self.folder / "inductor"))

    def programs_of(self, kind: str) -> tuple[str, ...]:
        left_out = "compiled" if kind in NOT_COMPILED else None
        return tuple(name for name in self.programs if not left_out or left_out not in name)

    def case(self, kind: str) -> Path:
        return self.folder / f"{kind}.safetensors"

    def start(self, name: str, kind: str) -> Program:
        environment = self.environment
        if name.startswith("infty"):
            command = [str(self.options.infty), kind, str(self.case(kind))]
            environment = environment | {"INFTY_BF16_PRODUCTS": str(int(name in BFLOAT16))}
        else:
            command = [sys.executable, str(HERE / "worker.py"), kind, str(self.case(kind))]
            command += ["--attention", self.options.attention]
            command += ["--compile"] if "compiled" in name else []
            command += ["--bfloat16"] if name in BFLOAT16 else []
            command += ["--double"] if name.endswith("float64") else []
        return Program(name, command, environment)


# ---- what is measured ------------------------------------------------------------------------


def differences(ours: Path, theirs: Path) -> dict[str, float]:
    """The largest difference of each tensor, as a share of its largest element."""
    a, b = load_file(ours), load_file(theirs)
    if a.keys() != b.keys():
        raise SystemExit(f"compare: {ours} and {theirs} differ in {sorted(a.keys() ^ b.keys())}")
    share = lambda x, y: ((x - y).abs().max() / y.abs().max().clamp_min(1e-30)).item()
    return {name: share(a[name].double(), b[name].double()) for name in a}


def agreement(session: Session, kind: str, programs: list[Program]) -> dict[str, dict]:
    """Largest differences from the reference, of outputs and of gradients, by program."""
    file = lambda name: session.folder / f"{kind}-{name.replace(' ', '-')}.safetensors"
    reference = REFERENCE[kind]
    if reference not in PROGRAMS:
        with session.start(reference, kind) as program:
            program.ask(f"save {file(reference)}")
    for program in programs:
        program.ask(f"save {file(program.name)}", "computes (and compiles, which takes minutes)")
    shares = {
        program.name: differences(file(program.name), file(reference))
        for program in programs
        if program.name != reference
    }
    found = {}
    for name, of in shares.items():
        found[name] = {}
        for tensor, share in of.items():
            allowed = AGREE
            if name == "infty bfloat16":
                allowed = max(AGREE_BFLOAT16, min(MOST_BFLOAT16, 2 * shares["PyTorch bfloat16"][tensor]))
            elif name in BFLOAT16:
                allowed = MOST_BFLOAT16
            if not share <= allowed:  # nor what is not a number
                raise SystemExit(f"compare: {name}: {tensor} is off by {share:.1e}")
            what = "gradients" if tensor.startswith("grad.") else "outputs"
            if share >= found[name].setdefault(what, {"difference": 0})["difference"]:
                found[name][what] = {"difference": share, "tensor": tensor}
    return found


def processor_time(program: Program) -> float:
    """Milliseconds that processors have spent on it so far, in all of its threads."""
    tasks = Path(f"/proc/{program.process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6


def timings(
    title: str, command: str, rounds: int, programs: list[Program], cpu: bool
) -> dict[str, list]:
    """Milliseconds of every round, of the wall's clock or of processors; each round begins with
    another program."""
    for program in programs:
        program.ask(command)
        program.ask(command)
    taken: dict[str, list] = {program.name: [] for program in programs}
    start = time.monotonic()
    for i in range(rounds):
        for k in range(len(programs)):
            program = programs[(i + k) % len(programs)]
            time.sleep(0.1)  # threads of the one before may still be spinning
            before = processor_time(program) if cpu else 0
            elapsed = float(program.ask(command))
            taken[program.name].append(processor_time(program) - before if cpu else elapsed)
        each = (time.monotonic() - start) / (i + 1)
        left = each * (rounds - i - 1)
        say(f"{title}: round {i + 1} of {rounds}, {each:.1f} s each, {left:.0f} s left", end="")
    return taken


def memory(session: Session, kind: str) -> dict[str, dict[str, float]]:
    """MB resident before the first run and at the peak of three, each in a fresh process."""
    found = {}
    for name in session.programs_of(kind):
        say(f"memory of {name}, {kind}", end="")
        with session.start(name, kind) as program:
            for _ in range(3):
                program.ask(list(MEASURES[kind].values())[-1], "computes or compiles")
            before, peak = (int(kb) * 1024 / 1e6 for kb in program.ask("memory").split())
            found[name] = {"before": before, "peak": peak}
    return found


def quartiles(values: list[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


# ---- the report ------------------------------------------------------------------------------


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def machine() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def commit() -> str:
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    return subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown"


def report(results: dict) -> str:
    sizes, threads = Sizes(**results["sizes"]), results["threads"]
    measured = results["milliseconds"].values()
    programs = [name for name in results["programs"] if any(name in taken for taken in measured)]
    pairs = [(name, "infty" + name.removeprefix(name.removesuffix(" bfloat16"))) for name in programs]
    pairs = [(peer, ours) for peer, ours in pairs if peer != ours]
    text = (
        f"{results['machine']}, {threads} threads, PyTorch {results['pytorch']}, "
        f"infty {results['commit']}, {results['date']}, load {results['load']:.1f} at the beginning\n"
        f"`{results['command']}`\n\n"
        f"Batch {sizes.batch}, segment and memories {sizes.length}, {sizes.heads} heads of "
        f"{sizes.head_dim}, N = {sizes.basis}, {sizes.samples} samples; the step: {sizes.layers} "
        f"layers, {sizes.segments} segments. PyTorch's attention: {results['attention']}; its "
        f"long-term memory: {'as infty computes it' if sizes.thin else 'as in the paper'}. Matrix "
        f"products: {results['products']['infty']}'s in infty, {results['products']['PyTorch']}'s in "
        "PyTorch.\n\n"
    )
    for kind in results["agreement"]:
        if kind in results["kernels"]:
            constants = ", ".join(f"{k} {v}" for k, v in results["kernels"][kind].items())
            text += f"{kind}: {constants.rpartition(', ')[0]}.\n\n"
    rows = []
    for kind, agreeing in results["agreement"].items():
        for name, largest in agreeing.items():
            kinds = (largest.get("outputs"), largest.get("gradients"))
            cells = [f"{v['difference']:.1e} ({v['tensor']})" if v else "" for v in kinds]
            rows.append([kind, f"{name} from {REFERENCE[kind]}", *cells])
    text += "Largest difference, as a share of the tensor's largest element:\n\n"
    text += table(["", "", "outputs", "gradients"], rows) + "\n"

    rows = []
    for title, taken in results["milliseconds"].items():
        median = {name: statistics.median(values) for name, values in taken.items()}
        cells = [f"{median[name]:.1f}" if name in taken else "" for name in programs]
        for peer, ours in pairs:
            if peer not in taken:
                cells.append("")
                continue
            low, middle, high = quartiles([b / a for a, b in zip(taken[ours], taken[peer])])
            cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        rows.append([title, *cells])
    text += "Processor time, not the wall's. " if results["cpu"] else ""
    text += f"Milliseconds, medians of {results['rounds']} rounds in turns, and medians "
    text += "(quartiles) of each round's ratio to infty:\n\n"
    text += table(["", *programs, *(f"{peer} / {ours}" for peer, ours in pairs)], rows) + "\n"

    if "limit" in results:
        limit, name = results["limit"]["gflops"], results["limit"]["program"]
        text += f"The fastest product of two {sizes.product}² matrices here: {limit:.0f} GFLOP/s, "
        text += f"{name}. Times what the counted FLOPs take at that rate:\n\n"
        forward, backward = layer_flops(sizes)
        rows = []
        for title, flops in zip(MEASURES["layer"], (forward, forward + backward)):
            taken = results["milliseconds"][title]
            least = flops / limit / 1e6
            cells = [f"{statistics.median(taken[name]) / least:.2f}" for name in programs]
            rows.append([title, f"{flops / 1e9:.1f} GFLOP, {least:.1f} ms", *cells])
        text += table(["", "counted", *programs], rows) + "\n"

    rows = []
    for kind, found in results["memory"].items():
        title = list(MEASURES[kind])[-1]
        peaks = [found.get(name) for name in programs]
        cells = [f"{v['peak']:.0f} ({v['before']:.0f})" if v else "" for v in peaks]
        for peer, ours in pairs:
            share = found[ours]["peak"] / found[peer]["peak"] if peer in found else None
            cells.append(f"{share:.2f}" if share else "")
        rows.append([title, *cells])
    text += "Peak resident MB of a fresh process (before its first run), and infty's share:\n\n"
    return text + table(["", *programs, *(f"{ours} / {peer}" for peer, ours in pairs)], rows)


# ---- the run ---------------------------------------------------------------------------------


def measure(session: Session, kind: str, sizes: object, results: dict) -> None:
    """A subject: whether all agree, their times, their memory."""
    rounds, cpu = session.options.rounds, session.options.cpu
    make_case(kind, sizes, session.case(kind))
    with contextlib.ExitStack() as stack:
        programs = []
        for name in session.programs_of(kind):
            programs.append(stack.enter_context(session.start(name, kind)))
        results["products"] |= {program.name: program.product for program in programs}
        results["agreement"][kind] = agreement(session, kind, programs)
        for title, command in MEASURES[kind].items():
            results["milliseconds"][title] = timings(title, command, rounds, programs, cpu)
        if kind == "layer":
            taken = timings("matrix product", "product", rounds, programs, cpu)
            median, name = min((statistics.median(v), k) for k, v in taken.items())
            gflops = 2 * sizes.product**3 / median / 1e6
            results["limit"] = {"gflops": gflops, "program": name, "milliseconds": taken}
    results["memory"][kind] = memory(session, kind)


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--infty", type=Path, required=True, help="the program infty_peer")
    parser.add_argument("--out", type=Path, default=Path("build/peers/results"))
    parser.add_argument("--threads", type=int, default=cores, help=f"of each ({cores})")
    parser.add_argument("--rounds", type=int, default=15, help="timed runs of each (15)")
    parser.add_argument("--only", choices=MEASURES, nargs="+", help="some of the subjects")
    parser.add_argument(
        "--cpu", action="store_true", help="processor time, for a machine that others use, too"
    )
    parser.add_argument("--eager", action="store_true", help="without compiled PyTorch")
    parser.add_argument(
        "--bfloat16", action="store_true", help="all of them in bfloat16, too, PyTorch by autocast"
    )
    parser.add_argument("--attention", choices=["softmax", "sdpa"], default="softmax")
    parser.add_argument(
        "--thin",
        action="store_true",
        help="layer and model in PyTorch with infty's thin factors and fewer functions, too",
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to OUT/quick")
    options = parser.parse_args()
    check_counts(parser, options, "threads", "rounds")
    subjects = options.only or (["layer", "model"] if options.bfloat16 else list(MEASURES))
    if options.bfloat16 and KERNELS.keys() & set(subjects):
        parser.error("--bfloat16 is of the layer and the model: --only layer model")
    options.out = folder_of(options)
    session, sizes = Session(options), QUICK if options.quick else Sizes()
    sizes = dataclasses.replace(sizes, thin=int(options.thin))
    kernels = {name: k.QUICK if options.quick else k.Sizes() for name, k in KERNELS.items()}
    results: dict = {
        "machine": machine(),
        "threads": options.threads,
        "cpu": options.cpu,
        "rounds": options.rounds,
        "pytorch": torch.__version__,
        "attention": options.attention,
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "command": " ".join(["compare.py", *sys.argv[1:]]),
        "sizes": dataclasses.asdict(sizes),
        "kernels": {name: dataclasses.asdict(k) for name, k in kernels.items()},
        "load": os.getloadavg()[0],
        "programs": session.programs,
        "products": {},
        "agreement": {},
        "milliseconds": {},
        "memory": {},
    }
    jobs = [
        functools.partial(measure, session, kind, kernels.get(kind, sizes), results)
        for kind in subjects
    ]
    run_all(jobs, results, "milliseconds", report, options.out / "peers")


if __name__ == "__main__":
    main()
