"""What is an amount, what is none, and what comes in whole pieces only."""

import pytest

from gpuplatform.common.quantities import NotWholeError, parse_quantity

WHOLE = ("nvidia.com/gpu", "pods", "example.com/x", "volcano.sh/vgpu-memory")
DIVISIBLE = ("memory", "storage", "ephemeral-storage", "hugepages-2Mi")


@pytest.mark.parametrize("resource", WHOLE)
@pytest.mark.parametrize("text", ["1.5", 1.5, "1n", "500m", "15e-1", "0.1k1"])
def test_a_fraction_of_what_comes_whole_is_refused(resource, text):
    with pytest.raises(ValueError, match=r"whole pieces|not a quantity"):
        parse_quantity(resource, text)


@pytest.mark.parametrize("resource", WHOLE)
@pytest.mark.parametrize("text", [2, 2.0, "2", "2.0", "2000m", "0.002k", "2e0"])
def test_a_whole_number_may_be_written_in_any_way(resource, text):
    assert parse_quantity(resource, text) == 2


@pytest.mark.parametrize("resource", DIVISIBLE)
def test_a_fraction_of_the_rest_is_rounded_up(resource):
    assert parse_quantity(resource, "1.5") == 2
    assert parse_quantity(resource, "1n") == 1


def test_cpu_counts_in_thousandths():
    assert parse_quantity("cpu", "1.5") == 1500
    assert parse_quantity("cpu", "1n") == 1


@pytest.mark.parametrize("value", [["x" * 500], "x" * 500, {"x" * 500: 1}, True, None])
def test_a_refusal_repeats_little(value):
    with pytest.raises(ValueError, match="not a quantity") as caught:
        parse_quantity("cpu", value)
    assert len(str(caught.value)) < 120


def test_not_whole_is_a_kind_of_refusal():
    assert issubclass(NotWholeError, ValueError)
