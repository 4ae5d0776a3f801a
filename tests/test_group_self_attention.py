"""Group attention is dense attention under the mask of equal groups, whatever the length."""

import numpy as np
import pytest

from layers.group_self_attention import GroupSelfAttention
from tests.checks import check_layer, check_mode

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 7, 12)).astype("float32")
MASK = np.array([[1] * 7, [1] * 4 + [0] * 3, [0, 1, 1, 1, 0, 0, 1]], bool)


def group_of(position, size, offset):
    return (position + (size - offset) % size) // size


def may_see(query, key, layer, head):
    if layer.window:
        return abs(query - key) <= layer.group_size // 2
    if layer.group_size is None:
        return True
    offset = (layer.offsets or [0] * layer.num_heads)[head]
    return group_of(query, layer.group_size, offset) == group_of(key, layer.group_size, offset)


def dense_attention(layer, x, mask):
    """The paper's equations, one word at a time, in float64."""
    x, size = x.astype("float64"), x.shape[-1]
    kernel, output_kernel = (np.array(w, "float64") for w in (layer.kernel, layer.output_kernel))
    d = size // layer.num_heads
    scale = np.sqrt(d if layer.scale == "head" else size)
    result = np.zeros_like(x)
    for b in range(len(x)):
        q, k, v = np.split(x[b] @ kernel, 3, axis=-1)
        for t in np.flatnonzero(mask[b]):
            heads = []
            for i in range(layer.num_heads):
                part = slice(i * d, (i + 1) * d)
                seen = [u for u in np.flatnonzero(mask[b]) if may_see(t, u, layer, i)]
                weights = np.exp([q[t, part] @ k[u, part] / scale for u in seen])
                heads.append(weights / weights.sum() @ v[seen, part])
            result[b, t] = np.concatenate(heads) @ output_kernel
    return result


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_heads": 2, "group_size": 3},
        {"num_heads": 4, "group_size": 3, "offsets": (0, 0, 1, 2)},
        {"num_heads": 3, "group_size": 4, "offsets": (1, 0, 1), "scale": "model"},
        {"num_heads": 2, "group_size": 1},
        {"num_heads": 1, "group_size": 50, "offsets": (20,)},
        {"num_heads": 3, "group_size": None},
        {"num_heads": 2, "group_size": 1, "window": True},
        {"num_heads": 2, "group_size": 2, "window": True},
        {"num_heads": 2, "group_size": 3, "window": True},
        {"num_heads": 3, "group_size": 10, "window": True, "scale": "model"},
    ],
)
def test_equals_dense_attention_under_the_mask(arguments):
    layer = GroupSelfAttention(**arguments)
    outputs = np.array(layer(X, mask=MASK))
    np.testing.assert_allclose(outputs, dense_attention(layer, X, MASK), atol=1e-5)


@pytest.mark.parametrize("length", range(1, 24))
@pytest.mark.parametrize("window", [False, True])
def test_any_length(length, window):
    layer = GroupSelfAttention(num_heads=2, group_size=4, offsets=None if window else (0, 3), window=window)
    x, mask = RANDOM.normal(size=(1, length, 4)).astype("float32"), np.ones((1, length), bool)
    np.testing.assert_allclose(layer(x), dense_attention(layer, x, mask), atol=1e-5)


def test_groups_and_offsets_of_the_paper():
    """Figures 4 and 5: with groups of three, word 3 does not see word 4, and does so in a head of offset 1."""
    groups = {offset: [group_of(t, 3, offset) for t in range(9)] for offset in range(3)}
    assert groups == {
        0: [0, 0, 0, 1, 1, 1, 2, 2, 2],
        1: [0, 1, 1, 1, 2, 2, 2, 3, 3],
        2: [0, 0, 1, 1, 1, 2, 2, 2, 3],
    }


def test_one_group_that_holds_all_is_global_attention():
    group, whole = GroupSelfAttention(2, group_size=7), GroupSelfAttention(2, group_size=None)
    group(X), whole(X)
    whole.set_weights(group.get_weights())
    np.testing.assert_allclose(group(X, mask=MASK), whole(X, mask=MASK), atol=1e-6)


def test_a_word_changes_nothing_outside_of_its_groups():
    layer = GroupSelfAttention(num_heads=2, group_size=3, offsets=(0, 1))
    before = np.array(layer(X))
    other = X.copy()
    other[:, 0] += 1
    changed = np.abs(np.array(layer(other)) - before).max(axis=(0, 2)) > 1e-6
    assert changed.tolist() == [True, True, True, False, False, False, False]


def test_promises():
    arguments = {
        "num_heads": 4,
        "group_size": 3,
        "offsets": (0,) * 4,
        "window": True,
        "scale": "model",
        "kernel_initializer": "he_normal",
    }
    check_layer(GroupSelfAttention, arguments, {"inputs": X}, {"mask": MASK})


@pytest.mark.parametrize("arguments", [{"offsets": (0, 1, 1, 2), "group_size": 3}, {"group_size": None}])
def test_promises_with_offsets_and_without_groups(arguments):
    """`check_layer` gives every argument another value, and a window has no offsets."""
    layer = GroupSelfAttention(num_heads=4, **arguments)
    outputs = np.array(layer(X, mask=MASK))
    assert outputs.shape == X.shape and outputs[MASK].any(axis=-1).all() and not outputs[~MASK].any()
    check_mode(GroupSelfAttention, {"num_heads": 4, **arguments}, {"inputs": X, "mask": MASK})


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_heads": 0}, "num_heads=0"),
        ({"group_size": 0}, "group_size=0"),
        ({"group_size": 2.5}, "group_size=2.5"),
        ({"num_heads": True}, "num_heads=True"),
        ({"num_heads": 2, "group_size": 3, "offsets": (0.5, 1.0)}, r"offsets=\(0.5, 1.0\)"),
        ({"scale": "sum"}, "scale='sum'"),
        ({"num_heads": 2, "offsets": (0,)}, r"offsets=\(0,\)"),
        ({"num_heads": 2, "group_size": 3, "offsets": (0, 3)}, r"offsets=\(0, 3\)"),
        ({"num_heads": 2, "group_size": None, "offsets": (0, 1)}, r"group_size=None"),
        ({"group_size": None, "window": True}, "window=True"),
        ({"num_heads": 1, "offsets": (1,), "window": True}, r"window=True.*offsets=\(1,\)"),
    ],
)
def test_refuses_arguments(arguments, message):
    with pytest.raises(ValueError, match=f"Received: .*{message}"):
        GroupSelfAttention(**arguments)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 4)])
def test_refuses_shapes(shape):
    with pytest.raises(ValueError, match=r"Received: inputs.shape=\(2, .*num_heads=2"):
        GroupSelfAttention(num_heads=2)(np.zeros(shape, "float32"))
