"""The lexical baselines against BM25 and tf-idf written out, and on texts that hold no word."""

import math
from collections import Counter

import numpy as np
import pytest

from zoo.data import Group
from zoo.lexical import BM25, Random, SearchEngine, TfIdf


def group(name, query, *candidates):
    return Group(name, (query,), tuple((text,) for text in candidates), (1.0,) + (0.0,) * (len(candidates) - 1))


GROUPS = [
    group("a", "How do I boot from USB", "boot Ubuntu from a USB stick", "printer does not print", "usb USB"),
    group("b", "printer: paper, paper!", "my printer eats paper", "printer does not print"),
    group("c", "STRASSE in Zürich", "die Straße nach zürich", "Zurich"),
    group("d", "", "anything", ""),
    group("e", "nowhere-to-be-found", "my printer eats paper", "?!"),
]
SCORERS = [BM25(), BM25(k1=0.9, b=0.2), TfIdf(), TfIdf(max_ngram=3), Random(seed=3)]


def test_bm25_is_lucenes():
    documents = list(dict.fromkeys(text for g in GROUPS for text in g.candidates))
    words = {text: "".join(c if c.isalnum() else " " for c in text[0].casefold()).split() for text in documents}
    mean_length = np.mean([len(w) for w in words.values()])
    for g, got in zip(GROUPS, BM25().fit([]).score(GROUPS), strict=True):
        query = "".join(c if c.isalnum() else " " for c in g.query[0].casefold()).split()
        for text, score in zip(g.candidates, got, strict=True):
            want, counts = 0.0, Counter(words[text])
            for word in query:
                containing = sum(word in w for w in words.values())
                idf = math.log(1 + (len(documents) - containing + 0.5) / (containing + 0.5))
                long = 1 - 0.75 + 0.75 * len(words[text]) / mean_length
                want += idf * counts[word] / (counts[word] + 1.2 * long)
            assert score == pytest.approx(want, abs=1e-6)
    assert BM25().score(GROUPS)[2][0] > 0  # the sharp s and the umlaut meet their other spellings


def test_tfidf_is_the_cosine_of_smoothed_idf():
    train = GROUPS[:2]
    texts = list(dict.fromkeys(text for g in train for text in (g.query, *g.candidates)))
    split = {
        text: "".join(c if c.isalnum() else " " for c in text[0].casefold()).split()
        for g in GROUPS
        for text in (g.query, *g.candidates)
    }
    df = Counter(word for text in texts for word in set(split[text]))

    def vector(text):
        weights = {
            word: count * (math.log((1 + len(texts)) / (1 + df[word])) + 1)
            for word, count in Counter(split[text]).items()
            if word in df
        }
        norm = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
        return {word: weight / norm for word, weight in weights.items()}

    for g, got in zip(GROUPS, TfIdf().fit(train).score(GROUPS), strict=True):
        query = vector(g.query)
        for text, score in zip(g.candidates, got, strict=True):
            want = sum(weight * query.get(word, 0.0) for word, weight in vector(text).items())
            assert score == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_scores_are_finite_one_per_candidate_and_independent_of_the_order_of_queries(scorer):
    scorer = scorer.fit(GROUPS)
    scores = scorer.score(GROUPS)
    assert [len(row) for row in scores] == [len(g.candidates) for g in GROUPS]
    assert all(row.dtype == np.float64 and np.isfinite(row).all() for row in scores)
    for row, again in zip(scores, scorer.score(GROUPS[::-1])[::-1], strict=True):
        np.testing.assert_allclose(row, again, atol=1e-7)
    assert scorer.score([]) == []


@pytest.mark.parametrize("scorer", [s for s in SCORERS if not isinstance(s, Random)], ids=repr)
def test_texts_without_a_known_word_score_zero(scorer):
    scorer = scorer.fit(GROUPS[:3])
    assert not np.any(scorer.score(GROUPS)[3]) and not np.any(scorer.score(GROUPS)[4])
    wordless = [group("x", "...", "", "?"), group("y", "printer", "")]
    assert [list(row) for row in scorer.score(wordless)] == [[0, 0], [0]]


@pytest.mark.parametrize("make", [BM25, TfIdf])
def test_fields_are_read_together_and_stop_words_left_out(make):
    titled = Group("f", ("usb", "boot it"), (("boot", ""), ("", "boot"), ("it", "it")), (1.0, 0.0, 0.0))
    title, body, stop = make().fit([titled]).score([titled])[0]
    assert title == body > 0 and stop > 0
    title, body, stop = make(stop_words=frozenset({"it"})).fit([titled]).score([titled])[0]
    assert title == body > 0 and stop == 0


def test_longer_ngrams_reward_the_order_of_words():
    ordered = [group("o", "red hot pepper", "red hot pepper", "pepper hot red")]
    one, three = (TfIdf(max_ngram=n).fit(ordered).score(ordered)[0] for n in (1, 3))
    assert one[0] == pytest.approx(one[1]) and three[0] > three[1] + 0.1


def test_random_depends_on_seed_and_query_alone():
    first, other = Random(seed=1).score(GROUPS), Random(seed=2).score(GROUPS)
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(first[0][:2], first[1])
    np.testing.assert_array_equal(Random(seed=1).score(GROUPS[1:2])[0], first[1])


def test_tfidf_refuses_to_score_unfitted_or_to_fit_on_nothing():
    with pytest.raises(ValueError, match=r"call fit\(train\). Received: TfIdf\(max_ngram=2"):
        TfIdf(max_ngram=2).score(GROUPS)
    with pytest.raises(ValueError, match=r"at least one word.*Received: 2 distinct texts"):
        TfIdf().fit([group("x", "?", "")])


def test_search_engine_is_the_order_that_came_with_the_data():
    found = Group("q", ("a",), (("b",), ("c",)), (1.0, 0.0), search_scores=(0.5, 2.0))
    (scores,) = SearchEngine().fit([]).score([found])
    assert scores.tolist() == [0.5, 2.0]
    with pytest.raises(ValueError, match="Received: 0 for 2 candidates of 'q'"):
        SearchEngine().score([found._replace(search_scores=())])


def test_search_finds_what_score_ranks_first():
    documents = [("red fox",), ("red red cat",), ("dog",), ("cat and dog",)]
    queries = [("red cat",), ("nothing known",)]
    found = BM25().search(queries, documents, 3)
    groups = [Group("q", query, tuple(documents), (0.0,) * 4) for query in queries]
    for of_query, scores in zip(found, BM25().score(groups), strict=True):
        assert [number for number, _ in of_query] == np.argsort(-scores, kind="stable")[:3].tolist()
        np.testing.assert_allclose([score for _, score in of_query], np.sort(scores)[::-1][:3])
