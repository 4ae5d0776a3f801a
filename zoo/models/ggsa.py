"""Gated Group Self-Attention, GGSA and iGGSA (Xu et al. 2019)."""

from functools import partial

import keras

from layers.feed_forward_residual import FeedForwardResidual
from layers.group_attention_residual import GroupAttentionResidual
from layers.masking import token_mask
from layers.sinusoidal_positions import SinusoidalPositions
from zoo.models.matching import Reader, matching, word_vectors

OFFSETS = (0, 0, 0, 5, 5, 5)


def ggsa(
    embeddings,
    *,
    trainable_embeddings=True,
    projection=0,
    word_dropout=0.3,
    positions="paired",
    num_heads=6,
    group_size=10,
    offsets=OFFSETS,
    window=False,
    scale="head",
    gate=True,
    normalize=False,
    inner_units=None,
    num_blocks=1,
    block_dropout=0.0,
    interaction=False,
    shared=True,
    name="ggsa",
    **settings,
):
    """Words see their group under a gate that knows the whole text; iGGSA's answers are read under the question.

    Args:
        embeddings: float array ``[V, E]``, row 0 (padding) zero.
        trainable_embeddings: the paper trains them on insuranceQA and fixes them on yahooQA.
        projection: D, of a linear map on the word vectors (yahooQA); 0 for D = E.
        word_dropout: rate on the word vectors, before positions are added.
        positions: the form of `SinusoidalPositions`.
        num_heads, group_size, offsets, window, scale, gate: of `GroupAttentionResidual`. Group size None is
            global, ``window`` local self-attention.
        normalize: whether the block ends with a normalization, as the global baseline's does.
        inner_units: of the feed-forward layers; None for 4 D.
        num_blocks: how many blocks stand on each other.
        block_dropout: rate on the residuals; not in the paper.
        interaction: whether answers are read under the question (iGGSA), in the last block.
        shared: whether question and answer have the same weights.
        name: the model's name.
        settings: composition and similarity, see `matching`.

    Returns:
        A model from ``{"query": [B, T], "candidate": [B, L, T]}`` to scores ``[B, L]``.
    """
    words = {"trainable": trainable_embeddings, "projection": projection, "dropout": word_dropout}
    attention = partial(
        GroupAttentionResidual, num_heads, group_size, offsets, window, scale, gate, dropout=block_dropout
    )
    feed_forward = partial(FeedForwardResidual, inner_units, dropout=block_dropout)

    def encoder(side):
        """A function from (vectors, mask) to words in context, and the feed-forward half of the last block."""
        add_positions = SinusoidalPositions(positions, name=f"{side}_positions")
        blocks = [
            (
                attention(name=f"{side}_attention_{number}"),
                feed_forward(normalize=normalize, name=f"{side}_feed_forward_{number}"),
            )
            for number in range(1, num_blocks + 1)
        ]

        def contextual(vectors, mask):
            states = add_positions(vectors, mask=mask)
            for attend, feed in blocks[:-1]:
                states = feed(attend(states, mask=mask), states_mask=mask)
            return blocks[-1][0](states, mask=mask)

        return contextual, blocks[-1][1]

    sides = [encoder("text")] * 2 if shared else [encoder("query"), encoder("candidate")]
    (_, query_feed), (_, candidate_feed) = sides

    def reading(read):
        """What ``read(vectors, mask, side)`` gives of each side, made once where both have the same weights."""

        def both(ids):
            vectors, mask = word_vectors(ids, embeddings, **words), token_mask(ids)
            states = [read(vectors, mask, *side) for side in (sides[:1] if shared else sides)]
            return states * 2 if shared else states

        return both

    if not interaction:
        return matching(
            Reader(reading(lambda vectors, mask, read, feed: feed(read(vectors, mask), states_mask=mask))),
            name=name,
            **settings,
        )

    # It begins with next to no effect: iGGSA begins nearly as the GGSA whose weights it may start from.
    small = keras.initializers.RandomNormal(stddev=1e-3)
    question_aware = feed_forward(normalize=True, outer_initializer=small, name="question_aware_residual")

    def under_question(states, question, mask):
        return candidate_feed(question_aware(states, question, states_mask=mask), states_mask=mask)

    reader = Reader(
        contextual=reading(lambda vectors, mask, read, feed: read(vectors, mask)),
        query=lambda states, mask: query_feed(states, states_mask=mask),
        candidate=under_question,
    )
    return matching(reader, name=name, **settings)
