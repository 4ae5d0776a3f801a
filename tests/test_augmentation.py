"""Synonyms keep the form of the word; new pairs are new, changed on both sides, and the same for a seed."""

import builtins
import shutil
import tarfile

import pytest

from tests.data_checks import fault, real_data
from zoo import augmentation
from zoo.augmentation import augment, wordnet_synonyms, words_of
from zoo.data import DataError, Group
from zoo.splits import normalise

SYNONYMS = {"dog": ("hound", "mutt"), "man": ("guy",), "big": ("large", "huge", "great")}
GROUPS = [
    Group("1", ("A big dog runs.",), (("The man has a DOG",),), (3.5,), ("neutral",)),
    Group("2", ("A big man",), (("one big dog",),), (2.0,), ("contradiction",)),
    Group("3", ("Nobody runs",), (("the dog sleeps",),), (1.0,), ("neutral",)),
]


def test_new_pairs_keep_label_and_judgement():
    made = augment(GROUPS, SYNONYMS, 10, share=0.5, seed=1)
    assert 5 < len(made) <= 10
    known = {frozenset((normalise(g.query), normalise(g.candidates[0]))) for g in GROUPS}
    for group in made:
        (origin,) = [one for one in GROUPS if one.id == group.id.split("-")[0]]
        assert (group.labels, group.judgements) == (origin.labels, origin.judgements)
        assert normalise(group.query) != normalise(origin.query)
        assert normalise(group.candidates[0]) != normalise(origin.candidates[0])
        pair = frozenset((normalise(group.query), normalise(group.candidates[0])))
        assert pair not in known
        known.add(pair)
    assert len({group.id for group in made}) == len(made)
    assert not any(group.id.startswith("3-") for group in made)  # one side has no word to replace


def test_seed_count_and_end():
    few, many = (augment(GROUPS, SYNONYMS, count, share=0.5, seed=1) for count in (5, 10))
    assert few == many[:5] and len(few) == 5
    assert augment(GROUPS, SYNONYMS, 10, seed=1) != augment(GROUPS, SYNONYMS, 10, seed=2)
    assert augment(GROUPS, SYNONYMS, 0) == augment(GROUPS, {}, 9) == []
    assert len(augment(GROUPS, SYNONYMS, 10_000)) < 30


def test_pairs_that_are_known_are_not_made():
    made = augment(GROUPS, SYNONYMS, 10, share=0.5, seed=1)
    again = augment(GROUPS, SYNONYMS, 10, share=0.5, seed=1, known=made[:3])
    assert again and {group.query + group.candidates[0] for group in again}.isdisjoint(
        group.query + group.candidates[0] for group in made[:3]
    )


def test_words_are_found_as_they_are_replaced():
    assert words_of(GROUPS[:1]) == ["a", "big", "dog", "has", "man", "runs", "the"]
    (made,) = augment([GROUPS[0]], SYNONYMS, 1, share=1.0)
    assert made.query[0].endswith(" runs.") and made.candidates[0][0].startswith("the guy has a ")


@pytest.mark.parametrize(
    "word, ending, forms",
    [
        ("hound", "s", {"hounds"}),
        ("box", "s", {"boxes"}),
        ("lady", "s", {"ladies"}),
        ("boy", "s", {"boys"}),
        ("slice", "ing", {"slicing"}),
        ("slice", "ed", {"sliced"}),
        ("carry", "ed", {"carried"}),
        ("cut", "ing", {"cutting"}),
        ("begin", "ing", {"beginning", "begining"}),
        ("guy", "", {"guy"}),
        ("guy", "er", set()),
    ],
)
def test_endings(word, ending, forms):
    assert augmentation._with_ending(word, ending) == forms


@pytest.fixture(scope="module")
def wordnet():
    pytest.importorskip("nltk")
    return real_data("wordnet") / "wordnet-3.0-nltk.tar.gz"


def test_wordnet(wordnet, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text(
        "cutting 1 0\nslicing 0.9 0.1\nautomobile 1 0\ncar 0.8 0.2\nmachine 0 1\nautomobiles 1 1\ncars 1 1\n"
    )
    found = wordnet_synonyms(["car", "cars", "the", "zzzz", "boys"], wordnet, (vectors,))
    assert found == {"car": ("automobile",), "cars": ("automobiles",)}
    without = wordnet_synonyms(["car", "quickly"], wordnet)
    assert {"auto", "automobile", "machine"} <= set(without["car"])


def test_synonyms_have_the_form_of_the_word(wordnet):
    words = ["putting", "fighting", "sliced", "buses", "bus", "women", "ran", "children"]
    found = wordnet_synonyms(words, wordnet)
    assert {"laying", "placing", "setting"} <= set(found["putting"])
    assert found["fighting"] == (
        "contending",
        "defending",
        "opposing",
        "struggling",
    )  # not the nouns "fight" and "combat"
    assert found["sliced"] == ("slitted",)
    assert {"coaches", "autobuses"} <= set(found["buses"]) and "coach" in found["bus"]
    assert not {"women", "ran", "children"} & found.keys()  # no rule makes such a form of another word


def test_parts_of_words_are_let_alone():
    groups = [Group("1", ("My résumé won't sum up",), (("A don's sum",),), (1.0,))]
    assert words_of(groups) == ["a", "my", "sum", "up"]
    (made,) = augment(groups, {"sum": ("total",), "won": ("gained",), "don": ("wear",)}, 1, share=1.0)
    assert (made.query, made.candidates) == (("my résumé won't total up",), (("a don's total",),))


def test_folders_of_wordnet(wordnet, tmp_path):
    with tarfile.open(wordnet) as archive:
        archive.extractall(tmp_path, filter="data")
    archived = shutil.make_archive(tmp_path / "wordnet", "zip", tmp_path / "corpora")
    for place in (tmp_path, tmp_path / "corpora" / "wordnet", archived):
        assert "automobile" in wordnet_synonyms(["car"], place)["car"]
    data = tmp_path / "corpora" / "wordnet" / "data.noun"
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 100])
    with pytest.raises(
        DataError, match=fault(tmp_path, None, "files of WordNet 3.0 as nltk has it, whole", received="Error")
    ):
        wordnet_synonyms(["car"], tmp_path)
    data.write_bytes(whole)
    (tmp_path / "corpora" / "wordnet" / "lexnames").unlink()
    with pytest.raises(DataError, match=fault(tmp_path, None, "all files of WordNet 3.0", received="no lexnames")):
        wordnet_synonyms(["car"], tmp_path)


def test_faults_of_wordnet(tmp_path):
    pytest.importorskip("nltk")
    with pytest.raises(DataError, match=fault(tmp_path, None, "index.noun", received="no such file")):
        wordnet_synonyms(["dog"], tmp_path)
    (tmp_path / "inner.tar.gz").touch()
    with pytest.raises(DataError, match=fault(tmp_path, None, "a .zip or a .tar.gz", received="['inner.tar.gz']")):
        wordnet_synonyms(["dog"], tmp_path)
    broken = tmp_path / "wordnet.tar.gz"
    broken.write_bytes(b"not an archive")
    with pytest.raises(DataError, match=fault(broken, None, "a whole .zip or .tar.gz archive", received="not")):
        wordnet_synonyms(["dog"], broken)


def test_without_nltk_the_extra_is_named(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **keywords):
        if name.startswith("nltk"):
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pairzoo\[wordnet\]"):
        wordnet_synonyms(["dog"], tmp_path)
