"""Takes an output apart: items, which must be the same, and words of sentences, which need not.

Items of a text are its numbers with their units, the short cells of its tables, and rows of timelines. Items of JSON
and YAML are keys with values. A sentence has words only; its numbers are items.
"""
import csv
import io
import json
import re
from dataclasses import dataclass, field

# What no two runs of the same program have in common. Each has its reason.
DROPPED_KEYS = [
    (r"(^|\.)simulate_wall_s$", "how long the simulator's event loop took"),
    (r"(^|\.)screening_s$", "how long plan took for closed forms"),
    (r"(^|\.)simulation_s$", "how long plan took for the rest"),
    (r"(^|\.)provenance\.date$", "the day on which calibrate was called"),
    (r"(^|\.)provenance\.machine$", "the computer on which calibrate was called"),
]
DROPPED_TEXT = [
    (r"\b(screened|simulated) in [\d.,]+ (ns|µs|us|ms|s|min)\b", r"\1 in TIME", "how long the program took"),
    (r"^[a-z]+ing\b.*: (.*after )?\d+ s(, about \d+ s left)?$", "", "a line of progress comes every two seconds"),
    (r"(\.slip: .*), [\d.]+ [KM]?i?B\b", r"\1", "the size of a bundle counts the letters of a path"),
    (r"(\bslipway calibrate .*), \d{4}-\d\d-\d\d$", r"\1", "the day on which calibrate was called"),
]

UNITS = r"%|[nµum]?s|min|h|days|[KMGT]iB|[kKMGT]?B|[KMGTP]"
NUMBER = re.compile(rf"[+−±<>~-]?[\w./%·^-]*\d(?:[\w./%·^+-]|,(?=\d{{3}}))*(?: (?:{UNITS})(?:/s)?(?![\w/-]))?")
GAP = re.compile(r" {2,}")
KEY_OR_OPTION = re.compile(r"(?<![\w.-])(?:--[a-z][\w-]*|[a-z_]+(?:\.[a-z_\d*]+)+)")
SENTENCE = 3  # As many words make a sentence.


@dataclass
class Content:
    items: list[tuple[str, str]] = field(default_factory=list)  # What kind or key, and its value.
    words: list[str] = field(default_factory=list)
    dropped: int = 0

    def add(self, key: str, value: str) -> None:
        self.items.append((key, value))

    def sentence(self, key: str, text: str) -> None:
        self.words.append(f"{key}: {text}" if key else text)
        self.items += [(key, number) for number in numbers_of(text)]

    def value(self, key: str, text: str) -> None:
        if len(text.split()) >= SENTENCE and text[:1] not in ("[", "{"):
            self.add(key, "a sentence")
            self.sentence(key, text)
        else:
            self.add(key, text)


def numbers_of(text: str) -> list[str]:
    return [match[0].rstrip("./-") for match in NUMBER.finditer(text)]


def without_dropped(text: str, content: Content) -> str:
    for pattern, instead, _ in DROPPED_TEXT:
        text, times = re.subn(pattern, instead, text, flags=re.MULTILINE)
        content.dropped += times
    return text


def is_dropped(key: str) -> bool:
    plain = re.sub(r"\[\d+\]", "", key)
    return any(re.search(pattern, plain) for pattern, _ in DROPPED_KEYS)


def row_of_table(line: str, content: Content) -> None:
    for cell in GAP.split(line):
        if len(cell.split()) == 1:
            content.add("cell", cell)
        else:
            content.items += [("cell", number) for number in numbers_of(cell)]


def line_of_text(line: str, content: Content) -> None:
    if "│" in line or line.startswith("--"):  # A timeline's row, or an argument for a trainer.
        content.add("line", line)
    elif GAP.search(line) and re.search(r"\d", line):
        row_of_table(line, content)
    else:
        # A sentence that is worded anew may name its numbers in another order.
        content.items += [("number", number) for number in sorted(numbers_of(line))]
        content.items += [("verdict", word) for word in re.findall(r": (yes|no)\b", line)]


def text_content(text: str) -> Content:
    content = Content()
    for line in without_dropped(text, content).splitlines():
        line_of_text(line.strip(), content)
        content.words.append(GAP.sub("  ", line.strip()))
    return content


def message_content(text: str) -> Content:
    """Of what is said about a mistake: which keys, options and numbers are named, in whatever order."""
    content = Content()
    text = without_dropped(text, content)
    content.words = [line for line in text.splitlines() if line]
    for line in content.words:  # A line may say a thing twice.
        content.items += {("named", name) for name in KEY_OR_OPTION.findall(line)}
        content.items += {("number", number) for number in numbers_of(line)}
    content.items.sort()
    return content


def exact_content(text: str) -> Content:
    return Content([("line", line) for line in text.splitlines()])


def csv_content(text: str) -> Content:
    content = Content()
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            content.value("cell", cell)
        content.add("row", "ends")
    return content


def yaml_lines(text: str):
    """Key, value and comment of each line of a YAML file that is written as slipway writes it."""
    above: list[tuple[int, str]] = []  # Indentation and key of the maps around a line.
    counts: dict[str, int] = {}
    for line in text.splitlines():
        indent, dash, key, value = re.match(r"( *)(- )?(?:([\w.-]+):(?= |$))? ?(.*)", line).groups()
        while above and above[-1][0] >= len(indent) + (1 if dash and not key else 0):
            above.pop()
        path = ".".join(part for _, part in above)
        if dash:
            counts[path] = counts.get(path, -1) + 1
            path += f".{counts[path]}"
        if key:
            above.append((len(indent), key))
            path = f"{path}.{key}" if path else key
        yield path, value


def yaml_content(text: str, prefix: str = "", renaming=None) -> Content:
    """The order of keys does not count, because a map has none."""
    content = Content()
    for key, value in yaml_lines(text):
        name = prefix + key
        if is_dropped(key):
            content.dropped += 1
        elif value.startswith("#"):
            content.sentence("comment", value)
        elif key:
            content.value(renaming.text(name) if renaming else name, renaming.below(key, value) if renaming else value)
    content.items.sort()
    return content


def json_value(key: str, value, content: Content, renaming, exact: bool) -> None:
    if isinstance(value, str) and "\n" in value and ": " in value:
        inner = yaml_content(value, prefix=key + " ", renaming=renaming)
        content.items += inner.items
        content.words += inner.words
    elif isinstance(value, str) and not exact:
        content.value(key, without_dropped(value, content))
    else:
        content.add(key, value if isinstance(value, str) else json.dumps(value))


def add_json(key: str, node, content: Content, renaming, exact: bool) -> None:
    if is_dropped(key):
        content.dropped += 1
    elif isinstance(node, dict) and node:
        for name, inner in node.items():
            name = f'"{name}"' if "." in name else name  # A scenario's key, which is renamed by itself.
            add_json(f"{key}.{name}" if key else name, inner, content, renaming, exact)
    elif isinstance(node, list) and node:
        for index, inner in enumerate(node):
            add_json(f"{key}[{index}]", inner, content, renaming, exact)
    else:
        json_value(renaming.text(key) if renaming else key, node, content, renaming, exact)


def json_content(text: str, renaming=None, exact: bool = False) -> Content | None:
    """None of what is no JSON. Numbers keep the digits that were printed."""
    try:
        node = json.loads(text, parse_float=str, parse_int=str)
    except ValueError:
        return None
    content = Content()
    add_json("", node, content, renaming, exact)
    return content


def output_content(text: str, renaming=None) -> Content:
    """Of standard output, whose values have had their new names already."""
    content = json_content(text, renaming) if text[:1] in ("{", "[") else None
    return content or text_content(text)


def file_content(name: str, text: str, renaming=None) -> Content:
    if name.endswith((".json", ".trace")):
        return json_content(text, renaming, exact=True) or text_content(text)
    if name.endswith((".yaml", ".yml")):
        return yaml_content(text, renaming=renaming)
    if name.endswith(".csv"):
        return csv_content(text)
    if name.endswith((".dot", ".svg")):
        return exact_content(text)
    return text_content(text)
