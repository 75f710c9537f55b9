"""The audit trail tells of itself whether somebody has changed it."""

import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from threading import Barrier, Thread
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from gpuplatform.common import audit, sealing
from gpuplatform.common.models import AuditEntry, AuditSeal
from gpuplatform.common.tasks import seal_audit

Tampering = Callable[[list[int]], None]


def write(count: int, prefix: str = "q") -> list[int]:
    """Write entries and return their ids."""
    for number in range(count):
        after = {"nominal": number, "note": "ñ", "ratio": 0.1}
        audit.record(
            None,
            "team.updated",
            ("Team", f"{prefix}{number}"),
            after=after,
            reason="so, and why so",
        )
    return list(AuditEntry.objects.order_by("-pk").values_list("pk", flat=True)[:count])[::-1]


def sql(text: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text, values)


def verify(**options: Any) -> tuple[str, bool]:
    """Return what the command prints and whether it is content."""
    out = StringIO()
    try:
        call_command("verify_audit", stdout=out, **options)
    except CommandError:
        return out.getvalue(), False
    return out.getvalue(), True


def sealed_entries() -> list[int]:
    return list(AuditSeal.objects.order_by("number").values_list("entry", flat=True))


def test_an_untouched_trail_is_found_whole_with_its_head(db: None) -> None:
    ids = write(3)
    assert verify() == ("0 entries are sealed, 3 wait for their seal\nhead -\n", True)
    seal_audit()
    head = AuditSeal.objects.get(number=3).digest
    assert verify() == (f"3 entries are sealed, 0 wait for their seal\nhead {head}\n", True)
    assert sealed_entries() == ids
    assert sealing.seal() == 0


def test_a_head_kept_long_ago_is_found_again_in_a_chain_that_has_grown(db: None) -> None:
    write(2)
    sealing.seal()
    head = sealing.verify().head
    write(2)
    sealing.seal()
    assert verify(head=head.upper())[1]


def forge_seal(number: int, entry: int) -> None:
    AuditSeal.objects.create(number=number, entry=entry, digest="f" * 64)


TAMPERINGS: dict[str, tuple[Tampering, str]] = {
    "a reason was changed": (
        lambda ids: sql("UPDATE common_auditentry SET reason = 'x' WHERE id = %s", ids[1]),
        "entry {1} is not what was sealed (seal 2)",
    ),
    "a number deep inside was changed": (
        lambda ids: sql(
            "UPDATE common_auditentry SET after = %s WHERE id = %s",
            json.dumps({"nominal": 999, "note": "ñ", "ratio": 0.1}),
            ids[2],
        ),
        "entry {2} is not what was sealed (seal 3)",
    ),
    "an entry was taken away": (
        lambda ids: sql("DELETE FROM common_auditentry WHERE id = %s", ids[2]),
        "entry {2} is missing (seal 3)",
    ),
    "an entry was taken away with its seal": (
        lambda ids: (
            sql("DELETE FROM common_auditseal WHERE entry = %s", ids[1]),
            sql("DELETE FROM common_auditentry WHERE id = %s", ids[1]),
        ),
        "seal 2 is missing: the next one is 3",
    ),
    "two entries changed places": (
        lambda ids: (
            sql("UPDATE common_auditentry SET subject = 'spare' WHERE id = %s", ids[1]),
            sql("UPDATE common_auditentry SET subject = 'q1' WHERE id = %s", ids[2]),
            sql("UPDATE common_auditentry SET subject = 'q2' WHERE id = %s", ids[1]),
        ),
        "entry {1} is not what was sealed (seal 2)",
    ),
    "two seals changed places": (
        lambda ids: (
            sql("UPDATE common_auditseal SET entry = -1 WHERE number = 2"),
            sql("UPDATE common_auditseal SET entry = %s WHERE number = 3", ids[1]),
            sql("UPDATE common_auditseal SET entry = %s WHERE number = 2", ids[2]),
        ),
        "entry {2} is not what was sealed (seal 2)",
    ),
    "a seal was made up before the first": (
        lambda ids: forge_seal(0, 10**9),
        "seal 1 is missing: the next one is 0",
    ),
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_the_first_entry_that_is_not_what_was_sealed_is_named(what: str, db: None) -> None:
    tamper, found = TAMPERINGS[what]
    ids = write(4)
    sealing.seal()
    tamper(ids)
    text, is_content = verify()
    assert f"broken: {found.format(*ids)}" in text
    assert not is_content


def test_a_tail_cut_off_with_its_seals_is_found_by_who_kept_the_head(db: None) -> None:
    ids = write(5)
    sealing.seal()
    head = sealing.verify().head
    sql("DELETE FROM common_auditseal WHERE number > 3")
    sql("DELETE FROM common_auditentry WHERE id > %s", ids[2])
    assert verify()[1]  # nothing here can tell
    text, is_content = verify(head=head)
    assert f"no seal has the digest {head}: the chain was cut off before it" in text
    assert "ends at seal 3" in text
    assert not is_content


def test_a_chain_made_anew_over_changed_entries_is_found_by_who_kept_the_head(db: None) -> None:
    ids = write(3)
    sealing.seal()
    head = sealing.verify().head
    sql("UPDATE common_auditentry SET reason = 'x' WHERE id = %s", ids[0])
    AuditSeal.objects.all().delete()
    sealing.seal()
    assert verify()[1]
    assert not verify(head=head)[1]


@pytest.mark.parametrize("is_sealed_first", [False, True], ids=["at once", "after a run"])
@pytest.mark.parametrize("where", ["an id long passed", "the newest id"])
def test_an_entry_slipped_into_the_past_is_found(
    where: str, is_sealed_first: bool, db: None
) -> None:
    ids = write(4)
    begun = timezone.now()
    AuditEntry.objects.get(pk=ids[1]).delete()  # an id that a rolled back change used up
    sealing.seal()
    with time_machine.travel(begun + timedelta(hours=3)):
        at = timezone.now() if where == "an id long passed" else begun - timedelta(days=9)
        pk = ids[1] if where == "an id long passed" else ids[3] + 1
        forged = AuditEntry(pk=pk, at=at, actor_name="ada", action="team.updated", subject="q")
        forged.save(force_insert=True)
        if is_sealed_first:
            sealing.seal()
        text, is_content = verify()
    assert f"broken: entry {pk} was slipped in" in text
    assert not is_content


def test_an_entry_that_is_committed_late_is_sealed_and_holds(db: None) -> None:
    ids = write(3)
    late = AuditEntry.objects.get(pk=ids[1])
    late.delete()
    sealing.seal()
    late.pk = ids[1]
    with time_machine.travel(timezone.now() + timedelta(minutes=20)):
        late.save(force_insert=True)
        assert sealing.seal() == 1
    assert sealed_entries() == [ids[0], ids[2], ids[1]]
    with time_machine.travel(timezone.now() + timedelta(days=20)):
        write(1)
        sealing.seal()
        assert verify()[1]


def test_a_clock_that_was_set_back_is_no_tampering(db: None) -> None:
    with time_machine.travel(timezone.now() + timedelta(days=2)):
        write(2)
        sealing.seal()
    write(2)
    assert verify()[1]
    assert sealing.seal() == 2
    write(1)
    assert verify()[1]


def test_a_chain_that_is_behind_is_made_up_in_one_run(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "BATCH", 2)
    ids = write(5)
    assert sealing.seal() == 5
    assert sealed_entries() == ids
    assert AuditSeal.objects.values("at").distinct().count() == 1
    assert verify()[1]


@pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="only on PostgreSQL: SQLite has one writer"
)
def test_several_sealers_at_once_make_one_chain(transactional_db: None) -> None:
    ids, ready = write(40), Barrier(4)

    def work() -> None:
        ready.wait()
        try:
            for _ in range(3):
                sealing.seal()
        finally:
            connection.close()

    sealers = [Thread(target=work) for _ in range(4)]
    for sealer in sealers:
        sealer.start()
    for sealer in sealers:
        sealer.join()
    sealing.seal()
    assert sealed_entries() == ids
    assert verify()[1]


def test_a_sealer_that_lost_its_lease_cannot_fork_the_chain(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(2)
    sealing.seal()
    write(1)
    old_head = AuditSeal.objects.get(number=1)
    monkeypatch.setattr(sealing, "_newest", lambda: old_head)  # it read before the other wrote
    assert sealing.seal() == 0
    monkeypatch.undo()
    assert sealing.seal() == 1
    assert verify()[1]


def test_an_entry_of_a_change_that_is_taken_back_is_never_sealed(db: None) -> None:
    with transaction.atomic():
        write(1)
        transaction.set_rollback(True)
    assert sealing.seal() == 0


def test_page_list_and_file_say_what_is_sealed(
    cast: Any, signed_in: Callable[[Any], Client]
) -> None:
    write(1, "old")
    sealing.seal()
    write(1, "new")
    aud = signed_in(cast.aud)
    page = aud.get("/audit/").content.decode()
    assert page.index("not yet") < page.index(">yes<")
    listed = aud.get("/api/v1/audit/").json()["results"]
    assert [row["sealed"] for row in listed] == [False, True]
    file = b"".join(aud.get("/audit/?format=csv")).decode().splitlines()
    assert [line.rpartition(",")[2].lower() for line in file] == ["sealed", "false", "true"]
