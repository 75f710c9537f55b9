"""What a flavor's manifest says beyond Kueue's fields."""

import pytest

from tests.queues.reading import read


@pytest.mark.parametrize("policy", ["fragmentation", "binpack", "spread"])
def test_a_flavor_says_in_an_annotation_how_its_nodes_are_taken(policy):
    (flavor,), diagnostics = read(f"""
    apiVersion: kueue.x-k8s.io/v1beta1
    kind: ResourceFlavor
    metadata: {{name: l40s, annotations: {{gpuplatform.io/placement-policy: {policy}}}}}
    spec: {{nodeLabels: {{kind: l40s}}}}
    """)
    assert (flavor.policy, diagnostics) == (policy, [])


def test_a_policy_that_nobody_knows_is_unreadable():
    _, (found,) = read("""
    apiVersion: kueue.x-k8s.io/v1beta1
    kind: ResourceFlavor
    metadata: {name: l40s, annotations: {gpuplatform.io/placement-policy: luck}}
    """)
    where = "metadata.annotations[gpuplatform.io/placement-policy]"
    assert (found.code, found.path) == ("BAD_VALUE", where)
