"""usage: script_lines.py FILE...: the lines of each file that a user writes, without blank ones, comments and docstrings, and
without the classes of modules, which are the same however they are trained."""
import ast
import io
import sys
import tokenize


def documentation(tree):
    """The lines of docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            yield from range(node.body[0].lineno, node.body[0].end_lineno + 1)


def modules(tree):
    """The lines of classes of nn.Module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("nn.Module") for base in node.bases):
            yield from range(node.lineno, node.end_lineno + 1)


def lines_of(text):
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    used = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            used.update(range(token.start[0], token.end[0] + 1))
    tree = ast.parse(text)
    return len(used - set(documentation(tree)) - set(modules(tree)))


for path in sys.argv[1:]:
    with open(path) as file:
        print(f"{lines_of(file.read()):4} {path}")
