#!/usr/bin/env python3
"""Links of the documentation lead somewhere, pages are linked where they are named, and the index names all of them."""
import os
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"(?ms)^```.*?^```|^    [^\n]*")


def prose(path):
    with open(path, encoding="utf-8") as file:
        return CODE.sub("", file.read())


def anchors(path):
    """What MkDocs and GitHub make of a page's headings."""
    heads = re.findall(r"(?m)^#+ +(.*)", prose(path))
    return {re.sub(r"[^a-z0-9 _-]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def wrong_links(path):
    for target in LINK.findall(prose(path)):
        name, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        to = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(to):
            yield f"{path}: ({target}) leads nowhere"
        elif anchor and anchor not in anchors(to):
            yield f"{path}: {to} has no heading for #{anchor}"


def unlinked_pages(path):
    """Pages that are named without a link, but by themselves."""
    for name in re.findall(r"(?<!\[)`docs/([a-z-]+\.md)`", prose(path)):
        if name != os.path.basename(path):
            yield f"{path}: docs/{name} is named without a link"


def main():
    docs = [os.path.join("docs", name) for name in sorted(os.listdir("docs")) if name.endswith(".md")]
    written = [path for path in docs if path != "docs/options.md"]  # the program writes that one
    wrong = []
    for path in [*docs, "README.md", "CONTRIBUTING.md"]:
        wrong += wrong_links(path)
    for path in [*written, "README.md", "CONTRIBUTING.md"]:
        wrong += unlinked_pages(path)
    listed = set(LINK.findall(prose("docs/index.md")))
    wrong += [f"docs/index.md does not list {path}" for path in docs
              if os.path.basename(path) not in listed | {"index.md"}]
    links = sum(len(LINK.findall(prose(path))) for path in docs)
    print("\n".join(wrong) or f"{links} links in {len(docs)} pages")
    return bool(wrong) or links < 50


if __name__ == "__main__":
    sys.exit(main())
