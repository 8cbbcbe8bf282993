#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the tokens of a datastore, and says how well counts alone predict a text: the control of
what neighbours bring. Unigrams, bigrams and trigrams are interpolated with a uniform distribution,
with weights by expectation maximisation on a tuning text (Jelinek and Mercer 1980).

    ngram.py STORE TUNING TEXT

Each is a folder of `language_model build-datastore`, by the same model.
"""

import array
import collections
import json
import math
import pathlib
import sys

ROUNDS = 60


def rows_of(folder):
    """The tokens of a datastore in the order of its text: it was read in `batch` rows, `segment`
    tokens of each at a time."""
    about = json.loads(json.loads((folder / "manifest.json").read_text())["about"])
    tokens = array.array("i", (folder / "tokens").read_bytes())
    batch, segment = about["batch"], about["segment"]
    rows, at = [[] for _ in range(batch)], 0
    while at < len(tokens):
        length = min(segment, max(1, (len(tokens) - at) // batch))
        for row in rows:
            row.extend(tokens[at : at + length])
            at += length
    return about["vocabulary"], rows


def counts_of(rows, order):
    """How often each token stands behind each `order` - 1 tokens."""
    counts = collections.defaultdict(collections.Counter)
    for row in rows:
        for end in range(order - 1, len(row)):
            counts[tuple(row[end - order + 1 : end])][row[end]] += 1
    return {before: (found, sum(found.values())) for before, found in counts.items()}


def probabilities(rows, grams, vocabulary):
    """What each order says of each token; 0 where it has never seen what stands before."""
    out = []
    for row in rows:
        for end, token in enumerate(row):
            said = [1 / vocabulary]
            for order, counts in enumerate(grams, 1):
                found, total = counts.get(tuple(row[max(0, end - order + 1) : end]), ({}, 1))
                said.append(found.get(token, 0) / total if end >= order - 1 else 0)
            out.append(said)
    return out


def tuned(said):
    """The weights that make a text likeliest."""
    weights = [1 / len(said[0])] * len(said[0])
    for _ in range(ROUNDS):
        shares = [0.0] * len(weights)
        for each in said:
            total = sum(w * p for w, p in zip(weights, each))
            for i, (w, p) in enumerate(zip(weights, each)):
                shares[i] += w * p / total
        weights = [share / len(said) for share in shares]
    return weights


def perplexity(weights, said):
    return math.exp(
        -sum(math.log(sum(w * p for w, p in zip(weights, each))) for each in said) / len(said)
    )


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    texts = [rows_of(pathlib.Path(folder)) for folder in sys.argv[1:]]
    if len({vocabulary for vocabulary, _ in texts}) > 1:
        sys.exit("ngram.py: the folders are of different tokens")
    store, tuning, text = (rows for _, rows in texts)
    vocabulary = 1 + max(max(row) for rows in (store, tuning, text) for row in rows if row)
    grams = [counts_of(store, order) for order in (1, 2, 3)]
    tuning, text = (probabilities(rows, grams, vocabulary) for rows in (tuning, text))
    print("| counts of | weights | tuning | text |\n|---|---|---|---|")
    for order, name in enumerate(("unigrams", "bigrams", "trigrams"), 1):
        weights = tuned([each[: order + 1] for each in tuning])
        print(
            f"| {name} | {', '.join(f'{w:.3f}' for w in weights)} | "
            f"{perplexity(weights, tuning):.1f} | {perplexity(weights, text):.1f} |"
        )


if __name__ == "__main__":
    main()
