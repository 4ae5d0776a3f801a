"""What the recipes of the RCNN paper share: its system, the encoders of its Table 3, its two objectives."""

import dataclasses
import re
from functools import partial

import numpy as np
from scipy.stats import rankdata

from recipes import knob_meanings, question_figures
from zoo import lexical, losses, optimizers
from zoo.batches import score_split
from zoo.data import DataError
from zoo.encoded import distinct_texts, document_frequency
from zoo.evaluation import evaluate
from zoo.models.rcnn import READERS, rcnn
from zoo.models.title_decoder import title_decoder, title_matcher
from zoo.negatives import Negatives
from zoo.pretraining import TitleBatches, perplexity, target_numbers
from zoo.recipe import Recipe

MEANINGS = knob_meanings.MEANINGS | {
    "negatives": "where wrong candidates come from",
    "batch_size": "queries per training step",
}
_WORD = re.compile(r"\w\w+")  # of scikit-learn's TfidfVectorizer

OOV_BUCKETS = 1  # unknown words are not read, so one id does for all

DEFAULTS = {
    "units": {"rcnn": 400, "cnn": 667, "lstm": 240, "gru": 280},  # Table 3: about as many weights each
    "max_length": 100,  # footnote 5
    "batch_size": 40,  # released code
    "epochs": 50,  # released code, --max_epoch
    "patience": 15,  # released code
    "pretrain_epochs": 50,  # released code
    "pretrain_batch_size": 256,  # released code
    "only_with_vector": True,  # released code
}
ORDER = {"rcnn": 2, "cnn": 3}  # Table 3
POOLING = {"rcnn": "last", "cnn": "mean", "lstm": "mean", "gru": "mean"}  # Table 2
PRETRAINED_POOLING = POOLING | {"gru": "last"}  # Table 2

# Small enough to learn the made-up sample within two minutes on two cores.
ON_SAMPLE = {
    "units": 64,
    "epochs": 4,
    "pretrain_epochs": 2,
    "learning_rate": 3e-3,
    "embedding_size": 50,
    "num_negatives": 5,
}


def knobs(hp, *, scorers, **changes):
    """The knobs of the paper's system, as arguments of `question_retrieval`.

    Args:
        hp: hyperparameters.
        scorers: name to class of further models, which have no network.
        changes: defaults other than `DEFAULTS`.
    """
    default = DEFAULTS | changes
    model = hp.Choice("model", [*READERS, *scorers], default="rcnn")
    reader = model if model in READERS else "rcnn"
    pretrain = hp.Boolean("pretrain", default=False)
    usual_pooling = (PRETRAINED_POOLING if pretrain else POOLING)[reader]
    network = {
        "units": hp.Int("units", 8, 800, default=default["units"][reader]),
        "order": hp.Int("order", 1, 4, default=ORDER.get(reader, 2)),
        "gate": hp.Choice("gate", ["vector", "scalar"], default="vector"),  # Figure 4 has the scalar one
        "filter_mode": hp.Choice("filter_mode", ["additive", "multiplicative"], default="additive"),  # section 4.1
        "output_gate": hp.Boolean("output_gate", default=False),  # released code, --outgate
        "pooling": hp.Choice("pooling", ["last", "mean", "max"], default=usual_pooling),
        "dropout": hp.Float("dropout", 0.0, 0.5, step=0.1, default=0.1),  # section 6: 0.1, 0.2 or 0.3
        "penalty": hp.Float("penalty", 1e-7, 1e-3, sampling="log", default=1e-5),  # released code, --l2_reg
    }
    pretraining = {
        "epochs": hp.Int("pretrain_epochs", 0, 100, default=default["pretrain_epochs"]),
        "patience": hp.Int("pretrain_patience", 1, 30, default=8),  # released code
        "batch_size": hp.Int("pretrain_batch_size", 16, 512, step=16, default=default["pretrain_batch_size"]),
        "max_words": hp.Int("title_words", 100, 200_000, default=100_000),  # released code: all with a vector
        "num_sampled": hp.Int("sampled_words", 0, 20_000, default=0),  # the paper sums over all words
    }
    epochs = hp.Int("epochs", 0, 100, default=default["epochs"])
    title_only = hp.Boolean("title_only", default=False)  # Table 5
    search_rank = hp.Boolean("search_rank", default=False)  # not in the paper
    words = {
        "max_ngram": hp.Int("max_ngram", 1, 3, default=1),  # section 6: 1, 2 or 3
        "stop_words": _stop_words() if hp.Boolean("stop_words", default=False) else frozenset(),  # section 6: both
        "num_fields": 1 if title_only else None,
    }
    scorer = None
    row = model
    if model == "tfidf":
        scorer = lexical.TfIdf(**words)
        row += "_title" * title_only
    elif model in scorers:
        scorer = scorers[model]()
    else:
        # A pre-training alone is no row of the paper's.
        row += ("_pretrained" if epochs else "_pretraining") * pretrain
        row += f"_{network['pooling']}" * (network["pooling"] != usual_pooling)
        row += "_title" * title_only + "_search" * search_rank
    return {
        "model": model,
        "row": row,
        "scorer": scorer,
        "network": network,
        "pretraining": pretraining if pretrain else None,
        "title_only": title_only,
        "search_rank": search_rank,
        "idf_weights": hp.Boolean("idf_weights", default=True),  # released code, --reweight
        "only_with_vector": hp.Boolean("only_with_vector", default=default["only_with_vector"]),  # released code
        "margin": hp.Float("margin", 0.1, 2.0, step=0.1, default=1.0),  # released code; the paper: a small constant
        "negatives": Negatives(
            hp.Int("num_negatives", 1, 100, default=20),  # section 6
            # The paper draws from the corpus, the released code from a list of random questions.
            hp.Choice("negatives", ["list", "corpus"], default="list"),
        ),
        "learning_rate": hp.Float("learning_rate", 1e-4, 1e-2, sampling="log", default=1e-3),  # section 6
        "batch_size": hp.Int("batch_size", 4, 512, default=default["batch_size"]),
        "epochs": epochs,
        "patience": hp.Int("patience", 1, 30, default=default["patience"]),
        "max_length": hp.Int("max_length", 20, 200, default=default["max_length"]),
        "embedding_size": hp.Int("embedding_size", 50, 300, step=50, default=200),  # only without a vector file
    }


def _stop_words():
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # slow to import, and only needed here

    return ENGLISH_STOP_WORDS


def question_retrieval(
    *,
    model,
    row,
    scorer,
    network,
    pretraining,
    title_only,
    search_rank,
    idf_weights,
    margin,
    negatives,
    learning_rate,
    batch_size,
    max_length,
    list_size=None,
    **recipe,
):
    """A recipe of the RCNN paper.

    Args:
        model: a reader of `zoo.models.rcnn`, or the name of the scorer.
        row: the model's name in the table.
        scorer: a scorer of `zoo.lexical` in place of a network, or None.
        network: arguments of `zoo.models.rcnn.rcnn`.
        pretraining: arguments of `TitlePretraining`, or None for none.
        title_only: whether bodies are left out.
        search_rank: whether the search engine's order joins the score, see `with_search_rank`.
        idf_weights: whether word vectors are multiplied with the words' inverse document frequency.
        margin: of the loss.
        negatives: how negatives are drawn.
        learning_rate: of Adam (section 6).
        batch_size: queries of a batch.
        max_length: tokens that are kept of each field.
        list_size: most candidates of a query, where that is few: its list as a whole then holds all negatives
            that could be drawn from it, for all of its positives at once.
        recipe: the other attributes of the `Recipe`.
    """
    recipe |= {
        "model": row,
        "task": "ranking",
        "max_query_length": max_length,
        "max_candidate_length": max_length,
        "oov_buckets": OOV_BUCKETS,
        "reads_unknown": False,
        "on_sample": ON_SAMPLE | {"pretrain": model != "cnn"},
        "fixed": ("model", "pretrain", "title_only", "search_rank", "only_with_vector", "max_ngram", "stop_words")
        + ("epochs", "pretrain_epochs", "embedding_size"),
    }
    if scorer is not None:
        return Recipe(scorer=scorer, **recipe)
    dead = () if model == "rcnn" else ("gate", "filter_mode", "output_gate")
    dead += () if model in ("rcnn", "cnn") else ("order",)

    def build(encoded):
        if pretraining and model == "cnn":
            expected = "one of rcnn, lstm, gru: a CNN has no last state that holds a text (section 5)"
            raise DataError("--pretrain", None, expected, f"--model {model}")
        return rcnn(
            encoded.embeddings,
            fields=encoded.dataset.fields,
            read_fields=("title",) if title_only else None,
            reader=model,
            idf=inverse_document_frequency(encoded) if idf_weights else None,
            num_unread=OOV_BUCKETS,
            trainable_embeddings=encoded.trainable_embeddings,
            **network,
        )

    optimizer = partial(optimizers.Adam, learning_rate, epsilon=1e-8)  # section 6: as its authors suggest
    if pretraining:
        recipe["continues"] = True
        if pretraining["epochs"]:  # none: it starts from an earlier run's pre-training
            # Footnote 7: learning rate and dropout as in fine-tuning.
            recipe["pretrain"] = TitlePretraining(dropout=network["dropout"], optimizer=optimizer, **pretraining)
    whole_lists = list_size is not None and negatives.source == "list" and negatives.count >= list_size - 1
    pairs_of_list = list_size if whole_lists else 1 + negatives.count
    return Recipe(
        build=build,
        module="zoo.models.rcnn",
        loss=partial(losses.pairwise_hinge, margin),  # section 3
        optimizer=optimizer,
        negatives=None if whole_lists else negatives,
        list_size=pairs_of_list,
        batch_size=batch_size * pairs_of_list,  # a `Recipe` counts pairs, the paper queries
        rescore=with_search_rank if search_rank else None,
        without_effect=dead,
        figures=partial(question_figures.figures, num_unread=OOV_BUCKETS, fields=("title",) if title_only else None),
        **recipe,
    )


@dataclasses.dataclass(frozen=True)
class TitlePretraining:
    """Trains the reader as the encoder of an encoder-decoder that tells titles (section 4.2); a `Recipe.pretrain`.

    The epoch is chosen by the MRR of dev's titles alone, compared by the reader's last state (section 5).

    Attributes:
        epochs, patience, batch_size: of the pre-training.
        max_words: words of titles that are told apart.
        num_sampled: words that the softmax is sampled from, 0 for all.
        dropout: as in the model.
        optimizer: function without arguments that makes it.
    """

    epochs: int
    patience: int
    batch_size: int
    max_words: int
    num_sampled: int
    dropout: float
    optimizer: object

    def __call__(self, model, encoded, fit):
        raw, dev = encoded.splits["pretrain"], encoded.splits["dev"]
        size = encoded.encoder.vocabulary_size
        numbers = target_numbers(raw.query_ids["title"], size, OOV_BUCKETS, self.max_words)
        with fit.scope():
            decoder = title_decoder(
                model,
                num_words=int(numbers.max()),
                num_unread=OOV_BUCKETS,
                num_sampled=self.num_sampled,
                dropout=self.dropout,
            )

        def batches(split, **settings):
            return TitleBatches(split, numbers, OOV_BUCKETS, self.batch_size, **settings)

        heldout = batches(encoded.splits["heldout"], fields=("body",)) if "heldout" in encoded.splits else ()
        titles_of_dev, matcher = titles_of(dev), title_matcher(model, OOV_BUCKETS)

        def measure(_):
            scores = score_split(matcher, titles_of_dev)
            if not np.isfinite(scores).all():
                raise FloatingPointError
            told = {"perplexity": perplexity(decoder, heldout)} if len(heldout) else {}
            return evaluate(encoded.dataset, "dev", dev.per_group(scores)) | told

        return fit(
            decoder,
            batches(raw, shuffle_seed=fit.seed),
            loss=lambda: losses.total,
            optimizer=self.optimizer,
            epochs=self.epochs,
            patience=self.patience,
            measure=measure,
            metric="mrr",
            label="pre-training",
            survives=True,
        )


def titles_of(split):
    """An encoded split in which a text is its title alone."""
    sides = {name: {"text": getattr(split, name)["title"]} for name in ("query_ids", "candidate_ids")}
    return dataclasses.replace(split, **sides)


def with_search_rank(dataset, scores):
    """Scores to which ``weight / rank`` by the search engine is added; the weight is the best on dev: dev's are rosy.

    Returns:
        Split to scores, and for the run's record the weight, and that the model itself is served without it.
    """

    def mixed(split, weight):
        return [
            own + weight / rankdata(-np.array(group.search_scores), method="min")
            for own, group in zip(scores[split], dataset.splits[split], strict=True)
        ]

    metric = dataset.metrics[0]
    weights = np.linspace(0, 3, 31)
    on_dev = [evaluate(dataset, "dev", mixed("dev", weight))[metric] for weight in weights]
    weight = float(weights[int(np.argmax(on_dev))])
    sentence = (
        f"In the figures {weight:.1f} / the search engine's rank is added to the score; the score that is served is of "
        "the texts alone."
    )
    return {split: mixed(split, weight) for split in scores}, {"search_rank_weight": weight, "rescored": sentence}


def inverse_document_frequency(encoded):
    """``ln((1 + N) / (1 + df)) + 1`` of every id, each field of a distinct training text being a document.

    As in the released code: what is no word of two characters or more, or is in no document, weighs a quarter of
    the mean.
    """
    splits = [encoded.splits[name] for name in encoded.dataset.training_splits]
    documents = [tokens for tokens in distinct_texts(splits) if len(tokens)]
    frequency = document_frequency(documents, encoded.encoder.vocabulary_size)
    idf = np.log((1 + len(documents)) / (1 + frequency)) + 1
    counted = np.zeros(len(idf), bool)
    counted[-len(encoded.encoder.words) :] = [bool(_WORD.fullmatch(word)) for word in encoded.encoder.words]
    counted &= frequency > 0
    return np.where(counted, idf, idf[counted].mean() / 4 if counted.any() else 1.0)
