"""CrossTemporalCell against the paper's equations, pair by pair, and the promises of every layer."""

import keras
import numpy as np
import pytest

from layers.cross_temporal_cell import CrossTemporalCell, aligned_steps
from layers.quasi_recurrent import QuasiRecurrent
from tests.checks import check_layer
from tests.test_quasi_recurrent import batch, loop_gates, loop_pool, randomized, texts

SHAPES = (None, None, 4), (None, None, None, 4)
QUERIES = [5, 2, 4]
CANDIDATES = [[7, 2], [5, 1], [4, 3]]


def pairs(queries=QUERIES, candidates=CANDIDATES):
    """Rows of texts, and the same as padded arrays with masks, as `call` takes them."""
    rows_q = texts(*queries, seed=1)
    rows_a = texts(*np.ravel(candidates), seed=2)
    query, query_mask = batch(rows_q, time=6)
    candidate, candidate_mask = batch(rows_a, time=8)
    shape = (len(queries), -1, 8)
    return (rows_q, rows_a), {
        "query": query,
        "candidate": candidate.reshape(*shape, 4),
        "query_mask": query_mask,
        "candidate_mask": candidate_mask.reshape(shape),
    }


def loop_alignment(n, m, alignment="ratio", padded=None, partner_padded=None):
    """pi, from 0, by the formula for t from 1: `t r` up to m on the shorter side, `ceil(t / r)` on the longer."""
    steps = []
    for t in range(1, n + 1):
        own, partner = (padded, partner_padded) if alignment == "ratio_padded" else (n, m)
        if alignment == "index":
            step = t
        elif own <= partner:
            step = t * int(np.ceil(partner / own))
        else:
            step = int(np.ceil(t / int(np.ceil(own / partner))))
        steps.append(min(step, m) - 1)
    return steps


def loop_cell(own, partner, pi, cross="both"):
    """fo-pool(Z, F, O) times fo-pool(Z, F_partner[pi], O_partner[pi])."""
    (z, f, o), (_, f_partner, o_partner) = own, partner
    crossed = loop_pool(z, f_partner[pi] if cross != "output" else f, o_partner[pi] if cross != "forget" else o)
    return loop_pool(z, f, o) * crossed


def test_promises():
    _, inputs = pairs([5, 2, 4], [[7, 2], [0, 1], [4, 3]])
    masks = {name: inputs.pop(name) for name in ("query_mask", "candidate_mask")}
    check_layer(
        CrossTemporalCell,
        {
            "units": 5,
            "kernel_size": 3,
            "padding": "same",
            "alignment": "index",
            "cross": "forget",
            "use_bias": True,
            "kernel_initializer": "he_normal",
            "bias_initializer": "ones",
            "kernel_regularizer": keras.regularizers.L2(0.1),
        },
        {name: array.astype("float32") for name, array in inputs.items()},
        masks,
    )


@pytest.mark.parametrize("cross", ["both", "forget", "output"])
@pytest.mark.parametrize("alignment", ["ratio", "index", "ratio_padded"])
def test_equations(alignment, cross):
    cell = CrossTemporalCell(3, 2, alignment=alignment, cross=cross, dtype="float64")
    kernel = randomized(cell, *SHAPES).kernel.numpy()
    (rows_q, rows_a), inputs = pairs()
    h_q, h_a = (h.numpy() for h in cell(**inputs))
    assert h_q.shape == (3, 2, 6, 3) and h_a.shape == (3, 2, 8, 3)
    for i, q in enumerate(rows_q):
        for j, a in enumerate(rows_a[2 * i : 2 * i + 2]):
            gates_q, gates_a = loop_gates(q, kernel), loop_gates(a, kernel)
            pi_q = loop_alignment(len(q), len(a), alignment, 6, 8)
            pi_a = loop_alignment(len(a), len(q), alignment, 8, 6)
            expected_q = loop_cell(gates_q, gates_a, pi_q, cross)
            expected_a = loop_cell(gates_a, gates_q, pi_a, cross)
            np.testing.assert_allclose(h_q[i, j, : len(q)], expected_q, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(h_a[i, j, : len(a)], expected_a, rtol=1e-12, atol=1e-14)
            assert not h_q[i, j, len(q) :].any() and not h_a[i, j, len(a) :].any()


@pytest.mark.parametrize(
    "alignment, n, m, steps",
    [
        ("ratio", 4, 10, [2, 5, 8, 9]),
        ("ratio", 10, 4, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]),
        ("ratio", 3, 3, [0, 1, 2]),
        ("ratio", 1, 3, [2]),
        ("ratio", 3, 1, [0, 0, 0]),
        ("index", 4, 10, [0, 1, 2, 3]),
        ("index", 5, 2, [0, 1, 1, 1, 1]),
        ("ratio_padded", 4, 10, [0, 1, 2, 3]),
        ("ratio_padded", 5, 2, [0, 1, 1, 1, 1]),
    ],
)
def test_alignment_by_hand(alignment, n, m, steps):
    pi = np.array(aligned_steps(alignment, np.array([[n]]), np.array([[m]]), 12, 12))
    np.testing.assert_array_equal(pi[0, :n], steps)
    assert loop_alignment(n, m, alignment, 12, 12) == steps


def test_alignment_of_all_lengths():
    lengths = np.array([[n, m] for n in range(1, 13) for m in range(1, 13)], "int32")
    for alignment in ("ratio", "index", "ratio_padded"):
        pi = np.array(aligned_steps(alignment, lengths[:, :1], lengths[:, 1:], 15, 12))
        for (n, m), row in zip(lengths, pi, strict=True):
            assert list(row[:n]) == loop_alignment(n, m, alignment, 15, 12)
            assert (row >= 0).all() and (row < m).all(), "beyond the own length too, it stays in the partner"
    empty = np.array(aligned_steps("ratio", np.array([[0], [3]]), np.array([[3], [0]]), 4, 4))
    assert (empty >= 0).all() and (empty < 4).all()


def test_of_a_text_with_itself_the_crossed_pool_is_its_own():
    cell = randomized(CrossTemporalCell(3), *SHAPES)
    own = QuasiRecurrent(3)
    own.build(SHAPES[0])
    own.set_weights(cell.get_weights())
    x, mask = batch(texts(5, 3, 1))
    h = own(x, mask=mask)
    for output in cell(x, x, query_mask=mask, candidate_mask=mask):
        np.testing.assert_allclose(output, h * h, atol=1e-6)


def test_swapped_texts_give_swapped_outputs():
    cell = randomized(CrossTemporalCell(3), *SHAPES)
    (q, q_mask), (a, a_mask) = batch(texts(5, 2, 4)), batch(texts(7, 3, 1, seed=1))
    h_q, h_a = cell(q, a, query_mask=q_mask, candidate_mask=a_mask)
    swapped_a, swapped_q = cell(a, q, query_mask=a_mask, candidate_mask=q_mask)
    np.testing.assert_array_equal(swapped_q, h_q)
    np.testing.assert_array_equal(swapped_a, h_a)


def test_a_list_is_its_candidates_one_by_one():
    cell = randomized(CrossTemporalCell(3), *SHAPES)
    _, inputs = pairs()
    h_q, h_a = cell(**inputs)
    for j in range(2):
        one = inputs | {name: inputs[name][:, j] for name in ("candidate", "candidate_mask")}
        one_q, one_a = cell(**one)
        assert one_q.shape == (3, 6, 3) and one_a.shape == (3, 8, 3)
        assert cell.compute_output_shape((3, 6, 4), (3, 8, 4)) == (one_q.shape, one_a.shape)
        np.testing.assert_allclose(h_q[:, j], one_q, atol=1e-6)
        np.testing.assert_allclose(h_a[:, j], one_a, atol=1e-6)


def test_without_masks_everything_is_real():
    cell = randomized(CrossTemporalCell(3), *SHAPES)
    _, inputs = pairs([6, 6, 6], [[8, 8]] * 3)
    bare = {name: inputs[name] for name in ("query", "candidate")}
    for output, expected in zip(cell(**bare), cell(**inputs), strict=True):
        np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("cross", ["both", "forget", "output"])
def test_without_a_partner_there_are_no_crossed_states(cross):
    cell = randomized(CrossTemporalCell(3, cross=cross), *SHAPES)
    _, inputs = pairs([5, 0, 4], [[7, 0], [5, 1], [0, 0]])
    h_q, h_a = (h.numpy() for h in cell(**inputs))
    assert h_q[0, 0].any() and h_a[0, 0].any()
    assert not h_q[0, 1].any() and not h_a[1].any() and not h_q[2].any()


def test_ratio_padded_reads_padded_lengths_and_ratio_real_ones():
    _, inputs = pairs()
    longer = inputs | {
        "candidate": np.pad(inputs["candidate"], [(0, 0), (0, 0), (0, 9), (0, 0)]),
        "candidate_mask": np.pad(inputs["candidate_mask"], [(0, 0), (0, 0), (0, 9)]),
    }
    for alignment, same in (("ratio", True), ("ratio_padded", False)):
        cell = randomized(CrossTemporalCell(3, alignment=alignment), *SHAPES)
        assert np.allclose(cell(**inputs)[0], cell(**longer)[0], atol=1e-6) == same


def test_reads_the_masks_of_an_embedding():
    embedding = keras.layers.Embedding(9, 4, mask_zero=True)
    query, candidate = np.array([[1, 2, 0], [3, 4, 5]]), np.array([[[6, 0], [7, 8]], [[1, 2], [0, 0]]])
    cell = randomized(CrossTemporalCell(3), *SHAPES)
    implicit = cell(embedding(query), embedding(candidate))
    explicit = cell(
        keras.ops.convert_to_numpy(embedding(query)),
        keras.ops.convert_to_numpy(embedding(candidate)),
        query_mask=query != 0,
        candidate_mask=candidate != 0,
    )
    for output, expected in zip(implicit, explicit, strict=True):
        np.testing.assert_array_equal(output, expected)
        assert getattr(output, "_keras_mask", None) is None


def test_as_many_parameters_as_a_quasi_recurrent_layer():
    cell = CrossTemporalCell(512, kernel_size=2)
    cell.build((None, None, 300), (None, None, None, 300))
    assert cell.count_params() == 3 * 2 * 300 * 512  # 3kmd, Table 2


@pytest.mark.parametrize(
    "arguments, received",
    [
        ({"units": "8"}, "units='8'"),
        ({"units": 2, "alignment": "soft"}, "alignment='soft'"),
        ({"units": 2, "cross": "none"}, "cross='none'"),
    ],
)
def test_refuses_arguments(arguments, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        CrossTemporalCell(**arguments)


@pytest.mark.parametrize("query, candidate", [((2, 3, 4), (2, 5, 6)), ((2, 3), (2, 3)), ((2, 3, 4), (2, 1, 1, 3, 4))])
def test_refuses_texts_that_do_not_fit(query, candidate):
    received = f"Received: query.shape={query}, candidate.shape={candidate}"
    with pytest.raises(ValueError, match=received.replace("(", r"\(").replace(")", r"\)")):
        CrossTemporalCell(2)(np.ones(query), np.ones(candidate))
