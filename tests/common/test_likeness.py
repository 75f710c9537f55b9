"""A name that is not there is answered with the one that was probably meant."""

import pytest

from gpuplatform.common.likeness import nearest_name

QUEUES = ("lq-datos", "lq-vision", "cq-shared")


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("lq-dato", "lq-datos"),
        ("LQ_Datos", "lq-datos"),
        ("datos", "lq-datos"),
        ("lq-visoin", "lq-vision"),
        ("training", ""),
        ("", ""),
        ("x" * 5000, ""),
    ],
)
def test_the_nearest_name_is_told_and_none_where_nothing_is_near(given, nearest):
    assert nearest_name(given, QUEUES) == nearest
    assert nearest_name(given, ()) == ""


def test_a_name_keeps_its_own_spelling():
    assert nearest_name("clusterqueues", ["ClusterQueue", "LocalQueue"]) == "ClusterQueue"
