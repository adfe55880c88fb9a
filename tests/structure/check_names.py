#!/usr/bin/env python3
"""usage: tests/structure/check_names.py ROOT

Refuses, in ROOT/src and ROOT/include, a name that two files define in namespace hetseq or one inside it: a type, or a
function with external linkage and the same parameters. The linker would keep either's inline functions without a word.
A file whose name says no_... (no_nccl_info.cpp, adadelta_no_cuda.cpp) stands in for another: a build lists one of them.
"""
import collections
import pathlib
import re
import sys

TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:\\\n|[^\n])*      # comments and directives: left out
      | R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*" | (?<!\w)'(?:\\.|[^'\\\n])*'
      | (?P<word>[A-Za-z_]\w*) | [\d.][\w'.]* | ::|->|&&|\S""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
TYPE_WORDS = {"struct", "class", "union", "enum"}
OPENING, CLOSING = {"(", "[", "{"}, {")", "]", "}"}


def tokens_of(text):
    for match in TOKEN.finditer(text):
        token = match.group()
        if not re.match(r"\s*(//|/\*|#)", token):
            yield token.strip()


def skip_group(tokens, start):
    """The index after the group that opens at `start`."""
    depth = 0
    for i in range(start, len(tokens)):
        depth += (tokens[i] in OPENING) - (tokens[i] in CLOSING)
        if depth == 0:
            return i + 1
    return len(tokens)


def skip_angles(tokens, start):
    """The index after the template arguments that open at `start`."""
    depth, i = 0, start
    while i < len(tokens):
        if tokens[i] in OPENING:
            i = skip_group(tokens, i)
            continue
        depth += (tokens[i] == "<") - (tokens[i] == ">")
        i += 1
        if depth == 0:
            return i
    return i


def without_prefix(statement):
    """Without template headers and attributes."""
    while statement and statement[0] in ("template", "["):
        end = skip_angles(statement, 1) if statement[0] == "template" else skip_group(statement, 0)
        statement = statement[end:]
    return statement


def type_name(statement):
    """What `struct NAME<...> final : ... {` defines, with the arguments of a specialisation; None where it is no type."""
    words = [word for word in statement if word != "class" or statement[0] != "enum"]
    if len(words) < 2 or words[0] not in TYPE_WORDS:
        return None
    end = 1
    while end < len(words) and words[end] not in (":", "final"):
        if words[end] in ("(", "="):
            return None
        end += 1
    return "".join(words[1:end])


def parameter_type(tokens):
    if "=" in tokens:
        tokens = tokens[: tokens.index("=")]
    if len(tokens) > 1 and re.match(r"[A-Za-z_]", tokens[-1]) and tokens[-2] not in ("::", "const"):
        tokens = tokens[:-1]
    return " ".join(tokens)


def parameter_types(tokens):
    """Of the tokens between a function's parentheses."""
    parameters, current, i = [], [], 0
    while i < len(tokens):
        if tokens[i] == ",":
            parameters.append(current)
            current, i = [], i + 1
            continue
        end = i + 1
        if tokens[i] == "<":
            end = skip_angles(tokens, i)
        elif tokens[i] in OPENING:
            end = skip_group(tokens, i)
        current += tokens[i:end]
        i = end
    return [parameter_type(p) for p in parameters + [current] if p]


def function_signature(statement):
    """'name(types)' of the function whose body follows; None where it is none, or internal to its unit."""
    if statement and statement[0].startswith("TORCH_LIBRARY"):  # a macro, which names its function by the line
        return None
    if "__launch_bounds__" in statement:  # of a kernel, with an argument
        at = statement.index("__launch_bounds__")
        statement = statement[:at] + statement[skip_group(statement, at + 1):]
    i = 0
    while i < len(statement) and statement[i] != "(":
        if statement[i] in ("=", "static", "friend", "__attribute__"):
            return None
        i = skip_angles(statement, i) if statement[i] == "<" and statement[i - 1] != "operator" else i + 1
    if i in (0, len(statement)):
        return None
    begin = i - 1
    if "operator" in statement[:i]:
        begin = statement.index("operator")
        if begin == i - 1:  # operator()
            i += 2
    if statement[begin - 1] == "~":
        begin -= 1
    while begin > 1 and statement[begin - 1] == "::":
        begin -= 2
    types = parameter_types(statement[i + 1 : skip_group(statement, i) - 1])
    return "".join(statement[begin:i]) + "(" + ", ".join(types) + ")"


def definitions(text):
    """Yields (kind, qualified name) of what `text` defines in named namespaces."""
    tokens, scopes, statement, i = list(tokens_of(text)), [], [], 0
    while i < len(tokens):
        token = tokens[i]
        i += 1
        if token == ";":
            words = without_prefix(statement)
            if len(words) > 3 and words[0] == "using" and words[2] == "=" and None not in scopes:
                yield "type", "::".join(scopes + [words[1]])
            statement = []
        elif token == "}":
            scopes.pop()
            statement = []
        elif token in ("(", "["):
            end = skip_group(tokens, i - 1)
            statement += tokens[i - 1 : end]
            i = end
        elif token != "{":
            statement.append(token)
        elif "namespace" in statement[:2]:
            names = [word for word in statement[statement.index("namespace") + 1 :] if word != "::"]
            scopes.append("::".join(names) if names else None)
            statement = []
        else:
            i = skip_group(tokens, i - 1)
            words = without_prefix(statement)
            name, signature = type_name(words), function_signature(words)
            if None not in scopes and name:
                yield "type", "::".join(scopes + [name])
            elif None not in scopes and signature:
                yield "function", "::".join(scopes + [signature])
            # Behind a constructor's `member{value}` comes its body still.
            is_over = not (signature and i < len(tokens) and tokens[i] in (",", "{"))
            statement = [] if is_over else statement + ["{", "}"]
    if scopes:
        raise ValueError(f"{len(scopes)} scope(s) are open at the end")


def without_stand_ins(paths):
    """nccl_info.cpp for no_nccl_info.cpp, adadelta.cu for adadelta_no_cuda.cpp."""
    return {re.sub(r"^no_|_no_[a-z]+$", "", path.stem) for path in paths}


def main(root):
    places = collections.defaultdict(set)
    for folder in ("src", "include"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".cu", ".cuh"):
                continue
            try:
                for kind, name in definitions(path.read_text()):
                    if name.startswith("hetseq::"):
                        places[kind, name].add(path.relative_to(root))
            except ValueError as error:
                sys.exit(f"{path}: {error}")
    twice = {key: paths for key, paths in places.items() if len(paths) > 1 and len(without_stand_ins(paths)) > 1}
    for (kind, name), paths in sorted(twice.items()):
        print(f"{', '.join(map(str, sorted(paths)))}: the {kind} {name} is defined in each of them")
    print(f"{len(places)} names of types and functions")
    return bool(twice)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
