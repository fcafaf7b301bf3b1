"""docs/dev/cases.md says which test holds which public report; the comments in the tests say so too. Run as a program, this writes the first from the second."""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "dev" / "cases.md"
ROW = re.compile(r"^\| \[([A-N]\d\d)\]\((https://[^)]+)\) \| ([^|]+) \| ([^|]+) \|$")
NEEDS = ("images", "safetensors", "CUDA", "Go functions")


def comments():
    """{case: {"path::name", ...}} of `# case A01` in the tests; a comment between two tests speaks of the next."""
    found = {}
    for path in sorted({*(ROOT / "tests_py").rglob("test_*.py")} - {Path(__file__).resolve()}):
        text = path.read_text()
        lines = [(n, m[1]) for n, line in enumerate(text.splitlines(), 1) if (m := re.search(r"# .*?\bcases? ([A-N]\d\d\b.*)", line))]
        if not lines:
            continue
        ends = sorted((f.end_lineno, f.name) for f in ast.parse(text).body if isinstance(f, ast.FunctionDef) and f.name.startswith("test"))
        for n, said in lines:
            name = next(name for end, name in ends if end >= n)
            for case in re.findall(r"\b[A-N]\d\d\b", said):
                found.setdefault(case, set()).add(f"{path.relative_to(ROOT)}::{name}")
    return found


def rows():
    """[(case, link, report, [what holds it])]"""
    out = []
    for line in TABLE.read_text().splitlines():
        if line.startswith("| ["):
            m = ROW.match(line)
            assert m, f"no row: {line}"
            out.append((m[1], m[2], m[3], [cell.strip("` ") for cell in m[4].split("<br>")]))
    return out


def by_comment(cell):
    return cell.startswith("tests_py/") and not cell.startswith("tests_py/packaging/")


def test_the_table_and_the_comments_agree():
    said = comments()
    table = rows()
    cases = [r[0] for r in table]
    assert cases == sorted(set(cases)) and len(cases) >= 102
    assert set(said) <= set(cases), set(said) - set(cases)
    for case, _, _, cells in table:
        listed = {c for c in cells if by_comment(c)}
        assert listed == said.get(case, set()), f"{case}: run `python tests_py/unit/test_case_table.py`"


def test_every_case_is_held_or_says_what_it_waits_for():
    for case, _, _, cells in rows():
        assert cells and all(cells), case
        for cell in cells:
            if cell.startswith("later"):
                assert cell.removeprefix("later: needs ") in NEEDS, (case, cell)
                continue
            path, _, name = cell.partition("::")
            text = (ROOT / path).read_text()
            assert re.search(rf"^(func|def) {re.escape(name)}\(", text, re.M), f"{case}: {cell} is not there"


def write():
    said = comments()
    done = {}
    for case, link, report, cells in rows():
        kept = [c for c in cells if not by_comment(c)]
        done[case] = (link, report, sorted(said.get(case, ())) + kept)
    head = TABLE.read_text().split("| [", 1)[0]
    lines = [
        f"| [{case}]({link}) | {report} | {'<br>'.join(c if c.startswith('later') else f'`{c}`' for c in cells)} |"
        for case, (link, report, cells) in sorted(done.items())
    ]
    TABLE.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(write())
