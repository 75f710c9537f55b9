"""The embedded broker never shows a reader half a message."""

import threading
from pathlib import Path

import pytest
from kombu import Connection

from gpuplatform.common.broker import write_whole


@pytest.fixture
def connect(tmp_path):
    for folder in ("messages", "control"):
        (tmp_path / folder).mkdir()

    def connection() -> Connection:
        options = {
            "data_folder_in": str(tmp_path / "messages"),
            "data_folder_out": str(tmp_path / "messages"),
            "control_folder": str(tmp_path / "control"),
        }
        return Connection("filesystem://localhost", transport_options=options)

    return connection


def test_a_file_appears_with_all_of_its_text(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "whole"


def test_a_reader_beside_busy_writers_gets_every_message_whole(connect) -> None:
    def send(writer: int) -> None:
        with connect() as connection, connection.SimpleQueue("cycle") as queue:
            for number in range(100):
                queue.put({"writer": writer, "number": number, "text": "x" * 20_000})

    writers = [threading.Thread(target=send, args=(writer,)) for writer in range(3)]
    got = []
    with connect() as connection, connection.SimpleQueue("cycle") as queue:
        for thread in writers:
            thread.start()
        for _ in range(300):
            message = queue.get(timeout=20)
            got.append((message.payload["writer"], message.payload["number"]))
            message.ack()
    for thread in writers:
        thread.join()
    assert sorted(got) == [(w, n) for w in range(3) for n in range(100)]
