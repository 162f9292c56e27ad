"""The part of a module's source that a name stands for, and its hash, which other edits of the file do not change."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_DYNAMIC = {"eval", "exec", "globals", "locals", "vars", "__import__"}  # reach names that the source does not show


def code_hash(names: Mapping[str, Collection[str]]) -> str:
    """SHA-256 of what these names stand for, by file: their definitions and, transitively, what these refer to.

    That is every function, class, constant and other statement at the top of the same file; what it imports is not
    followed. Comments, docstrings and layout do not count. A file is hashed whole where a name cannot be resolved.
    """
    digest = hashlib.sha256()
    for file, wanted in names.items():
        content = Path(file).read_bytes()
        try:
            body = [part for statement in ast.parse(content).body for part in _each_import(statement)]
            needed = _needed(body, wanted)
            code = content if needed is None else repr(_canonical(needed)).encode()
        except (SyntaxError, ValueError, RecursionError):  # a compiled module, or code nested beyond measure
            code = content
        digest.update(hashlib.sha256(code).digest())
    return digest.hexdigest()


def _each_import(statement: ast.stmt) -> Iterator[ast.stmt]:
    """An import of several names as one import of each, since they need not be needed together."""
    if isinstance(statement, ast.Import):
        yield from (ast.Import([alias]) for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        yield from (ast.ImportFrom(statement.module, [alias], statement.level) for alias in statement.names)
    else:
        yield statement


def _needed(body: Sequence[ast.stmt], wanted: Collection[str]) -> list[ast.stmt] | None:
    """The statements that the names depend on, in the order of the file; None where the source does not say."""
    bound = [_bound_names(statement) for statement in body]
    imported = set().union(*(names for names, it in zip(bound, body, strict=True) if isinstance(it, _IMPORTS)))
    known = set().union(*bound)
    for at, statement in enumerate(body):
        decorators = {name for part in getattr(statement, "decorator_list", ()) for name in _names_in(part)}
        if own := decorators & known - imported:  # such as @register: it may change every table that it refers to
            bound[at] |= _reached(body, bound, own)[1] & known - imported
    places, names = _reached(body, bound, wanted)
    if not known.issuperset(wanted) or names & _DYNAMIC - known:
        return None
    return [body[at] for at in sorted(places)]


def _reached(body: Sequence[ast.stmt], bound: Sequence[set[str]], wanted: Iterable[str]) -> tuple[set[int], set[str]]:
    """The places of the statements that the names lead to, and every name in these."""
    places, names = set[int](), set(wanted)
    while more := [at for at, own in enumerate(bound) if at not in places and (own & names or "*" in own)]:
        places.update(more)
        names.update(name for at in more for name in _names_in(body[at]))
    return places, names


def _bound_names(statement: ast.stmt) -> set[str]:
    """The names to which a statement at the top of a module gives a meaning, or which it may change."""
    if isinstance(statement, _DEFINITIONS):
        declared = (node for node in ast.walk(statement) if isinstance(node, ast.Global))
        return {statement.name, *(name for node in declared for name in node.names)}
    if isinstance(statement, _IMPORTS):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        plain = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(plain) == len(targets):
            return set(plain)
    if isinstance(statement, ast.If) and ast.unparse(statement.test).startswith("__name__ =="):
        return set()  # not run when the module is imported
    return set(_names_in(statement))  # `TABLE["x"] = 1`, a call, `try: import ...`: it may change all that it names


def _names_in(part: ast.AST) -> Iterator[str]:
    """Every name that occurs in it."""
    for node in ast.walk(part):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, _DEFINITIONS):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _canonical(node: Any) -> Any:
    """Nested lists without positions, docstrings and empty fields, so that they are those of any version of Python."""
    if isinstance(node, ast.AST):
        fields = [(name, _canonical(value)) for name, value in ast.iter_fields(node) if value not in (None, [])]
        return [type(node).__name__, *fields]
    if isinstance(node, list):
        return [_canonical(item) for item in node if not _is_text_alone(item)]
    return repr(node)


def _is_text_alone(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
