# SPDX-License-Identifier: MIT
"""GPT-2 of infty beside Hugging Face's library on PyTorch, eager and compiled, by GPT-2 small's
sizes and random weights: first that each opens the other's folder with equal logits, that they
choose the same tokens and have the same losses; then generation, evaluation and a training step, in
turns, round by round, and the peak memory of each of these. `./dev bench peers gpt2` runs it.
"""

import argparse
import contextlib
import datetime
import functools
import os
import statistics
import sys
import time
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file

from compare import HERE, Program, commit, machine, quartiles, table
from runs import check_counts, folder_of, run_all, say

PROGRAMS = ("infty", "eager", "compiled")
CLOCKS = {"wall": "The wall's clock", "processors": "Processors' time, of all threads"}
TITLES = {
    "first": "first token, batch {} (ms)",
    "rest": "tokens a second, batch {}",
    "evaluate": "evaluation of {} tokens (ms)",
    "step": "training step on {} tokens (ms)",
}


class Session:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.programs = PROGRAMS[:2] if options.eager else PROGRAMS
        self.rounded = options.weights == "bfloat16"
        # Whoever starts more threads than agreed gains nothing: all share these cores.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
        self.environment = os.environ | {
            "OMP_NUM_THREADS": str(options.threads),
            "MKL_NUM_THREADS": str(options.threads),
            "THP_MEM_ALLOC_ENABLE": "1",
            "HF_HUB_OFFLINE": "1",
        }
        # A waiting thread gives its core up soon, in all programs.
        self.environment.setdefault("GOMP_SPINCOUNT", "20000")
        self.environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(options.out / "inductor"))
        if self.rounded:
            self.environment.setdefault("INFTY_BF16_PRODUCTS", "1")

    def start(self, name: str, folder: Path) -> Program:
        if name == "infty":
            command = [str(self.options.infty), str(folder)]
            command += ["bfloat16"] if self.rounded else []
        else:
            command = [sys.executable, str(HERE / "gpt2_worker.py"), str(folder)]
            command += ["--compile"] if name == "compiled" else []
            command += ["--bfloat16"] if self.rounded else []
        return Program(name, command, self.environment)


def folders(session: Session) -> dict[str, float]:
    """The largest difference of logits in double, as a share of the largest, of a folder that the
    one wrote and the other opens."""
    found = {}
    for writer in ("eager", "infty"):
        folder = session.options.out / f"written-by-{writer}"
        folder.mkdir(exist_ok=True)
        with session.start(writer, folder) as program:
            say(f"{writer} writes a folder")
            program.ask(f"write {session.options.layers} {folder}")
        files = {}
        for reader in ("eager", "infty"):
            files[reader] = session.options.out / f"{writer}-by-{reader}.safetensors"
            with session.start(reader, folder) as program:
                program.ask(f"logits 64 {files[reader]}", "computes in double")
        ours, theirs = (load_file(files[name])["logits"] for name in ("infty", "eager"))
        found[writer] = ((ours - theirs).abs().max() / theirs.abs().max()).item()
        if not found[writer] <= 1e-12:
            raise SystemExit(f"gpt2: logits of {folder} differ by {found[writer]:.1e}")
    return found


def same_answers(session: Session, folder: Path) -> dict[str, dict]:
    """Tokens that a program chooses as infty does, and the largest difference of its losses."""
    o = session.options
    asked = f"tokens {max(o.batches)} {o.prompt} {o.tokens}"
    tokens, losses = {}, {}
    for name in session.programs:
        with session.start(name, folder) as program:
            tokens[name] = program.ask(asked, "generates").split()
            if not session.rounded:  # what is stored so is not trained
                losses[name] = program.ask(f"losses {o.block}", "trains").split()
    found = {}
    for name in session.programs[1:]:
        equal = sum(a == b for a, b in zip(tokens["infty"], tokens[name]))
        found[name] = {"tokens": equal / len(tokens[name])}
        if session.rounded:
            continue
        pairs = zip(map(float, losses["infty"]), map(float, losses[name]))
        off = found[name]["losses"] = max(abs(a - b) / b for a, b in pairs)
        if not off <= 1e-3:
            raise SystemExit(f"gpt2: losses {losses['infty']} and, {name}, {losses[name]}")
    return found


def jobs(options: argparse.Namespace) -> dict[str, str]:
    """What is timed: a title's key and what is asked."""
    all_jobs = {f"generate {b}": f"generate {b} {options.prompt} {options.tokens}"
                for b in options.batches}
    all_jobs["evaluate"] = f"evaluate {options.block}"
    if options.weights == "float32":
        all_jobs["step"] = f"step {options.block}"
    return {k: v for k, v in all_jobs.items() if not options.only or k.split()[0] in options.only}


def timings(session: Session, folder: Path, job: str, command: str) -> tuple[dict, dict]:
    """Milliseconds of every round by program, of the wall's clock and of processors' time; each
    round begins with another program. And MB resident at first and at the peak."""
    o = session.options
    with contextlib.ExitStack() as stack:
        programs = []
        for name in session.programs:
            programs.append(stack.enter_context(session.start(name, folder)))
        taken = {p.name: [] for p in programs}
        for p in programs:
            p.ask(command, f"{job}: computes (and compiles, which takes minutes)")
            p.ask(command, job)
        for i in range(o.rounds):
            for k in range(len(programs)):
                p = programs[(i + k) % len(programs)]
                time.sleep(0.1)  # threads of the one before may still be spinning
                taken[p.name].append([float(x) for x in p.ask(command, job).split()])
            say(f"{job}: round {i + 1} of {o.rounds}", end="")
        resident = {}
        for p in programs:
            resident[p.name] = [int(kb) * 1024 / 1e6 for kb in p.ask("memory").split()]
    names = ("first", "rest") if job.startswith("generate") else (job,)
    parts = [(clock, part) for clock in CLOCKS for part in names]
    found = {clock: {} for clock in CLOCKS}
    for n, (clock, part) in enumerate(parts):
        found[clock][part] = {name: [each[n] for each in all] for name, all in taken.items()}
    return found, resident


def times_table(results: dict, clock: str) -> str:
    names, rows = results["programs"], []
    for job, clocks in results["milliseconds"].items():
        for part, taken in clocks[clock].items():
            argument = job.split()[1] if " " in job else results["block"]
            cells = []
            for name in names:
                low, middle = min(taken[name]), statistics.median(taken[name])
                if part == "rest":
                    total = 1e3 * int(argument) * (results["tokens"] - 1)
                    low, middle = total / low, total / middle
                cells.append(f"{middle:.3g} ({low:.3g})")
            for peer in names[1:]:
                ratios = [b / a for a, b in zip(taken["infty"], taken[peer])]
                low, middle, high = quartiles(ratios)
                best = min(taken[peer]) / min(taken["infty"])
                cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f}), {best:.2f}")
            rows.append([TITLES[part].format(argument), *cells])
    return table(["", *names, *(f"{n} / infty" for n in names[1:])], rows)


def report(results: dict) -> str:
    names = results["programs"]
    lines = (
        f"{results['machine']}, {results['threads']} threads, PyTorch {results['pytorch']}, "
        f"transformers {results['transformers']}, infty {results['commit']}, {results['date']}, "
        f"load {results['load'][0]:.1f} at the beginning and {results['load'][1]:.1f} at the end\n"
        f"`{results['command']}`\n\n"
    )
    for writer, off in results["folders"].items():
        who = "Hugging Face" if writer == "eager" else writer
        lines += f"Logits of a folder written by {who}, "
        lines += f"in double: {off:.1e} of the largest apart.\n"
    for name, same in results["answers"].items():
        lines += f"{name}: {same['tokens']:.1%} of the tokens that infty chooses"
        if "losses" in same:
            lines += f", losses of three steps within {same['losses']:.1e}"
        lines += ".\n"
    lines += f"\nMedians of {results['rounds']} rounds in turns (and the best of them); medians "
    lines += "(quartiles) of each round's ratio of times, and the ratio of the best.\n\n"
    for clock, words in CLOCKS.items():
        lines += f"{words}:\n\n" + times_table(results, clock) + "\n"
    rows = [
        [job, *(f"{peak:.0f} ({before:.0f})" for before, peak in found.values())]
        for job, found in results["memory"].items()
    ]
    lines += "Peak MB of the process that was timed (before its first run):\n\n"
    return lines + table(["", *names], rows)


def measure(session: Session, folder: Path, job: str, command: str, results: dict) -> None:
    """A job: its times and its memory, and the machine's load when it is done."""
    taken, resident = timings(session, folder, job, command)
    results["milliseconds"][job], results["memory"][job] = taken, resident
    results["load"][1] = os.getloadavg()[0]


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--infty", type=Path, required=True, help="the program gpt2_peer")
    parser.add_argument("--out", type=Path, default=Path("build/peers/results"))
    parser.add_argument("--threads", type=int, default=min(2, cores))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--prompt", type=int, default=128, help="tokens before those generated")
    parser.add_argument("--tokens", type=int, default=64, help="that are generated a row")
    parser.add_argument("--block", type=int, default=512, help="tokens that are read at once")
    parser.add_argument("--weights", choices=["float32", "bfloat16"], default="float32",
                        help="bfloat16: infty keeps matrices so, the others compute in it, too")
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    parser.add_argument("--only", nargs="+", choices=["generate", "evaluate", "step"])
    parser.add_argument("--quick", action="store_true", help="one layer, to OUT/quick")
    options = parser.parse_args()
    check_counts(parser, options, "threads", "rounds", "layers", "batches", "prompt", "tokens", "block")
    if options.tokens < 2:
        parser.error("--tokens is 1: it must be at least 2, for those behind the first have a row")
    if not jobs(options):
        parser.error("--only step with --weights bfloat16 leaves nothing: what is stored so is not trained")
    if options.quick:
        options.layers, options.rounds, options.prompt, options.tokens = 1, 1, 16, 4
        options.block = 32
    options.out = folder_of(options)
    session = Session(options)
    load = os.getloadavg()[0]
    results = {
        "machine": machine(),
        "threads": options.threads,
        "pytorch": torch.__version__,
        "transformers": transformers.__version__,
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "command": "./dev bench peers gpt2 " + " ".join(sys.argv[3:]),
        "programs": session.programs,
        "rounds": options.rounds,
        "tokens": options.tokens,
        "block": options.block,
        "load": [load, load],
        "folders": folders(session),
    }
    folder = options.out / "written-by-eager"
    results["answers"] = same_answers(session, folder)
    results["milliseconds"], results["memory"] = {}, {}
    todo = [
        functools.partial(measure, session, folder, job, command, results)
        for job, command in jobs(options).items()
    ]
    run_all(todo, results, "milliseconds", report, options.out / "gpt2")


if __name__ == "__main__":
    main()
