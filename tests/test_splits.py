import pytest

from zoo.data import Group
from zoo.splits import hold_out, is_mixed, normalise


def group(query, *labels, name=""):
    return Group(name or query, (query,), tuple((f"{query} {i}",) for i in range(len(labels))), labels)


def test_normalise_and_mixed():
    assert normalise(("A  b\n", "ß\u3000C")) == "a b ss c"
    assert is_mixed(group("a", 0.0, 1.0))
    assert not is_mixed(group("a", 1.0)) and not is_mixed(group("a", 0.0)) and not is_mixed(group("a"))


def test_equal_queries_stay_together_and_the_order_of_the_file_does_not_matter():
    groups = [group(f"q{i // 2}", 0.0, 1.0, name=str(i)) for i in range(100)]
    kept, held = hold_out(groups, 20, seed=1)
    assert len(held) == 20 and len(kept) == 80
    assert not {g.query for g in kept} & {g.query for g in held}
    assert [g for g in groups if g in held] == held  # the order given
    _, again = hold_out(groups[::-1], 20, seed=1)
    assert sorted(again) == sorted(held)
    assert hold_out(groups, 20, seed=2)[1] != held


def test_few_mixed_queries():
    others = [group(f"n{i}", 0.0) for i in range(30)]
    for mixed, expected in ((0, 0), (1, 0), (2, 1), (3, 1)):
        kept, held = hold_out(others + [group(f"m{i}", 1.0, 0.0) for i in range(mixed)], 3, seed=0)
        assert sum(map(is_mixed, held)) == expected and len(held) == 3
        assert sum(map(is_mixed, kept)) == mixed - expected


def test_train_keeps_a_query_and_a_large_one_can_be_held_out():
    kept, held = hold_out([group("a", 1.0), group("b", 0.0)], 5, seed=0)
    assert len(kept) == len(held) == 1
    kept, held = hold_out(
        [group("a", 1.0, 0.0, name=str(i)) for i in range(3)] + [group("a ", 1.0), group("b", 0.0)], 1, 0
    )
    assert len(held) == 1 and held[0].query == ("b",)  # the only mixed query stays
    _, held = hold_out([group(q, 1.0, 0.0, name=q + str(i)) for i in range(3) for q in "ab"], 1, seed=0)
    assert len(held) == 3


def test_refusals():
    with pytest.raises(ValueError, match="Received: number of distinct queries=1"):
        hold_out([group("a", 1.0), group("A ", 0.0)], 1, seed=0)
    with pytest.raises(ValueError, match="Received: count=0"):
        hold_out([group("a", 1.0), group("b", 0.0)], 0, seed=0)
