"""Ask a source about one hour, to see whether it answers; nothing of it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from finops.ingest.reaching import Reader, opened
from finops.models import Source
from finops.sources.failures import Note, SourceError
from finops.sources.prometheus_reader import PrometheusReader
from finops.sources.recording import Recording
from finops.sources.rows import Measures
from finops.sources.windows import Window
from gpuplatform.common import clock, reasons
from gpuplatform.common.periods import month_at

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class TestResult:
    """What a source said about its last whole hour; ``code`` "" is a success."""

    __test__ = False  # no test of ours

    window: Window
    code: str = ""
    sentence: str = ""
    rows: int = 0
    measures: Measures | None = None
    notes: tuple[Note, ...] = ()
    answers: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # of questions asked now

    @property
    def note_sentences(self) -> list[str]:
        """What is said about the answer, in words."""
        return [reasons.sentence(note.code, note.numbers) for note in self.notes]


def test_source(source: Source) -> TestResult:
    """Return what the source says about the last whole hour, and note when it was asked."""
    now = clock.now()
    window = _last_hour(now)
    try:
        with opened(source, Recording()) as reader:
            reading = reader.read(window)
            answers = _answers(reader, source, now)
    except SourceError as error:
        sentence = reasons.sentence(error.code, error.numbers)
        result = TestResult(window, error.code, sentence)
        _note(source, now, error.code, dict(error.numbers))
        return result
    _note(source, now, "", {})
    return TestResult(
        window,
        rows=len(reading.rows),
        measures=reading.measures,
        notes=reading.notes,
        answers=answers,
    )


def _answers(reader: Reader, source: Source, now: datetime) -> dict[str, dict[str, str]]:
    """Return what Prometheus answers to the questions that people ask it on dashboards."""
    if not isinstance(reader, PrometheusReader):
        return {}
    return reader.questions(now, month_at(now, source.time_zone).starts_at)


def _note(source: Source, now: datetime, code: str, numbers: dict[str, str | int]) -> None:
    Source.objects.filter(pk=source.pk).update(tested_at=now, test_code=code, test_numbers=numbers)


def _last_hour(now: datetime) -> Window:
    end = now.replace(minute=0, second=0, microsecond=0)
    return Window(end - HOUR, end)
