# SPDX-License-Identifier: MIT
"""What the comparisons have in common: numbers that are refused, where results go, and a run that
keeps what it has.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path


def say(text: str, end: str = "\n") -> None:
    line = f"\r{text:<78}" if sys.stderr.isatty() else text
    print(line, end=end if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def check_counts(parser: argparse.ArgumentParser, options: argparse.Namespace, *names: str) -> None:
    """Ends with a sentence unless these options are 1 or more, and --threads at most a core each."""
    for name in names:
        given = getattr(options, name)
        for count in given if isinstance(given, list) else [given]:
            if count < 1:
                parser.error(f"--{name} is {count}: it must be at least 1")
    cores = len(os.sched_getaffinity(0))
    if getattr(options, "threads", 1) > cores:
        parser.error(
            f"--threads is {options.threads}: it must be at most {cores}, for each thread has a core "
            "of its own here"
        )


def folder_of(options: argparse.Namespace) -> Path:
    """Where results go, made if need be. Those of tiny sizes do not replace those of a long run."""
    folder = options.out.resolve() / ("quick" if options.quick else "")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write(results: dict, report: Callable[[dict], str], path: Path) -> str:
    """Writes PATH.json and PATH.md, and returns the latter."""
    text = report(results)
    for suffix, what in ((".json", json.dumps(results, indent=1) + "\n"), (".md", text)):
        part = path.with_suffix(".part")
        part.write_text(what)
        part.replace(path.with_suffix(suffix))
    return text


def run_all(
    jobs: list[Callable[[], None]],
    results: dict,
    measured: str,
    report: Callable[[dict], str],
    path: Path,
) -> None:
    """Does the jobs, and writes the results behind each. Who interrupts it, or a program that ends,
    still gets a report of what was measured, `results[measured]`."""
    reason = ""
    try:
        for job in jobs:
            job()
            write(results, report, path)
    except KeyboardInterrupt:
        reason = "interrupted"
    except SystemExit as error:
        reason = str(error)
    say("")
    if results[measured]:
        print(write(results, report, path))
    if reason:
        kept = f"what was measured is in {path}.json" if results[measured] else "nothing was measured"
        raise SystemExit(f"{reason}; {kept}")
