"""The audit trail as a chain: whoever changes, takes away or slips in an entry is found out.

A seal holds the SHA-256 of its entry and of the seal before it, so that each vouches for all that
came earlier. Entries are sealed a little later than they are written, by one process at a time: a
chain that every transaction had to extend would make all of them wait for each other. They are
sealed in the order in which they are seen, which is not quite that of their ids: a lower id may
be committed later than a higher one. No transaction of ours lasts longer than ``LATE``. An id
that was passed longer ago is not sealed any more, and an entry that says it was written so long
before a run that did not see it was slipped in.

A tail that was cut off, seals and all, leaves a chain without a fault. Only who keeps a digest
elsewhere finds it (``manage.py verify_audit --head``); the log has each new one.
"""

import hashlib
import json
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import IntegrityError
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from gpuplatform.common import leases
from gpuplatform.common.models import AuditEntry, AuditSeal

LATE = timedelta(hours=1)
BATCH = 1_000  # rows read or written at once
LEASE, LEASE_S = "audit", 60
BEGINNING = ""  # what the first seal stands on
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a look at the whole chain found: ``fault`` is "" where nothing is wrong.

    ``sealed`` counts seals that hold, from the first on; ``head`` is the digest of the last one of
    these, "" where there is none; ``waiting`` counts entries that have no seal yet.
    """

    sealed: int
    head: str
    waiting: int
    fault: str = ""


def digest_of(entry: AuditEntry, number: int, at: datetime, before: str) -> str:
    """Return the SHA-256, in hex, of seal ``number`` made at ``at`` upon the digest ``before``."""
    told = {
        "seal": number,
        "sealed_at": _instant(at),
        "before_this": before,
        "id": entry.pk,
        "at": _instant(entry.at),
        "actor_id": entry.actor_id,
        "actor": entry.actor_name,
        "action": entry.action,
        "kind": entry.subject_kind,
        "subject": entry.subject,
        "team": entry.team,
        "reason": entry.reason,
        "before": entry.before,
        "after": entry.after,
        "request_id": entry.request_id,
    }
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def with_seals(entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
    """Return entries that say by ``sealed`` whether they are; it costs no query of its own."""
    return entries.annotate(sealed=_seal_of_it())


def _seal_of_it() -> Exists:
    return Exists(AuditSeal.objects.filter(entry=OuterRef("pk")))


# ---- sealing -----------------------------------------------------------------------------------


def seal() -> int:
    """Seal all that has no seal yet, or nothing; return how many entries were sealed.

    Any number of processes may do so at once: one of them has the lease, and should it lose it,
    the number of a seal exists only once.
    """
    try:
        with leases.transaction_under(LEASE, leases.unique_holder(), LEASE_S) as held:
            sealed = _extend_chain() if held else 0
    except IntegrityError:  # somebody was faster; what is left is theirs or the next run's
        logger.warning("audit.sealed_by_another")
        return 0
    if sealed:
        head = _newest()
        logger.info("audit.sealed %s, head %s", head.number if head else 0, _digest(head))
    return sealed


def _extend_chain() -> int:
    """Seal entries in one run, at one instant; a chain that is behind is never half made up."""
    at, head = timezone.now(), _newest()
    first = number = head.number if head else 0
    digest, passed = _digest(head), _passed(at)
    while entries := list(_unsealed(passed)[:BATCH]):
        seals = []
        for entry in entries:
            number += 1
            digest = digest_of(entry, number, at, digest)
            seals.append(AuditSeal(number=number, entry=entry.pk, at=at, digest=digest))
        AuditSeal.objects.bulk_create(seals)
        passed = entries[-1].pk
    return number - first


def _unsealed(passed: int = 0) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(~_seal_of_it(), pk__gt=passed).order_by("pk")


def _newest() -> AuditSeal | None:
    return AuditSeal.objects.order_by("-number").first()


def _digest(seal: AuditSeal | None) -> str:
    return seal.digest if seal else BEGINNING


def _passed(at: datetime) -> int:
    """Return the highest id that had been sealed when ``LATE`` began; it reads an hour's seals."""
    old = AuditSeal.objects.filter(at__lt=at - LATE).order_by("-entry")
    return old.values_list("entry", flat=True).first() or 0


# ---- looking -----------------------------------------------------------------------------------


def verify(kept: str = "") -> Verdict:
    """Compute the whole chain anew and return the first fault, if there is one.

    Args:
        kept: the digest of a seal that was noted elsewhere; a chain in which it does not occur
            was cut off before it, or made anew.
    """
    chain = _Chain(kept)
    for seal, entry in _links():
        if fault := chain.fault_of(seal, entry):
            break
        chain.go_on(seal)
    else:
        fault = chain.fault_at_the_end()
    return Verdict(chain.number, chain.digest, _unsealed().count(), fault)


class _Chain:
    """How far the chain was found to hold."""

    def __init__(self, kept: str) -> None:
        self.number, self.digest = 0, BEGINNING
        self.kept, self.is_kept_seen = kept, not kept
        self.recent: deque[AuditSeal] = deque()  # younger than LATE
        self.passed = 0  # the highest id that was sealed longer ago
        self.run: datetime | None = None  # when the last run was, and the one before it
        self.last_run: datetime | None = None

    def fault_of(self, seal: AuditSeal, entry: AuditEntry | None) -> str:
        """Return what is wrong with the next link, or ""."""
        if seal.number != self.number + 1:
            return f"seal {self.number + 1} is missing: the next one is {seal.number}"
        if entry is None:
            return f"entry {seal.entry} is missing (seal {seal.number})"
        if digest_of(entry, seal.number, seal.at, self.digest) != seal.digest:
            return (
                f"entry {entry.pk} is not what was sealed (seal {seal.number}):"
                " it was changed, or stands in another's place"
            )
        if seal.at != self.run:
            self.last_run, self.run = self.run, seal.at
        return self._slipped_in(entry, seal.at, self.last_run)

    def go_on(self, seal: AuditSeal) -> None:
        """Take a link that holds."""
        self.number, self.digest = seal.number, seal.digest
        self.recent.append(seal)
        self.is_kept_seen |= seal.digest == self.kept

    def fault_at_the_end(self) -> str:
        """Return what is wrong with a chain whose links all hold, or ""."""
        if not self.is_kept_seen:
            return (
                f"no seal has the digest {self.kept}: the chain was cut off before it or made"
                f" anew, and ends at seal {self.number}"
            )
        now = timezone.now()
        faults = (self._slipped_in(entry, now, self.run) for entry in _unsealed().iterator())
        return next(filter(None, faults), "")

    def _slipped_in(self, entry: AuditEntry, at: datetime, last_run: datetime | None) -> str:
        """Return that an entry, sealed ``at``, should have been seen by an earlier run, or ""."""
        while self.recent and self.recent[0].at < at - LATE:
            self.passed = max(self.passed, self.recent.popleft().entry)
        if entry.pk < self.passed:
            return f"entry {entry.pk} was slipped in: higher ids were sealed long before it"
        # Where the clock was set back, times say nothing.
        if last_run is not None and entry.at < last_run - LATE and last_run <= at:
            return (
                f"entry {entry.pk} was slipped in: it says that it was written at"
                f" {_instant(entry.at)}, and was not there at {_instant(last_run)}"
            )
        return ""


def _links() -> Iterator[tuple[AuditSeal, AuditEntry | None]]:
    """Yield all seals in their order, each with its entry if it is there; BATCH rows at once."""
    after = -(2**62)  # a forged seal may have any number
    while seals := list(AuditSeal.objects.filter(number__gt=after).order_by("number")[:BATCH]):
        entries = AuditEntry.objects.in_bulk([seal.entry for seal in seals])
        yield from ((seal, entries.get(seal.entry)) for seal in seals)
        after = seals[-1].number


def words(verdict: Verdict) -> Iterable[str]:
    """Yield the lines that a person reads."""
    yield f"{verdict.sealed} entries are sealed, {verdict.waiting} wait for their seal"
    yield f"head {verdict.head or '-'}"
    if verdict.fault:
        yield f"broken: {verdict.fault}"
