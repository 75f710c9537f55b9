"""A recorded month of many teams as a showback: the quota in force each day, use, idle, money."""

from datetime import date
from fractions import Fraction
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from finops.recorded_months import BadTableError, read_month, showback

FIRST = date(2020, 5, 1)
HEAD = "vc,hour,running_gpus\n"
# Two days: a runs 2 GPUs on both, b 3.5 on the first; on the second a has no quota.
HOURLY = HEAD + "".join(f"a,{hour},2\n" for hour in range(48)) + "b,0,3.5\nb,1,0\n"
QUOTAS = "vc,date,gpus\ntotal,2020-04-01,8\na,2020-04-01,4\na,2020-05-02,0\nb,2020-05-01,4\n"


def test_each_day_is_billed_by_the_quota_in_force_then():
    found = showback(read_month(HOURLY, QUOTAS, FIRST), Fraction(1), "owner")
    a, b = found.rows
    assert [(one.gpus, one.days) for one in a.quotas] == [(4, 1), (0, 1)]
    assert (a.promised, a.used, a.beyond, a.idle) == (96, 96, 48, 48)
    assert (b.promised, b.used, b.beyond, b.idle) == (192, Fraction("3.5"), 0, Fraction("188.5"))
    assert (a.amounts["use"], a.amounts["idle"], a.amounts["all"]) == (96, 48, 144)
    assert (b.amounts["all"], found.unshared, found.total) == (192, 48, 384)
    assert a.utilisation == 50


def test_whoever_bears_idle_the_month_costs_what_it_costs():
    month = read_month(HOURLY, QUOTAS, FIRST)
    for idle in ("separate", "proportional", "even", "owner", "owner_net", "hidden"):
        found = showback(month, Fraction("1.40"), idle)
        shown = sum(row.amounts["all"] for row in found.rows)
        assert shown + found.unshared == found.total == Fraction("537.60")


@pytest.mark.parametrize(
    ("hourly", "quotas", "words"),
    [
        ("vc,hour\n", QUOTAS, "no column running_gpus"),
        (HEAD, QUOTAS, "no hour of anybody"),
        (f"{HEAD}a,0,1\na,0,2\n", QUOTAS, "line 3: hour 0 of a"),
        (f"{HEAD}a,0,many\n", QUOTAS, "line 2: 'many' is no number"),
        (f"{HEAD}a,0,-1\n", QUOTAS, "line 2: '-1' is no number"),
        (f"{HEAD}a,0\n", QUOTAS, "line 2: another number of cells"),
        (HOURLY, "vc,date,gpus\ntotal,soon,8\n", "line 2: 'soon' is no day"),
        (HOURLY, "vc,date,gpus\na,2020-05-01,8\n", "no row of total"),
        (HOURLY, "vc,date,gpus\ntotal,2020-06-01,8\n", "no row of total"),
    ],
)
def test_a_table_that_says_something_impossible_is_refused_with_its_line(hourly, quotas, words):
    with pytest.raises(BadTableError, match=words):
        read_month(hourly, quotas, FIRST)


def test_the_month_of_sixteen_real_teams(shared):
    folder = shared / "data" / "helios-earth"
    out = StringIO()
    tables = folder / "vc_hourly.csv.gz", folder / "vc_quota_changes.csv"
    call_command("showback", *map(str, tables), "--first", "2020-05-01", stdout=out)
    _head, *teams, last = out.getvalue().splitlines()
    assert len(teams) == 16
    cells = {row.split()[0]: row.split() for row in teams}
    # On 9 May nobody had a quota: all of it stood with a stand-in, and what ran was beyond it.
    assert " ".join(cells["vc6YE"][1:10]) == "208 (8 d), 0 (1 d), 208 (22 d)"
    assert cells["vc6YE"][10:] == [
        *("149,760.0", "139,683.7", "4,872.1", "14,948.4", "90.0"),
        *("195,557.14", "20,927.80", "216,484.94"),
    ]
    assert cells["vcJkd"][-4] == "0.9"
    assert last.startswith("424,772.5 of 636,480.0 GPU-hours used (66.7 %)")
    assert last.endswith("891,072.00 EUR in all")


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(CommandError, match="nowhere"):
        call_command("showback", str(tmp_path / "nowhere"), "x", "--first", "2020-05-01")
