"""Published runs as Slipway's table: what the converters beside the publishers' tables have in common.

    IN.csv ──reader of scenarios/studies/<study>/convert.py──► Run: keys of a scenario, results ──► OUT.csv

A converter names the columns that it reads in lines `# reads: model, gpus, ...`, one for each of its readers, in the
order of the readers. The build puts these lines into the program, so that `slipway validate` names the converter of a
table. A reader gets a row and fills a Run; a row that it cannot read is refused with the reason.

Only the standard library is used. Names of models and machines, with their aliases, are those of the YAML files of
models/. Guarded by tests/tables/converters_test.py.
"""

import argparse
import csv
import math
import os
import re
import sys

COLUMNS = ["scenario", "model", "status", "step_s", "tflops_per_gpu", "allocated_bytes", "reserved_bytes", "printed",
           "all_reduce_bytes_per_s", "excluded", "not_modelled", "transport", "table", "group", "choice", "study",
           "assumed", "source"]
STATUSES = ["ok", "oom", "infeasible", "other"]
# In the order in which they are counted: of several reasons the first one.
EXCLUSIONS = ["after_pp_fix", "no_layout", "memory_only", "contradiction", "superseded", "unknown_recipe"]

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


class Refused(Exception):
    """The row cannot be read, and why."""


# ---- cells ----

NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
TRUE, FALSE = ("1", "true", "True"), ("0", "false", "False")


class Cells:
    """A row by column name. A missing column is an empty cell."""

    def __init__(self, fields, line):
        self.fields, self.line = fields, line

    def text(self, column):
        return self.fields.get(column, "")

    def empty(self, column):
        return not self.text(column)

    def wrong(self, column, must):
        text = self.text(column)
        raise Refused(f"column {column}" + (f": '{text}', which must be {must}" if text else f" is empty and must be {must}"))

    def number(self, column):
        """A number, 0 or more."""
        text = self.text(column)
        if not NUMBER.fullmatch(text) or not 0 <= float(text) < math.inf:
            self.wrong(column, "a number, 0 or more")
        return float(text)

    def integer(self, column):
        value = self.number(column)
        if value < 1 or value > 1e9 or value != math.floor(value):
            self.wrong(column, "a whole number from 1 to 1e9")
        return int(value)

    def integer_or(self, column, otherwise):
        return otherwise if self.empty(column) else self.integer(column)

    def whole_or(self, column, otherwise):
        """A whole number from 0."""
        if self.empty(column):
            return otherwise
        return 0 if self.number(column) == 0 else self.integer(column)

    def above_zero(self, column):
        value = self.number(column)
        if value <= 0:
            raise Refused(f"column {column}: {self.text(column)} is not above 0")
        return value

    def number_or(self, column, otherwise):
        return otherwise if self.empty(column) else self.number(column)

    def flag(self, column):
        if self.text(column) in TRUE + FALSE:
            return self.text(column) in TRUE
        return self.wrong(column, "0, 1, true or false")

    def is_set(self, column):
        return not self.empty(column) and self.flag(column)

    def degree(self, column):
        """A degree of a layout: "n/a", "NA", "None", 0 and nothing are 1."""
        return 1 if self.text(column) in ("", "n/a", "NA", "None", "null", "0") else self.integer(column)

    def choice(self, column, choices, word=None):
        word = self.text(column) if word is None else word
        if word not in choices:
            raise Refused(f"column {column}: '{self.text(column)}' is none of {', '.join(sorted(choices))}")
        return choices[word]

    def status(self, ok, out_of_memory):
        """The end of a run: one of these two words, or another, which no score uses."""
        text = self.text("status")
        if not text:
            self.wrong("status", f"{ok}, {out_of_memory} or another word")
        return "ok" if text == ok else "oom" if text == out_of_memory else "other"


# ---- words of tables ----

def simple(written):
    """Letters and digits, small."""
    return re.sub(r"[^a-z0-9]", "", written.lower())


def joined_words(written):
    """Lower case, with underscores for dashes and without blanks."""
    return written.replace(" ", "").lower().replace("-", "_")


def plain_word(written):
    """The same up to the first blank or parenthesis."""
    return joined_words(re.split(r"[ (]", written, maxsplit=1)[0])


def recompute_word(cells, otherwise):
    if cells.empty("recompute"):
        return otherwise
    words = {"none": "none", "selective": "selective", "full": "full", "every_layer": "full"}
    return cells.choice("recompute", words, plain_word(cells.text("recompute")))


# ---- names of machines and models: the YAML files of models/ ----

def yaml_files(folder):
    """The `key: value` lines of each file, by the file's name. Of {value: ..., source: ...} the value."""
    files = {}
    for name in sorted(os.listdir(os.path.join(ROOT, folder))):
        if not name.endswith(".yaml"):
            continue
        with open(os.path.join(ROOT, folder, name), encoding="utf-8") as file:
            pairs = re.findall(r"^ *([a-z_]+): *(?:\{value: ([^,}]*).*|(.*?)) *$", file.read(), re.M)
        files[name[:-5]] = {key: value or plain for key, value, plain in pairs}
    return files


def aliases_of(fields):
    return [alias.strip().strip('"') for alias in fields.get("aliases", "[]").strip("[]").split(",") if alias.strip()]


MACHINES = yaml_files("models/machine/profiles")
MODELS = yaml_files("models/model/library")
TRAINERS = yaml_files("models/trainers")


def machine_named(column, written, usual=()):
    """The profile of a GPU as tables write it: "A100-80GB SXM", "a100_80gb", "A100 SXM4 80 GB".

    `usual`: for each generation with several profiles, the one for names without gigabytes.
    """
    name = written.lower()
    if name in MACHINES:
        return name
    for word in re.findall(r"[a-z0-9]+", name):  # one word of it: "NVIDIA Blackwell GPU (GB200)"
        if word in MACHINES:
            return word
    generation = re.search(r"(^|[^a-z0-9])([a-z][0-9]{3})([^0-9]|$)", name)
    if generation:
        found = generation[2]
        profiles = [each for each in MACHINES if each == found or each.startswith(found + "-")]
        size = re.search(r"([0-9]{1,6})[ _-]?g(i?b)?([^a-z]|$)", name)
        if size and f"{found}-{size[1]}gb" in profiles:
            return f"{found}-{size[1]}gb"
        if len(profiles) == 1 and (not size or profiles[0] == found):
            return profiles[0]
        for machine in usual:
            if not size and machine.startswith(found):
                return machine
    for machine, fields in MACHINES.items():
        if simple(written) in map(simple, aliases_of(fields)):
            return machine
    raise Refused(f"column {column}: '{written}' is no machine profile (`slipway list machines`); name the GPU with its "
                  "memory, as in A100-80GB")


MAMBA, DELTA = "hybrid layers (Mamba)", "hybrid layers (gated delta net)"
VISION = "a vision encoder beside the language model"
# Models that no scenario can say, by the beginning of their simple name: the name of their family, and what they have.
NOT_MODELLED = {
    "qwen3next": ("qwen3-next", DELTA), "qwen35": ("qwen3.5", DELTA), "qwen36": ("qwen3.6", DELTA),
    "qwen38": ("qwen3.8", DELTA), "qwen25vl": ("qwen2.5-vl", VISION), "qwen25omni": ("qwen2.5-omni", VISION),
    "qwen3vl": ("qwen3-vl", VISION), "qwen3omni": ("qwen3-omni", VISION), "internvl": ("internvl", VISION),
    "gemma4": ("gemma-4", VISION), "nemotron3": ("nemotron-3", MAMBA), "nemotronv3": ("nemotron-3", MAMBA),
    "nvidianemotron3": ("nemotron-3", MAMBA), "nemotronh": ("nemotron-h", MAMBA),
}


def model_words():
    """The beginnings by which tables name the models of the library, and those of other families."""
    words = {word: (name, refused) for word, (name, refused) in NOT_MODELLED.items()}
    for name, fields in MODELS.items():
        for word in [name] + aliases_of(fields):
            words[simple(word)] = (name, "")
    return words


MODEL_WORDS = model_words()


# ---- a run ----

class Run:
    """One row: the keys of its scenario, its results, and why it is not scored or not modelled."""

    def __init__(self, cells):
        self.keys, self.assumed, self.not_modelled, self.excluded = {}, [], [], set()
        self.fields = {"status": "ok", "source": cells.text("source")}
        self.version_of = self.version = ""

    def set(self, key, value):
        self.keys[key] = str(value).lower() if isinstance(value, bool) else str(value)

    def assume(self, what):
        self.assumed.append(what)

    def refuse(self, effect):
        """What the run has that no key says: it is not priced."""
        if effect not in self.not_modelled:
            self.not_modelled.append(effect)

    def exclude(self, rule, holds=True):
        if holds:
            self.excluded.add(rule)

    def result(self, **values):
        self.fields.update(values)

    def place(self, group, choice, table, study=""):
        self.fields.update(group=group, choice=choice, table=table, study=study)

    def lacks(self, cells, columns):
        """True for a row whose source does not say its layout."""
        missing = [column for column in columns if cells.empty(column)]
        if missing:
            self.exclude("no_layout")
        return bool(missing)

    def ready(self):
        """The fields of the table."""
        fields = dict(self.fields)
        if self.keys:
            fields["scenario"] = flow(self.keys)
        fields["assumed"] = "; ".join(self.assumed)
        fields["not_modelled"] = "; ".join(self.not_modelled)
        fields["excluded"] = " ".join(rule for rule in EXCLUSIONS if rule in self.excluded)
        return [cell_text(fields.get(column, "")) for column in COLUMNS]


def cell_text(value):
    if not isinstance(value, (int, float)):
        return str(value)
    if value == 0:
        return ""
    return str(int(value)) if value == math.floor(value) and value < 1e16 else repr(value)


def flow(keys):
    """{"layout.tensor": "2"} as {layout: {tensor: 2}}."""
    tree = {}
    for path in sorted(keys):
        *sections, leaf = path.split(".")
        at = tree
        for section in sections:
            at = at.setdefault(section, {})
        at[leaf] = keys[path]

    def text(at):
        return "{" + ", ".join(f"{key}: {text(value) if isinstance(value, dict) else value}" for key, value in at.items()) + "}"
    return text(tree)


# ---- parts of scenarios that several tables have ----

def set_model(run, written):
    """Sets model.name by the name that a table gives, "Qwen/Qwen3-30B-A3B", "Llama-3-70B SFT". Returns it."""
    slash, blank = written.find("/"), written.find(" ")
    name = simple(written[slash + 1:] if slash >= 0 and (blank < 0 or slash < blank) else written)
    known = max((word for word in MODEL_WORDS if name.startswith(word)), key=len, default=None)
    if known is None:
        run.refuse("the model " + written)
        return written
    model, refused = MODEL_WORDS[known]
    if refused:
        run.refuse(refused)
    else:
        run.set("model.name", model)
    return model


def kv_heads_of(run):
    fields = MODELS.get(run.keys.get("model.name"), {})
    return int(run.keys.get("model.kv_heads", fields.get("kv_heads", 0)))


def set_shapes(run, name, family, **shape):
    """A model that the library does not have."""
    run.result(model=name)
    run.set("model.family", family)
    for key, value in shape.items():
        run.set("model." + key, value)


# The first Llama (Touvron et al. 2023, arXiv 2302.13971), whose shapes Llama 2 shares, where a file differs.
FIRST_LLAMAS = {"llama-30b": ("llama-30b-v128k", {"vocab": 32000, "ffn": 17920}),
                "llama-2-30b": ("llama-30b-v128k", {"vocab": 32000, "ffn": 17920}),
                "llama-65b": ("llama-65b-v128k", {"vocab": 32000})}


def set_first_llama(run, written):
    """The same for a table of Llamas by their plain names; an unknown one refuses the row. Returns the name as written."""
    name = written.lower()
    file, shape = FIRST_LLAMAS.get(name, (MODEL_WORDS.get(simple(name), ("", ""))[0], {}))
    if file not in MODELS:
        raise Refused(f"column model: no built-in model '{written}' (`slipway list models`)")
    run.set("model.name", file)
    for key, value in shape.items():
        run.set("model." + key, value)
    return name


def shape_of_run(run):
    """The numbers of its model: of the library, under the run's own keys."""
    shape = {key: float(value) for key, value in MODELS.get(run.keys.get("model.name"), {}).items() if NUMBER.fullmatch(value)}
    own = {key[len("model."):]: value for key, value in run.keys.items() if key.startswith("model.")}
    shape.update({key: float(value) for key, value in own.items() if NUMBER.fullmatch(value)})
    shape.setdefault("kv_heads", shape.get("heads"))
    return shape


def set_usual_machine(run, cells, usual, why="as in its authors' other runs"):
    """Of column gpu. Says so where a name without gigabytes became one of `usual`."""
    written = cells.text("gpu")
    machine = machine_named("gpu", written, usual)
    try:
        clear = machine_named("gpu", written) == machine
    except Refused:
        clear = False
    if not clear:
        run.assume(f"gpu {written} is {machine}" + (", " if why.startswith("as ") else ": ") + why)
    return machine


def set_cluster(run, machine, gpus, gpus_per_node=8):
    """Machine, GPUs and the nodes that they fill."""
    run.set("cluster.machine", machine)
    per_node = min(gpus, gpus_per_node)
    if machine.startswith("gb"):
        # An NVLink domain is what nodes are elsewhere: messages inside it do not use the network.
        per_node, nodes = gpus, 1
        while per_node > 72 or gpus % nodes != 0:
            nodes += 1
            per_node = gpus // nodes
        run.assume(f"the GPUs lie in NVLink domains of {per_node}")
    if gpus % per_node != 0:
        run.refuse(f"{gpus} GPUs that do not fill nodes of {per_node}")
        return
    run.set("cluster.gpus_per_node", per_node)
    run.set("cluster.nodes", gpus // per_node)


def set_degrees(run, tensor=1, context=1, pipeline=1, sequence_parallel=False):
    for key, degree in (("tensor", tensor), ("context", context), ("pipeline", pipeline)):
        if degree > 1:
            run.set("layout." + key, degree)
    if tensor > 1:
        run.set("layout.sequence_parallel", bool(sequence_parallel))


def set_layout(run, sequence, micro_batch, global_batch, tensor=1, context=1, pipeline=1, chunks=1, full_shards=False):
    """Degrees of a Megatron's layout, and its batch in sequences.

    `full_shards`: weights and gradients are divided among replicas too (FSDP); else the optimizer alone.
    """
    heads = kv_heads_of(run)
    if heads > 0 and tensor > heads:  # Megatron-Core gathers them, with the queries, over the tensor group
        run.assume("copies of key-value heads")
    run.set("model.sequence", sequence)
    set_degrees(run, tensor, context, pipeline, sequence_parallel=True)
    if pipeline > 1 and chunks > 1:
        run.set("layout.chunks", chunks)
        run.set("schedule.name", "interleaved-1f1b")
    run.set("layout.zero", 3 if full_shards else 1)
    run.set("layout.vocab_multiple", 128)  # --make-vocab-size-divisible-by of Megatron-LM
    run.set("schedule.micro_batch", micro_batch)
    run.set("schedule.global_batch", global_batch)


def set_batch(run, status, gpus, tensor, context, pipeline, micro_batch, global_batch):
    """The batch of a table without micro-batches a step; returns the status, and the replicas (0: infeasible).

    Where replicas do not divide the micro-batches, the last is assumed to be full. Some tables list layouts with more
    ranks than GPUs, which did not run.
    """
    ranks = tensor * context * pipeline
    run.set("schedule.micro_batch", micro_batch)
    run.set("schedule.global_batch", global_batch)
    if gpus % ranks != 0:
        if status == "ok":
            raise Refused(f"tensor x context x pipeline = {ranks} does not divide {gpus} GPUs")
        return "infeasible", 0
    data = gpus // ranks
    if global_batch < data * micro_batch:
        raise Refused(f"data x micro-batch = {data} x {micro_batch} does not divide the global batch of {global_batch}")
    micro_batches = -(-global_batch // (data * micro_batch))
    if global_batch % (data * micro_batch) != 0:
        run.assume(f"data x micro-batch = {data} x {micro_batch} does not divide the global batch of {global_batch}: "
                   f"{micro_batches} micro-batches")
    run.set("schedule.global_batch", micro_batches * data * micro_batch)
    return status, data


def set_merged(run):
    """Dispatch and combine of one micro-batch run beside the pass of another (--overlap-moe-expert-parallel-comm)."""
    run.set("schedule.name", "1f1b-merged")


def set_experts(run, expert, expert_tensor, dispatcher):
    """Degrees (0: not given), and the dispatcher in any trainer's words, "DeepEP over UCCL/EFA"."""
    if expert > 1:
        run.set("layout.expert", expert)
    if expert_tensor > 0:
        run.set("layout.expert_tensor", expert_tensor)
    word = simple(dispatcher)
    if word.startswith("deepep") or word == "flex":
        run.set("layout.dispatcher", "deepep")
        if word not in ("deepep", "flex"):
            run.assume(dispatcher + " is as fast as the network")
    elif not word or "alltoall" in word:
        run.set("layout.dispatcher", "alltoall")
    elif word in ("allgather", "hybridep"):
        run.set("layout.dispatcher", word)
    else:
        run.refuse("the dispatcher " + dispatcher)


def set_pipeline(run, model, pipeline, chunks):
    """The pipeline of DeepSeek-V3 in NVIDIA's recipes, whose 61 layers no number of stages divides."""
    layers, most, stages = 61, 32, pipeline * chunks
    if model != "deepseek-v3" or stages == 1 or stages > layers:
        return
    # src/megatron/bridge/recipes/deepseek/deepseek_v3.py and scripts/performance of NVIDIA-NeMo/Megatron-Bridge:
    # 4, 8 and 16 stages have the same number each, the last the rest; 32 are "Et|(tt|)*30mL".
    split, left = [], layers
    for stage in range(stages):
        each = (1 if stage == 0 else 2 if stage < most - 1 else 0) if stages == most else -(-layers // stages)
        split.append(min(left, each))
        left -= split[-1]
    run.set("layout.split", "[" + ", ".join(map(str, split)) + "]")
    run.assume("layers of stages as in NVIDIA's recipes of DeepSeek-V3")


def words_of(text):
    """ "[attn, moe_router]", "attn+mlp", "attn mlp" as words."""
    return re.findall(r"[^\[\],+ ]+", text)


def stages_of(listed):
    """How many stages a --pipeline-model-parallel-layout has, "Et*4|(tttt|)*14tmL"."""
    while True:
        found = re.search(r"(?:\(([^()]*)\)|([a-zA-Z|]))\*(\d+)", listed)
        if not found:
            return listed.count("|") + 1
        listed = listed[:found.start()] + (found[1] or found[2]) * int(found[3]) + listed[found.end():]


def set_recompute(run, modules):
    """Modules that are computed again in the backward pass, in Megatron's words; empty: none."""
    words = modules.split()
    if not words:
        run.set("schedule.recompute", "none")
    elif words == ["full"]:
        run.set("schedule.recompute", "full")
    else:
        run.set("schedule.recompute_modules", "[" + ", ".join(sorted(words)) + "]")


def set_usual_recompute(run, model, machine, precision):
    """The same as NVIDIA's recipes of Megatron-Bridge have it for this model, where a row does not say its recipe.

    scripts/performance/configs/deepseek/deepseek_llm_pretrain.py and gpt_oss_workload_base_configs.py.
    """
    if model == "deepseek-v3":
        set_recompute(run, "mla_up_proj mlp" if machine.startswith("h") else "mla_up_proj")
    elif model == "gpt-oss-120b" and precision == "BF16":
        set_recompute(run, "layernorm moe_act")
    else:
        return set_recompute(run, "")
    return run.assume("modules that NVIDIA's recipes of this model compute again")


def set_usual_moments(run, model):
    """use_precision_aware_optimizer: src/megatron/bridge/recipes/deepseek/deepseek_v3.py, moonlight/moonlight_16b.py."""
    if model in ("deepseek-v3", "moonlight-16b-a3b"):
        run.set("run.optimizer.moment_dtype", "bfloat16")
        run.assume("Adam's moments in bfloat16 as in NVIDIA's recipes of this model")


def set_graphs(run, implementation, scope):
    """CUDA graphs by Megatron's --cuda-graph-impl and --cuda-graph-scope."""
    if implementation in ("", "none"):
        return
    words = words_of(scope)
    if "full_iteration" in (implementation, scope):
        run.set("schedule.cuda_graphs", "[full]")
    elif words:
        run.set("schedule.cuda_graphs", "[" + ", ".join(words) + "]")
    else:
        run.refuse("CUDA graphs of a scope that is not given")


def set_lora(run, rank, modules, assumed):
    """LoRA: rank, and Linears with an adapter; empty: all. `assumed`: what of them the table lacks, and its source."""
    run.assume(assumed)
    run.set("run.lora.rank", rank)
    if modules:
        run.set("run.lora.modules", "[" + modules + "]")


PRECISIONS = {"bf16": "none", "fp8mx": "mxfp8", "mxfp8": "mxfp8", "fp8cs": "tensorwise", "fp8": "delayed",
              "fp8ds": "delayed", "nvfp4": "nvfp4", "fp8sc": "blockwise", "blockwise": "blockwise",
              "tensorwise": "tensorwise"}


def set_precision(run, written):
    """ "FP8-MX", "mxfp8", "FP8_CS", "BF16", "NVFP4": run.fp8."""
    if simple(written) not in PRECISIONS:
        run.refuse("the precision " + written)
    else:
        run.set("run.fp8", PRECISIONS[simple(written)])


# ---- files ----

def table_rows(path):
    """The header, and the rows as (line, fields) of a CSV file, without comments before the header."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        lines = file.readlines()
    first = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    reader = csv.reader(lines[first:])
    header, rows, line = None, [], first + 1
    for fields in reader:
        if fields and header is None:
            header = fields
        elif fields:
            rows.append((line, fields))
        line = first + reader.line_num + 1
    return header or [], rows


def readers_of(script, readers):
    """Each reader with the columns of its `# reads:` line."""
    with open(script, encoding="utf-8") as file:
        columns = [[name.strip() for name in line[len("# reads:"):].split(",")]
                   for line in file if line.startswith("# reads:")]
    assert len(columns) == len(readers), "one line `# reads:` for each reader"
    return list(zip(columns, readers))


def chosen(path, header, known):
    fitting = [(columns, reader) for columns, reader in known if set(columns) <= set(header)]
    if not fitting:
        columns, _ = max(known, key=lambda each: len(set(each[0]) & set(header)))
        missing = [column for column in columns if column not in header]
        sys.exit(f"{path}: the header lacks {', '.join(missing)}; this converter reads tables with the columns "
                 f"{', '.join(columns)}")
    return max(fitting, key=lambda each: len(each[0]))[1]


def runs_of(path, known):
    """The runs of a file; those that cannot be read go to standard error."""
    try:
        header, rows = table_rows(path)
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"{path}: cannot be read as a table: {error}")
    reader, runs = chosen(path, header, known), []
    for line, fields in rows:
        try:
            if len(fields) != len(header):
                raise Refused(f"it has {len(fields)} fields where the header has {len(header)}")
            cells = Cells(dict(zip(header, fields)), line)
            run = Run(cells)
            reader(cells, run)
            runs.append(run)
        except Refused as reason:
            print(f"{path}:{line}: refused: {reason}", file=sys.stderr)
    return runs


def mark_superseded(runs):
    """Of the versions of a run the newest counts."""
    newest = {}
    for run in runs:
        if run.version_of:
            newest[run.version_of] = max(newest.get(run.version_of, ""), run.version)
    for run in runs:
        run.exclude("superseded", bool(run.version_of) and run.version != newest[run.version_of])


def main(script, source, *readers):
    """The command of a converter. `source`: comment lines of the table that it writes."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("tables", nargs="+", metavar="IN.csv")
    parser.add_argument("-o", dest="output", metavar="OUT.csv", help="default: standard output")
    asked = parser.parse_args()
    known = readers_of(script, readers)
    runs = [run for path in asked.tables for run in runs_of(path, known)]
    mark_superseded(runs)
    out = open(asked.output, "w", encoding="utf-8", newline="") if asked.output else sys.stdout
    with out:
        for line in source.strip().splitlines():
            out.write("# " + line + "\n")
        rows = [run.ready() for run in runs]
        used = [i for i, name in enumerate(COLUMNS) if name in ("scenario", "status", "step_s") or any(row[i] for row in rows)]
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([COLUMNS[i] for i in used])
        writer.writerows([row[i] for i in used] for row in rows)
