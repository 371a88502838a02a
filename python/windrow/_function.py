"""What tells one function from another in every run: its name, and a hash of its source and of the plain values that it holds."""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any

from windrow._native import _hash
from windrow.errors import ConfigError
from windrow.failure import failure

__all__ = ["word"]

# Functions and containers within each other are looked at so far: one may hold itself.
DEPTH = 16
# Members of containers that are looked at, of all together; of more only the number counts.
MEMBERS = 1_000_000
# Methods by which a function changes a container: what it changes is its state.
CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
# What the same source does not have in every version of Python.
LEFT_OUT = {"ctx", "kind", "type_comment", "type_params"}


class _UntoldError(Exception):
    """What a function holds cannot be told apart."""


def word(function: Callable[..., Any], *, is_plan: bool = False) -> str:
    """A function's module and name, and a hash of what it does, where it has a source.

    With ``is_plan`` it goes into a plan, which two functions must not share: a source that is not there, and a value that is
    not plain, are refused. Plain are None, numbers, texts, bytes, arrays of numpy, and containers of them.
    """
    of = function if hasattr(function, "__qualname__") else type(function)
    name = f"{getattr(of, '__module__', None) or ''}.{of.__qualname__}"
    try:
        found = _Parts(is_plan).function(function, 0)
    except _UntoldError as error:
        hint = 'name it: scaler_name="…", another name when it changes'
        raise failure(ConfigError, f"the function {name} {error}", hint=hint) from None
    return f"{name}#{_hash(repr(found).encode())}" if found else name


class _Parts:
    """What a function is made of, as texts, tuples and lists."""

    def __init__(self, is_plan: bool) -> None:
        self.is_plan = is_plan
        self.seen: list[Any] = []
        self.members = 0

    def function(self, function: Any, depth: int) -> list[Any]:
        if isinstance(function, partial):
            return ["partial", self.function(function.func, depth + 1), self.value(function.args, depth), self.named(function.keywords, depth)]
        if isinstance(function, MethodType):
            return [self.fields(function.__self__, depth), self.function(function.__func__, depth + 1)]
        if not isinstance(function, FunctionType):
            return self.other_callable(function, depth)
        if function in self.seen:
            return ["again", self.seen.index(function)]
        self.seen.append(function)
        node = _node(function.__code__)
        if node is None:
            if self.is_plan:
                raise _UntoldError("has no source that tells it from others")
            # Of a line that was typed somewhere its code, which is another one in another version of Python.
            return [list(_codes(function.__code__)), *self.held(function, None, depth)]
        return [_dump(node), *self.held(function, node, depth)]

    def other_callable(self, function: Any, depth: int) -> list[Any]:
        """What is called and has no code of its own: an object is what it holds, one of C is what its name says."""
        if hasattr(function, "__wrapped__"):
            return ["wrapped", self.function(function.__wrapped__, depth + 1)]
        call = type(function).__call__
        if isinstance(call, FunctionType) and not isinstance(function, type):
            return [self.fields(function, depth), self.function(call, depth + 1)]
        of = getattr(function, "__self__", None)
        if isinstance(function, BuiltinFunctionType) and not isinstance(of, (type, ModuleType, type(None))):
            return [_name(function), self.value(of, depth + 1)]
        if self.is_plan and not _is_named(function):
            raise _UntoldError("has no source that tells it from others")
        return [] if depth == 0 else [_name(function)]

    def held(self, function: FunctionType, node: ast.AST | None, depth: int) -> list[Any]:
        """Its defaults, what it captured, and what it reads of its module."""
        state = _changed(node) if node else set()
        captured = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            # An empty cell holds nothing yet.
            with contextlib.suppress(ValueError):
                captured[name] = cell.cell_contents
        captured = {name: value for name, value in captured.items() if name not in state}
        used = {name for code in _nested(function.__code__) for name in code.co_names}
        if node is not None:
            used &= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        own = function.__globals__
        read = {name: own[name] for name in used - state if name in own and not name.startswith("__")}
        # The source says what a default is that is not plain.
        lax = _Parts(is_plan=False)
        defaults = [lax.value(function.__defaults__, depth), lax.named(function.__kwdefaults__ or {}, depth)]
        return [*defaults, self.named(captured, depth), self.named(read, depth, own)]

    def fields(self, thing: Any, depth: int) -> Any:
        if isinstance(thing, (type, ModuleType)):
            return _name(thing)
        held = dict(getattr(thing, "__dict__", {}))
        if not self.is_plan:
            # It may come with its first call.
            held = {name: value for name, value in held.items() if not isinstance(value, (dict, list, set))}
        return self.named(held, depth)

    def named(self, values: dict[str, Any], depth: int, module: dict[str, Any] | None = None) -> list[Any]:
        return [(name, self.value(values[name], depth, module)) for name in sorted(values)]

    def value(self, value: Any, depth: int, module: dict[str, Any] | None = None) -> Any:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            return (type(value).__name__, repr(value))
        if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            return (str(value.dtype), value.shape, _hash(value.tobytes())) if value.dtype != object else self.other(value)
        if isinstance(value, FunctionType):
            is_other = module is not None and value.__globals__ is not module
            return _name(value) if is_other or depth > DEPTH else self.function(value, depth + 1)
        if isinstance(value, (type, ModuleType)):
            return _name(value)
        if isinstance(value, (tuple, list, dict, set, frozenset)):
            return self.container(value, depth)
        if self.is_plan and callable(value):
            # An object that holds what is called is as much part of it as a function is.
            return self.function(value, depth + 1) if depth <= DEPTH else _name(value)
        if isinstance(value, (partial, MethodType, BuiltinFunctionType)):
            return self.function(value, depth + 1) if depth <= DEPTH else _name(value)
        return self.other(value)

    def container(self, value: Any, depth: int) -> Any:
        kind = (type(value).__name__, len(value))
        self.members += len(value)
        if depth > DEPTH or self.members > MEMBERS:
            return kind
        # A dict in its order: a function may go through it.
        members = [self.value(member, depth + 1) for member in (value.items() if isinstance(value, dict) else value)]
        return (*kind, sorted(members, key=repr) if isinstance(value, (set, frozenset)) else members)

    def other(self, value: Any) -> str:
        if self.is_plan:
            raise _UntoldError(f"holds a value that is not plain, of {_name(type(value))}")
        return _name(type(value))


def _name(of: Any) -> str:
    return f"{getattr(of, '__module__', None) or ''}.{getattr(of, '__qualname__', None) or getattr(of, '__name__', type(of).__qualname__)}"


def _is_named(of: Any) -> bool:
    """Whether it is what its module has under its name."""
    # A method of a type of C names no module.
    if isinstance(of, (type, MethodDescriptorType)):
        return True
    found: Any = sys.modules.get(getattr(of, "__module__", None) or "")
    for name in str(getattr(of, "__qualname__", None) or getattr(of, "__name__", "")).split("."):
        found = getattr(found, name, None)
    return found is of


@lru_cache(maxsize=32)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _node(code: CodeType) -> ast.AST | None:
    """Where a function is in its source; None where there is none, or several could be meant."""
    try:
        tree = _parsed("".join(inspect.findsource(code)[0]))
    except (OSError, SyntaxError, TypeError, IndexError):
        return None
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if code.co_name == "<lambda>" and isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            found.append(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(of.lineno for of in node.decorator_list)])
            found += [node] if first == code.co_firstlineno else []
    if len(found) > 1 and sys.version_info >= (3, 11):
        # Lambdas of one line: each instruction knows its column.
        columns = {at[2] for at in code.co_positions() if at[0] == code.co_firstlineno and at[2] is not None}
        first = min((column for column in columns if column), default=-1)
        spans = [(node.col_offset, node.end_col_offset or 0, node) for node in found]  # type: ignore[attr-defined]
        inside = [(end - start, node) for start, end, node in spans if start <= first < end]
        found = [min(inside, key=lambda one: one[0])[1]] if inside else found
    return found[0] if len({repr(_dump(node)) for node in found}) == 1 else None


def _dump(node: Any) -> Any:
    if isinstance(node, ast.AST):
        fields = [(name, _dump(value)) for name, value in ast.iter_fields(node) if name not in LEFT_OUT and value not in (None, [])]
        return (type(node).__name__, fields)
    return [_dump(one) for one in node] if isinstance(node, list) else repr(node)


def _changed(node: ast.AST) -> set[str]:
    """The names of what a function changes."""
    found: set[str] = set()
    for part in ast.walk(node):
        target: ast.AST | None = None
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, (ast.Store, ast.Del)):
            target = part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in CHANGES:
            target = part.func.value
        elif isinstance(part, (ast.Global, ast.Nonlocal)):
            found.update(part.names)
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _codes(code: CodeType) -> Iterator[Any]:
    for one in _nested(code):
        yield one.co_code, one.co_names, [repr(constant) for constant in one.co_consts if not isinstance(constant, CodeType)]
