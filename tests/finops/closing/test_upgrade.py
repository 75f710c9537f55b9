"""The database of every release, filled, is migrated to what stands here, and still adds up.

`make release-fixture` writes the filled database of the present version, for both databases, into
``releases/``. Whoever releases a version commits these two files; from then on they stay as they
are, and so do the migrations that they name.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Sum

from finops.models import BillLine, Freeze, IssuedBill
from finops.selectors.digests import digest_of
from gpuplatform import __version__
from gpuplatform.common import sealing
from gpuplatform.common.backups import Manifest, backup, restore

from .world import charged_june, close

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_it_was")]
RELEASES = Path(__file__).parent / "releases"
WRITE = os.environ.get("RELEASE") == "write"
MOST_BYTES = 300_000


THIS = "this version"
RELEASED = sorted(path.name for path in RELEASES.glob("*.backup"))


def fill(fin: Any, ada: Any, path: Path) -> Manifest:
    """Back up a platform with a closed month and a sealed trail."""
    charged_june()
    close(fin, ada)
    sealing.seal()
    return backup(path)


def upgrade(path: Path) -> None:
    """Take the database of a release to the present version; demand that it adds up."""
    manifest = restore(path, replace=True)
    call_command("migrate", interactive=False, verbosity=0)
    call_command("migrate", check=True, verbosity=0)
    assert sealing.verify(manifest.audit_head).fault == ""
    frozen = list(Freeze.objects.select_related("period"))
    assert frozen
    for freeze in frozen:  # each line of a closed month is what was signed
        assert digest_of(freeze.period, freeze.columns).sha256 == freeze.lines_sha256
    billed = BillLine.objects.filter(bill__period__in=[freeze.period for freeze in frozen])
    issued = IssuedBill.objects.aggregate(total=Sum("amount"))["total"]
    assert billed.aggregate(total=Sum("amount"))["total"] == issued


@pytest.mark.parametrize("release", [*RELEASED, THIS])
def test_the_database_of_a_release_is_migrated_and_adds_up(
    release: str, tmp_path: Path, fin: Any, ada: Any
) -> None:
    path = RELEASES / release
    if release == THIS:
        path = tmp_path / f"{__version__}-{connection.vendor}.backup"
        fill(fin, ada, path)
        assert path.stat().st_size < MOST_BYTES
    elif f"-{connection.vendor}." not in release:
        pytest.skip(f"only on the database of {release}")
    upgrade(path)
    if WRITE and release == THIS:
        RELEASES.mkdir(exist_ok=True)
        (RELEASES / path.name).write_bytes(path.read_bytes())
