"""GGSA on YahooQA: rank five answers to a question of Yahoo Answers (Xu et al. 2019, Tables 6 and 7).

Data: the authors' pickle (github.com/vanzytay/YahooQA_Splits), or files of lines `question#answer#label`.
Vectors: glove.840B.300d or glove.6B.300d (nlp.stanford.edu/projects/glove); the paper uses 300 dimensions, fixed.

    python -m recipes.ggsa_yahoo                        a made-up sample
    python -m recipes.ggsa_yahoo --data DIR --embeddings glove.6B.300d.txt
    python -m recipes.ggsa_yahoo --data DIR --table     every row of Table 6
    python -m recipes.ggsa_yahoo --data DIR --losses    the rows of Table 7 under the pairwise loss

Without a vector file, vectors are trained on the training texts and further with the model.

Departures from the paper: the vocabulary holds the training words and those of the vector file, not the words of
dev and test; ties are broken against the system, because the files list the right answer last; the sizes of the
dense head are ours. AP-CNN and AP-LSTM have the cosine and the pairwise loss of their own papers under either loss,
NTN-LSTM, HD-LSTM and CTRN their dense heads and the pointwise loss; the LSTMs read in both directions.
The small text form of 1,760 questions is no stand-in for the authors' split: its wrong answers are easier, and 1,280
questions are little to train on.
"""

import sys

from recipes.knob_meanings import MEANINGS
from recipes.self_attention import LEXICAL, attention_knobs, self_attention
from zoo import samples
from zoo.command_line import main
from zoo.datasets import yahoo_qa
from zoo.negatives import Negatives

_ROWS = {  # Table 6
    "ntn_lstm": {"p@1": 0.5450, "mrr": 0.7310},
    "hd_lstm": {"p@1": 0.5570, "mrr": 0.7350},
    "ap_cnn": {"p@1": 0.5600, "mrr": 0.7260},
    "ap_lstm": {"p@1": 0.5680, "mrr": 0.7310},
    "ctrn": {"p@1": 0.6071, "mrr": 0.7726},
    "ggsa": {"p@1": 0.6199, "mrr": 0.7815},
    "ggsa_attention": {"p@1": 0.6516, "mrr": 0.8026},
    "iggsa": {"p@1": 0.7028, "mrr": 0.8366},
    "iggsa_attention": {"p@1": 0.7426, "mrr": 0.8628},
}
_PAIRWISE = {"ggsa": {"p@1": 0.6485, "mrr": 0.7640}, "iggsa_attention": {"p@1": 0.7845, "mrr": 0.8507}}  # Table 7
PUBLISHED = (
    {"random": {"p@1": 0.2000, "mrr": 0.4586}} | _ROWS | {f"{model}_pairwise": _PAIRWISE[model] for model in _PAIRWISE}
)
TABLES = {
    "table": [{"model": model} for model in _ROWS],
    "losses": [{"model": model, "loss": "pairwise"} for model in _PAIRWISE],
}
ON_SAMPLE = {
    "embedding_size": 60,
    "inner_units": 120,
    "lstm_units": 32,
    "filters": 64,
    "learning_rate": 3e-4,
    "word_dropout": 0.1,
    "epochs": 8,
}


def recipe(hp):
    """The recipe under some hyperparameters."""
    return self_attention(
        name="ggsa_yahoo",
        load=yahoo_qa.load,
        sample=samples.yahoo_qa,
        published=PUBLISHED,
        model=hp.Choice("model", [*_ROWS, *LEXICAL], default="ggsa"),
        attention=attention_knobs(hp),
        encoder={
            "lstm_units": hp.Int("lstm_units", 32, 512, step=32, default=256),  # 4.2
            "filters": hp.Int("filters", 64, 1024, step=64, default=512),  # Tay et al. 2018
        },
        head={
            "dense_layers": hp.Int("dense_layers", 1, 3, default=2),  # 4.2
            "dense_units": hp.Int("dense_units", 32, 512, step=32, default=256),  # not given; ours
            "dropout": hp.Float("dropout", 0.0, 0.6, step=0.1, default=0.0),  # none is mentioned
        },
        word_dropout=hp.Float("word_dropout", 0.0, 0.5, step=0.1, default=0.3),  # 4.2
        projection=hp.Int("projection", 60, 600, step=60, default=300),  # 4.2: a projection layer; D is 300
        train_embeddings=False,  # 4.2
        loss=hp.Choice("loss", ["pairwise", "pointwise"], default="pointwise"),  # 4.2
        usual_loss="pointwise",
        margin=hp.Float("margin", 0.0, 1.0, step=0.05, default=0.1),  # 3.3
        negatives=Negatives(hp.Int("negatives", 1, 4, default=1), "list"),  # 3.3: one; the hardest of more
        learning_rate=hp.Float("learning_rate", 1e-5, 1e-2, sampling="log", default=1e-4),  # 4.2: 1e-4 to 1e-5
        batch_size=hp.Int("batch_size", 16, 512, step=16, default=256),  # 4.2
        epochs=hp.Int("epochs", 1, 100, default=50),  # not given; ours
        patience=hp.Int("patience", 1, 20, default=5),  # not given; ours
        list_size=5,  # a question's own answers
        max_query_length=50,  # 4.2
        max_candidate_length=50,
        embedding_size=hp.Int("embedding_size", 60, 300, step=60, default=300),  # only without a vector file
        own_vectors=True,
        fixed=("model", "loss", "epochs", "patience", "embedding_size", "num_blocks", "scale", "positions", "shared"),
        on_sample=ON_SAMPLE,
    )


if __name__ == "__main__":
    sys.exit(main(recipe, __doc__, MEANINGS, tables=TABLES))
