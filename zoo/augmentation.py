"""More training pairs by a thesaurus: words are replaced by their synonyms, and the label is kept.

Synonyms are those of WordNet (Miller 1995), in the form of the word that they replace: a plural for a plural,
"slicing" for "cutting".
"""

from __future__ import annotations

import random
import re
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from zoo.data import DataError, Group
from zoo.embeddings import embedding_matrix
from zoo.splits import SEED, normalise, pair_key, pair_keys

_WORD = re.compile(r"(?<![\w'’])[a-z]+(?![\w'’])")  # no part of "résumé" or "don't"
PASSES = 10  # as the authors' code
_USUAL = 0.1  # share of a word's uses that make a meaning a usual one
_ENDINGS = ("ing", "ed", "s")
_VOWELS = "aeiou"


def augment(
    groups: list[Group],
    synonyms: Mapping[str, tuple[str, ...]],
    count: int,
    share: float = 0.25,
    seed: int = SEED,
    known: Iterable[Group] = (),
) -> list[Group]:
    """New pairs, each made of one of the pairs given.

    In a pass over the pairs each word that has synonyms is replaced with a chance of ``share``. What comes out is
    kept if both texts have changed and the pair is new, in either order.

    Args:
        groups: pairs, that is, groups of one candidate and texts of one field.
        synonyms: word to its synonyms.
        count: how many are made at most; there are fewer where ten passes do not find as many.
        share: the chance.
        seed: of the draws; not the run's seed.
        known: further pairs that are not made, as those of a test.
    """
    draw = random.Random(seed)
    known = pair_keys((*groups, *known))
    made = []
    for number in range(1, PASSES + 1):
        for group in draw.sample(groups, len(groups)):
            if len(made) >= count:
                return made
            query, candidate = (_replaced(text, synonyms, share, draw) for (text,) in (group.query, *group.candidates))
            pair = pair_key((query,), (candidate,))
            changed = normalise((query,)) != normalise(group.query) and normalise((candidate,)) != normalise(
                group.candidates[0]
            )
            if changed and pair not in known:
                known.add(pair)
                made.append(group._replace(id=f"{group.id}-{number}", query=(query,), candidates=((candidate,),)))
    return made


def _replaced(text: str, synonyms, share, draw) -> str:
    def replace(match):
        others = synonyms.get(match[0])
        return draw.choice(others) if others and draw.random() < share else match[0]

    return _WORD.sub(replace, text.lower())


def words_of(groups: Iterable[Group]) -> list[str]:
    """The distinct words of some pairs that `augment` may replace, in alphabetical order."""
    texts = (text for group in groups for (text,) in (group.query, *group.candidates))
    return sorted({word for text in texts for word in _WORD.findall(text.lower())})


def wordnet_synonyms(
    words: Iterable[str],
    wordnet: str | Path,
    embeddings: tuple[Path, ...] = (),
    least_cosine: float = 0.6,
) -> dict[str, tuple[str, ...]]:
    """The synonyms of each word that has any; stop words have none, and are none.

    Args:
        words: lower-case words.
        wordnet: WordNet 3.0 as nltk has it: a folder that holds ``index.noun`` or ``corpora/wordnet``, or a
            ``.zip`` or ``.tar.gz`` of such a folder.
        embeddings: word-vector files; with them, a synonym must have a vector whose cosine with that of the word
            is at least ``least_cosine``.
        least_cosine: see there.

    Raises:
        DataError: if there is no whole WordNet.
        ImportError: without nltk.
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    # Prepositions that WordNet has as adjectives, and pronouns that it has as nouns.
    stop_words = ENGLISH_STOP_WORDS | {"anybody", "anyone", "near", "somebody"}
    words = [word for word in words if word not in stop_words and len(word) > 2]
    with _opened(Path(wordnet)) as net:
        found = {word: _forms(net, word, stop_words) for word in words}
    if embeddings:
        found = _near(found, embeddings, least_cosine)
    return {word: tuple(sorted(others)) for word, others in found.items() if others}


@contextmanager
def _opened(path: Path):
    try:
        import nltk
        from nltk.corpus.reader import WordNetCorpusReader
    except ImportError as error:
        raise ImportError("WordNet is read by nltk: pip install 'pairzoo[wordnet]'") from error
    allowed = list(nltk.data.path)
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings(action="ignore"):
        folder = path
        if path.is_file():
            folder = Path(scratch)
            try:
                if zipfile.is_zipfile(path):
                    with zipfile.ZipFile(path) as archive:
                        archive.extractall(folder)
                else:
                    with tarfile.open(path) as archive:
                        archive.extractall(folder, filter="data")
            except (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError) as error:
                raise DataError(path, None, "a whole .zip or .tar.gz archive", error) from error
        index = min(folder.rglob("index.noun"), default=None)
        if index is None:
            there = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
            raise DataError(
                path, None, "WordNet's index.noun in a folder, a .zip or a .tar.gz", there or "no such file"
            )
        # nltk reads below these folders alone, and looks for its other files in corpora/wordnet.
        corpora = Path(scratch, "nltk_data", "corpora")
        corpora.mkdir(parents=True)
        (corpora / "wordnet").symlink_to(index.parent.resolve(), target_is_directory=True)
        nltk.data.path[:] = [str(corpora.parent), str(index.parent.resolve())]
        try:
            yield WordNetCorpusReader(nltk.data.find("corpora/wordnet"), None)
        except OSError as error:
            missing = Path(str(error).rstrip("'")).name
            raise DataError(path, None, "all files of WordNet 3.0 as nltk has it", f"no {missing}") from error
        except (AttributeError, LookupError, RuntimeError, ValueError) as error:  # whatever nltk meets in them
            raise DataError(path, None, "files of WordNet 3.0 as nltk has it, whole", repr(error)) from error
        finally:
            nltk.data.path[:] = allowed


def _forms(net, word: str, stop_words: frozenset[str]) -> set[str]:
    """The synonyms of a word, with its ending."""
    forms, ending = set(), _ending(word)
    for base, meaning in _usual_meanings(net, word):
        if base != word and not ending:
            continue  # women, ran: no rule makes such a form of another word
        for name in meaning.lemma_names():
            if not (name.isalpha() and name.islower()) or word.startswith(name) or name in stop_words:
                continue
            if base != word:
                forms |= _with_ending(name, ending)
            elif _ending(name) == ending or ending == "s":  # not "fight" for "fighting"; "bus" is no plural
                forms.add(name)
    return forms - {word}


def _usual_meanings(net, word: str) -> list:
    """Base form and meaning of a word, of the meanings that are not rare among its uses in WordNet's own texts."""
    found = [(net.morphy(word, meaning.pos()) or word, meaning) for meaning in net.synsets(word)]
    uses = [sum(lemma.count() for lemma in meaning.lemmas() if lemma.name() == base) for base, meaning in found]
    if not any(uses):
        return found[:1]
    return [one for one, count in zip(found, uses, strict=True) if count >= _USUAL * sum(uses)]


def _ending(word: str) -> str:
    return next((ending for ending in _ENDINGS if word.endswith(ending)), "")


def _with_ending(word: str, ending: str) -> set[str]:
    """The spellings that a word may have with an ending; vectors tell which of them are words."""
    if ending not in _ENDINGS:
        return set() if ending else {word}
    if ending == "s":
        if word.endswith("y") and word[-2:-1] not in _VOWELS:
            return {word[:-1] + "ies"}
        return {word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")}
    if word.endswith("e"):
        return {word[:-1] + ending}
    if ending == "ed" and word.endswith("y") and word[-2:-1] not in _VOWELS:
        return {word[:-1] + "ied"}
    if not re.search(r"[^aeiou][aeiou][bdgklmnprt]$", word):
        return {word + ending}
    # A word of one syllable doubles its last letter; of longer ones, stress decides.
    single = len(re.findall(r"[aeiouy]+", word)) == 1
    return {word + word[-1] + ending} if single else {word + word[-1] + ending, word + ending}


def _near(found: Mapping[str, set[str]], embeddings, least_cosine: float) -> dict[str, set[str]]:
    """Those synonyms that have a vector not far from that of the word."""
    words = sorted({*found, *(other for others in found.values() for other in others)})
    vectors, _ = embedding_matrix(embeddings, words, 0, 0, random_range=0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = dict(zip(words, (vectors / np.where(lengths > 0, lengths, 1))[1:], strict=True))
    return {
        word: {other for other in others if directions[word] @ directions[other] >= least_cosine}
        for word, others in found.items()
    }
