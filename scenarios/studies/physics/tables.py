"""Tables of `slipway validate --pooled` and `slipway kernels`: tables.py VALIDATION.json ROWS.csv SHAPES.csv [README.md]

Prints one table for each name below. With a README, it also writes each between the fences behind `<!-- NAME -->`.
"""
import csv
import json
import math
import re
import sys

NORMAL_90 = 1.645  # half of a normal distribution's 90 % interval, in standard deviations
LEAST_GAIN = 0.3   # points of mean error: what a table gains less is not printed


def aligned(heading, rows):
    """The first column and the last to the left, the others to the right."""
    cells = [heading] + rows
    widths = [max(len(row[c]) for row in cells) for c in range(len(heading))]
    lines = []
    for row in cells:
        fields = [row[0].ljust(widths[0])]
        fields += [field.rjust(width) for field, width in zip(row[1:-1], widths[1:-1])]
        lines.append("  ".join(fields + [row[-1]]).rstrip())
    return "\n".join(lines)


def table_name(of):
    return f"{of['trainer']}, {of['machine']}" if of.get("machine") else of["trainer"]


def error(of):
    return "-" if of["mean"] is None else f"{of['mean']:.1f} / {of['median']:.1f}"


def is_shared(constant):
    return not constant["trainer"] and not constant["machine"]


def interval(constant):
    reach = math.exp(NORMAL_90 * constant["deviation"])
    return f"{constant['value'] / reach:.3g} to {constant['value'] * reach:.3g}"


def constants(validation, *_):
    rows = [[each["name"], f"{each['book']:.3g}", f"{each['value']:.3g}", interval(each), f"{each['spread']:.2f}",
             f"{each['deviation']:.2f}", f"{each['from_book']:+.1f}", f"{each['unit']}: {each['meaning']}"]
            for each in validation["constants"] if is_shared(each)]
    return aligned(["constant", "book", "fitted", "90 % interval", "spread", "left", "off by", "what it is"], rows)


def deviations(validation, *_):
    own = [each for each in validation["constants"] if not is_shared(each) and abs(each["from_book"]) >= 1]
    own.sort(key=lambda each: -abs(each["from_book"]))
    rows = [[each["name"], f"{each['value']:.2f}", interval(each), f"{each['from_book']:+.1f}",
             ", ".join(filter(None, [each["trainer"], each["machine"]]))] for each in own]
    return aligned(["deviation", "factor", "90 % interval", "off by", "whose"], rows)


def errors(validation, *_):
    ways = ["book", "in_sample", "layouts", "layouts_corrected", "groups", "groups_corrected", "paper"]
    rows = [[table_name(table), str(table["rows"])] + [error(table[way]) for way in ways]
            for table in validation["tables"] + [validation["mean"]]]
    return aligned(["errors", "runs", "by the book", "in sample", "layouts out", "with the layer", "groups out",
                    "with the layer", "paper out"], rows)


def quantile(ordered, share):
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def strip(at):
    """-30 to +30 %: dashes from the 5th to the 95th of 100 runs, = for the middle half, o the median, | for 0."""
    def column(percent):
        return round((min(max(percent, -30), 30) + 30) / 2)
    low, left, middle, right, high = (column(percent) for percent in at)
    marks = [" "] * 31
    marks[15] = "|"
    for c in range(low, high + 1):
        marks[c] = "-"
    for c in range(left, right + 1):
        marks[c] = "="
    marks[middle] = "o"
    return "".join(marks)


def strips(name, groups):
    """`groups`: (predicted, measured) by a name of texts."""
    rows = []
    for key in sorted(groups):
        off = sorted(100 * (predicted / measured - 1) for predicted, measured in groups[key])
        at = [quantile(off, share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)]
        rows.append([", ".join(key)] + [f"{percent:+.1f}" for percent in at] + [strip(at)])
    return aligned([name, "5th", "25th", "median", "75th", "95th", "-30 %         0          +30 %"], rows)


def residuals(_, runs, __):
    tables = {}
    for run in runs:
        tables.setdefault((run["trainer"], run["machine"]), []).append(
            (float(run["in_sample_s"]), float(run["measured_s"])))
    return strips("residuals", tables)


def kernels(_, __, shapes):
    """Each shape by the fit that did not see it."""
    groups = {}
    for shape in shapes:
        groups.setdefault((shape["kernel"], shape["gpu"]), []).append(
            (float(shape["predicted_s"]), float(shape["measured_s"])))
    return strips("kernels", groups)


def effects(validation, *_):
    whole = validation["mean"]["in_sample"]
    rows = [[each["name"], f"{each['without']['mean'] - whole['mean']:+.1f}",
             f"{each['without']['median'] - whole['median']:+.1f}", f"{each['without']['bias'] - whole['bias']:+.1f}",
             each["meaning"]] for each in validation["effects"]]
    return aligned(["effect", "mean error", "median", "bias", "what it prices"], rows)


def gains(validation, *_):
    rows = []
    for table in validation["tables"]:
        found = []
        for effect in validation["effects"]:
            for own in effect["tables"]:
                if (own["trainer"], own["machine"]) == (table["trainer"], table["machine"]):
                    found.append((own["mean"] - table["in_sample"]["mean"], effect["name"]))
        found.sort(key=lambda each: -abs(each[0]))
        words = ", ".join(f"{name} {gain:+.1f}" for gain, name in found if abs(gain) >= LEAST_GAIN)
        rows.append([table_name(table), f"{table['in_sample']['mean']:.1f}", words])
    return aligned(["gains", "in sample", "points without"], rows)


def main(arguments):
    with open(arguments[0]) as file:
        validation = json.load(file)
    with open(arguments[1], newline="") as file:
        runs = list(csv.DictReader(file))
    with open(arguments[2], newline="") as file:
        shapes = list(csv.DictReader(file))
    readme = arguments[3] if len(arguments) > 3 else None
    text = open(readme).read() if readme else ""
    for make in (kernels, constants, deviations, errors, residuals, effects, gains):
        table = make(validation, runs, shapes)
        print(f"{table}\n")
        if readme:
            block = re.compile(f"(<!-- {make.__name__} -->\n```\n)[^`]*(```)")
            text, count = block.subn(lambda found: found[1] + table + "\n" + found[2], text)
            if count != 1:
                sys.exit(f"{readme} has {count} blocks <!-- {make.__name__} -->, not one")
    if readme:
        with open(readme, "w") as file:
            file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
