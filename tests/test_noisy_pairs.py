"""Noisy pairs: what a positive and each kind of negative is, counted by sets, and that a draw is the same again."""

import itertools
from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from tests.data_checks import fault
from zoo import noisy_pairs, samples
from zoo.data import DataError, Group
from zoo.datasets import paralex


def corpus(seed=0, clusters=60):
    random = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(40)] + ["the", "is", "of"]
    questions, kernel = [], words[:4]
    for cluster in range(clusters):
        # Of every two clusters the second shares all but one word with the first.
        kernel = [*kernel[1:], f"new{cluster}"] if cluster % 2 else list(random.choice(words, 4, replace=False))
        questions.append((cluster, " ".join(kernel)))
        for _ in range(random.integers(0, 4)):
            extra = list(random.choice(words, random.integers(0, 3)))
            questions.append((cluster, " ".join(random.permutation(kernel + extra)) + " ?"))
    return [*questions, (clusters, ""), (clusters + 1, "w1")]


def words(text):
    return set(noisy_pairs.words_of(text))


@pytest.fixture(scope="module")
def drawn():
    made = noisy_pairs.Corpus(corpus())
    return made, list(made.blocks(1, 4000))


def test_positives_are_of_one_cluster_and_negatives_of_two(drawn):
    made, blocks = drawn
    for query, candidate, kind in blocks:
        same = made.cluster[query] == made.cluster[candidate]
        np.testing.assert_array_equal(same, kind == 0)
        assert (query != candidate).all()


def test_each_kind_shares_what_it_says(drawn):
    made, blocks = drawn
    seen = Counter()
    for query, candidate, kind in zip(*(np.concatenate(part) for part in zip(*blocks, strict=True)), strict=True):
        a, b = words(made.text(query)), words(made.text(candidate))
        seen[int(kind)] += 1
        if kind == 1:
            assert not (a & b) - ENGLISH_STOP_WORDS
        elif kind == 2:
            assert len(a & b) == 1
        elif kind == 3:
            assert len(a - b) == len(b - a) == 1
    assert sum(seen.values()) >= 3950 and min(seen[kind] for kind in range(4)) >= 50
    assert seen[0] == round(4000 * 0.36)


def test_every_question_in_company_is_once_each_side_before_one_comes_again():
    made = noisy_pairs.Corpus(corpus())
    (block,) = made.blocks(3)
    positive = block.kind == 0
    company = [c for c, n in Counter(made.cluster.tolist()).items() if n > 1]
    expected = np.flatnonzero(np.isin(made.cluster, company))
    num = Counter(block.query[positive].tolist())
    assert set(num) == set(expected)
    both = set(zip(block.query[positive].tolist(), block.candidate[positive].tolist(), strict=True))
    assert {(b, a) for a, b in both} == both
    assert abs(positive.mean() - 0.36) < 0.01


def test_in_many_blocks_too_every_question_in_company_is_on_each_side(monkeypatch):
    monkeypatch.setattr(noisy_pairs, "BLOCK", 101)
    made = noisy_pairs.Corpus(corpus())
    pairs = list(noisy_pairs.groups(made, 3))
    matches = [(pair.query, pair.candidates[0]) for pair in pairs if pair.labels[0]]
    company = [c for c, n in Counter(made.cluster.tolist()).items() if n > 1]
    expected = {(made.text(number),) for number in np.flatnonzero(np.isin(made.cluster, company))}
    assert len(pairs) > 400 and {query for query, _ in matches} == {candidate for _, candidate in matches} == expected
    assert sorted(matches) == sorted((b, a) for a, b in matches)


def test_kinds_are_in_equal_parts_where_the_corpus_has_them():
    questions = [(n, f"{a} {b} {c}") for n, (a, b, c) in enumerate(itertools.product("kqx", "mwyj", "zvo"))]
    kinds = np.concatenate([block.kind for block in noisy_pairs.Corpus(questions).blocks(0, 3000)])
    shares = np.bincount(kinds, minlength=4) / len(kinds)
    np.testing.assert_allclose(shares, [0, 1 / 3, 1 / 3, 1 / 3], atol=0.01)


def test_whoever_has_a_question_of_the_third_kind_is_given_one():
    """Others of the same words but one are many in the question's own cluster, one outside."""
    questions = [("many", f"a b c d e f g w{number}") for number in range(60)] + [("one", "a b c d e f g v")]
    made = noisy_pairs.Corpus([*questions, *((number, f"u{number} t{number}") for number in range(40))])
    random = np.random.default_rng(0)
    for number in (0, 30, 60):
        drawn, kind = made.negatives(np.full(300, number), np.full(300, 3), random)
        others = range(60) if number == 60 else [60]
        assert np.isin(drawn, others).all() and (kind == 3).all()


def test_clusters_that_share_a_question_are_one():
    rows = [("a", "How tall is Everest?"), ("a", "everest height"), ("b", "how tall is everest"), ("b", "is it tall")]
    made = noisy_pairs.Corpus([*rows, ("c", "who")])
    assert made.num_clusters == 2
    assert [made.text(number) for number in range(len(made))] == [rows[0][1], rows[1][1], rows[3][1], "who"]
    labels = {}
    for pair in noisy_pairs.groups(made, 0, 500):
        labels.setdefault(frozenset([pair.query, pair.candidates[0]]), set()).add(pair.labels)
    assert all(len(found) == 1 for found in labels.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "\u0939\u093f\u0928\u094d\u0926\u0940 ?",
            ("\u0939\u093f\u0928\u094d\u0926\u0940",),
        ),  # vowel signs are no letters
        ("Cafe\u0301 caf\u00e9", ("caf\u00e9", "caf\u00e9")),
        ("C++ or C#?", ("c++", "or", "c#")),
        ("What's it (x/y)-z, \u201cno\u201d!", ("what", "s", "it", "x", "y", "z", "no")),
        ("?!", ("?!",)),
        ("", ("",)),
    ],
)
def test_words(text, expected):
    assert noisy_pairs.words_of(text) == expected


def test_the_same_seed_draws_the_same_and_another_does_not():
    one, two, other = (list(noisy_pairs.groups(noisy_pairs.Corpus(corpus()), seed, 300)) for seed in (1, 1, 2))
    assert one == two != other
    assert [pair.id.rpartition("-")[0] for pair in one] == [str(number) for number in range(1, 301)]
    assert all((pair.id[-1] == "0") == bool(pair.labels[0]) for pair in one)


def test_blocks_do_not_change_with_what_follows(monkeypatch):
    monkeypatch.setattr(noisy_pairs, "BLOCK", 100)
    made = noisy_pairs.Corpus(corpus())
    few, many = list(made.blocks(1, 250)), list(made.blocks(1, 1000))
    assert [len(block.kind) for block in few] == [100, 100, 50] and len(many) == 10
    for one, other in zip(few[:2], many, strict=False):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_question_twice_in_a_cluster_is_one_and_texts_are_kept():
    made = noisy_pairs.Corpus([("a", "x \u4f60 ?"), ("a", "x \u4f60 ?"), ("a", "y"), ("b", "z \u4f60 ?")])
    assert [made.text(number) for number in range(len(made))] == ["x \u4f60 ?", "y", "z \u4f60 ?"]
    assert made.num_clusters == 2


def test_without_any_words_or_company_there_are_still_negatives():
    made = noisy_pairs.Corpus([(number, "?" * number) for number in range(9)])
    groups = list(noisy_pairs.groups(made, 1, 20))
    assert len(groups) == 20 and {group.labels for group in groups} == {(0.0,)}


def test_without_company_one_of_each_question_is_refused():
    with pytest.raises(ValueError, match="cluster of two questions.*Received: 9 questions"):
        list(noisy_pairs.groups(noisy_pairs.Corpus([(number, f"w{number}") for number in range(9)]), 1))


def test_one_cluster_is_too_few():
    with pytest.raises(ValueError, match="Received: 1 clusters"):
        noisy_pairs.Corpus([("a", "x"), ("a", "y")])


def test_clusters_of_pairs_are_linked_by_matches():
    def pair(query, candidate, label):
        return Group("1", (query,), ((candidate,),), (label,))

    pairs = [pair("a", "b", 1.0), pair("b", "c", 1.0), pair("c", "d", 0.0), pair("e", "e", 0.0)]
    found = {text: cluster for cluster, text in noisy_pairs.clusters_of_pairs(pairs)}
    assert found["a"] == found["b"] == found["c"]
    assert len({found["a"], found["d"], found["e"]}) == 3
    assert dict(noisy_pairs.clusters_of_pairs([pair("a", "b", 0.0)])).keys() == {0, 1}


# Paralex.


def test_word_alignments(tmp_path):
    lines = "how do x ?\thow does x ?\t0-0 2-2\nhow does x ?\thow do x ?\t0-0\nwhat y\twhat is y\t0-0\n"
    (tmp_path / "word_alignments.txt").write_text(lines, "utf-8")
    rows, path = paralex.questions(tmp_path)
    assert path.name == "word_alignments.txt"
    found = {text: cluster for cluster, text in rows}
    assert len(found) == 4 and found["how do x ?"] == found["how does x ?"] != found["what y"] == found["what is y"]


def test_questions_of_either_file_that_are_spelt_otherwise_are_one(tmp_path):
    (tmp_path / "word_alignments.txt").write_text("How tall ?\tthe height\t\nhow tall\thow high\t\n", "utf-8")
    assert list(paralex.questions(tmp_path)[0]) == [(0, "How tall ?"), (0, "the height"), (0, "how high")]
    (tmp_path / "word_alignments.txt").unlink()
    (tmp_path / "clusters.txt").write_text("q:a b\tq:c\nq:d\nq:C ?\tq:e\n", "utf-8")
    assert list(paralex.questions(tmp_path)[0]) == [(1, "a b"), (1, "c"), (2, "d"), (1, "e")]


def test_a_question_of_the_same_words_is_no_negative():
    questions = ["who are you", "Who are you?", "why", "Why ?", "where is it", "how big is it", "is it big", "why not"]
    made = noisy_pairs.Corpus(enumerate(questions))  # each its own cluster
    query, candidate, kind = map(np.concatenate, zip(*made.blocks(0, 400), strict=True))
    assert len(query) and (kind > 0).all()
    assert all(words(made.text(q)) != words(made.text(c)) for q, c in zip(query, candidate, strict=True))


def test_clusters_of_pairs_are_of_words_not_of_spelling():
    pairs = [
        Group("1", ("What is Bob's job ?",), (("what is his job",),), (1.0,)),
        Group("2", ("what is Bob 's job?",), (("who is Bob",),), (0.0,)),
    ]
    found = list(noisy_pairs.clusters_of_pairs(pairs))
    assert [text for _, text in found] == ["What is Bob's job ?", "what is his job", "who is Bob"]
    assert found[0][0] == found[1][0] != found[2][0]


def test_clusters(tmp_path):
    (tmp_path / "clusters.txt").write_text("q:a b\tq:c\ta:an answer\nplain\t\nq:d\n", "utf-8")
    rows, _ = paralex.questions(tmp_path)
    assert list(rows) == [(1, "a b"), (1, "c"), (2, "plain"), (3, "d")]


def test_an_empty_question_links_nothing(tmp_path):
    (tmp_path / "word_alignments.txt").write_text("a\tb\t0-0\n\tfoo\t0-0\nbar\t \t0-0\n", "utf-8")
    rows, _ = paralex.questions(tmp_path)
    assert [text for _, text in rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "line", "expected", "received"),
    [
        ("word_alignments.txt", "a\tb\t0-0\nalone\n", 2, "between tabs", "'alone'"),
        ("word_alignments.txt", "\n", None, "at least one pair", "no line"),
        ("clusters.txt", "a:answer\n", None, "at least one question", "none"),
        ("clusters.txt", "q:a\tq:b\n", None, "two", "clusters"),
        ("clusters.txt", "".join(f"q:question {i}\n" for i in range(200)), None, "one of two", "two questions"),
    ],
)
def test_broken_files(tmp_path, name, content, line, expected, received):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(DataError, match=fault(tmp_path / name, line, expected, received=received)):
        paralex.load(tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(DataError, match=fault(tmp_path, None, "word_alignments.txt", received="[]")):
        paralex.load(tmp_path)


def test_the_sample_has_clusters_of_its_own_for_each_split(tmp_path):
    samples.paralex(tmp_path)
    dataset = paralex.load(tmp_path, 600)
    assert [len(groups) for groups in dataset.splits.values()] == [600, 600, 600]
    rows, _ = paralex.questions(tmp_path)
    clusters_of = {}
    for cluster, text in rows:
        clusters_of.setdefault(text, set()).add(cluster)
    seen = [
        {frozenset(clusters_of[text]) for group in groups for (text,) in (group.query, *group.candidates)}
        for groups in dataset.splits.values()
    ]
    # A question that stands in several clusters is of none of them.
    seen = [{clusters for clusters in each if len(clusters) == 1} for each in seen]
    assert not seen[0] & seen[1] and not seen[0] & seen[2] and not seen[1] & seen[2]
