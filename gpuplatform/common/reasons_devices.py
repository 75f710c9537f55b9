"""GPUs told apart: islands, parts, turns, and facts of nodes that cannot be meant."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, WARNING, Reason

DEVICES: dict[str, Reason] = {
    "NEVER_FITS_ISLAND": Reason(
        ERROR,
        _(
            "One pod of {pod_set} needs {need} that are near each other; the largest island of a"
            " node that suits it has {largest}."
        ),
        _("Ask for at most {largest} per pod, or only prefer an island."),
    ),
    "FRAGMENTED:Islands": Reason(
        WARNING,
        _("No island has room for a pod that needs {near} near each other; free in all: {free}."),
        _("It starts once others leave an island; with prefer-island it would wait for none."),
    ),
    "FLAVOR_MISMATCH:OtherGpus": Reason(
        ERROR,
        _("{queue} gives {offers}; the workload asks for {resource}, which is something else."),
        _("Ask for {offers}, or use a queue with quota for {resource}."),
    ),
    "UNCOVERED_RESOURCE:OtherGpus": Reason(
        ERROR,
        _("{queue} gives {offers}; the workload asks for {resource}, which is something else."),
        _("Ask for {offers}, or use a queue with quota for {resource}."),
    ),
    "SHARED_WITHOUT_MEMORY": Reason(
        WARNING,
        _(
            "{pod_set} may share a GPU in turns, as on {node}, and does not say how much device"
            " memory it needs: nothing keeps its neighbours from taking what it counts on."
        ),
        _("Set device_memory_mib, or the annotation gpuplatform.io/gpu-memory on the pods."),
    ),
    "SHARED_MEMORY_UNKNOWN": Reason(
        WARNING,
        _("GPUs of {node} are shared in turns, and no label says how much memory each has."),
        _("Set the label nvidia.com/gpu.memory (MiB), so that it is never promised twice."),
    ),
    "BAD_GPU_FACTS": Reason(ERROR, _("{path} does not describe GPUs.")),
    "BAD_GPU_FACTS:NotANumber": Reason(
        ERROR, _("{path} is {value}; a whole number up to {limit} is read there.")
    ),
    "BAD_GPU_FACTS:NotIslands": Reason(
        ERROR,
        _("{path} is {value}; islands are written as 0-3,4-7, or 0+2,1+3 where they mix."),
    ),
    "BAD_GPU_FACTS:NoneOfThem": Reason(
        ERROR, _("{path} is 0, and the node offers {offered}."), _("Correct one of the two.")
    ),
    "BAD_GPU_FACTS:MoreThanThere": Reason(
        ERROR, _("{path} is {offered}; the GPUs of the node have {most}.")
    ),
    "BAD_GPU_FACTS:NotWholeDevices": Reason(
        ERROR, _("{path} is {cores}; each GPU has 100, so it is a multiple of 100.")
    ),
    "BAD_GPU_FACTS:FewerThanGpus": Reason(
        ERROR, _("{path} is {parts}, fewer than the node's {gpus} GPUs.")
    ),
    "BAD_GPU_FACTS:InTwoIslands": Reason(ERROR, _("GPU {gpu} is in two islands.")),
    "BAD_GPU_FACTS:NoSuchGpu": Reason(
        ERROR, _("An island names GPU {gpu}; the node has {gpus}, counted from 0.")
    ),
    "BAD_GPU_FACTS:InNoIsland": Reason(
        ERROR, _("GPU {gpu} of {gpus} is in no island."), _("Name every GPU in one island.")
    ),
}
