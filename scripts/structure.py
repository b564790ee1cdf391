"""Measures the structure of the code: rooms (folders), arrows (imports between them), circles, sizes, words.

`python -m scripts.structure` prints a table. Imports in functions, and those for type checking only, count.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("spark_agent", "lineage_service", "lineage_api", "lineage_cypher", "lineage_page")
#: Folders that hold a package of another name.
FOLDERS = {"lineage_api": "api", "lineage_cypher": "cypher", "lineage_page": "ui"}
#: Where Python stands that is not a test.
SOURCE_FOLDERS = ("spark_agent", "lineage_service", "api", "cypher", "ui", "perf", "scripts", "examples")
#: Names that say nothing of what they are bound to.
EMPTY_NAMES = frozenset(
    ("each", "found", "made", "told", "given", "held", "here", "there", "those", "wanted", "known")
)


def package_folder(package: str) -> Path:
    return ROOT / FOLDERS.get(package, "") / package


def modules() -> list[Path]:
    """The modules of all packages."""
    return sorted(path for package in PACKAGES for path in package_folder(package).rglob("*.py"))


def room(module: str) -> str:
    """The folder that a module stands in."""
    return module.rpartition(".")[0] or module


def circles(graph: grimp.ImportGraph) -> list[list[str]]:
    """Modules that import each other over any number of steps: connected components (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if imported not in index:
                visit(imported)
                low[module] = min(low[module], low[imported])
            elif imported in stack:
                low[module] = min(low[module], index[imported])
        if low[module] == index[module]:
            component = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(component) > 1:
                components.append(sorted(component))

    for module in sorted(graph.modules):
        if module not in index:
            visit(module)
    return components


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of all that the code binds: variables, attributes, arguments, functions, imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield node.lineno, name
            case ast.alias(name=name, asname=other):
                yield node.lineno, (other or name).partition(".")[0]


def empty_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) for each name that the code binds and that says nothing."""
    return ((line, name) for line, name in bound_names(tree) if name in EMPTY_NAMES)


def python_files(folder: Path) -> list[Path]:
    """Those of a folder of the repository, without what its builds have put there."""
    return sorted(path for path in folder.rglob("*.py") if "node_modules" not in path.parts)


def function_lines(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


#: What ends a sentence: a mark, what closes behind it, and a word that begins with a capital or is code.
SENTENCE_END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[\"(*_]*[A-Z0-9\[])")
#: Rows of tables, headings, pictures and comments are no sentences.
NO_PROSE = re.compile(r"\s*(\||#{1,6} |!\[|<!--)")


def sentences(text: str) -> Iterator[list[str]]:
    """The sentences of a page of Markdown, as words. An item of a list is at least one sentence.

    Code blocks, tables, headings and pictures are left out. Inline code is one word, and so is an address;
    of a link only its text counts. What has fewer than three words is no sentence.
    """
    text = re.sub(r"^ *(```+).*?^ *\1 *$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    prose = "\n".join("" if NO_PROSE.match(line) else line for line in text.splitlines())
    prose = re.sub(r"`[^`]+`", "Code", prose)
    prose = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"[\1]", prose)
    prose = re.sub(r"<?\bhttps?://[^\s>)]*[^\s>).,;:]>?", "Address", prose)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose):
        plain = " ".join(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", paragraph).split())
        for sentence in SENTENCE_END.split(plain):
            words = re.findall(r"[A-Za-z0-9][\w'’/.,-]*", sentence)
            if len(words) > 2:
                yield words


def pages() -> list[Path]:
    others = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "perf/README.md")
    return [*(ROOT / name for name in others), *sorted((ROOT / "docs").glob("**/*.md"))]


def row(name: str, sizes: Iterable[int]) -> str:
    """Median, 95th percentile and the largest of some sizes."""
    ordered = sorted(sizes)
    most = ordered[int(0.95 * (len(ordered) - 1))]
    return f"| {name} | {statistics.median(ordered):.0f} | {most} | {ordered[-1]} |"


def main(_arguments: Sequence[str] = (), say: Callable[[str], object] = print) -> int:
    sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in FOLDERS.values())]
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    rooms = {room(module) for module in graph.modules}
    arrows = {
        (room(module), room(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if room(module) != room(imported)
    }
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in modules()}
    names = sum(1 for tree in trees.values() for _ in bound_names(tree))
    empty = sum(1 for tree in trees.values() for _ in empty_names(tree))
    say(f"{len(rooms)} rooms, {len(arrows)} arrows, {len(circles(graph))} circles")
    say(f"{empty} of {names} bound names say nothing ({100 * empty / names:.1f} %)\n")
    say("| | median | 95 % | largest |\n|---|---|---|---|")
    say(row("lines of a module", (len(path.read_text(encoding="utf-8").splitlines()) for path in trees)))
    say(row("lines of a function", (lines for tree in trees.values() for lines in function_lines(tree))))
    for page in pages():
        lengths = [len(words) for words in sentences(page.read_text(encoding="utf-8"))]
        if lengths:
            say(row(f"words of a sentence, {page.relative_to(ROOT)}", lengths))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
