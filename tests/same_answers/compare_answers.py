"""Compares what one command answered before and after, once the old answer has its new names."""
import difflib
import re
from dataclasses import dataclass, field

from contents import Content, exact_content, file_content, message_content, output_content
from renaming import Renaming

MOST_ITEMS_TO_ALIGN = 4000  # Aligning takes the square of it; longer lists are compared place by place.


@dataclass
class Comparison:
    differences: list[str] = field(default_factory=list)
    word_diff: list[str] = field(default_factory=list)
    lines_of_words: int = 0
    bundles: int = 0
    dropped: int = 0
    come_or_gone: int = 0


def shown(item: tuple[str, str] | None) -> str:
    if item is None:
        return "nothing"
    key, value = item
    value = value if len(value) <= 120 else value[:117] + "..."
    return value if key in ("cell", "line", "number", "verdict", "named", "comment") else f"{key} = {value}"


def pairs_by_place(before: list, after: list):
    for i in range(max(len(before), len(after))):
        pair = (before[i] if i < len(before) else None, after[i] if i < len(after) else None)
        if pair[0] != pair[1]:
            yield i, pair


def pairs_aligned(before: list, after: list):
    for what, a, a_end, b, b_end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what != "equal":
            for i, pair in pairs_by_place(before[a:a_end], after[b:b_end]):
                yield a + i, pair


def differing_items(before: list, after: list):
    if before == after:
        return
    short = max(len(before), len(after)) <= MOST_ITEMS_TO_ALIGN
    yield from (pairs_aligned if short else pairs_by_place)(before, after)


class Comparing:
    """One command's answers on the way."""

    def __init__(self, renaming: Renaming, exact_bundles: bool):
        self.renaming, self.exact_bundles = renaming, exact_bundles
        self.found = Comparison()

    def contents(self, where: str, before: Content, after: Content) -> None:
        old, new = self.without_gone(before.items), self.without_come(after.items)
        for i, (was, now) in differing_items(old, new):
            self.found.differences.append(f"{where}, item {i + 1}: {shown(was)} -> {shown(now)}")
        self.words(where, before.words, after.words)
        self.found.dropped += before.dropped + after.dropped

    def without_gone(self, items: list) -> list:
        kept = [item for item in items if not self.renaming.is_gone(item[0])]
        self.found.come_or_gone += len(items) - len(kept)
        return kept

    def without_come(self, items: list) -> list:
        kept = [item for item in items if not self.renaming.has_come(item[0])]
        self.found.come_or_gone += len(items) - len(kept)
        return kept

    def words(self, where: str, before: list[str], after: list[str]) -> None:
        if before == after:
            return
        diff = list(difflib.unified_diff(before, after, f"{where} before", f"{where} after", lineterm="", n=0))
        self.found.lines_of_words += sum(line[:1] in "+-" for line in diff[2:])
        self.found.word_diff += diff

    def step(self, where: str, before: dict, after: dict) -> None:
        if before["status"] != after["status"] or before["status"] in ("timed out", "not prepared"):
            said = " ".join(after["err"].split())[:200]
            self.found.differences.append(f"{where}, exit status: {before['status']} -> {after['status']} {said}")
        old_out, old_err = self.renaming.text(before["out"]), self.renaming.text(before["err"])
        is_json = before["out"][:1] in ("{", "[")  # Its keys are renamed by their whole path.
        old = output_content(before["out"] if is_json else old_out, self.renaming if is_json else None)
        self.contents(f"{where}, standard output", self.renamed_values(old) if is_json else old,
                      output_content(after["out"]))
        self.contents(f"{where}, standard error", message_content(old_err), message_content(after["err"]))

    def renamed_values(self, content: Content) -> Content:
        items = [(key, self.renaming.text(value)) for key, value in content.items]
        return Content(items, [self.renaming.text(words) for words in content.words], content.dropped)

    def bundle(self, name: str, before: str, after: str) -> None:
        """The checksum is that of a path, too, so it is never the same in two trees."""
        old, new = (re.sub(r"^checksum .*$", "", text, flags=re.MULTILINE) for text in (self.renaming.text(before), after))
        if old != new and self.exact_bundles:
            pairs = differing_items(exact_content(old).items, exact_content(new).items)
            self.found.differences += [f"{name}, line {i + 1}: {shown(was)} -> {shown(now)}" for i, (was, now) in pairs]
        elif old != new:
            self.found.bundles += 1

    def file(self, name: str, before: str | None, after: str | None) -> None:
        if before is None or after is None:
            self.found.differences.append(f"file {name} is there only {'before' if after is None else 'after'}")
        elif name.endswith(".slip"):
            self.bundle(name, before, after)
        elif name.endswith((".json", ".yaml")):
            self.contents(name, self.renamed_values(file_content(name, before, self.renaming)), file_content(name, after))
        else:
            self.contents(name, file_content(name, self.renaming.text(before)), file_content(name, after))

    def all(self, before: dict, after: dict) -> Comparison:
        for i, (old, new) in enumerate(zip(before["steps"], after["steps"])):
            self.step(f"step {i + 1}", old, new)
        if len(before["steps"]) != len(after["steps"]):
            self.found.differences.append(f"{len(before['steps'])} steps -> {len(after['steps'])} steps")
        for name in sorted({*before["files"], *after["files"]}):
            self.file(name, before["files"].get(name), after["files"].get(name))
        return self.found


def compare(before: dict | None, after: dict, renaming: Renaming, exact_bundles: bool) -> Comparison:
    if before is None:
        return Comparison(["the old answer is not in the record; record again"])
    return Comparing(renaming, exact_bundles).all(before, after)


def compare_new(after: dict) -> Comparison:
    """The answer of a command that the old program does not have."""
    return Comparison([f"exit status {step['status']}" for step in after["steps"] if step["status"] not in (0, 2)])
