"""How every promise is written: one transaction, guarded by version, audited, then a wake-up.

Two editors of one row: the second one's version is old, and ``Stale`` says which is current.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.contrib.auth.models import AbstractUser
from django.db import IntegrityError, models, transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _

from gpuplatform.common import audit, clock
from gpuplatform.common.problems import Problem, Rejected, Stale
from gpuplatform.common.wakeup import request_cycle
from queues.descriptions import as_json
from queues.models import OwnedKind, Ownership
from queues.models.fields import Versioned

Row = TypeVar("Row", bound=Versioned)
Guard = Callable[[str, str], Iterable[Problem]]
_guards: list[Guard] = []
ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
OWNED = {"ClusterQueue": OwnedKind.QUEUE, "Namespace": OwnedKind.NAMESPACE}


def register_delete_guard(guard: Guard) -> None:
    """Let a room above refuse deletions; it calls this in its ``AppConfig.ready``.

    ``guard(kind, key)`` yields why the object must stay: kind as in the audit trail
    (``ClusterQueue``), key as there (``cq-datos``, ``ns-datos/lq-datos``).
    """
    if guard not in _guards:
        _guards.append(guard)


@dataclass(frozen=True, slots=True)
class Edit(Generic[Row]):
    """Who writes what, and why. ``key`` names the object in the audit trail."""

    model: type[Row]
    key: str
    actor: AbstractUser | None
    reason: str = ""
    if_version: int | None = None
    team: str = ""

    @property
    def kind(self) -> str:
        """Return the object's kind, as the audit trail spells it: ``ClusterQueue``."""
        return self.model.__name__

    @property
    def noun(self) -> str:
        """Return the object's kind, as actions spell it: ``cluster_queue``."""
        return str(self.model._meta.verbose_name).replace(" ", "_").lower()  # noqa: SLF001

    def find(self, **lookup: Any) -> Row | None:
        """Return the row as it is now, locked where the database can, if it is not stale."""
        rows = self.model._default_manager.select_for_update()  # noqa: SLF001
        row = rows.filter(**lookup).first()
        self._refuse_stale(row.version if row else 0)
        return row

    def _refuse_stale(self, current: int) -> None:
        if self.if_version is not None and self.if_version != current:
            raise Stale([stale(current)])

    def create(self, columns: Mapping[str, Any]) -> Row:
        """Insert a row; somebody who was faster makes this edit stale."""
        try:
            with transaction.atomic():
                row = self.model._default_manager.create(**columns)  # noqa: SLF001
                self._date_owner(None, row)
                return row
        except IntegrityError as error:
            raise Stale([stale(1)]) from error

    def update(self, row: Row, columns: Mapping[str, Any]) -> Row:
        """Change a row if it still has the version that was read, and grow the version."""
        rows = self.model._default_manager.filter(pk=row.pk, version=row.version)  # noqa: SLF001
        grown = {"version": row.version + 1, "updated_at": clock.now()}
        owner = getattr(row, "team_id", None)
        if not rows.update(**columns, **grown):
            raise Stale([stale(row.version + 1)])
        row.refresh_from_db()
        self._date_owner(owner, row)
        return row

    def _date_owner(self, before: int | None, row: Row | None) -> None:
        """Note from when on a queue or namespace is another team's; its past stays where it is."""
        after = getattr(row, "team_id", None)
        if self.kind not in OWNED or after == before:
            return
        thing = {"kind": OWNED[self.kind], "name": self.key}
        if before is not None and not Ownership.objects.filter(**thing).exists():
            Ownership.objects.create(**thing, team_id=before, since=ALWAYS)
        Ownership.objects.create(**thing, team_id=after)

    def remove(self, row: Row, before: object) -> None:
        """Delete a row that nothing needs, and note it."""
        refuse(problem for guard in _guards for problem in guard(self.kind, self.key))
        owner = getattr(row, "team_id", None)
        try:
            row.delete()
        except ProtectedError as error:
            names = ", ".join(sorted({str(other) for other in error.protected_objects})[:5])
            raise Rejected([in_use(names)]) from error
        self._date_owner(owner, None)
        self.note("deleted", before, None)

    def note(self, verb: str, before: object, after: object) -> None:
        """Write the audit entry and ask for a cycle; both are part of the transaction."""
        audit.record(
            self.actor,
            f"{self.noun}.{verb}",
            (self.kind, self.key),
            before=as_json(before),
            after=as_json(after),
            reason=self.reason,
            team=self.team,
        )
        request_cycle(self.noun, self.key)


def store(
    edit: Edit[Row],
    row: Row | None,
    columns: Mapping[str, Any],
    change: tuple[object, object],
    children: Callable[[Row], None] = lambda _row: None,
) -> Row:
    """Make ``row`` hold ``columns`` and its ``children``; ``change`` is (before, after).

    Equal specs are no change: no new version, no audit entry, no wake-up.
    """
    before, after = change
    if row is not None and as_json(before) == as_json(after):
        return row
    written = edit.create(columns) if row is None else edit.update(row, columns)
    children(written)
    edit.note("created" if row is None else "updated", before, after)
    return written


def refuse(problems: Iterable[Problem]) -> None:
    """Raise ``Rejected`` if there is any problem."""
    if found := list(problems):
        raise Rejected(found)


def require_row(row: models.Model | None) -> Iterator[Problem]:
    """Yield a problem if what should be deleted is not there."""
    if row is None:
        yield Problem("name", "not_found", _("there is no such object"))


def in_use(names: str, path: str = "name") -> Problem:
    """Return the problem that others still need the object."""
    return Problem(path, "in_use", _("still used by {names}").format(names=names))


def stale(current: int) -> Problem:
    """Return what is wrong with a write whose version is not the one that stands; 0: none."""
    if current == 0:
        words = _("the object is gone; somebody deleted it since you saw it")
    else:
        words = _(
            "somebody changed this since you saw it, or you did; it is at version {current} now:"
            " get it again"
        )
    return Problem("version", "stale", words.format(current=current), {"current": current})
