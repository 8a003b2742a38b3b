"""The figure of the cost chapter: it shows the tables of `cost`, all of them."""

import pytest

pytest.importorskip("anywidget")

import traitlets

from rmsnorm_edu import cost, explorables
from rmsnorm_edu.explorables import roofline as figure


def test_every_operation_is_in_one_family_and_one_way():
    ways = [way for family in figure.data()["families"].values() for way in family["ways"]]
    assert sorted(operation for _, operation in ways) == sorted(cost.OPERATIONS)
    assert {way for way, _ in ways} == set(figure.WAYS)


def test_a_family_is_compared_with_the_other_norm_in_the_same_ways():
    families = figure.data()["families"]
    for name, family in families.items():
        if family["beside"]:
            other = families[family["beside"]]
            assert other["beside"] == name
            assert other["norm"] != family["norm"]
            assert [way for way, _ in other["ways"]] == [way for way, _ in family["ways"]]


def test_the_chips_and_the_reported_times_are_those_of_cost():
    data = figure.data()
    for key, chip in cost.CHIPS.items():
        assert data["chips"][key]["bandwidth"] == chip.bandwidth
        rates = data["chips"][key]["flops"]
        assert rates == {d: r for d, r in chip.flops.items() if d in figure.DTYPES}
    assert [cost.Report(*point) for point in data["points"]] == cost.REPORTED


@pytest.mark.parametrize(
    "change",
    [{"operation": "loop"}, {"chip": "P100"}, {"dtype": "float64"}, {"rows": 3}, {"n": 100}],
)
def test_it_refuses_what_it_cannot_show(change):
    with pytest.raises(traitlets.TraitError):
        explorables.Roofline(**change)


def test_the_recorded_processor_is_a_chip_as_fast_as_its_largest_copy():
    entry = {"direction": "forward", "dtype": "float32"}
    entries = [
        entry | {"method": "copy", "shape": [512, 8192], "ms_median": 1.0},
        entry | {"method": "copy", "shape": [8192, 4096], "ms_median": 10.0},
        entry | {"method": "loop", "shape": [8, 4096], "ms_median": 20.0},
        entry | {"method": "fused", "shape": [8192, 4096], "ms_median": 12.0},
        entry | {"method": "fused", "shape": [8192, 4096], "ms_median": 40.0, "direction": "both"},
        entry | {"method": "torch.nn.LayerNorm", "shape": [8192, 4096], "ms_median": 40.0},
    ]
    ladder = {"dtype": "float32", "shapes": [[512, 8192], [8192, 4096]], "entries": entries}
    data = figure.data(ladder)
    assert data["chips"]["CPU"]["bandwidth"] == pytest.approx(2 * 8192 * 4096 * 4 / 10e-3)
    assert data["chips"]["CPU"]["flops"] == {}
    own = data["points"][len(cost.REPORTED) :]
    assert own == [["fused", "CPU", "forward", 8192, 4096, "float32", pytest.approx(12e-3)]]
    assert "CPU" in explorables.Roofline().data["chips"]
