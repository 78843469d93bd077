#include "exec/process/arguments.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace slipway::exec {

const char* const usage =
    "slipway-rank: one rank of a training run, started once per rank by `slipway execute`, torchrun, srun "
    "or mpirun\n"
    "\n"
    "  slipway-rank RUN.slip --out DIR   run the bundle; writes DIR/rank-<r>.records and "
    "DIR/rank-0.losses\n"
    "      --steps N                     instead of the bundle's number of steps; a learning rate that decays to the "
    "end\n"
    "                                    of the training ends there, too\n"
    "      --dump-gradients STEP         write this rank's gradients of that step (from 1) to DIR/gradients.<r>\n"
    "      --resume latest|FOLDER        resume from the newest checkpoint in DIR, from another run's, or from that "
    "one\n"
    "      --resume if-any               start, or resume from the newest whole checkpoint in DIR where there is one: "
    "one\n"
    "                                    command for a launcher that starts a run again after a failure\n"
    "      --data FILE                   the training's text or tokens, if not at the bundle's path\n"
    "      --evaluation-data FILE        the same for the held-out text or tokens\n"
    "      --weights FILE                start from the weights that this list names (`slipway lower --weights "
    "writes it);\n"
    "                                    a resumed training goes on with its own\n"
    "      --ranks-per-process K         this process runs K ranks, which share its device: of N processes, number p\n"
    "                                    has ranks p*K to p*K+K-1; one process and one GPU try any layout (1)\n"
    "      --cuda-graphs                 after two steps a segment (operators between two messages) is recorded and "
    "from\n"
    "                                    then on started as one CUDA graph, which takes more memory; not under ZeRO 2 "
    "and 3,\n"
    "                                    with slices or rounds of ring attention; slipway-rank-cuda only\n"
    "  slipway-rank --measure FILE       micro-benchmarks; rank r writes FILE.<r>\n"
    "      --dtype float32               or float64, or bfloat16 on a GPU\n"
    "  both:\n"
    "      --threads N                   threads of one operator (1)\n"
    "      --connect-timeout SECONDS     how long to wait for the other ranks at the start (8, and 0.05 a rank,\n"
    "                                    less what this one took to be ready; at least 5)\n"
    "  slipway-rank --help | --version\n"
    "\n"
    "Ranks find each other by RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT (torchrun's "
    "variables),\n"
    "else by SLURM_* or OMPI_COMM_WORLD_*; without any of them there is one rank. GLOO_SOCKET_IFNAME picks "
    "the\n"
    "network interface. Ranks of several hosts need one SLIPWAY_TOKEN; another than rank 0's is refused.\n"
    "Exit status: 0 done, 1 failed during the run, 2 nothing was started.\n";

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument(why + "; `slipway-rank --help` lists what is allowed");
}

template <class Number>
Number number(const std::string& option, const std::string& text, Number smallest) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < smallest) {
    refuse(option + " " + text + ": expected a number of at least " + std::to_string(smallest));
  }
  return value;
}

Dtype measurable(const std::string& text) {
  const auto dtype = dtype_named(text);
  if (dtype != Dtype::float32 && dtype != Dtype::float64 && dtype != Dtype::bfloat16) {
    refuse("--dtype " + text + ": allowed are float32 and float64, and bfloat16 on a GPU");
  }
  return *dtype;
}

void take_option(Arguments& result, const std::string& option, const std::string& value) {
  if (option == "--out") {
    result.out = value;
  } else if (option == "--measure") {
    result.mode = Arguments::Mode::measure;
    result.out = value;
  } else if (option == "--steps") {
    result.steps = number<int>(option, value, 1);
  } else if (option == "--dump-gradients") {
    result.dump_step = number<int>(option, value, 1);
  } else if (option == "--resume") {
    result.resume = value;
  } else if (option == "--data") {
    result.data = value;
  } else if (option == "--evaluation-data") {
    result.evaluation_data = value;
  } else if (option == "--weights") {
    result.weights = value;
  } else if (option == "--ranks-per-process") {
    result.ranks_per_process = number<int>(option, value, 1);
  } else if (option == "--threads") {
    result.threads = number<int>(option, value, 1);
  } else if (option == "--connect-timeout") {
    result.connect_seconds = number<double>(option, value, 1);
  } else if (option == "--dtype") {
    result.dtype = measurable(value);
  } else {
    refuse("unknown option " + option);
  }
}

}  // namespace

double connect_seconds_for(int world, double age_s) {
  constexpr double shortest_s = 5;
  return std::max(8 + 0.05 * world - age_s, shortest_s);
}

Arguments arguments_from(const std::vector<std::string>& words) {
  Arguments result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h") {
      result.mode = Arguments::Mode::help;
      return result;
    }
    if (word == "--version") {
      result.mode = Arguments::Mode::version;
      return result;
    }
    if (word.rfind("-", 0) != 0) {
      if (!result.bundle.empty()) refuse("two bundles, " + result.bundle + " and " + word);
      result.bundle = word;
      continue;
    }
    if (word == "--cuda-graphs") {
      result.cuda_graphs = true;
      continue;
    }
    if (i + 1 == words.size()) refuse(word + " needs a value");
    take_option(result, word, words[++i]);
  }
  if (result.mode == Arguments::Mode::measure) {
    if (result.cuda_graphs) refuse("--cuda-graphs is for running a bundle, not for --measure");
    if (!result.bundle.empty()) refuse("--measure runs no bundle, but " + result.bundle + " was given");
    if (result.ranks_per_process > 1) refuse("--measure is for one rank per process, without --ranks-per-process");
    return result;
  }
  if (result.bundle.empty()) refuse("no bundle was given");
  if (result.out.empty()) refuse("--out DIR is missing");
  return result;
}

}  // namespace slipway::exec
