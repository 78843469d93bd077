"""The names of renamed.txt: scenario keys, JSON keys, columns, files and folders that have a new name.

A line is `old new`. `old -` says that a key is gone, `- new` that one has come. In a key, `*` or `[]` is any index:
`cluster.fabrics.*.scope`, `points[].step_time_s`. The new program gets commands with new names, and what the old one
printed is told with new names before it is compared.
"""
import re
from pathlib import Path

INDEX = r"(?:\.\d+|\[\d+\]|\.\*|\[\])"


def pattern_of(name: str) -> str:
    """A key or path as a whole: `layout.tensor` is found neither in `layout.tensors` nor in `my.layout.tensor`."""
    pieces = re.split(r"\.\*|\[\]", name)
    before = r"(?<![\w.-])" if "." in name and "/" not in name else r"(?<![\w-])"
    return before + f"({INDEX})".join(re.escape(piece) for piece in pieces) + r"(?![\w-])"


def with_indices(new: str, indices: list[str]) -> str:
    for index in indices:
        new = re.sub(r"\.\*|\[\]", lambda _, index=index: index, new, count=1)
    return new


class Renaming:
    def __init__(self, pairs: list[tuple[str, str]]):
        self.pairs = sorted(((old, new) for old, new in pairs if "-" not in (old, new)), key=lambda p: -len(p[0]))
        self.patterns = [(re.compile(pattern_of(old)), new) for old, new in self.pairs]
        self.gone = [re.compile(pattern_of(old)) for old, new in pairs if new == "-"]
        self.come = [re.compile(pattern_of(new)) for old, new in pairs if old == "-"]

    @classmethod
    def read(cls, path: Path) -> "Renaming":
        pairs = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            words = line.split("#")[0].split()
            if len(words) not in (0, 2):
                raise SystemExit(f"{path}:{number}: give `old new`")
            if words:
                pairs.append((words[0], words[1]))
        return cls(pairs)

    def text(self, text: str) -> str:
        """Every name at once: what a name became is not renamed again, so two names can change places."""
        became: list[str] = []

        def kept(new: str, match: re.Match) -> str:
            became.append(with_indices(new, [group for group in match.groups() if group]))
            return f"\0{len(became) - 1}\0"

        for pattern, new in self.patterns:
            text = pattern.sub(lambda match, new=new: kept(new, match), text)
        return re.sub("\0(\\d+)\0", lambda match: became[int(match[1])], text)

    def below(self, key: str, value: str) -> str:
        """The keys of a map that is written in one line, `{kind: star}`, where `key` says what it is the value of."""
        for old, new in self.pairs if value[:1] in ("[", "{") else []:
            stem, _, leaf = old.rpartition(".")
            new_stem, _, new_leaf = new.rpartition(".")
            inside = (re.sub(INDEX, "", stem) + ".").startswith(re.sub(INDEX, "", key) + ".")
            if stem == new_stem and inside:
                value = re.sub(rf"(?<![\w.-]){re.escape(leaf)}(?=\s*:)", new_leaf, value)
        return value

    def command(self, text: str) -> str:
        def setting(match: re.Match) -> str:
            return match[1] + match[2] + "=" + self.below(match[2], match[3])

        settings = re.sub(r"""(['"]|\s)([a-z_.0-9]+)=([\[{][^'"]*)""", setting, text)
        return self.text(settings)

    def is_gone(self, key: str) -> bool:
        return any(pattern.search(key) for pattern in self.gone)

    def has_come(self, key: str) -> bool:
        return any(pattern.search(key) for pattern in self.come)
