"""The made-up sample of each data set, so that every recipe runs before its user has fetched any data.

A seeded grammar (``sample_topics.tsv``) of 42 things of seven everyday domains and eight needs. A question asks
for one need about one thing; an answer is right if it meets that need for that thing. What makes it a test of
matching rather than of shared words:

* questions and answers word a need differently, and a thing has two names: which go together is only learnt
  from the training split;
* wrong answers name the same thing and meet another need of it, or meet the same need for another thing;
* the chatter around names places and numbers of the question in right and wrong answers alike.

Each wrong answer is the right one of another question, and needs and things are as frequent in the ones as in
the others, so a candidate alone says nothing about its label. Figures on samples are not comparable to a paper's.
"""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from zoo import lexical
from zoo.data import Group, Text
from zoo.datasets import ask_ubuntu as ask_ubuntu_files
from zoo.datasets import insurance_qa as insurance_qa_files
from zoo.datasets import pairs as pairs_file
from zoo.datasets import paralex as paralex_files
from zoo.datasets import qatar_living as qatar_living_files
from zoo.datasets import qatar_living_questions as qatar_living_questions_files
from zoo.datasets import quora as quora_files
from zoo.datasets import sick as sick_files
from zoo.datasets import trec_qa as trec_qa_files
from zoo.datasets import yahoo_qa as yahoo_qa_files

# Questions of a split. Longer lists have fewer, so that an epoch takes about as long on each sample.
NUM_QUESTIONS = {
    "yahoo_qa": {"train": 2400, "dev": 300, "test": 300},
    "trec_qa": {"train": 1600, "dev": 200, "test": 200},
    "qatar_living": {"train": 1600, "dev": 200, "test": 200},
    "insurance_qa": {"train": 2400, "dev": 200, "test1": 200, "test2": 200},
    "pairs": {"pairs": 3000},
    "sick": {"train": 2400, "trial": 300, "test": 300},
    "paralex": {"clusters": 300},
    "quora": {"train": 4000, "dev": 600, "test": 600},
    "qatar_living_questions": {"train": 400, "dev": 100, "test": 100},
    "ask_ubuntu": {"train": 400, "dev": 100, "test": 100, "heldout": 100},
}
TOPICS = Path(__file__).with_name("sample_topics.tsv")

_PLACES = ("leeds", "porto", "boston", "doha", "lyon", "denver", "cork", "graz", "turin", "perth")
_CHATTER = 0.15  # chance of a greeting, of an opener, ...; more of it makes training slower, not harder
_TYPO = 0.05  # chance that a text has two letters swapped
# What a wrong answer is about, in percent. Answers to the same need for another thing are few, because a model
# of two pooled vectors learns needs long before it learns which two names are one thing.
_WRONG = {"another need": 45, "another thing": 10, "another need and domain": 45}
# How related two statements are, and what the second says of the first, by what they have in common.
_RELATED = {
    "thing and need": (4.6, "entailment"),
    "thing and need, denied": (3.8, "contradiction"),
    "thing": (3.1, "neutral"),
    "need": (2.3, "neutral"),
    "nothing": (1.3, "neutral"),
}
_DENIALS = ("it is not true that", "nobody says :", "never believe that")


class About(NamedTuple):
    """What a text is about, as indices into a `Grammar`."""

    domain: int
    thing: int
    need: int


class Grammar(NamedTuple):
    """Templates: ``[a|b]`` is a choice, ``{x}`` the thing, ``{place}`` and ``{number}`` are chatter.

    Attributes:
        things: per domain, the names of each thing.
        asks, answers: per need, the templates.
        chatter: templates of greeting, context, opener, closer.
    """

    things: list[list[list[str]]]
    asks: list[list[str]]
    answers: list[list[str]]
    chatter: dict[str, list[str]]


def yahoo_qa(folder: str | Path, seed: int = 0) -> None:
    """Write five answers to each question, one of them right, as YahooQA's lines."""
    yahoo_qa_files.write(_splits("yahoo_qa", (5, 5), (1, 1), seed), folder)


def trec_qa(folder: str | Path, seed: int = 0) -> None:
    """Write 5 to 9 sentences for each question, one or two of them right, as TrecQA's XML-like files."""
    trec_qa_files.write(_splits("trec_qa", (5, 9), (1, 2), seed), folder)


def qatar_living(folder: str | Path, seed: int = 0) -> None:
    """Write ten comments below each question, one to four of them good, as SemEval-2016's XML."""
    qatar_living_files.write(_splits("qatar_living", (10, 10), (1, 4), seed), folder)


def insurance_qa(folder: str | Path, seed: int = 0) -> None:
    """Write pools of ten answers, one of them right, as the files of insuranceQA's first version."""
    insurance_qa_files.write(_splits("insurance_qa", (10, 10), (1, 1), seed), folder)


def pairs(folder: str | Path, seed: int = 0) -> None:
    """Write one file ``pairs.tsv`` without splits, five candidates for each query."""
    pairs_file.write(_splits("pairs", (5, 5), (1, 1), seed), folder)


def sick(folder: str | Path, seed: int = 0) -> None:
    """Write pairs of statements as SICK's files: the more of need and thing they share, the more related."""
    rng = random.Random(seed)
    grammar = _grammar()
    drawn = {split: [_statements(rng, grammar) for _ in range(size)] for split, size in NUM_QUESTIONS["sick"].items()}
    sick_files.write(drawn, folder)


def quora(folder: str | Path, seed: int = 0) -> None:
    """Write pairs of questions, four of ten with one meaning, as the lines of Wang et al.'s split."""
    sizes = NUM_QUESTIONS["quora"]
    drawn = iter(question_pairs(sum(sizes.values()), seed))
    quora_files.write({split: [next(drawn) for _ in range(size)] for split, size in sizes.items()}, folder)


def paralex(folder: str | Path, seed: int = 0) -> None:
    """Write clusters of two to twelve questions with one meaning, as clusters.txt."""
    rng = random.Random(f"paralex {seed}")
    grammar = _grammar()
    clusters: dict[About, list[str]] = {}
    while len(clusters) < NUM_QUESTIONS["paralex"]["clusters"]:
        domain = rng.randrange(len(grammar.things))
        about = About(domain, rng.randrange(len(grammar.things[domain])), rng.randrange(len(grammar.asks)))
        if about not in clusters:
            drawn = (_question(rng, grammar, about, _slots(rng)) for _ in range(rng.randint(2, 12)))
            clusters[about] = list(dict.fromkeys(drawn))
        if len(clusters) == sum(map(len, grammar.things)) * len(grammar.asks):
            break  # the grammar has no more
    paralex_files.write(clusters, folder)


def question_pairs(num_pairs: int, seed: int = 0) -> list[Group]:
    """Pairs of questions: of one need about one thing, or of two that differ in either; all pairs differ."""
    rng = random.Random(seed)
    grammar = _grammar()
    found: dict[tuple[str, str], float] = {}
    while len(found) < num_pairs:
        domain = rng.randrange(len(grammar.things))
        about = About(domain, rng.randrange(len(grammar.things[domain])), rng.randrange(len(grammar.asks)))
        label = float(rng.random() < 0.4)
        other = about if label else _wrong(rng, grammar, about)
        query, candidate = (_question(rng, grammar, each, _slots(rng)) for each in (about, other))
        if query != candidate:
            found.setdefault((query, candidate), label)
    return [
        Group(f"S{number}", (query,), ((candidate,),), (label,))
        for number, ((query, candidate), label) in enumerate(found.items(), start=1)
    ]


def ask_ubuntu(folder: str | Path, seed: int = 0) -> None:
    """Write questions similar to a question among 20 that BM25 ranks, as the files of AskUbuntu."""
    ask_ubuntu_files.write(_forum("ask_ubuntu", 20, (1, 3), seed), folder)


def qatar_living_questions(folder: str | Path, seed: int = 0) -> None:
    """Write ten questions of a forum for each new one, in BM25's order, as SemEval-2016's XML."""
    qatar_living_questions_files.write(_forum("qatar_living_questions", 10, (1, 3), seed), folder)


def groups(
    num_questions: int,
    num_candidates: tuple[int, int] = (5, 5),
    num_positives: tuple[int, int] = (1, 1),
    seed: int = 0,
) -> list[Group]:
    """Questions, no two with the same letters, each with its candidates in random order.

    Args:
        num_questions: how many; the grammar has some hundred thousand.
        num_candidates: the least and the most of a question.
        num_positives: the least and the most right answers of a question.
        seed: equal seeds give equal groups, in every process.
    """
    rng = random.Random(seed)
    grammar = _grammar()
    found: dict[str, Group] = {}
    while len(found) < num_questions:
        domain = rng.randrange(len(grammar.things))
        about = About(domain, rng.randrange(len(grammar.things[domain])), rng.randrange(len(grammar.asks)))
        slots = _slots(rng)
        query = _question(rng, grammar, about, slots)
        right, size = rng.randint(*num_positives), rng.randint(*num_candidates)
        answers: dict[str, float] = {}
        while len(answers) < size:
            label = float(len(answers) < right)
            told = about if label else _wrong(rng, grammar, about)
            answers.setdefault(_answer(rng, grammar, told, slots), label)
        order = list(answers.items())
        rng.shuffle(order)
        candidates, labels = zip(*order, strict=True)
        group = Group(f"S{len(found) + 1}", (query,), tuple((text,) for text in candidates), labels)
        # Loaders that look for copies compare letters alone; questions that differ in a number are one to them.
        found.setdefault("".join(filter(str.isalpha, query)), group)
    return list(found.values())


def _forum(name: str, num_candidates: int, num_positives: tuple[int, int], seed: int) -> dict[str, list[Group]]:
    """Questions with title and body, and which others of a forum meet the same need for the same thing.

    ``pretrain`` is the forum: what the candidates of all lists are taken from. Lists are in the order of BM25. A new
    question words its need as none of the forum does, so that shared words mislead here too.
    """
    rng, grammar = random.Random(seed), _grammar()
    written: set[Text] = set()

    def new_question(about: About, in_forum: bool = False) -> Text:
        while (text := _forum_question(rng, grammar, about, in_forum)) in written:
            pass
        written.add(text)
        return text

    abouts = [
        About(domain, thing, need)
        for domain, things in enumerate(grammar.things)
        for thing in range(len(things))
        for need in range(len(grammar.asks))
    ]
    forum = {about: [new_question(about, in_forum=True) for _ in range(4)] for about in abouts}

    def group(number: int) -> Group:
        about = rng.choice(abouts)
        right = rng.sample(forum[about], rng.randint(*num_positives))
        labels = dict.fromkeys(right, 1.0)
        while len(labels) < num_candidates:
            labels.setdefault(rng.choice(forum[_wrong(rng, grammar, about)]), 0.0)
        return Group(f"{number}", new_question(about), tuple(labels), tuple(labels.values()))

    numbers = count(1)
    sizes = NUM_QUESTIONS[name]
    splits = {split: [group(next(numbers)) for _ in range(sizes[split])] for split in ("train", "dev", "test")}
    for split in splits:
        scores = lexical.BM25().score(splits[split])
        splits[split] = [_as_found(group, found) for group, found in zip(splits[split], scores, strict=True)]
    raw = [text for texts in forum.values() for text in texts] + [group.query for group in splits["train"]]
    heldout = [new_question(rng.choice(abouts)) for _ in range(sizes.get("heldout", 0))]
    for split, texts in (("pretrain", raw), ("heldout", heldout)):
        known = {group.query: group.id for group in splits["train"]}
        splits[split] = [Group(known.get(text) or f"{next(numbers)}", text, (), ()) for text in texts]
    return splits


def _as_found(group: Group, scores) -> Group:
    """The group with its candidates in a search engine's order."""
    rows = sorted(zip(group.candidates, group.labels, scores, strict=True), key=lambda row: -row[2])
    candidates, labels, scores = zip(*rows, strict=True)
    return Group(group.id, group.query, candidates, labels, search_scores=tuple(map(float, scores)))


def _forum_question(rng: random.Random, grammar: Grammar, about: About, in_forum: bool) -> Text:
    slots = _slots(rng)
    asks = grammar.asks[about.need]
    title, told = rng.sample(asks[::2] if in_forum else asks[1::2], 2)
    body = [
        part for part in (rng.choice(grammar.chatter[kind]) for kind in ("greeting", "context")) if rng.random() < 0.5
    ]
    body += [told] if rng.random() < 0.8 else []
    body += [rng.choice(grammar.chatter["context"])] if rng.random() < 0.5 else []
    return _spell(rng, grammar, [title], about, slots), _spell(rng, grammar, body, about, slots) if body else ""


def _splits(
    name: str, num_candidates: tuple[int, int], num_positives: tuple[int, int], seed: int
) -> dict[str, list[Group]]:
    sizes = NUM_QUESTIONS[name]
    drawn = iter(groups(sum(sizes.values()), num_candidates, num_positives, seed))
    return {split: [next(drawn) for _ in range(size)] for split, size in sizes.items()}


def _statements(rng: random.Random, grammar: Grammar) -> Group:
    """Two statements, how related they are, and whether the one follows from the other."""
    common = rng.choice(list(_RELATED))
    domain = rng.randrange(len(grammar.things))
    first = About(domain, rng.randrange(len(grammar.things[domain])), rng.randrange(len(grammar.asks)))
    thing, need = first.thing, first.need
    if common in ("need", "nothing"):
        thing = (thing + rng.randrange(1, len(grammar.things[domain]))) % len(grammar.things[domain])
    if common in ("thing", "nothing"):
        need = (need + rng.randrange(1, len(grammar.asks))) % len(grammar.asks)
    texts = [_answer(rng, grammar, about, _slots(rng)) for about in (first, About(domain, thing, need))]
    if common.endswith("denied"):
        texts[1] = f"{rng.choice(_DENIALS)} {texts[1]}"
    related, judgement = _RELATED[common]
    label = round(min(5.0, max(1.0, rng.gauss(related, 0.2))), 1)
    return Group("S", (texts[0],), ((texts[1],),), (label,), (judgement,))


def _slots(rng: random.Random) -> dict[str, str]:
    return {"place": rng.choice(_PLACES), "number": str(rng.randint(2, 90))}


def _wrong(rng: random.Random, grammar: Grammar, about: About) -> About:
    def other(size, index):
        return (index + rng.randrange(1, size)) % size

    domain, thing, need = about
    (kind,) = rng.choices(list(_WRONG), list(_WRONG.values()))
    if kind == "another thing":
        return About(domain, other(len(grammar.things[domain]), thing), need)
    need = other(len(grammar.asks), need)
    if kind == "another need and domain":
        domain = other(len(grammar.things), domain)
        thing = rng.randrange(len(grammar.things[domain]))
    return About(domain, thing, need)


def _question(rng: random.Random, grammar: Grammar, about: About, slots: dict[str, str]) -> str:
    parts = [rng.choice(grammar.asks[about.need])]
    if rng.random() < _CHATTER:
        parts.insert(0, rng.choice(grammar.chatter["greeting"]))
    if rng.random() < _CHATTER:
        parts.insert(rng.choice((0, len(parts))), rng.choice(grammar.chatter["context"]))
    return _spell(rng, grammar, parts, about, slots)


def _answer(rng: random.Random, grammar: Grammar, about: About, slots: dict[str, str]) -> str:
    parts = [rng.choice(grammar.answers[about.need])]
    if rng.random() < _CHATTER:
        parts.insert(0, rng.choice(grammar.chatter["opener"]))
    if rng.random() < _CHATTER:
        parts.append(rng.choice(grammar.chatter["closer"]))
    if rng.random() < 0.5:
        slots = _slots(rng)
    return _spell(rng, grammar, parts, about, slots)


def _spell(rng: random.Random, grammar: Grammar, parts: list[str], about: About, slots: dict[str, str]) -> str:
    slots = slots | {"x": rng.choice(grammar.things[about.domain][about.thing])}
    text = re.sub(r"\[([^]]*)\]", lambda choice: rng.choice(choice[1].split("|")), " ".join(parts))
    text = re.sub(r"\{(\w+)\}", lambda slot: slots[slot[1]], text)
    words = text.split()
    at = rng.randrange(len(words))
    if rng.random() < _TYPO and len(words[at]) > 4:
        word = words[at]
        words[at] = word[0] + word[2] + word[1] + word[3:]
    return " ".join(words)


@cache
def _grammar() -> Grammar:
    rows: dict[str, dict[str, list[str]]] = {}
    for line in TOPICS.read_text(encoding="utf-8").splitlines()[1:]:
        part, about, text = line.split("\t")
        rows.setdefault(part, {}).setdefault(about, []).append(text)
    return Grammar(
        things=[[names.split("|") for names in things] for things in rows["thing"].values()],
        asks=list(rows["ask"].values()),
        answers=[rows["answer"][need] for need in rows["ask"]],
        chatter={part: rows[part]["any"] for part in ("greeting", "context", "opener", "closer")},
    )
