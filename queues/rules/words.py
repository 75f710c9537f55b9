"""What a single name, number, label or choice may be; the smallest pieces of every rule."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from gpuplatform.common.problems import Problem
from gpuplatform.common.quantities import INT64_MAX
from queues import labels

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
WEIGHT_BOUND = Decimal(1_000_000)
WEIGHT_DECIMALS = 6
# Where the list of a kind stands at /x/, its editor for a new one stands at /x/new/.
RESERVED = frozenset({"new"})


def check_name(name: str, path: str = "name") -> Iterator[Problem]:
    """Yield a problem unless ``name`` may name a Kubernetes object (DNS-1123 subdomain)."""
    if not labels.is_dns_subdomain(name):
        message = _("{name} is not a name: use lower-case letters, digits, - and .")
        yield Problem(path, "bad_name", message.format(name=_shown(name)))


def check_short_name(name: str, path: str = "name") -> Iterator[Problem]:
    """Yield a problem unless ``name`` may name a team or a namespace (DNS-1123 label)."""
    if not labels.is_dns_label(name):
        message = _("{name} is not a name: use up to 63 lower-case letters, digits and -")
        yield Problem(path, "bad_name", message.format(name=_shown(name)))


def check_reserved(
    name: str, path: str = "name", reserved: Iterable[str] = RESERVED
) -> Iterator[Problem]:
    """Yield a problem if ``name`` means something else where such a name would stand."""
    if name in reserved:
        message = _("{name} is taken by the platform itself; choose another name")
        yield Problem(path, "reserved_name", message.format(name=_shown(name)))


def check_text(text: str, path: str, length: int | None = None) -> Iterator[Problem]:
    """Yield what keeps free text out of a column: its length, or a NUL character."""
    if length is not None and len(text) > length:
        message = _("at most {most} characters")
        yield Problem(path, "too_long", message.format(most=length), {"most": length})
    if "\0" in text:
        yield Problem(path, "bad_characters", _("the text holds a character that cannot be kept"))


def check_choice(value: str, choices: Iterable[str], path: str) -> Iterator[Problem]:
    """Yield a problem unless ``value`` is one of ``choices``."""
    known = list(choices)
    if value not in known:
        message = _("{value} is not one of {known}")
        words = message.format(value=_shown(value), known=", ".join(known))
        yield Problem(path, "unknown_choice", words)


def check_label_key(key: str, path: str) -> Iterator[Problem]:
    """Yield a problem unless ``key`` is a Kubernetes label key (resource names are, too: K18)."""
    if not labels.is_label_key(key):
        message = _("{key} is not a label key, such as example.com/name")
        yield Problem(path, "bad_label_key", message.format(key=_shown(key)))


def check_labels(pairs: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Yield what is wrong with the keys and values of ``pairs``."""
    for key, value in pairs.items():
        yield from check_label_key(key, f"{path}[{key[:64]}]")
        if not isinstance(value, str) or not labels.is_label_value(value):
            message = _("{value} is not a label value")
            words = message.format(value=_shown(value))
            yield Problem(f"{path}[{key[:64]}]", "bad_label_value", words)


def check_count(count: int, most: int, path: str, least: int = 0) -> Iterator[Problem]:
    """Yield a problem unless a list has between ``least`` and ``most`` entries."""
    numbers = {"have": count, "least": least, "most": most}
    if count > most:
        words = _("{have} entries; at most {most} are allowed").format(**numbers)
        yield Problem(path, "too_many", words, numbers)
    if count < least:
        words = _("{have} entries; at least {least} are needed").format(**numbers)
        yield Problem(path, "too_few", words, numbers)


def check_amount(amount: int | None, path: str) -> Iterator[Problem]:
    """Yield a problem unless ``amount`` (canonical units) is None or fits 0..2^63-1."""
    if amount is None:
        return
    if amount < 0:
        yield Problem(path, "negative", _("an amount cannot be negative"))
    if amount > INT64_MAX:
        yield Problem(path, "too_large", _("the amount is larger than any cluster"))


def check_int32(value: int, path: str) -> Iterator[Problem]:
    """Yield a problem unless ``value`` fits 32 bits, as priorities must (K10)."""
    if not INT32_MIN <= value <= INT32_MAX:
        words = _("a priority lies between {low} and {high}")
        yield Problem(path, "out_of_range", words.format(low=INT32_MIN, high=INT32_MAX))


def check_seconds(seconds: int, path: str) -> Iterator[Problem]:
    """Yield a problem unless ``seconds`` is a length of time that 32 bits hold."""
    if not 0 <= seconds <= INT32_MAX:
        words = _("a time lies between 0 and {high} seconds").format(high=INT32_MAX)
        yield Problem(path, "out_of_range", words, {"high": INT32_MAX})


def check_weight(weight: Decimal, path: str = "fair_weight") -> Iterator[Problem]:
    """Yield a problem unless a fair weight is 0, or fits 0.000001..999999.999999 (K39)."""
    if not weight.is_finite() or weight < 0 or weight >= WEIGHT_BOUND:
        yield Problem(path, "out_of_range", _("a weight lies between 0 and a million"))
    elif weight != round(weight, WEIGHT_DECIMALS):
        yield Problem(path, "too_precise", _("a weight has at most six decimals"))


def check_selector(selector: Mapping[str, Any] | None, path: str) -> Iterator[Problem]:
    """Yield what keeps ``selector`` from being a Kubernetes label selector."""
    if selector is None:
        return
    for key in selector:
        if key not in {"matchLabels", "matchExpressions"}:
            message = _("a selector has no part {key}")
            yield Problem(path, "bad_selector", message.format(key=_shown(key)))
    wanted = _or_empty(selector.get("matchLabels"), {})
    if isinstance(wanted, Mapping):
        yield from check_labels(wanted, f"{path}.matchLabels")
    else:
        yield Problem(f"{path}.matchLabels", "bad_selector", _("matchLabels is a mapping"))
    expressions = _or_empty(selector.get("matchExpressions"), [])
    if not isinstance(expressions, list | tuple):
        words = _("matchExpressions is a list")
        yield Problem(f"{path}.matchExpressions", "bad_selector", words)
        return
    for index, expression in enumerate(expressions):
        yield from _check_expression(expression, f"{path}.matchExpressions[{index}]")


def _or_empty(value: Any, empty: Any) -> Any:
    """Return ``value``; null is the same as absent in Kubernetes, a wrong type is not."""
    return empty if value is None else value


def _check_expression(expression: object, path: str) -> Iterator[Problem]:
    if not isinstance(expression, Mapping) or not {"key", "operator"} <= expression.keys():
        yield Problem(path, "bad_selector", _("an expression has a key and an operator"))
        return
    operator, values = expression["operator"], expression.get("values") or []
    if not isinstance(expression["key"], str) or not isinstance(operator, str):
        yield Problem(
            path, "bad_selector", _("the key and the operator of an expression are text")
        )
        return
    yield from check_label_key(expression["key"], f"{path}.key")
    yield from check_choice(operator, sorted(labels.OPERATORS), f"{path}.operator")
    if not isinstance(values, list | tuple):
        yield Problem(f"{path}.values", "bad_selector", _("values is a list"))
    elif operator in labels.OPERATORS and bool(values) != (operator in labels.SET_OPERATORS):
        words = _("In and NotIn need values, Exists and DoesNotExist have none")
        yield Problem(f"{path}.values", "bad_selector", words)
    elif not all(isinstance(v, str) and labels.is_label_value(v) for v in values):
        yield Problem(f"{path}.values", "bad_label_value", _("a value is not a label value"))


def _shown(text: object) -> str:
    """Return what somebody wrote, short enough for a sentence."""
    return repr(str(text)[:64])
