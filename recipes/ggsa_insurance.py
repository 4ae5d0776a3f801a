"""GGSA on insuranceQA: find the right answer among 500 (Xu et al. 2019, Tables 2 to 5, Figure 8).

Data: github.com/shuzi/insuranceQA. Where version 1 comes without its answers, a file that maps them to those of
version 2 takes their place, see `zoo.datasets.insurance_qa`.

    python -m recipes.ggsa_insurance                                       a made-up sample
    python -m recipes.ggsa_insurance --data DIR --version 1
    python -m recipes.ggsa_insurance --data DIR --model iggsa_multihop
    python -m recipes.ggsa_insurance --data DIR --table                    Table 5, but for IARNN-GATE
    python -m recipes.ggsa_insurance --data DIR --ablation                 the rows of Tables 3 and 4
    python -m recipes.ggsa_insurance --data DIR --tune 9 --tuner grid --heads 6         Figure 8: group size
    python -m recipes.ggsa_insurance --data DIR --tune 7 --tuner grid --group-size 10   Figure 8: heads

The defaults are for two cores and half an hour, and in two ways not the paper's. Sizes are smaller, and each question
is set against the right answers of all others of its batch, under a softmax, where the paper draws one wrong answer
and asks for a margin: few draws are hard, so that its loss is near 0 after two epochs and teaches little more. The
paper's own are `--negatives-from corpus --loss pairwise --learning-rate 1e-4 --batch-size 256 --embedding-size 300
--inner-units 1200 --max-candidate-length 200 --dev-pool 500 --epochs 50`: on version 1, eight to ten minutes an epoch
on one core, loss .044 and .012 and dev P@1 .293 and .330 after the first two.

iGGSA, attention and attentive pooling read the states of each answer anew under each question that it is in the pool
or the batch of: in the two tests that is 1.8 million pairs. Their batches are smaller. Attention and iGGSA can begin
with the weights of GGSA, `--from RUN --learning-rate 1e-4`.

Table 4 in small and with the paper's loss, some seven minutes a row on one core: `--ablation --negatives-from corpus
--loss pairwise --batch-size 32 --embedding-size 60 --inner-units 120 --max-candidate-length 80 --dev-pool 50 --epochs
6 --patience 3` gives P@1 on version 1's test1 of .237 (global), .216 (group), .237 (with offsets), .332 (with the gate)
and .343 (iGGSA), one seed each; a deviation is .011.

Other departures from the paper: the vocabulary holds the training words, not those of dev and test; negatives are
drawn from the training answers; word vectors are trained on the training texts alone; ties count against the system.
"""

import sys
from functools import partial

from recipes.knob_meanings import MEANINGS
from recipes.self_attention import ABLATION, LEXICAL, LOSSES, attention_knobs, self_attention
from zoo import samples
from zoo.command_line import main
from zoo.datasets import insurance_qa
from zoo.negatives import Negatives

_TABLE = {  # Tables 2 to 5: test1, test2
    "cnn": (0.6280, 0.5920),
    "cnn_gesd": (0.6530, 0.6100),
    "qa_lstm": (0.6608, 0.6263),
    "qa_lstm_attention": (0.7110, 0.6696),
    "ap_lstm": (0.6900, 0.6480),
    "multihop_mlp_lstm": (0.6950, 0.6550),
    "multihop_lstm": (0.7109, 0.6745),
    "multihop_lstm_dropout": (0.7393, 0.7010),
    "global": (0.6761, 0.6403),
    "global_attention": (0.7038, 0.6730),
    "local": (0.6723, 0.6459),
    "local_gate": (0.6790, 0.6595),
    "group": (0.6652, 0.6315),
    "group_offset": (0.6709, 0.6325),
    "ggsa": (0.6810, 0.6484),
    "ggsa_attention": (0.7129, 0.6825),
    "iggsa": (0.7133, 0.6840),
    "iggsa_attention": (0.7154, 0.6763),
    "iggsa_multihop": (0.7447, 0.7140),
}
PUBLISHED = {
    "test1": {model: {"p@1": _TABLE[model][0]} for model in _TABLE},
    "test2": {model: {"p@1": _TABLE[model][1]} for model in _TABLE},
}
LOSS = "listwise"  # ours; 4.2: pairwise
MODELS = [*_TABLE, *LEXICAL]
TABLES = {
    "table": [{"model": model} for model in _TABLE if model not in ABLATION or model in ("ggsa", "iggsa")],
    "ablation": [{"model": model} for model in ABLATION],
}
ON_SAMPLE = {
    "embedding_size": 60,
    "inner_units": 120,
    "lstm_units": 30,
    "filters": 60,
    "learning_rate": 1e-3,
    "word_dropout": 0.1,
    "epochs": 8,
}


def recipe(hp):
    """The recipe under some hyperparameters."""
    version = hp.Choice("version", [1, 2], default=1)
    model = hp.Choice("model", MODELS, default="ggsa")
    loss = hp.Choice("loss", LOSSES, default=LOSS)
    suffix = "" if loss == LOSS else f"_{loss}"
    published = {split: {name + suffix: row for name, row in rows.items()} for split, rows in PUBLISHED.items()}
    return self_attention(
        name="ggsa_insurance",
        load=partial(
            insurance_qa.load,
            version=version,
            dev_pool=hp.Int("dev_pool", 10, 500, step=10, default=100),  # the data has 500; ours
        ),
        sample=samples.insurance_qa,
        published=published if version == 1 else {},
        model=model,
        attention=attention_knobs(hp, inner_units=240),  # ours; 4.2: 4 D of 300
        encoder={
            "lstm_units": hp.Int("lstm_units", 30, 300, step=3, default=141),  # 4.2
            "filters": hp.Int("filters", 60, 1000, step=20, default=400),  # Feng et al. 2015
        },
        head={
            "dense_layers": hp.Int("dense_layers", 1, 3, default=2),  # 4.2
            "dense_units": hp.Int("dense_units", 32, 512, step=32, default=256),  # not given; ours
            "dropout": 0.0,  # none is mentioned
        },
        word_dropout=hp.Float("word_dropout", 0.0, 0.5, step=0.1, default=0.3),  # 4.2
        projection=0,
        train_embeddings=True,  # 4.2
        loss=loss,
        usual_loss=LOSS,
        # 3.3; the score of several hops is their sum
        margin=hp.Float("margin", 0.0, 1.0, step=0.05, default=0.2 if model.startswith("multihop") else 0.1),
        negatives=Negatives(
            hp.Int("negatives", 1, 50, default=1),  # 3.3: one; the hardest of more
            hp.Choice("negatives_from", ["corpus", "batch"], default="batch"),  # ours; 3.3: corpus
        ),
        learning_rate=hp.Float("learning_rate", 1e-5, 1e-2, sampling="log", default=5e-4),  # ours; 4.2: 1e-4 to 1e-5
        # 4.2: 128 questions with two answers; ours where each answer is read under each question
        batch_size=hp.Int("batch_size", 16, 512, step=16, default=_batch_size(model)),
        epochs=hp.Int("epochs", 1, 100, default=15),  # not given; ours
        patience=hp.Int("patience", 1, 20, default=5),  # not given; ours
        max_query_length=56,  # the longest
        max_candidate_length=hp.Int("max_candidate_length", 20, 400, step=20, default=160),  # ours; 4.2: 200
        embedding_size=hp.Int("embedding_size", 60, 300, step=60, default=120),  # ours; 4.2: 300
        own_vectors=True,  # 4.2
        oov_buckets=1,
        fixed=(
            *("model", "version", "dev_pool", "inner_units", "num_blocks", "scale", "positions", "shared"),
            *("lstm_units", "filters", "dense_layers", "dense_units", "word_dropout", "loss", "margin", "negatives"),
            "negatives_from",
            *("learning_rate", "batch_size", "epochs", "patience", "max_candidate_length", "embedding_size"),
        ),
        on_sample=ON_SAMPLE,
    )


def _batch_size(model):
    """iGGSA reads an answer's states under each question of the batch; attention its weights alone."""
    if model.startswith("iggsa"):
        return 32
    return 128 if "attention" in model or "multihop" in model or model == "ap_lstm" else 256


if __name__ == "__main__":
    sys.exit(main(recipe, __doc__, MEANINGS, tables=TABLES))
