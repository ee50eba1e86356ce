"""What a part of a Python program that is not modelled can do to the rest of it, by its syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from agentdash.engine.detect.env_output.scripting.recovery import Effects, reached
from agentdash.engine.detect.word_sets import word_set

_WILD: Final = word_set(
    "exec eval compile __import__ importlib globals locals setattr delattr __dict__ builtins __builtins__ "
    "atexit signal threading multiprocessing concurrent ctypes runpy mock faulthandler settrace dotenv "
    "load_dotenv gc inspect currentframe putenv unsetenv _exit abort kill killpg raise_signal execv "
    "execve execvp execvpe execl execlp execle fork forkpty pty dup dup2 redirect_stdout redirect_stderr "
    "closerange displayhook excepthook breakpoint pdb code interact reload modules call_soon call_later "
    "Timer"
)
"""Names by which a program may do anything: later, to the streams, to the environment, to its own code."""
_WRITING: Final = word_set(
    "print pprint pp write writelines stdout stderr logging logger log debug info warning warn warnings "
    "error critical exception dump help print_exc print_exception print_stats print_help parse_args "
    "system subprocess run call Popen check_call popen dis calendar tarfile main input list_contents"
)
_CHILDREN: Final = word_set("system subprocess Popen popen posix_spawn spawnv spawnl startfile")
"""What a child writes stands before the text that Python has not written out yet."""
_ENDING: Final = word_set("exit quit SystemExit")
_CHANGING: Final = word_set("update pop setdefault clear popitem __setitem__")
_READING: Final = word_set("get items keys values copy")
_READERS: Final = word_set("dict sorted list set len iter filter any tuple bool print repr str")


class Syntax:
    """A program, as far as it says what its parts can do."""

    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        self._functions: dict[str, frozenset[str]] = {}
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._functions[node.name] = self._functions.get(node.name, frozenset()) | _words(node)
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self._by_value = {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and node.id in self._functions and id(node) not in called
        } | {name for name in self._functions if name.startswith("__")}
        lambdas = [_words(node) for node in nodes if isinstance(node, ast.Lambda)]
        self._lambdas: frozenset[str] = frozenset().union(*lambdas)
        self._shared = {
            name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
        }
        self.is_wild = (
            bool(_words(tree) & _WILD)
            or _changes_environment(tree)
            or _patches(nodes)
            or any(isinstance(node, ast.FunctionDef) and _writes_later(node) for node in nodes)
        )

    def effects(self, part: ast.AST) -> Effects | None:
        """Return what a part can do; None where it may be anything, or leaves the function around it."""
        if self.is_wild or _leaves(part):
            return None
        words = _words(part)
        has_call = any(isinstance(node, ast.Call | ast.With | ast.AsyncWith) for node in ast.walk(part))
        if has_call:
            words |= self._lambdas | self._by_value
        words = reached(words, self._functions)
        if words & _ENDING:
            return None
        return Effects(
            assigned=frozenset(_assigned(part)) | frozenset(self._shared & words if has_call else ()),
            mentioned=words,
            writes=has_call and bool(words & _WRITING),
            starts_children=has_call and bool(words & _CHILDREN),
        )


@lru_cache(16)
def syntax_of(code: str) -> Syntax:
    """Return what a program says of its parts."""
    return Syntax(ast.parse(code))


def _words(node: ast.AST) -> frozenset[str]:
    """Return all names in a part of a program."""
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {word for alias in names for word in alias.name.split(".")}
                found |= set((each.module or "").split(".")) if isinstance(each, ast.ImportFrom) else set()
            case _:
                pass
    return frozenset(found)


def _assigned(node: ast.AST) -> Iterator[str]:
    """Yield the names that a part of a program gives values to."""
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case _:
                pass


def _leaves(part: ast.AST) -> bool:
    """Return whether a part can end the function or the loop around it."""
    for child in ast.iter_child_nodes(part) if not isinstance(part, _LEAVING) else [part]:
        match child:
            case ast.Return() | ast.Break() | ast.Continue():
                return True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                continue
            case ast.For() | ast.While() | ast.AsyncFor():
                if any(isinstance(each, ast.Return) for each in ast.walk(child)):
                    return True
            case _ if _leaves(child):
                return True
    return isinstance(part, ast.Yield | ast.YieldFrom | ast.Await)


_LEAVING: Final = (ast.Return, ast.Break, ast.Continue)


def _writes_later(function: ast.FunctionDef) -> bool:
    """Return whether a generator writes where its values are used."""
    is_generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    return is_generator and bool(_words(function) & _WRITING)


def _patches(nodes: list[ast.AST]) -> bool:
    """Return whether a program changes modules or classes, or gives another meaning to a built-in name."""
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    fixed = {name for node in imports for name in _assigned(node)} | {"cls", "__class__"}
    fixed |= {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    for node in nodes:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del(), value=owner):
                while isinstance(owner, ast.Attribute):
                    owner = owner.value
                if not isinstance(owner, ast.Name) or owner.id in fixed:
                    return True
            case ast.Name(id="print" | "open" | "os" | "sys" | "repr" | "str", ctx=ast.Store()):
                return True
            case ast.FunctionDef(name="print" | "open"):
                return True
            case ast.Call(func=ast.Attribute(attr="close" | "write"), args=[ast.Constant(value=int()), *_]):
                return True  # descriptors 1 and 2 may be meant
            case _:
                pass
    return False


def _changes_environment(tree: ast.Module) -> bool:
    """Return whether a program may change its environment, by its name or another one for it."""
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    names = {"environ", "environb"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute | ast.Name) or _name(node) not in ("environ", "environb"):
            continue
        if not _is_read(parents[id(node)]):
            names |= _holders(node, parents, tree)
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()) if _name(owner) in names:
                return True
            case ast.Attribute(value=owner, attr=name) if name in _CHANGING and _name(owner) in names:
                return True
            case ast.AugAssign(target=target) if _name(target) in names:
                return True
            case _:
                pass
    return False


def _name(node: ast.AST) -> str:
    """Return the last part of a name; empty for other expressions."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_read(parent: ast.AST) -> bool:
    match parent:
        case ast.Attribute(attr=name):
            return name in _READING
        case ast.Call(func=ast.Name(id=name)):
            return name in _READERS
        case ast.Subscript() | ast.Compare() | ast.comprehension() | ast.For() | ast.Dict() | ast.Starred():
            return True
        case _:
            return False


def _holders(node: ast.AST, parents: dict[int, ast.AST], tree: ast.Module) -> set[str]:
    """Return names that may stand for the environment: those that a statement assigns, or all parameters."""
    while not isinstance(node, ast.stmt):
        if isinstance(node, ast.Call):
            break
        node = parents[id(node)]
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return {_name(each) for each in ast.walk(node)}
    return {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)} | {
        name for each in ast.walk(tree) if isinstance(each, ast.Assign) for name in _assigned(each)
    }
