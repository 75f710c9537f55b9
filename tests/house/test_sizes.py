"""No function and no file outgrows the reader's screen and patience."""

import ast
from pathlib import Path

import pytest

from tests.house.test_rooms import ROOMS, ROOT, sources

FUNCTION_LINES, FILE_LINES = 60, 400


@pytest.mark.parametrize("path", sources(*ROOMS), ids=str)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = (ROOT / path).read_text()
    assert text.count("\n") <= FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < FUNCTION_LINES, node.name
