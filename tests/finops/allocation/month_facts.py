"""The articles' month and strategies for random ones."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from finops.allocation.draft.bill import BillLine, MonthBill
from finops.allocation.draft.facts import (
    CapacityFact,
    Facts,
    Holding,
    Period,
    Policy,
    PriceFact,
    QuotaFact,
    UsageFact,
)

JUNE = Period(datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))
RATE = Decimal("1.40")
POLICIES = [
    Policy(idle, scope)
    for idle in ("separate", "hidden", "proportional", "even", "owner", "owner_net")
    for scope in ("flavor", "cluster")
]


def june(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 6, day, hour, tzinfo=UTC)


def held(
    team: str | None,
    gpus: int,
    start: datetime,
    end: datetime | None,
    *,
    workload: str = "w",
    queue: str | None = None,
    flavor: str = "h100",
    holding: Holding = "nominal",
    lender: str | None = None,
) -> UsageFact:
    queue = f"cq-{team}" if queue is None else queue
    return UsageFact(workload, team, queue, flavor, gpus, holding, lender, start, end)


def hours(team: str, gpus: int, gpu_hours: int, start: datetime, **more: str) -> UsageFact:
    assert gpu_hours % gpus == 0
    return held(team, gpus, start, start + timedelta(hours=gpu_hours // gpus), **more)


PRICES = (PriceFact("h100", RATE, june(1)),)
NODE = (CapacityFact("node-1", "h100", 4, june(1)),)
QUOTAS = (
    QuotaFact("cq-datos", "datos", "h100", 2, june(1)),
    QuotaFact("cq-ia", "ia", "h100", 1, june(1)),
    QuotaFact("cq-plataforma", "plataforma", "h100", 1, june(1)),
)
USAGE = (
    hours("datos", 2, 1080, june(1)),
    hours("ia", 1, 432, june(1)),
    hours("plataforma", 1, 252, june(3)),
)
# Datos serves a 70B model on 4 GPUs for 270 h; 2 are its own, 1 of each neighbour's.
TP4_USAGE = (
    hours("datos", 2, 540, june(1)),
    hours("datos", 1, 270, june(1), holding="borrowed", lender="cq-ia"),
    hours("datos", 1, 270, june(1), holding="borrowed", lender="cq-plataforma"),
    hours("ia", 1, 432, june(12, 6)),
    hours("plataforma", 1, 252, june(12, 6)),
)
SEED = Facts(JUNE, PRICES, NODE, USAGE, QUOTAS)


def euros(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


def amounts(bill: MonthBill, *kinds: str) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for line in bill.lines:
        if line.kind in kinds:
            sums[line.row] = sums.get(line.row, Decimal("0.00")) + line.amount
    return sums


def only(bill: MonthBill, kind: str) -> BillLine:
    (line,) = [line for line in bill.lines if line.kind == kind]
    return line


# -- random months -------------------------------------------------------------------------

FLAVORS = ["a100", "h100"]
TEAMS = ["datos", "ia", None]
ZONES = ["UTC", "Europe/Madrid", "America/Havana", "Asia/Kathmandu"]
START = datetime(2026, 3, 26, tzinfo=UTC)  # the clocks change inside
END = START + timedelta(days=7)

seconds_st = st.integers(-86_400, 8 * 86_400)


@st.composite
def windows(draw: st.DrawFn) -> tuple[datetime, datetime | None]:
    start = START + timedelta(seconds=draw(seconds_st), microseconds=draw(st.integers(0, 999)))
    length = draw(st.none() | st.integers(1, 5 * 86_400))
    return start, None if length is None else start + timedelta(seconds=length)


@st.composite
def usage_facts(draw: st.DrawFn) -> UsageFact:
    start, end = draw(windows())
    holding = draw(st.sampled_from(["nominal", "borrowed", "unmanaged"]))
    lender = draw(st.sampled_from([None, "cq-datos", "cq-ia"])) if holding == "borrowed" else None
    team = draw(st.sampled_from(TEAMS))
    queue = draw(st.sampled_from(["cq-datos", "cq-ia", ""]))
    flavor = draw(st.sampled_from(FLAVORS))
    return UsageFact(
        "w", team, queue, flavor, draw(st.integers(0, 8)), holding, lender, start, end
    )


@st.composite
def price_lists(draw: st.DrawFn) -> tuple[PriceFact, ...]:
    prices = []
    for flavor in FLAVORS:
        cuts = sorted(draw(st.sets(seconds_st, min_size=1, max_size=4)))
        for cut, following in zip(cuts, [*cuts[1:], None], strict=True):
            if draw(st.integers(0, 5)):  # now and then a gap
                end = None if following is None else START + timedelta(seconds=following)
                rate = draw(st.decimals(0, 10, places=4))
                prices.append(PriceFact(flavor, rate, START + timedelta(seconds=cut), end))
    return tuple(prices)


@st.composite
def months(draw: st.DrawFn) -> Facts:
    capacity = []
    for number in range(draw(st.integers(0, 3))):
        start, end = draw(windows())
        flavor = draw(st.sampled_from(FLAVORS))
        gpus = draw(st.integers(0, 8))
        capacity.append(CapacityFact(f"node-{number}", flavor, gpus, start, end))
    quotas = [
        QuotaFact(f"cq-{team}", team, flavor, draw(st.integers(0, 6)), *draw(windows()))
        for team in ("datos", "ia")
        for flavor in FLAVORS
    ]
    return Facts(
        Period(START, END, draw(st.sampled_from(ZONES))),
        draw(price_lists()),
        tuple(capacity),
        tuple(draw(st.lists(usage_facts(), max_size=6))),
        tuple(quotas),
        draw(st.sampled_from([(), ("datos",), ("datos", "ia")])),
    )


policies_st = st.sampled_from(POLICIES)
