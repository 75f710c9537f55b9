"""Reading the parts of a scenario into the engine's own values (``FORMAT.md`` 1).

The optional fields beyond that format are described in ``docs/scenarios.md``.
"""

from scheduling.engine.kueue.rooms import HOSTS
from scheduling.engine.machines import PODS, Flavor, Node, Taint, Toleration, Topology
from scheduling.engine.queue_rules import Fungibility, MinimumRuntime
from scheduling.engine.scenario.fields import Fields
from scheduling.engine.snapshot import (
    Admission,
    Assignment,
    ClusterQueue,
    Cohort,
    Expression,
    FlavorQuotas,
    FlavorResource,
    PodSet,
    Preemption,
    Quota,
    ResourceGroup,
    SliceLayer,
    TopologyRequest,
    Workload,
)
from scheduling.engine.terms import (
    BorrowWithinCohort,
    Fairness,
    FlavorPreference,
    FlavorSearch,
    Operator,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
    TopologyMode,
    WithinClusterQueue,
)

MOST_PRIORITY = 2**31 - 1
USAGE_BASED = "UsageBasedAdmissionFairSharing"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def read_topology(fields: Fields) -> Topology:
    """Return a topology; levels outermost first."""
    topology = Topology(fields.name("name"), fields.texts("levels"))
    if not topology.levels:
        fields.problem("must name at least one level", "levels")
    fields.done()
    return topology


def read_node(fields: Fields) -> Node:
    """Return a node. It carries its name as the label ``host``; ``used`` counts as one pod."""
    name, used = fields.name("name"), fields.amounts("used")
    node = Node(
        name=name,
        labels={"host": name, **fields.labels("labels")},
        allocatable=fields.amounts("allocatable"),
        taints=_taints(fields, "taints"),
        ready=fields.flag("ready", default=True),
        schedulable=not fields.flag("unschedulable", default=False),
        unmanaged={**used, PODS: used.get(PODS, 0) + 1} if used else {},
    )
    fields.done()
    return node


def _taints(fields: Fields, name: str) -> tuple[Taint, ...]:
    taints = []
    for one in fields.objects(name):
        effect = one.text("effect", "NoSchedule")
        if effect not in _EFFECTS:
            one.problem(f"must be one of {', '.join(_EFFECTS)}", "effect")
        taints.append(Taint(one.text("key"), one.text("value", ""), effect))
        one.done()
    return tuple(taints)


def _tolerations(fields: Fields) -> tuple[Toleration, ...]:
    tolerations = []
    for one in fields.objects("tolerations"):
        operator = one.text("operator", "Equal")
        if operator not in ("Equal", "Exists"):
            one.problem("must be Equal or Exists", "operator")
        key, value, effect = one.text("key", ""), one.text("value", ""), one.text("effect", "")
        tolerations.append(Toleration(key, operator, value, effect))
        one.done()
    return tuple(tolerations)


def read_flavor(fields: Fields) -> Flavor:
    """Return a flavor."""
    flavor = Flavor(
        name=fields.name("name"),
        node_labels=fields.labels("node_labels"),
        node_taints=_taints(fields, "node_taints"),
        tolerations=_tolerations(fields),
        topology=fields.name("topology", None),
    )
    fields.done()
    return flavor


def read_quota(fields: Fields) -> Quota:
    """Return nominal and limits; an absent limit is none."""
    return Quota(
        fields.integer("nominal"),
        fields.integer("borrowing_limit", None),
        fields.integer("lending_limit", None),
    )


def _groups(fields: Fields) -> tuple[ResourceGroup, ...]:
    groups = []
    for group in fields.objects("resource_groups"):
        covered, flavors = group.texts("covered_resources"), []
        for flavor in group.objects("flavors"):
            lines, quotas = flavor.object("resources"), {}
            for resource in lines.keys():  # noqa: SIM118 - it marks them as read
                line = lines.object(resource)
                quotas[resource] = read_quota(line)
                line.done()
                if resource not in covered:
                    lines.problem("is not a covered resource", resource)
            for resource in covered:
                if resource not in quotas:
                    lines.problem("is required: the group covers it", resource)
            flavors.append(FlavorQuotas(flavor.name("name"), quotas))
            flavor.done()
        groups.append(ResourceGroup(covered, tuple(flavors)))
        group.done()
    return tuple(groups)


def read_cohort(fields: Fields) -> Cohort:
    """Return a cohort with what it adds to its members' quotas."""
    cohort = Cohort(
        name=fields.name("name"),
        parent=fields.name("parent", None),
        fairness=fields.choice("fairness", Fairness, Fairness.NONE),
        fair_weight=fields.number("fair_weight", 1.0, least=0),
        quotas={
            FlavorResource(flavor.flavor, resource): quota
            for group in _groups(fields)
            for flavor in group.flavors
            for resource, quota in flavor.quotas.items()
        },
    )
    fields.done()
    return cohort


def read_queue(fields: Fields) -> ClusterQueue:
    """Return a ClusterQueue with Kueue's defaults."""
    mode = fields.text("admission_mode", "")
    if mode not in ("", USAGE_BASED):
        fields.problem(f"must be absent or {USAGE_BASED}", "admission_mode")
    queue = ClusterQueue(
        name=fields.name("name"),
        cohort=fields.name("cohort", None),
        groups=_groups(fields),
        preemption=_preemption(fields.object("preemption")),
        queueing_strategy=fields.choice(
            "queueing_strategy", QueueingStrategy, QueueingStrategy.BEST_EFFORT_FIFO
        ),
        stop_policy=fields.choice("stop_policy", StopPolicy, StopPolicy.NONE),
        reclaimable=fields.flag("reclaimable", default=True),
        fair_weight=fields.number("fair_weight", 1.0, least=0),
        fungibility=_fungibility(fields.object("flavor_fungibility")),
        usage_based=mode == USAGE_BASED,
        priority_first=fields.flag("usage_priority_first", default=False),
        minimum_runtime=MinimumRuntime(
            fields.number("minimum_runtime_s", 0.0, least=0),
            fields.flag("minimum_runtime_yields_to_own", default=False),
        ),
    )
    fields.done()
    return queue


def _preemption(fields: Fields) -> Preemption:
    borrowing = fields.object("borrow_within_cohort")
    preemption = Preemption(
        fields.choice("within_cluster_queue", WithinClusterQueue, WithinClusterQueue.NEVER),
        fields.choice("reclaim_within_cohort", ReclaimWithinCohort, ReclaimWithinCohort.NEVER),
        borrowing.choice("policy", BorrowWithinCohort, BorrowWithinCohort.NEVER),
        borrowing.integer("max_priority_threshold", None, least=-(2**31), most=MOST_PRIORITY),
    )
    borrowing.done()
    fields.done()
    return preemption


def _fungibility(fields: Fields) -> Fungibility:
    default = Fungibility()
    fungibility = Fungibility(
        fields.choice("when_can_borrow", FlavorSearch, default.when_can_borrow),
        fields.choice("when_can_preempt", FlavorSearch, default.when_can_preempt),
        fields.choice("preference", FlavorPreference, default.preference),
    )
    fields.done()
    return fungibility


def read_workload(fields: Fields, queues: dict[str, str]) -> Workload:
    """Return a workload; ``queues`` maps local queues to cluster queues."""
    name, local = fields.name("name"), fields.name("queue")
    pod_sets = tuple(_pod_set(one) for one in fields.objects("pod_sets"))
    if not pod_sets and fields.raw("pod_sets") in (None, []):
        fields.problem("must hold at least one pod set", "pod_sets")
    admission = fields.object("admission")
    workload = Workload(
        key=name,
        name=name,
        queue=queues.get(local),
        priority=read_priority(fields, 0),
        created_at=fields.number("created_at"),
        pod_sets=pod_sets,
        admission=_admission(admission) if fields.has("admission") else None,
        preemptible=fields.flag("preemptible", default=True),
        local_queue=local,
        last_checkpoint_at=fields.number("last_checkpoint_at", None),
        reclaimable=fields.amounts("reclaimable"),
        replaces=fields.text("replaces", ""),
    )
    fields.done()
    return workload


def read_priority(fields: Fields, *default: int) -> int:
    """Return the field ``priority``; required without a default."""
    return int(fields.integer("priority", *default, least=-(2**31), most=MOST_PRIORITY))


def _pod_set(fields: Fields) -> PodSet:
    asked = fields.has("topology_request")
    request = fields.object("topology_request")
    pod_set = PodSet(
        name=fields.name("name"),
        count=fields.integer("count"),
        requests=fields.amounts("requests"),
        node_selector=fields.labels("node_selector"),
        tolerations=_tolerations(fields),
        topology=_request(request) if asked else None,
        min_count=fields.integer("min_count", None),
        affinity=_affinity(fields),
        charges=fields.amounts("charges") if fields.has("charges") else None,
    )
    if pod_set.min_count is not None and pod_set.min_count > pod_set.count:
        fields.problem("must not be above count", "min_count")
    fields.done()
    return pod_set


def _affinity(fields: Fields) -> tuple[tuple[Expression, ...], ...]:
    """Return the node affinity: terms of which one must hold, as in Kubernetes."""
    terms = []
    for term in fields.objects("affinity"):
        terms.append(tuple(_expression(one) for one in term.objects("match_expressions")))
        term.done()
    return tuple(terms)


def _expression(fields: Fields) -> Expression:
    operator = fields.choice("operator", Operator, Operator.IN)
    expression = Expression(fields.name("key"), operator, fields.texts("values"))
    if operator in (Operator.IN, Operator.NOT_IN) and not expression.values:
        fields.problem(f"must not be empty for {operator}", "values")
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and expression.values:
        fields.problem(f"must be empty for {operator}", "values")
    if operator in (Operator.GREATER, Operator.LESS) and not _one_integer(expression.values):
        fields.problem(f"must be one whole number for {operator}", "values")
    fields.done()
    return expression


def _one_integer(values: tuple[str, ...]) -> bool:
    return len(values) == 1 and values[0].lstrip("-").isdecimal()


def _request(fields: Fields) -> TopologyRequest:
    required, preferred = fields.name("required", None), fields.name("preferred", None)
    fields.flag("unconstrained", default=False)
    if required and preferred:
        fields.problem("required and preferred exclude each other")
    mode = TopologyMode.UNCONSTRAINED
    if required or preferred:
        mode = TopologyMode.REQUIRED if required else TopologyMode.PREFERRED
    request = TopologyRequest(
        mode,
        required or preferred,
        fields.name("slice_required", None),
        fields.integer("slice_size", 1, least=1),
        fields.text("group", ""),
        tuple(_slice(one) for one in fields.objects("slices")),
    )
    if request.slices and request.slice_level:
        fields.problem("slices and slice_required exclude each other", "slices")
    fields.done()
    return request


def _slice(fields: Fields) -> SliceLayer:
    layer = SliceLayer(fields.name("level"), fields.integer("size", least=1))
    fields.done()
    return layer


def _admission(fields: Fields) -> Admission:
    assignments = tuple(_assignment(one) for one in fields.objects("pod_sets"))
    admission = Admission(fields.number("reserved_at"), assignments)
    fields.done()
    return admission


def _assignment(fields: Fields) -> Assignment:
    topology, nodes = fields.object("topology"), dict[str, int]()
    levels = topology.texts("levels")
    for domain in topology.objects("domains"):
        name = domain_name(levels, domain.texts("values"))
        if name in nodes:
            domain.problem(f"{name!r} is there twice", "values")
        nodes[name] = domain.integer("count")
        domain.done()
    topology.done()
    name, count = fields.name("name"), fields.integer("count")
    assignment = Assignment(name, count, fields.labels("flavors"), nodes)
    fields.done()
    return assignment


def domain_name(levels: tuple[str, ...], values: tuple[str, ...]) -> str:
    """Return a lowest domain's name: its host, or its path joined by ``/``."""
    return values[-1] if levels and levels[-1] in HOSTS and values else "/".join(values)
