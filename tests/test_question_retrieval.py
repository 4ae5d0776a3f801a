"""What the RCNN recipes share: pre-training as a run of its own, the search engine's order, titles alone."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from export.saved_model import export
from recipes import question_figures, question_retrieval, rcnn_askubuntu, rcnn_semeval
from tests.data_checks import real_data
from tests.test_models_rcnn import UNREAD, make
from tests.test_pretraining import texts
from tests.test_recipes import tiny_flags
from zoo import command_line, runs, tuning
from zoo.data import Dataset, Group
from zoo.encoded import encode_split
from zoo.evaluation import evaluate
from zoo.metrics import Convention
from zoo.models.rcnn import openness
from zoo.text import TextEncoder


def test_pre_training_alone_and_then_from_its_run(tmp_path, capsys):
    """What was pre-trained is a run, and another one starts from its weights and words."""

    def run(*flags):
        arguments = [*tiny_flags("rcnn_semeval"), *flags, "--runs", str(tmp_path)]
        assert command_line.main(rcnn_semeval.recipe, rcnn_semeval.__doc__, command=arguments) == 0
        return runs.load(tmp_path / "rcnn_semeval" / "latest"), capsys.readouterr().out

    first, printed = run("--epochs=0")
    assert "pre-training 1/1" in printed and "dev_perplexity" in printed and "epoch 1" not in printed
    assert f"to go on from it: --from {first.folder.resolve()}" in printed.replace(
        str(tmp_path), str(tmp_path.resolve())
    )
    assert first.settings["model"] == "rcnn_pretraining" and first.metrics["training"]["best_epoch"] == 0
    report = (first.folder / "report.html").read_text("utf-8")
    assert all(f"(Figure {number})" in report for number in (3, 4, 5))
    assert "QatarLiving, question to question, dev: the newest" in printed  # beside test
    assert "dev_perplexity" in (first.folder / "pretraining.csv").read_text("utf-8")
    start = str(first.folder.resolve())  # what the next run is told to start from, `latest`, is itself by its end
    second, printed = run("--pretrain-epochs=0", "--search-rank", "--from", str(first.folder))
    assert "pre-training 1/" not in printed and "weights taken over; new: none" in printed
    assert second.text_encoder.words == first.text_encoder.words
    assert second.settings["model"] == "rcnn_pretrained_search"
    weight = second.metrics["training"]["search_rank_weight"]
    card = (second.folder / "README.md").read_text("utf-8")
    assert 0 <= weight <= 3 and f"In the figures {weight:.1f} / the search engine's rank is added" in card
    assert "are passed over; a text of such words alone counts as empty" in card and start in card
    third, printed = run("--no-pretrain", "--from", str(first.folder))
    assert "bm25_from_run" not in printed
    assert third.settings["model"] == "rcnn_from_run"
    known, other = [word for word in third.text_encoder.words if word.isalpha()][:2]
    with pytest.raises(SystemExit, match="2"):
        question_figures.main([str(third.folder), "zzyzzx qwrt"])
    assert "must have a word that the model knows" in capsys.readouterr().err
    title, body = f"{known.title()} zzyzzx?", f"{other} one"
    assert question_figures.main([str(third.folder), f"{title}\t{body}", title, "--out", str(tmp_path / "out")]) == 0
    picture = (tmp_path / "out" / "figure_4.svg").read_text("utf-8")
    assert "1 of 3 words are unknown and not drawn" in capsys.readouterr().out
    assert picture.count(f"<!-- {known} -->") == 2 and picture.count(f"<!-- {other} -->") == 1
    signatures = tf.saved_model.load(str(export(third, tmp_path / "served"))).signatures
    texts = {
        f"{side}_{field}": tf.constant([text])
        for side in ("query", "candidate")
        for field, text in (("title", title), ("body", body if side == "query" else ""))
    }
    score = signatures["serving_default"](**texts)["score"]
    np.testing.assert_allclose(score, third.score([(title, body)], [(title, "")]), atol=1e-5)
    vectors = [
        signatures["encode"](title=texts[f"{side}_title"], body=texts[f"{side}_body"])["vector"][0]
        for side in ("query", "candidate")
    ]
    np.testing.assert_allclose(score, [np.dot(*vectors)], atol=1e-5)


def test_search_rank_weight_is_the_best_on_dev():
    dataset = rcnn_semeval.recipe(tuning.hyperparameters()).load(real_data("qatarliving"))
    zeros = {split: [np.zeros(len(group.labels)) for group in dataset.splits[split]] for split in ("dev", "test")}
    scores, found = question_retrieval.with_search_rank(dataset, zeros)
    assert found["search_rank_weight"] > 0
    assert round(evaluate(dataset, "test", scores["test"])["map"], 4) == 0.7475  # nothing but the engine's order


def test_search_rank_is_weighed_between_nothing_and_all():
    """The text tells the first two apart, the engine's order the others: only some weights in between tell both."""
    convention = Convention(ties="pessimistic", without_positive="zero", cutoff=10)
    groups = [
        Group("1", ("q",), (("a",), ("b",)), (1.0, 0.0), search_scores=(3.0, 50.0)),  # 0.4 better, ranks 2 and 1
        Group("2", ("q",), (("a",), ("b",)), (1.0, 0.0), search_scores=(50.0, 3.0)),  # 0.2 worse, ranks 1 and 2
    ]
    dataset = Dataset("d", {"train": groups, "dev": groups}, convention, ("map",))
    own = [np.array([0.4, 0.0]), np.array([0.0, 0.2])]
    scores, found = question_retrieval.with_search_rank(dataset, {"dev": own})
    assert 0.4 < found["search_rank_weight"] < 0.8
    assert evaluate(dataset, "dev", scores["dev"])["map"] == 1.0


def test_idf_of_what_is_no_word_is_a_quarter_of_the_mean():
    encoder = TextEncoder(["cat", "dog", "?", "x", "unseen"], "word", oov_buckets=1)
    groups = [Group("1", ("cat ?",), (("cat dog x",), ("cat",)), (1.0, 0.0))]
    splits = {"train": encode_split(groups, encoder, ("text",), 8, 8)}
    dataset = Dataset("d", {"train": groups, "dev": groups}, Convention(), ("map",))
    encoded = SimpleNamespace(encoder=encoder, splits=splits, dataset=dataset)
    cat, dog = np.log(4 / 4) + 1, np.log(4 / 2) + 1
    expected = [*[(cat + dog) / 8] * 2, cat, dog, *[(cat + dog) / 8] * 3]
    np.testing.assert_allclose(question_retrieval.inverse_document_frequency(encoded), expected)


def test_openness_by_position_is_averaged_over_the_questions_that_have_it():
    model = make("rcnn")
    first, second = texts([5, 6, 7], [8, 1]), texts([9])
    found = question_figures.openness_by_position(model, [first, second], UNREAD)
    opened = np.asarray(openness(model, np.array([[5, 6, 7], [8, 1, 0], [9, 0, 0]]), UNREAD))
    np.testing.assert_allclose(found["maximum"], [opened[:, 0].max(-1).mean(), *opened[0, 1:].max(-1)], rtol=1e-5)
    np.testing.assert_allclose(found["mean"], [opened[:, 0].mean(), *opened[0, 1:].mean(-1)], rtol=1e-5)
    assert (found["maximum"] > found["mean"]).all()


def test_an_epoch_or_a_pretraining_there_must_be(tmp_path, capsys):
    flags = ["--epochs=0", "--no-pretrain", "--runs", str(tmp_path)]
    assert command_line.main(rcnn_semeval.recipe, rcnn_semeval.__doc__, command=flags) == 1
    assert "A run needs an epoch or a pre-training. Received: epochs=0, model='rcnn'" in capsys.readouterr().err


def test_a_row_that_goes_on_from_a_pre_training_needs_it(tmp_path, capsys):
    flags = ["--pretrain", "--pretrain-epochs=0", "--runs", str(tmp_path)]
    assert command_line.main(rcnn_semeval.recipe, rcnn_semeval.__doc__, command=flags) == 1
    said = capsys.readouterr().err
    assert "needs that run (--from). Received: start=None, model='rcnn_pretrained'" in said


def test_the_cnn_is_not_pre_trained(tmp_path, capsys):
    flags = ["--model=cnn", "--pretrain", "--runs", str(tmp_path)]
    assert command_line.main(rcnn_semeval.recipe, rcnn_semeval.__doc__, command=flags) == 2
    assert "--pretrain: expected one of rcnn, lstm, gru" in capsys.readouterr().err


def test_tfidf_of_titles_alone():
    knobs = {"model": "tfidf", "title_only": True, "max_ngram": 2, "stop_words": True}
    recipe = rcnn_askubuntu.recipe(tuning.hyperparameters(**knobs))
    assert recipe.model == "tfidf_title" and recipe.scorer.max_ngram == 2
    group = Group("1", ("usb of boot", "x"), (("usb boot", "y"), ("z", "usb boot x")), (1.0, 0.0))
    first, second = recipe.scorer.fit([group]).score([group])[0]
    assert first == pytest.approx(1) and second == 0


def test_vectors_must_be_those_of_the_run_to_start_from(tmp_path, capsys):
    words = ["visa", "family", "qatar", "doha", "job", "car", "school"]
    for name in ("some.txt", "others.txt"):
        numbers = np.random.default_rng(len(name)).normal(size=(len(words), 4))
        lines = [" ".join([word, *map(str, row)]) for word, row in zip(words, numbers, strict=True)]
        (tmp_path / name).write_text("\n".join(lines) + "\n", "utf-8")
    small = tiny_flags("rcnn_semeval", "--embeddings")

    def run(*flags, vectors=()):
        files = [f"--embeddings={tmp_path / name}" for name in vectors]
        command = [*small, "--no-pretrain", *flags, *files, "--runs", str(tmp_path / "runs")]
        return command_line.main(rcnn_semeval.recipe, rcnn_semeval.__doc__, command=command)

    assert run(vectors=["some.txt"]) == 0
    first = (tmp_path / "runs" / "rcnn_semeval" / "latest").resolve()
    capsys.readouterr()
    for other in ([], ["others.txt"], ["some.txt", "others.txt"]):
        assert run("--from", str(first), vectors=other) == 2
        assert "--embeddings: expected the vectors of the run to start from" in capsys.readouterr().err
    (tmp_path / "some.txt").rename(tmp_path / "moved.txt")
    assert run("--from", str(first), vectors=["moved.txt"]) == 0


def test_titles_stand_for_their_questions_in_pre_training():
    encoder = TextEncoder(["cat", "dog", "cow"], "word", oov_buckets=1)
    groups = [Group("1", ("cat", "dog"), (("cow dog", "cow"),), (1.0,))]
    titles = question_retrieval.titles_of(encode_split(groups, encoder, ("title", "body"), 8, 8))
    assert [ids.texts[0].tolist() for ids in titles.query_ids.values()] == [[2]]
    assert [ids.texts[0].tolist() for ids in titles.candidate_ids.values()] == [[4, 3]]


@pytest.mark.parametrize("module", [rcnn_askubuntu, rcnn_semeval])
def test_rows_of_the_tables_have_names_of_their_own(module):
    names = [module.recipe(tuning.hyperparameters(**row)).model for rows in module.TABLES.values() for row in rows]
    repeated = 2 if module is rcnn_askubuntu else 0  # Table 5 has a row of Table 2, and two of its own poolings
    assert len(names) - len(set(names)) <= repeated
    published = {row for rows in module.PUBLISHED.values() for row in rows}
    published -= {"bm25", "tfidf", "search", "best submitted"}
    assert published <= set(names)


def test_knobs_of_the_paper():
    recipe = rcnn_askubuntu.recipe(tuning.hyperparameters(model="gru", pretrain=True))
    assert (recipe.batch_size, recipe.list_size, recipe.negatives.count) == (40 * 21, 21, 20)
    assert recipe.model == "gru_pretrained" and recipe.pretrain.epochs == 50
    assert rcnn_askubuntu.recipe(tuning.hyperparameters(model="gru", pooling="max", title_only=True)).model == (
        "gru_max_title"
    )
    # Ten candidates in all: the list as it is holds every negative.
    recipe = rcnn_semeval.recipe(tuning.hyperparameters())
    assert recipe.negatives is None and recipe.list_size == 10
    assert rcnn_semeval.recipe(tuning.hyperparameters(negatives="corpus")).negatives.count == 20
