"""The samples are read by the official loaders, are the same in every process, and are won by matching alone."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from zoo import lexical, samples, splits
from zoo.data_report import check_strict, report
from zoo.datasets import ask_ubuntu, insurance_qa, pairs, qatar_living, qatar_living_questions, trec_qa, yahoo_qa
from zoo.metrics import Convention, ranking_metrics

# Writer, official loader, least and most candidates and positives of a question.
SAMPLES = {
    "yahoo_qa": (samples.yahoo_qa, yahoo_qa.load, (5, 5), (1, 1)),
    "trec_qa": (samples.trec_qa, trec_qa.load, (5, 9), (1, 2)),
    "qatar_living": (samples.qatar_living, qatar_living.load, (10, 10), (1, 4)),
    "pairs": (samples.pairs, lambda folder: pairs.load(folder / "pairs.tsv"), (5, 5), (1, 1)),
}
WORD = r"\S+"


@pytest.fixture(scope="module", params=SAMPLES)
def sample(request, tmp_path_factory):
    """Name, data set as the official loader reads it."""
    folder = tmp_path_factory.mktemp(request.param)
    write, load, *_ = SAMPLES[request.param]
    write(folder)
    return request.param, load(folder)


def precision(scores, groups):
    return ranking_metrics(scores, labels(groups), Convention(), ("p@1",))["p@1"]


def labels(groups):
    return [np.array(group.labels) for group in groups]


def texts(groups):
    return [candidate[0] for group in groups for candidate in group.candidates]


def per_group(values, groups):
    return np.split(values, np.cumsum([len(group.labels) for group in groups])[:-1])


def test_the_official_loader_reads_what_was_generated(sample):
    name, dataset = sample
    _, _, candidates, positives = SAMPLES[name]
    found = [group for groups in dataset.splits.values() for group in groups]
    sizes = {split: len(groups) for split, groups in dataset.splits.items()}
    written = samples.groups(sum(samples.NUM_QUESTIONS[name].values()), candidates, positives)

    def content(groups):
        return {group.query: frozenset(zip(group.candidates, group.labels, strict=True)) for group in groups}

    drawn_by_the_loader = {"train": 2400, "dev": 300, "test": 300}
    assert sizes == (drawn_by_the_loader if name == "pairs" else samples.NUM_QUESTIONS[name])
    assert len(found) == len(written) >= 2000
    assert content(found) == content(written)
    for bounds, sizes in (
        (candidates, [len(group.labels) for group in found]),
        (positives, [sum(group.labels) for group in found]),
    ):
        assert (min(sizes), max(sizes)) == bounds


def test_nothing_is_shared_between_splits_or_contradictory(sample):
    _, dataset = sample
    check_strict(report(dataset))
    queries = [splits.normalise(group.query) for groups in dataset.splits.values() for group in groups]
    assert len(set(queries)) == len(queries)


def test_bm25_ranks_between_three_and_seven_of_ten_right(sample):
    _, dataset = sample
    for split, groups in dataset.splits.items():
        assert 0.3 < precision(lexical.BM25().score(groups), groups) < 0.7, split


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bm25_does_so_for_other_seeds(seed):
    groups = samples.groups(300, seed=seed)
    assert 0.3 < precision(lexical.BM25().score(groups), groups) < 0.7


def test_a_candidate_alone_says_nothing_about_its_label(sample):
    """Words and word pairs of the candidate, fitted on train, do as well as chance."""
    _, dataset = sample
    train, held_out = dataset.splits["train"], dataset.splits["dev"] + dataset.splits["test"]
    words = CountVectorizer(token_pattern=WORD, ngram_range=(1, 2))
    model = LogisticRegression(max_iter=200).fit(words.fit_transform(texts(train)), np.concatenate(labels(train)))
    scores = per_group(model.decision_function(words.transform(texts(held_out))), held_out)
    chance = np.mean([group.mean() for group in labels(held_out)])
    assert abs(precision(scores, held_out) - chance) < 0.07


def test_no_word_stands_in_right_answers_only(sample):
    _, dataset = sample
    train = dataset.splits["train"]
    words = CountVectorizer(token_pattern=WORD, binary=True)
    counts, label = words.fit_transform(texts(train)), np.concatenate(labels(train))
    often = np.asarray(counts.sum(0)).ravel() >= 100
    share = (np.asarray(counts[label > 0].sum(0)).ravel() / np.asarray(counts.sum(0)).ravel())[often]
    assert often.sum() > 100
    assert 0.5 * label.mean() < share.min() and share.max() < 1.5 * label.mean()


def test_which_words_go_together_can_be_learnt(sample):
    """Question words with answer words, counted on train, beat BM25 by far: what a trained model can find."""
    _, dataset = sample
    train, test = dataset.splits["train"], dataset.splits["test"]
    words = CountVectorizer(token_pattern=WORD, binary=True).fit([group.query[0] for group in train] + texts(train))

    def sides(groups):
        query = words.transform([group.query[0] for group in groups for _ in group.labels])
        return query, words.transform(texts(groups))

    query, candidate = sides(train)
    label = np.concatenate(labels(train))
    right = (query[label > 0].T @ candidate[label > 0]).toarray()
    every = (query.T @ candidate).toarray()
    weight = np.log((right + 5 * label.mean()) / (every + 5) / label.mean())
    query, candidate = sides(test)
    scores = per_group(np.asarray(candidate.multiply(query @ weight).sum(1)).ravel(), test)
    assert precision(scores, test) > precision(lexical.BM25().score(test), test) + 0.2


def test_right_answers_stand_anywhere():
    places = Counter(group.labels.index(1.0) for group in samples.groups(1000))
    assert sorted(places) == [0, 1, 2, 3, 4]
    assert min(places.values()) > 150


def test_a_wrong_answer_often_shares_the_question_s_thing():
    """Else the overlap of words would not mislead."""
    names = {name for domain in samples._grammar().things for names in domain for name in names}
    shared = 0
    for group in samples.groups(500):
        named = [name for name in names if f" {name} " in f" {group.query[0]} "]
        wrong = [text for (text,), label in zip(group.candidates, group.labels, strict=True) if not label]
        shared += any(f" {name} " in f" {text} " for text in wrong for name in named)
    assert shared > 250


def test_insurance_qa(tmp_path):
    """Read by the official loader; training questions have right answers alone."""
    samples.insurance_qa(tmp_path)
    dataset = insurance_qa.load(tmp_path)
    check_strict(report(dataset))
    assert {split: len(groups) for split, groups in dataset.splits.items()} == samples.NUM_QUESTIONS["insurance_qa"]
    assert all(group.labels == (1.0,) for group in dataset.splits["train"])
    for split in dataset.scored_splits:
        groups = dataset.splits[split]
        assert all(len(group.labels) == 10 and sum(group.labels) == 1 for group in groups)
        assert 0.2 < precision(lexical.BM25().score(groups), groups) < 0.7


FORUMS = {"ask_ubuntu": (ask_ubuntu.load, 20), "qatar_living_questions": (qatar_living_questions.load, 10)}


@pytest.mark.parametrize("name", FORUMS)
def test_forums(name, tmp_path):
    """Read by the official loader, ranked about as well as by chance by shared words, and learnable."""
    load, size = FORUMS[name]
    getattr(samples, name)(tmp_path)
    dataset = load(tmp_path)
    check_strict(report(dataset))
    groups = dataset.splits["dev"] + dataset.splits["test"]
    assert {split: len(dataset.splits[split]) for split in ("train", "dev", "test")} == {
        split: samples.NUM_QUESTIONS[name][split] for split in ("train", "dev", "test")
    }
    assert len(dataset.splits["pretrain"]) > 500 and len(dataset.splits["heldout"]) > 50
    assert all(len(group.candidates) == size and 1 <= sum(group.labels) <= 3 for group in groups)
    scores = lexical.BM25().score(groups)
    assert 0.1 < precision(scores, groups) < 0.7
    # Candidates stand in the order of the search engine.
    assert all((np.diff(scores) <= 0).all() for scores in lexical.SearchEngine().score(groups))


def test_each_need_is_asked_and_answered_about_each_thing():
    grammar = samples._grammar()
    assert len(grammar.asks) == len(grammar.answers) >= 6
    assert len(grammar.things) >= 5
    for templates in (*grammar.asks, *grammar.answers):
        assert len(templates) >= 3
        assert all(template.count("{x}") == 1 for template in templates)
    names = [name for domain in grammar.things for names in domain for name in names]
    assert len(set(names)) == len(names)
    assert all(len(names) >= 2 for domain in grammar.things for names in domain)


SCRIPT = """
import sys
from zoo import samples
for name in sys.argv[2:]:
    getattr(samples, name)(f"{sys.argv[1]}/{name}", seed=3)
"""


def fingerprints(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_seed_writes_the_same_bytes_in_every_process(tmp_path):
    found = []
    for hash_seed in ("1", "2"):
        folder = tmp_path / hash_seed
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(folder), *SAMPLES, *FORUMS, "insurance_qa"],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            check=True,
        )
        found.append(fingerprints(folder))
    assert len(found[0]) >= 2 * len(SAMPLES)
    assert found[0] == found[1]


def test_seeds_differ():
    assert samples.groups(20, seed=1) == samples.groups(20, seed=1)
    assert samples.groups(20, seed=1) != samples.groups(20, seed=2)
