// The meaning of several arguments of Megatron-LM together (NVIDIA/Megatron-LM megatron/training/arguments.py), where
// it takes arithmetic or a text of their own. All else is in models/trainers/arguments/megatron.yaml. Defaults are
// those of Megatron-LM, not of Slipway.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "scenarios/language/layer_lists.h"
#include "scenarios/language/quantity.h"
#include "scenarios/trainers/compose_megatron.h"

namespace slipway::scenarios {

// A rank's layers.

void megatron_split(Reading& reading) {
  const std::int64_t pipeline = reading.count("layout.pipeline", 1), layers = reading.count("model.layers", 0);
  if (const std::string text = reading.text("pipeline-model-parallel-layout"); !text.empty()) {
    const std::optional<PipelineStages> stages = pipeline_stages(text);
    if (!stages)
      return reading.refuse(
          "pipeline-model-parallel-layout",
          "'" + text + "' cannot be read; allowed: stages of E, t, m and L between |, as Et*4|(tttt|)*14tmL",
          "correct it");
    const std::int64_t count = static_cast<std::int64_t>(stages->layers.size());
    if (count % pipeline != 0)
      return reading.refuse(
          "pipeline-model-parallel-layout",
          fmt::format("it has {} stages, no multiple of --pipeline-model-parallel-size {}", count, pipeline),
          "change one of them");
    if (count / pipeline > 1)
      reading.set("layout.chunks", std::to_string(count / pipeline), "pipeline-model-parallel-layout");
    return reading.set("layout.split", stages->layers, "pipeline-model-parallel-layout");
  }
  if (const std::int64_t chunks = reading.whole("num-virtual-stages-per-pipeline-rank"); chunks > 1)
    reading.set("layout.chunks", std::to_string(chunks), "num-virtual-stages-per-pipeline-rank");
  if (const std::int64_t each = reading.whole("num-layers-per-virtual-pipeline-stage"); each > 0 && pipeline > 1) {
    if (layers % (each * pipeline) != 0)
      return reading.refuse(
          "num-layers-per-virtual-pipeline-stage",
          fmt::format("{} layers on each of {} pipeline ranks do not divide --num-layers {}", each, pipeline, layers),
          "change one of them");
    if (layers / (each * pipeline) > 1)
      reading.set("layout.chunks", std::to_string(layers / (each * pipeline)), "num-layers-per-virtual-pipeline-stage");
  }
  const auto whole_or_none = [&](const char* argument) {
    return reading.given(argument) ? reading.whole(argument) : -1;
  };
  const std::int64_t first = whole_or_none("decoder-first-pipeline-num-layers"),
                     last = whole_or_none("decoder-last-pipeline-num-layers");
  if (pipeline > 1 && (first >= 0 || last >= 0)) {
    const std::int64_t inner = pipeline - (first >= 0) - (last >= 0),
                       rest = layers - std::max<std::int64_t>(first, 0) - std::max<std::int64_t>(last, 0);
    const char* which = first >= 0 ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers";
    if (reading.has("layout.chunks"))
      return reading.refuse(which, "with virtual stages it is not modelled; allowed: --pipeline-model-parallel-layout",
                            "write the stages with it");
    if (inner > 0 ? rest < 0 || rest % inner != 0 : rest != 0)
      return reading.refuse(
          which, fmt::format("{} layers are left for {} pipeline ranks, which they do not divide by", rest, inner),
          "change the layers of the first or last rank");
    std::vector<std::int64_t> list(static_cast<std::size_t>(pipeline), inner > 0 ? rest / inner : 0);
    if (first >= 0) list.front() = first;
    if (last >= 0) list.back() = last;
    reading.set("layout.split", list, which);
  } else if (reading.given("account-for-embedding-in-pipeline-split") ||
             reading.given("account-for-loss-in-pipeline-split")) {
    const bool embedding = reading.given("account-for-embedding-in-pipeline-split"),
               loss = reading.given("account-for-loss-in-pipeline-split");
    const char* which = embedding ? "account-for-embedding-in-pipeline-split" : "account-for-loss-in-pipeline-split";
    const std::int64_t stages = pipeline * reading.count("layout.chunks", 1), all = layers + embedding + loss;
    if (all % stages != 0)
      return reading.refuse(which, fmt::format("{} layers and parts do not divide by {} stages", all, stages),
                            "change --num-layers or the pipeline");
    std::vector<std::int64_t> list(static_cast<std::size_t>(stages), all / stages);
    list.front() -= embedding;
    list.back() -= loss;
    reading.set("layout.split", list, which);
  }
}

// The vocabulary.

void megatron_vocabulary(Reading& reading) {
  if (reading.has("model.vocab")) return;
  std::int64_t multiple = 0, padded = 0;
  const bool is_huge = __builtin_mul_overflow(reading.whole("make-vocab-size-divisible-by"),
                                              reading.count("layout.tensor", 1), &multiple);
  std::int64_t words = reading.whole("vocab-size");
  const char* from = "vocab-size";
  for (const char* argument : {"tokenizer-model", "vocab-file", "tokenizer-type"}) {
    const Argument* found = words == 0 ? reading.find(argument) : nullptr;
    if (found == nullptr || found->values.empty()) continue;
    for (const auto& [part, its_words] : reading.dictionary().table("tokenizers"))
      if (words == 0 && found->values[0].find(part) != std::string::npos) words = whole_number(its_words).value_or(0);
    from = argument;
  }
  if (words == 0)
    return reading.refuse(
        "vocab-size",
        "the vocabulary follows from no argument: its tokenizer is unknown; allowed: --vocab-size, or a scenario key",
        "give it: --set model.vocab=N");
  if (multiple <= 0 && !is_huge)
    return reading.refuse("make-vocab-size-divisible-by", "it must be positive", "correct it");
  if (is_huge || __builtin_add_overflow(words, multiple - 1, &padded))
    return reading.refuse("vocab-size", "no vocabulary is so large", "correct it, or --make-vocab-size-divisible-by");
  padded = padded / multiple * multiple;
  if (std::string_view(from) != "vocab-size")
    reading.note(NoteKind::assumed, "model.vocab",
                 fmt::format("{}: the tokenizer's {} words, padded to a multiple of {}", padded, words, multiple));
  reading.set("model.vocab", std::to_string(padded), from);
}

// "128,0": so many tokens before a token, and none behind it, where attention is causal. Slipway's window counts the
// token itself too (megatron/core/transformer/utils.py, get_sliding_window_causal_mask).
void megatron_window(Reading& reading) {
  constexpr const char *size = "window-size", *skips = "window-attn-skip-freq";
  if (!reading.given(size)) {
    if (reading.given(skips)) reading.note(NoteKind::no_effect, reading.find(skips)->text(), "it needs --window-size");
    return;
  }
  static const std::regex sides("[( \\[]*(-?[0-9]+)[ ,]+(-?[0-9]+)[) \\]]*");
  const std::string text = reading.text(size);
  std::smatch found;
  const std::optional<std::int64_t> before =
      std::regex_match(text, found, sides) ? whole_number(found[1].str()) : std::nullopt;
  if (!before || *before < -1 || *before == 0)
    return reading.refuse(size, "'" + text + "' is no window; allowed: tokens before and behind, as 128,0",
                          "correct it");
  if (*before == -1)
    return reading.note(NoteKind::no_effect, reading.find(size)->text(), "-1 is a window of all tokens before");
  if (found[2] != "0")
    return reading.not_modelled(size, "a window with tokens behind, which is not modelled; allowed: as 128,0");
  const std::string frequency = reading.text(skips);
  std::vector<bool> full(static_cast<std::size_t>(reading.count("model.layers", 0)), false);
  if (!frequency.empty()) {
    const auto pattern = window_pattern(frequency, static_cast<std::int64_t>(full.size()));
    if (!pattern)
      return reading.refuse(skips, "'" + frequency + "' cannot be read; allowed: a number, or a list as ([1]*5+[0])*4",
                            "correct it");
    if (pattern->size() != full.size())
      return reading.refuse(skips, fmt::format("it has {} layers, --num-layers {}", pattern->size(), full.size()),
                            "change one of them");
    for (std::size_t i = 0; i < full.size(); ++i) full[i] = (*pattern)[i] == 0;
  }
  const std::optional<std::int64_t> every = period_of_last(full);
  if (!every)
    return reading.not_modelled(
        skips, "layers without a window that are not the last of every so many, which is not modelled");
  if (*every == 1) return reading.note(NoteKind::no_effect, reading.find(size)->text(), "no layer has a window");
  reading.set("model.window", std::to_string(*before + 1), size);
  if (*every > 1) reading.set("model.full_every", std::to_string(*every), skips);
}

// The turned part of a head, rounded down (megatron/core/models/common/embeddings/rotary_pos_embedding.py).
void megatron_rotary_share(Reading& reading) {
  constexpr const char* percent = "rotary-percent";
  const double share = reading.number(percent);
  if (share == 1) return;
  if (share <= 0 || share > 1)
    return reading.refuse(percent, "it is no share; allowed: above 0 and up to 1", "correct it");
  if (reading.given("multi-latent-attention"))
    return reading.not_modelled(percent, "a part of latent attention's turned numbers, which is not modelled");
  if (reading.has("model.positions"))
    return reading.note(NoteKind::no_effect, reading.find(percent)->text(), "positions are not rotary");
  const std::int64_t heads = std::max<std::int64_t>(1, reading.count("model.heads", 0));
  const std::int64_t width = reading.whole("kv-channels");
  const std::int64_t head_dim = width > 0 ? width : reading.count("model.hidden", 0) / heads;
  reading.set("model.rope_head_dim", std::to_string(static_cast<std::int64_t>(static_cast<double>(head_dim) * share)),
              percent);
}

// The width of a head where it is given.
void megatron_head_width(Reading& reading) {
  const std::int64_t width = reading.whole("kv-channels");
  if (width > 0 && width * reading.count("model.heads", 0) != reading.count("model.hidden", 0))
    reading.set("model.head_dim", std::to_string(width), "kv-channels");
}

namespace {

// The layers with experts: all, every n-th, or a list in Python. `width`: that of the MLP in the others.
void compose_dense_layers(Reading& reading, const std::string& width) {
  const std::int64_t layers = reading.count("model.layers", 0);
  const std::string text = reading.text("moe-layer-freq");
  const std::optional<std::vector<std::int64_t>> pattern = layer_pattern(text, layers);
  if (!pattern)
    return reading.refuse("moe-layer-freq",
                          "'" + text + "' cannot be read; allowed: a number, or a list as ([0]*3+[1]*58)",
                          "correct it");
  if (static_cast<std::int64_t>(pattern->size()) != layers)
    return reading.refuse("moe-layer-freq", fmt::format("it has {} layers, --num-layers {}", pattern->size(), layers),
                          "change one of them");
  const auto first = std::find(pattern->begin(), pattern->end(), 1);
  const bool is_prefix = std::find(first, pattern->end(), 0) == pattern->end();
  const std::optional<std::int64_t> every = period_of_last({pattern->begin(), pattern->end()});
  if (!is_prefix && !every)
    return reading.refuse(
        "moe-layer-freq",
        "layers without experts among those with them are not modelled, unless those with them are the "
        "last of every so many",
        "import without it: --without moe-layer-freq");
  const std::int64_t dense = first - pattern->begin();
  if (dense == 0) return;
  if (is_prefix)
    reading.set("model.dense_layers", std::to_string(dense), "moe-layer-freq");
  else
    reading.set("model.experts_every", std::to_string(*every), "moe-layer-freq");
  reading.set("model.dense_ffn", width, "moe-layer-freq");
}

// Samples of so many steps; the largest number where they are more.
std::int64_t samples_of(std::int64_t steps, std::int64_t batch) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  return steps > most / batch ? most : steps * batch;
}

std::int64_t batch_of(const Reading& reading) {
  return std::max<std::int64_t>(1, reading.count("schedule.global_batch", 1));
}

std::int64_t trained_samples(Reading& reading) {
  return reading.given("train-samples") ? reading.whole("train-samples")
                                        : samples_of(reading.whole("train-iters"), batch_of(reading));
}

}  // namespace

void megatron_mlp(Reading& reading) {
  const std::int64_t hidden = reading.count("model.hidden", 0);
  // Two thirds of 4h, in multiples of 64, where SwiGLU has three matrices.
  const std::int64_t usual_width = reading.given("swiglu") ? hidden * 4 * 2 / 3 / 64 * 64 : 4 * hidden;
  const std::string width = reading.text("ffn-hidden-size", std::to_string(usual_width));
  if (!reading.given("num-experts")) {
    if (reading.given("moe-ffn-hidden-size"))
      reading.note(NoteKind::no_effect, reading.find("moe-ffn-hidden-size")->text(), "there are no experts");
    return reading.set("model.ffn", width, "ffn-hidden-size");
  }
  reading.set("model.ffn", reading.text("moe-ffn-hidden-size", width),
              reading.given("moe-ffn-hidden-size") ? "moe-ffn-hidden-size" : "ffn-hidden-size");
  reading.set("model.experts_per_token", "2", "moe-router-topk");
  compose_dense_layers(reading, width);
}

// The balancing of the experts' loads. Megatron-LM's loss is Slipway's (switch_load_balancing_loss_func of the same
// file), of one sequence, a micro-batch, or all of a step.
void megatron_balance(Reading& reading) {
  constexpr const char *kind = "moe-router-load-balancing-type", *weight = "moe-aux-loss-coeff";
  const std::string type = reading.text(kind), loss = reading.text(weight);
  const Argument* const types = reading.find(kind);
  const auto note = [&](NoteKind how, const char* argument, const char* words) {
    if (reading.given(argument)) reading.note(how, reading.find(argument)->text(), words);
  };
  if (types != nullptr && types->values.size() > 1)
    note(NoteKind::nearest, kind, "of several ways to balance experts the first is taken");
  if (type == "sinkhorn") note(NoteKind::nearest, kind, "experts are chosen by their scores");
  if (type == "none" || type == "sinkhorn") return note(NoteKind::no_effect, weight, "no loss balances experts");
  if (type != "aux_loss" && type != "seq_aux_loss" && type != "global_aux_loss")
    return reading.refuse(
        kind, "'" + type + "' is not known; allowed: aux_loss, seq_aux_loss, global_aux_loss, sinkhorn, none",
        "correct it");
  if (reading.number(weight) == 0) return note(NoteKind::no_effect, kind, "--moe-aux-loss-coeff is 0");
  reading.set("run.balancing_loss", loss, weight);
  if (type == "seq_aux_loss") reading.set("run.balancing_sequences", "1", kind);
  if (type == "global_aux_loss")  // how many data ranks there are is known with the machines alone
    note(NoteKind::nearest, kind,
         "the loss is of each rank's micro-batch; run.balancing_sequences = schedule.micro_batch x layout.data is next "
         "to it");
}

// Balanced routing fills an expert up to a factor of 1. With a larger one, padded experts compute rows of zeros.
void megatron_capacity(Reading& reading) {
  constexpr const char *factor = "moe-expert-capacity-factor", *pads = "moe-pad-expert-input-to-capacity";
  const double capacity = reading.given(factor) ? reading.number(factor)
                                                : -1;  // a negative one is none (megatron/core: transformer_config.py)
  if (capacity == 0) return reading.refuse(factor, "an expert takes no tokens with 0; allowed: above 0", "correct it");
  if (capacity > 0)
    reading.set("run.expert_capacity", number_text(capacity), factor);
  else if (reading.given(factor))
    reading.note(NoteKind::no_effect, reading.find(factor)->text(), "a negative factor drops no token");
  if (!reading.given(pads)) return;
  if (capacity < 0)
    reading.refuse(pads, "it needs a capacity; allowed: with --moe-expert-capacity-factor",
                   "add it, or remove this one");
  else if (capacity > 1)
    reading.not_modelled(pads, "experts' inputs that are padded beyond their tokens, which is not modelled");
  else
    reading.note(NoteKind::no_effect, reading.find(pads)->text(), "balanced routing fills experts to this capacity");
}

// The batch.

// "0:384 200B:768": from so many tokens on, so many sequences.
void megatron_batches(Reading& reading) {
  const std::string schedule = reading.text("step-batch-size-schedule");
  reading.exclude("step-batch-size-schedule", "global-batch-size", "keep one of them");
  if (schedule.empty())
    return reading.set("schedule.global_batch",
                       reading.text("global-batch-size", std::to_string(reading.count("schedule.micro_batch", 1) *
                                                                        reading.count("layout.data", 1))),
                       "global-batch-size");
  static const std::regex stage("([0-9.]+)([KMBT]?):([0-9]+)");
  for (std::sregex_iterator at(schedule.begin(), schedule.end(), stage), end; at != end; ++at) {
    const std::string unit = (*at)[2];
    const double scale = unit == "K" ? 1e3 : unit == "M" ? 1e6 : unit == "B" ? 1e9 : unit == "T" ? 1e12 : 1;
    const double from = quantity(std::string((*at)[1]), Unit::pure).value_or(0) * scale;
    if (from == 0) reading.set("schedule.global_batch", (*at)[3], "step-batch-size-schedule");
  }
  if (!reading.has("schedule.global_batch"))
    return reading.refuse("step-batch-size-schedule", "'" + schedule + "' cannot be read; allowed: as '0:384 200B:768'",
                          "correct it");
  reading.note(NoteKind::nearest, reading.find("step-batch-size-schedule")->text(),
               fmt::format("`simulate` prices the first batch, {}; later ones by --set schedule.global_batch=N",
                           reading.value("schedule.global_batch")));
}

void megatron_recomputation(Reading& reading) {
  const std::string granularity =
      reading.given("recompute-activations") ? "selective" : reading.text("recompute-granularity");
  if (granularity == "full") {
    if (reading.given("recompute-modules"))
      reading.refuse("recompute-modules", "it contradicts --recompute-granularity full; allowed: with selective",
                     "remove one of the two");
    if (reading.text("recompute-method") != "uniform" &&
        reading.whole("recompute-num-layers") < reading.count("model.layers", 0))
      reading.refuse("recompute-method", "recomputing some of the layers is not modelled; allowed: uniform",
                     "import without it: --without recompute-method");
    if (reading.text("recompute-method") == "uniform" && reading.whole("recompute-num-layers") > 1)
      reading.note(NoteKind::nearest, reading.find("recompute-num-layers")->text(), "each layer's input is kept");
    return reading.set("schedule.recompute", "full", "recompute-granularity");
  }
  if (reading.given("recompute-method"))
    reading.refuse("recompute-method", "it contradicts --recompute-granularity " + granularity + "; allowed: with full",
                   "remove one of the two");
  if (granularity != "selective") return;
  if (!reading.given("recompute-modules"))
    return reading.set("schedule.recompute", "selective", "recompute-granularity");
  const std::string modules = reading.text("recompute-modules");
  reading.set("schedule.recompute_modules", modules, "recompute-modules");
}

// --cuda-graph-modules is today's name of --cuda-graph-scope; with neither, layers are captured whole, as with `full`.
void megatron_graphs(Reading& reading) {
  const std::string implementation = reading.text("cuda-graph-impl");
  for (const char* graphs :
       {"cuda-graph-modules", "cuda-graph-scope", "enable-cuda-graph", "external-cuda-graph", "cuda-graph-impl"}) {
    if (!reading.given(graphs) || implementation == "none") continue;
    std::string scope =
        reading.text(reading.given("cuda-graph-modules") ? "cuda-graph-modules" : "cuda-graph-scope", "full");
    const bool whole = implementation == "full_iteration" || scope == "full_iteration";
    if (whole)
      scope = "full";
    else if (scope == "full")
      scope = reading.count("model.experts", 0) > 0 ? "attn moe" : "attn mlp";
    return reading.set("schedule.cuda_graphs", scope, graphs, "kernels are launched one by one");
  }
}

// The length and the learning rate.

void megatron_tokens(Reading& reading) {
  const std::int64_t samples = trained_samples(reading), sequence = reading.count("model.sequence", 0);
  if (samples > 0)
    reading.set("run.tokens", number_text(static_cast<double>(samples) * static_cast<double>(sequence)),
                reading.given("train-samples") ? "train-samples" : "train-iters");
}

void megatron_rate(Reading& reading) {
  const std::int64_t batch = batch_of(reading);
  const std::string style = reading.text("lr-decay-style");
  if (style == "constant" || style == "linear" || style == "cosine")
    reading.set("run.optimizer.lr_decay_style", style, "lr-decay-style");
  else
    reading.note(NoteKind::no_effect, reading.find("lr-decay-style")->text(),
                 "it changes numbers, not a step's time or memory");
  std::int64_t decay = reading.given("lr-decay-samples") ? reading.whole("lr-decay-samples")
                                                         : samples_of(reading.whole("lr-decay-iters"), batch);
  if (decay > 0 && style != "constant")
    reading.set("run.optimizer.lr_decay_samples", std::to_string(decay),
                reading.given("lr-decay-samples") ? "lr-decay-samples" : "lr-decay-iters");
  if (decay == 0) decay = trained_samples(reading);
  const std::int64_t warmup = reading.given("lr-warmup-fraction")
                                  ? std::llround(reading.number("lr-warmup-fraction") * static_cast<double>(decay))
                              : reading.given("lr-warmup-samples")
                                  ? reading.whole("lr-warmup-samples")
                                  : samples_of(reading.whole("lr-warmup-iters"), batch);
  if (warmup > 0) reading.set("run.optimizer.lr_warmup_samples", std::to_string(warmup), "lr-warmup-samples");
}

}  // namespace slipway::scenarios
