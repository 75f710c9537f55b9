"""What the agent asks the platform: four calls over HTTP, each bounded in time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

TIMEOUT_S = 10.0
LATER = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.TOO_MANY_REQUESTS)


class Refused(Exception):
    """The platform has understood and said no; asking again would change nothing."""

    def __init__(
        self, status: int, codes: Sequence[str], detail: str, numbers: Mapping[str, Any]
    ) -> None:
        super().__init__(f"{status} {', '.join(codes)}: {detail}")
        self.status, self.codes, self.numbers = status, tuple(codes), dict(numbers)


class Away(Exception):
    """Nobody answers, or not now: later is soon enough."""


class Platform:
    """The platform, as one agent sees it. The token is read anew for each call."""

    def __init__(self, url: str, token_file: Path, name: str) -> None:
        self._http = httpx.Client(base_url=url.rstrip("/"), timeout=TIMEOUT_S)
        self._token_file, self._base = token_file, f"/api/v1/agent/{name}"
        self._tag, self._desired = "", dict[str, Any]()

    def hello(self, epoch: int | None, version: str) -> dict[str, Any]:
        """Go on in an epoch, or begin a new one."""
        body: dict[str, Any] = {"version": version}
        return self._ask("POST", "hello/", body | ({"epoch": epoch} if epoch else {}))

    def report(self, epoch: int, reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Send numbered reports; none is a heartbeat."""
        return self._ask("POST", "reports/", {"epoch": epoch, "reports": list(reports)})

    def desired(self, epoch: int) -> dict[str, Any]:
        """Return what should run and what should stop."""
        headers = {"If-None-Match": self._tag} if self._tag else {}
        response = self._send("GET", f"desired/?epoch={epoch}", None, headers)
        if response.status_code != httpx.codes.NOT_MODIFIED:
            self._desired, self._tag = response.json(), response.headers.get("ETag", "")
        return self._desired

    def _ask(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._send(method, path, body, {}).json()
        return answer

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> httpx.Response:
        sent = {"Authorization": f"Bearer {self._token_file.read_text().strip()}", **headers}
        try:
            response = self._http.request(method, f"{self._base}/{path}", json=body, headers=sent)
        except httpx.HTTPError as error:
            raise Away(str(error) or type(error).__name__) from error
        if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise Away(f"{response.status_code} {response.reason_phrase}")
        if response.status_code in LATER:  # a new token may be on its way
            raise Away(f"{response.status_code} {response.reason_phrase}")
        if response.is_error:
            raise _refusal(response)
        return response


def _refusal(response: httpx.Response) -> Refused:
    try:
        problem = response.json()
        errors = problem["errors"]
        codes = [str(error["code"]) for error in errors]
        return Refused(response.status_code, codes, problem["detail"], errors[0]["numbers"])
    except (ValueError, KeyError, IndexError, TypeError):
        return Refused(response.status_code, [], response.text[:200], {})
