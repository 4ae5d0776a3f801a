"""The house's rules, read from the source: who imports whom, what an import may do, what an error must say."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("layers", "zoo", "recipes", "export")
BACKENDS = {"tensorflow", "tensorflow_text", "jax", "torch"}
# What stands at module level may call these: they build a constant, a field or a registration, and do no work.
BUILDERS = {
    *(
        "compile",
        "dict",
        "field",
        "format",
        "frozenset",
        "fromkeys",
        "join",
        "Path",
        "range",
        "tuple",
        "type",
    ),
    *("partial", "register_keras_serializable", "with_name"),
}
# Imported for what it does, by the commands.
EFFECTS = {"zoo.quiet_tensorflow": ["_start()"]}
# DataError adds what it received, RequestError has the words of TF Serving, ImportError names what is missing.
# FatalError carries a DataError through KerasTuner.
SPEAK_OTHERWISE = {"DataError", "FatalError", "RequestError", "ImportError", "SystemExit"}


class Import(NamedTuple):
    """``target`` is what is imported: a module of ours by its full name, of others by its first name."""

    source: str
    target: str
    at_module_level: bool

    def __str__(self):
        return f"{self.source} imports {self.target}{'' if self.at_module_level else ' (in a function)'}"


@cache
def modules():
    """The syntax tree of every module of ours, by dotted name."""
    trees = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            trees[name] = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return trees


@cache
def imports():
    found = []
    for source, tree in modules().items():
        lazy = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for node in ast.walk(function)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{source}:{node.lineno}: a relative import hides what is imported"
                names = [resolve(node.module, alias.name) for alias in node.names]
            else:
                continue
            for name in names:
                target = name if name.split(".")[0] in PACKAGES else name.split(".")[0]
                found.append(Import(source, target, id(node) not in lazy))
    return found


def resolve(module, name):
    return f"{module}.{name}" if f"{module}.{name}" in modules() else module


def is_in(module, package):
    return module == package or module.startswith(package + ".")


def may_import(source, target):
    """The table of the design: which modules of ours a module may import."""
    if is_in(source, "layers"):
        return is_in(target, "layers")
    if is_in(source, "zoo.models"):
        return is_in(target, "zoo.models") or is_in(target, "layers")
    if is_in(source, "zoo"):
        shared = ("layers.masking", "layers.time_steps")  # the latter knows what XLA compiles
        return (is_in(target, "zoo") and not is_in(target, "zoo.models")) or target in shared
    if is_in(source, "recipes"):
        return is_in(target, "recipes") or is_in(target, "zoo")
    return is_in(target, "export") or (is_in(target, "zoo") and not is_in(target, "zoo.models"))


def may_import_backend(source, target, at_module_level):
    """Only text, serving and a strategy need TensorFlow; models and layers are of no backend."""
    if is_in(source, "export"):
        return target.startswith("tensorflow")
    if is_in(source, "layers"):
        pick = ("linear_recurrence", "distinct_tokens", "time_steps", "char_ngram_embedding")
        return source in {f"layers.{name}" for name in pick} and not at_module_level
    if is_in(source, "zoo.models") or is_in(source, "recipes"):
        return False
    if at_module_level:
        return source in ("zoo.text", "zoo.char_ngrams") and target == "tensorflow"
    return target.startswith("tensorflow")


def test_the_modules_and_imports_are_found():
    counts = {package: sum(is_in(name, package) for name in modules()) for package in PACKAGES}
    least = {"layers": 8, "zoo": 30, "recipes": 6, "export": 10}
    assert all(counts[package] >= least[package] for package in PACKAGES), counts
    ours = [found for found in imports() if found.target.split(".")[0] in PACKAGES]
    assert len(imports()) >= 300 and len(ours) >= 120, (len(imports()), len(ours))
    assert {found.source for found in imports() if not found.at_module_level} >= {
        "zoo.lexical",
        "zoo.optimizers",
    }


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        ("layers.gated_conv", "layers.masking", True),
        ("layers.gated_conv", "zoo.data", False),
        ("zoo.models.ctrn", "layers.masking", True),
        ("zoo.models.ctrn", "zoo.text", False),
        ("zoo.losses", "layers.masking", True),
        ("zoo.optimizers", "layers.time_steps", True),
        ("zoo.losses", "layers.gated_conv", False),
        ("zoo.training", "zoo.models.ctrn", False),
        ("recipes.pairs", "zoo.models.ctrn", True),
        ("recipes.pairs", "layers.masking", False),
        ("export.rest", "zoo.runs", True),
        ("export.rest", "recipes.pairs", False),
    ],
)
def test_the_table_says_what_it_should(source, target, allowed):
    assert may_import(source, target) is allowed


def test_packages_import_only_what_the_design_lets_them():
    ours = [found for found in imports() if found.target.split(".")[0] in PACKAGES]
    assert [str(found) for found in ours if not may_import(found.source, found.target)] == []


def test_backends_are_imported_only_where_they_are_needed():
    backend = [found for found in imports() if found.target in BACKENDS]
    assert len(backend) >= 8
    assert [str(found) for found in backend if not may_import_backend(*found)] == []


def test_keras_tuner_is_used_in_one_place():
    assert {found.source for found in imports() if found.target == "keras_tuner"} == {"zoo.tuning"}


def test_no_module_imports_itself_through_others():
    graph = {name: set() for name in modules()}
    for found in imports():
        if found.target in graph:
            graph[found.source].add(found.target)
    assert sum(map(len, graph.values())) >= 100
    free = set()
    while ready := {name for name in graph.keys() - free if graph[name] <= free}:
        free |= ready
    assert sorted(graph.keys() - free) == [], "these import each other, or what does"


def evaluated_at_import(tree):
    """Every statement that runs when the module is imported, class bodies included, and what it evaluates."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default)]
            yield node, defaults
        elif isinstance(node, ast.ClassDef):
            yield node, [keyword.value for keyword in node.keywords]
            yield from evaluated_at_import(node)
        elif not is_main_guard(node):
            yield node, [node]


def is_main_guard(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("__name__ == '__main__'", "TYPE_CHECKING")


def calls(nodes):
    """Calls that are made now: the body of a lambda is not."""
    for node in nodes:
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            yield node
        yield from calls(ast.iter_child_nodes(node))


def effects(tree):
    """The statements of a module that do more than define something when it is imported."""
    definitions = (
        *(ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
        *(ast.Assign, ast.AnnAssign),
    )
    for node, evaluated in evaluated_at_import(tree):
        made = {ast.unparse(call.func).rsplit(".", 1)[-1] for call in calls(evaluated)}
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_docstring and not (isinstance(node, definitions) and made <= BUILDERS):
            yield node


def test_importing_a_module_only_defines_things():
    assert sum(1 for tree in modules().values() for _ in evaluated_at_import(tree)) >= 500
    found = {name: [ast.unparse(node) for node in effects(tree)] for name, tree in modules().items()}
    assert {name: nodes for name, nodes in found.items() if nodes} == EFFECTS


@pytest.mark.parametrize(
    ("source", "num_effects"),
    [
        ("import re\nWORD = re.compile('x')\nNAMES = {'a': lambda: print()}", 0),
        ("@decorator(3)\ndef f(x=None):\n    print(x)", 0),
        ("if __name__ == '__main__':\n    print()", 0),
        ("print('hello')", 1),
        ("TABLE = open('x').read()", 1),
        ("for i in (1, 2):\n    X = i", 1),
        ("def f(x=open('y')):\n    return x", 1),
        ("class A:\n    x = print()\n    y: int = open('z')", 2),
    ],
)
def test_the_rule_about_imports_sees_effects(source, num_effects):
    assert len(list(effects(ast.parse(source)))) == num_effects


def test_every_module_and_public_class_has_a_useful_docstring():
    assert [name for name, tree in modules().items() if not ast.get_docstring(tree)] == []
    classes = {
        f"{name}.{node.name}": ast.get_docstring(node) or ""
        for name, tree in modules().items()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }
    assert len(classes) >= 30
    assert [name for name, docstring in classes.items() if len(docstring.split("\n")[0].split()) < 3] == []


def raised(tree):
    """Line, kind and literal words of every error that is made where it is raised."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            kind = ast.unparse(node.exc.func).rsplit(".", 1)[-1]
            arguments = [*node.exc.args, *(keyword.value for keyword in node.exc.keywords)]
            parts = [part for argument in arguments for part in ast.walk(argument)]
            words = [part.value for part in parts if isinstance(part, ast.Constant)]
            if kind[0].isupper():
                yield node.lineno, kind, "".join(word for word in words if isinstance(word, str))


def test_errors_say_what_was_received():
    found = [(name, *error) for name, tree in modules().items() for error in raised(tree)]
    found = [error for error in found if error[2] not in SPEAK_OTHERWISE]
    assert len(found) >= 40
    silent = [f"{name}:{line}: {kind}: {words}" for name, line, kind, words in found if "Received" not in words]
    assert silent == []
