"""Every code has a sentence, and sentences say the numbers the way people do."""

import re
from pathlib import Path

import pytest

from gpuplatform.common import reasons
from scheduling.engine import terms

CODES = [
    code.value
    for family in (
        terms.PendingReason,
        terms.BlockerCode,
        terms.EvictionReason,
        terms.PreemptionReason,
        terms.DiagnosticCode,
    )
    for code in family
]
BLAME = ("you must", "invalid", "illegal", "failed to", "error", "wrong")


ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for room in ("gpuplatform", "queues", "scheduling", "finops")
    for path in sorted((ROOT / room).rglob("*.py"))
    # What an agent reports is no code, nor is the column of a trace.
    if "agent" not in path.relative_to(ROOT).parts and path.parent.name != "replay"
]
# A code is the second argument of a Problem or of what yields one, or the first of a report.
SPOKEN = re.compile(
    r"""(?:Problem|_problem|check_limits_need|_asked)\(\s*[^()"',]*(?:f?"[^"]*")?[^()"',]*,\s*"(\w+)"
    |Diagnostic\(\s*"(\w+)"
    |\.report\(\s*"(\w+)"
    |default_code\s*=\s*"(\w+)"
    |_refusal\(\s*"(\w+)"
    |_refused\(\s*"(\w+)\"""",
    re.VERBOSE,
)


def spoken() -> set[str]:
    """Return every code that the sources say."""
    return {
        code
        for path in SOURCES
        for groups in SPOKEN.findall(path.read_text())
        for code in groups
        if code
    }


def test_every_code_that_can_be_answered_is_in_the_registry() -> None:
    found = spoken()
    assert {"bad_name", "immutable", "no_cohort", "REQUIRED", "QUEUE_REQUIRED", "ANCHOR"} <= found
    assert found - reasons.REGISTRY.keys() == set()


@pytest.mark.parametrize("code", CODES)
def test_every_word_of_the_engine_has_a_sentence(code: str) -> None:
    assert code in reasons.REGISTRY


@pytest.mark.parametrize("code", sorted(reasons.REGISTRY))
def test_sentences_are_whole_plain_and_without_blame(code: str) -> None:
    reason = reasons.REGISTRY[code]

    words = str(reason.sentence)
    assert words.rstrip().endswith((".", "?", "{why}"))
    assert not any(blame in words.lower() for blame in BLAME)
    assert reason.severity in {reasons.ERROR, reasons.WARNING, reasons.INFO}
    assert reasons.sentence(code, {})  # what is not known never breaks a page


@pytest.mark.parametrize(
    ("code", "numbers", "words"),
    [
        (
            "NEVER_FITS_QUEUE",
            {"queue": "cq", "resource": "nvidia.com/gpu", "need": 32, "ceiling": 24}
            | {"largest_gang": 6, "pods": 8},
            "cq can never give 32 GPUs: its ceiling is 24 GPUs, which is 6 of 8 pods.",
        ),
        (
            "NEVER_FITS_QUEUE",  # as the blocker IMPOSSIBLE has it
            {"where": "cq", "resource": "nvidia.com/gpu", "needed": 5, "available": 1},
            "cq can never give 5 GPUs: its ceiling is 1 GPU.",
        ),
        (
            "QUOTA_NOMINAL",
            {"where": "cq", "resource": "cpu", "needed": 128_000, "available": 500, "flavor": "x"},
            "Needs 128 CPU of x; the nominal quota of cq has 500m CPU left.",
        ),
        (
            "FLAVOR_MISMATCH",
            {"flavor": "a100", "cause": "TopologyLevelNotFound", "level": "rack"},
            "The topology of flavor a100 has no level rack.",
        ),
        (
            "FLAVOR_MISMATCH",
            {"where": "a100", "label": "zone", "asks": "x", "has": "y"},
            "Flavor a100 has zone=y; the pods ask for zone=x.",
        ),
    ],
)
def test_numbers_are_said_the_way_people_say_them(
    code: str, numbers: dict[str, str | int], words: str
) -> None:
    assert reasons.sentence(code, numbers) == words


def test_an_instant_is_said_as_a_time_and_date() -> None:
    numbers = {"victims": 3, "until": 1300}
    assert "at 1970-01-01 00:21:40 UTC" in reasons.next_step("MINIMUM_RUNTIME", numbers)
    assert "3 of those that it needs" in reasons.sentence("MINIMUM_RUNTIME", numbers)
    assert "9999-12-31" in reasons.next_step("MINIMUM_RUNTIME", {"until": 10**30})


def test_an_unknown_code_speaks_for_itself_and_counts_as_an_error() -> None:
    assert reasons.sentence("NEWS", {}) == "NEWS"
    assert reasons.severity("NEWS") == reasons.ERROR


def test_a_next_step_that_lacks_a_number_is_left_out() -> None:
    assert reasons.next_step("NEVER_FITS_QUEUE", {}) == ""
    assert "4 GPUs" in reasons.next_step("NEVER_FITS_QUEUE", {"ceiling": 4})


def test_hours_and_promises_are_written_the_way_people_say_them():
    numbers = {
        "rival": "cq-a", "own": "cq-b", "where": "llm",
        "their_hours": "1234.5", "their_gpus": 1, "our_hours": "2345.0", "our_gpus": 16,
    }  # fmt: skip
    assert reasons.sentence("USED_MORE", numbers) == (
        "In llm cq-a goes first: of late it has used 1,234.5 GPU-hours with 1 GPU promised;"
        " cq-b has used 2,345.0 with 16 GPUs promised."
    )


def test_who_gives_way_by_share_reads_the_figures_that_were_compared() -> None:
    """Not "holds less", which the order of turns by past use seems to contradict."""
    told = reasons.sentence(
        "InCohortFairSharing", {"mine": "12.5", "before": "40.0", "after": "25.0"}
    )
    assert "12.5 %" in told
    assert "40.0 %" in told
    assert "25.0 %" in told
    assert "not by past use" in told
    assert "?" not in reasons.sentence("InCohortFairSharing", {"gpus": 8})


def test_a_list_of_our_own_is_told_whole_and_only_what_somebody_sent_is_cut() -> None:
    because = "evicting others while borrowing, cohort, quota, safety from eviction, taking back"
    told = reasons.sentence("PREEMPTION_WITHOUT_CHECKPOINT", {"because": because, "count": 1})
    assert because in told


def test_a_resource_without_quota_names_the_pods_that_ask_for_it() -> None:
    numbers = {"queue": "cq", "resource": "cpu", "pod_set": "head"}
    assert "which head asks for" in reasons.sentence("UNCOVERED_RESOURCE", numbers)
