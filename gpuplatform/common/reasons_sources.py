"""What can be wrong with a source of cost or usage, with an answer of it, or with a day's load."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, INFO, WARNING, Reason

_RELOAD = _("It is asked again by itself; the day stays a visible gap until then.")

# A source did not answer, or not so that it can be used: nothing of the day was changed.
FAILURES: dict[str, Reason] = {
    "SOURCE_UNREACHABLE": Reason(
        ERROR, _("The source cannot be reached ({problem})."), _("Look whether it runs.")
    ),
    "SOURCE_TIMED_OUT": Reason(ERROR, _("The source did not answer within {seconds} s."), _RELOAD),
    "SOURCE_BROKE_OFF": Reason(ERROR, _("The answer broke off before its end."), _RELOAD),
    "SOURCE_ANSWERED": Reason(
        ERROR,
        _("The source answered with status {status} and said: {said}."),
        _RELOAD,
        short=_("The source answered with status {status}."),
    ),
    "SOURCE_REFUSED_US": Reason(
        ERROR,
        _("The source refused the key it was shown (status {status})."),
        _("Check the secret in the environment of the platform."),
    ),
    "SOURCE_REDIRECTED": Reason(
        ERROR,
        _("The source sends us elsewhere (status {status}); no other address is followed."),
        _("Enter the address that really answers."),
    ),
    "SOURCE_TOO_LARGE": Reason(
        ERROR,
        _("The answer is larger than {limit} bytes."),
        _("Tell its rows apart by fewer labels."),
    ),
    "SOURCE_BROKEN_ANSWER": Reason(
        ERROR,
        _("The answer is no whole JSON: {problem} ({bytes} bytes, SHA-256 {sha256})."),
        _RELOAD,
    ),
    "SOURCE_WRONG_SHAPE": Reason(ERROR, _("The answer is not what was expected: {problem}.")),
    "SOURCE_NO_DATA": Reason(
        ERROR,
        _("The source has nothing about this time. That is a gap, not a cost of zero."),
        _("Look whether it, and the Prometheus behind it, ran then."),
    ),
    "SOURCE_WRONG_WINDOW": Reason(
        ERROR, _("The source was asked about {asked} and answered about {answered}.")
    ),
    "SOURCE_BAD_ADDRESS": Reason(
        ERROR,
        _("{url} is not an address like https://host/path, without name, password or question."),
    ),
    "SOURCE_HOST_NOT_ALLOWED": Reason(
        ERROR,
        _("The operator of the platform does not allow calls to {host}."),
        _("Name the host in the setting SOURCE_HOSTS."),
    ),
    "SOURCE_NO_SECRET": Reason(
        ERROR, _("The environment of the platform has no {variable}."), _("Set it and restart.")
    ),
    "SOURCE_BAD_SECRET": Reason(
        ERROR,
        _("The address of the database, which is a secret, cannot be read."),
        _("Write it like postgresql://reader:password@host:5432/litellm."),
    ),
    "SOURCE_NO_TABLE": Reason(
        ERROR,
        _("The database has no table {table} that its reader may see."),
        _("Grant the reader SELECT on it."),
    ),
    "SOURCE_NO_COLUMNS": Reason(
        ERROR,
        _("The table {table} has no {columns}; nothing can be counted without."),
    ),
    "SOURCE_FAILED": Reason(ERROR, _("The database refused the question ({sqlstate}).")),
    "SOURCE_REPEATS": Reason(
        ERROR, _("Page {pages} brings nothing that the pages before it did not bring."), _RELOAD
    ),
    "SOURCE_TOO_MANY_PAGES": Reason(ERROR, _("The answer has more than {limit} pages.")),
    "SOURCE_NOT_RECORDED": Reason(ERROR, _("The kept answer does not hold this question.")),
    "SOURCE_BUSY": Reason(INFO, _("Another process is reading this source.")),
}

# The rows were used, or wait; this is what somebody should know about them.
DOUBTS: dict[str, Reason] = {
    "SOURCE_WARNED": Reason(WARNING, _("The source warns and says: {said}.")),
    "SOURCE_UNKNOWN_NUMBERS": Reason(
        WARNING, _("{rows} rows leave numbers open ({fields}); they count as 0.")
    ),
    "SOURCE_TOTALS_DIFFER": Reason(
        WARNING, _("{rows} rows have a total that is not the sum of their parts.")
    ),
    "SOURCE_EMPTY_PARTS": Reason(
        WARNING, _("The day was read in parts of six hours, and {parts} of them hold nothing.")
    ),
    "SOURCE_NO_ASSETS": Reason(
        WARNING, _("There is no list of machines beside the costs, so that nobody can compare.")
    ),
    "SOURCE_PAGES_SHIFTED": Reason(
        WARNING, _("The pages held {found} requests of the {total} that were announced.")
    ),
    "SOURCE_LOG_IS_OFF": Reason(
        WARNING,
        _("Its own sums know of requests on that day, and its log holds none."),
        _("Switch the log of requests on; the day cannot be billed from sums."),
    ),
    "SOURCE_LOG_BEGINS": Reason(
        WARNING,
        _("Nothing is logged from before that day, so that its beginning may be cut off."),
        _("Look how long the gateway keeps its log."),
    ),
    "SOURCE_HOLES": Reason(
        WARNING, _("{samples} samples are no numbers (NaN or infinite) and count as not taken.")
    ),
    "SOURCE_NO_NODE_PRICE": Reason(
        INFO, _("The price of a GPU-hour of each node cannot be had, to compare.")
    ),
    "SOURCE_NO_SUMS": Reason(INFO, _("Its own sums of the day cannot be had, to compare.")),
    "SOURCE_NO_PRICE_LIST": Reason(INFO, _("The source shows no price list.")),
    "SOURCE_PARTLY": Reason(
        WARNING, _("The source saw {seen} of {there} GPU-hours of capacity ({percent} %).")
    ),
    "SOURCE_SMALLER": Reason(
        WARNING,
        _("It is less than what was loaded before: {measure} {found} instead of {stored}."),
        _("Accept it if the source was right to take something away; else reject it."),
    ),
    "SOURCE_LESS_COMPLETE": Reason(
        WARNING,
        _("The day was loaded whole before, and this answer is not."),
        _("A whole answer replaces it by itself."),
    ),
    "SOURCE_PRICE_ANOMALY": Reason(
        ERROR,
        _("{node} was priced at {resolved} instead of the declared {declared}."),
        _("Correct the prices of the source and load the day again."),
    ),
    "SOURCE_PRICE_ANOMALY:factor_730": Reason(
        ERROR,
        _(
            "{node} was priced at {resolved} instead of {declared}: 730 times too low, "
            "a monthly price taken for an hourly one."
        ),
        _("Correct the prices of the source, or update it, and load the day again."),
    ),
    "SOURCE_PRICE_ANOMALY:factor_730_high": Reason(
        ERROR,
        _(
            "{node} was priced at {resolved} instead of {declared}: 730 times too high, "
            "an hourly price taken for a monthly one."
        ),
        _("Correct the prices of the source and load the day again."),
    ),
    "SOURCE_PRICE_ANOMALY:zero_price": Reason(
        ERROR,
        _("{node} was priced at 0 instead of {declared}."),
        _("Give the source a price of a GPU and load the day again."),
    ),
}
SOURCES = FAILURES | DOUBTS
