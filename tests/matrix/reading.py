"""Read an address as page, as file and over REST, and make the three comparable."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from html import unescape
from typing import Any

from django.test import Client

ROW = re.compile(r"<tr[ >].*?</tr>", re.DOTALL)
CELL = re.compile(r"<t([dh])([^>]*)>(.*?)</t\1>", re.DOTALL)
LABEL = re.compile(r'data-label="([^"]*)"')


class Reader:
    """Reads an address as page, as file and over REST."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def page(self, path: str) -> str:
        response = self.client.get(path)
        assert response.status_code == 200, path
        return response.content.decode()

    def csv(self, path: str, **query: str) -> list[dict[str, str]]:
        text = self.client.get(path, {**query, "format": "csv"}).content.decode()
        return list(csv.DictReader(io.StringIO(text)))

    def json(self, path: str, **query: str) -> Any:
        return self.client.get(path, {**query, "format": "json"}).json()

    def rest(self, path: str) -> Any:
        return self.client.get(f"/api/v1/{path}").json()


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def table(html: str) -> list[dict[str, str]]:
    """Return the rows of a page's tables: label -> text; the head of a row is called ""."""
    found = []
    for row in ROW.findall(html):
        cells = CELL.findall(row)
        heads = [text for tag, attributes, text in cells if 'scope="row"' in attributes]
        labels = {
            label[1]: text_of(text)
            for _tag, attributes, text in cells
            if (label := LABEL.search(attributes))
        }
        if heads:
            found.append({"": text_of(heads[0]), "html": row} | labels)
    return found


def as_csv(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return rows of JSON as a CSV spells them."""
    return [{key: "" if v is None else str(v) for key, v in row.items()} for row in rows]


def without_instants(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return rows without instants: CSV and JSON end them differently, +00:00 and Z."""
    return [
        {key: value for key, value in row.items() if not re.match(r"\d{4}-\d\d-\d\dT", value)}
        for row in rows
    ]


def amount(text: str) -> Decimal:
    return Decimal(text.replace(",", "").replace("\N{MINUS SIGN}", "-"))
