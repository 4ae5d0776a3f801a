"""What the RCNN recipes share: pre-training as a run of its own, the search engine's order, titles alone."""

import numpy as np
import pytest

from recipes import question_retrieval, rcnn_askubuntu, rcnn_semeval
from tests.data_checks import real_data
from tests.test_recipes import tiny
from zoo import command_line, runs, tuning
from zoo.evaluation import evaluate


def test_pre_training_alone_and_then_from_its_run(tmp_path, capsys):
    """What was pre-trained is a run, and another one starts from its weights and words."""

    def run(*flags):
        small = [f"--{knob.replace('_', '-')}={value}" for knob, value in tiny("rcnn_semeval").items()]
        arguments = [*small, *flags, "--runs", str(tmp_path)]
        assert command_line.main(rcnn_semeval.recipe, rcnn_semeval.__doc__, arguments=arguments) == 0
        return runs.load(tmp_path / "rcnn_semeval" / "latest"), capsys.readouterr().out

    first, printed = run("--epochs=0")
    assert "pre-training 1/1" in printed and "dev_perplexity" in printed and "epoch 1" not in printed
    assert first.settings["model"] == "rcnn_pretrained" and first.metrics["training"]["best_epoch"] == 0
    assert "perplexity" in (first.folder / "report.html").read_text("utf-8")
    second, printed = run("--no-pretrain", "--search-rank", "--from", str(first.folder))
    assert "pre-training 1/" not in printed and "weights taken over; new: none" in printed
    assert second.text_encoder.words == first.text_encoder.words
    assert second.settings["model"] == "rcnn_search" and 0 <= second.metrics["training"]["search_rank_weight"] <= 3


def test_search_rank_weight_is_the_best_on_dev():
    dataset = rcnn_semeval.recipe(tuning.hyperparameters()).load(real_data("qatarliving"))
    zeros = {split: [np.zeros(len(group.labels)) for group in dataset.splits[split]] for split in ("dev", "test")}
    scores, found = question_retrieval.with_search_rank(dataset, zeros)
    assert found["search_rank_weight"] > 0
    assert round(evaluate(dataset, "test", scores["test"])["map"], 4) == 0.7475  # nothing but the engine's order


@pytest.mark.parametrize("module", [rcnn_askubuntu, rcnn_semeval])
def test_rows_of_the_tables_have_names_of_their_own(module):
    names = [module.recipe(tuning.hyperparameters(**row)).model for rows in module.TABLES.values() for row in rows]
    repeated = 2 if module is rcnn_askubuntu else 0  # Table 5 has a row of Table 2, and two of its own poolings
    assert len(names) - len(set(names)) <= repeated
    published = set(module.PUBLISHED) - {"bm25", "tfidf", "search", "best submitted"}
    assert published <= set(names)


def test_knobs_of_the_paper():
    recipe = rcnn_askubuntu.recipe(tuning.hyperparameters(model="gru", pretrain=True))
    assert (recipe.batch_size, recipe.list_size, recipe.negatives.count) == (40 * 21, 21, 20)
    assert recipe.model == "gru_pretrained" and recipe.pretrain.epochs == 50
    assert rcnn_askubuntu.recipe(tuning.hyperparameters(model="cnn", pretrain=True)).pretrain is None
    assert rcnn_askubuntu.recipe(tuning.hyperparameters(model="gru", pooling="max", title_only=True)).model == (
        "gru_max_title"
    )
    # Ten candidates in all: the list as it is holds every negative.
    recipe = rcnn_semeval.recipe(tuning.hyperparameters())
    assert recipe.negatives is None and recipe.list_size == 10
    assert rcnn_semeval.recipe(tuning.hyperparameters(negatives="corpus")).negatives.count == 20
