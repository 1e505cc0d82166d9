"""The house rules that no linter checks."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("backwave_django", "tests", "testproject")
LONGEST_FILE = 400
LONGEST_FUNCTION = 60

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(*rooms: str) -> list[Path]:
    """Python files of ``rooms``, without what Django generates and what runs leave behind."""
    found = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    return sorted(path for path in found if not {"migrations", "var"} & set(path.parts))


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            yield node


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_files_are_short():
    lengths = {named(path): len(path.read_text().splitlines()) for path in sources(*ROOMS)}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_functions_are_short():
    too_long = [
        f"{named(path)}:{function.lineno} {function.name}"
        for path in sources(*ROOMS)
        for function in functions(path)
        if (function.end_lineno or 0) - function.lineno >= LONGEST_FUNCTION
    ]
    assert too_long == []


def test_package_holds_no_stub():
    stubs = [
        f"{named(path)}:{function.lineno} {function.name}"
        for path in sources("backwave_django")
        for function in functions(path)
        if is_stub(function)
    ]
    assert stubs == []


def test_package_leaves_nothing_to_do_without_an_issue():
    marks = [
        f"{named(path)}:{number}"
        for path in sources("backwave_django")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if "FIXME" in line or ("TODO" in line and "TODO(#" not in line)
    ]
    assert marks == []


def test_migrations_import_nothing_of_ours():
    migrations = [path for room in ROOMS for path in (ROOT / room).rglob("migrations/*.py")]
    ours = [
        f"{named(path)} imports {module}"
        for path in migrations
        for module in imported(path)
        if module.split(".")[0] in {"", *ROOMS}
    ]
    assert ours == []


def imported(path: Path) -> Iterator[str]:
    """The modules that ``path`` imports; a relative import is the empty name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "") if node.level == 0 else ""


def is_stub(function: Function) -> bool:
    """Whether ``function`` does nothing yet: ``pass`` alone, or raises NotImplementedError."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    if len(body) != 1:
        return False
    statement = body[0]
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        return "NotImplementedError" in ast.dump(statement.exc)
    return isinstance(statement, ast.Pass)
