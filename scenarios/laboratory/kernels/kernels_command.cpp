// `slipway kernels`: constants of a GPU's kernels and collectives from measured times.
#include <ostream>

#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/options.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/commands/command_line/progress.h"
#include "scenarios/files/output_file.h"
#include "scenarios/laboratory/kernels/kernels_report.h"
#include "schedules/graph/parallel.h"

namespace slipway::scenarios {
namespace {

CommandOptions declared_options() {
  CommandOptions options(
      "kernels FILE... [options]",
      "Fits the constants of GEMMs, attention, experts and NCCL collectives to measured times. Prints each constant,\n"
      "the error of shapes that its fit did not see, and how far the built-in profile of the GPU is off.",
      "slipway kernels scenarios/studies/kernels/gemm.csv");
  options.positional("measured kernels (CSV)", 1, 100)
      .value("csv", "FILE", "write each shape with its measured and its predicted time")
      .value("profile", "FILE", "write the constants of one GPU as the section `kernels` of its machine profile")
      .flag("json", "print only the answer, as JSON, on standard output")
      .json_keys(kernels_answers)
      .notes(
          "The columns of a file name the kernel:\n"
          "  gpu, format, m, n, k, seconds                                        product m x k by k x n\n"
          "  gpu, format, sequences, tokens, heads, kv_heads, head_dim, seconds   causal attention\n"
          "  gpu, format, sequences, tokens, heads, seconds                       latent attention (DeepSeek-V3)\n"
          "  gpu, format, tokens, hidden, ffn, experts_per_token, experts, tensor, expert_parallel, distribution, "
          "seconds\n"
          "                                                                       gated MLPs of experts\n"
          "  gpu, collective, members, bytes, seconds                             NCCL; from 1 MiB on\n"
          "gpu is a machine profile (`slipway list machines`), format one of: " +
          all_names(format_names) + ".");
  return options;
}

int kernels_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CommandOptions options = declared_options();
  if (!options.parse(args, out)) return status_done;
  std::vector<FittedKernel> kernels;
  for (const std::string& path : options.arguments())
    for (KernelRows& rows : read_kernels(path)) kernels.push_back({std::move(rows), {}});
  const auto csv = options.text("csv");
  if (csv) check_output("--csv", *csv, options.arguments());
  if (const auto profile = options.text("profile")) {
    check_output("--profile", *profile, options.arguments());
    for (const FittedKernel& kernel : kernels)
      if (kernel.measured.gpu != kernels.front().measured.gpu)
        throw UsageError("--profile writes the kernels of one GPU, and these are of " + kernels.front().measured.gpu +
                         " and " + kernel.measured.gpu + "; give files with the rows of one");
  }
  {
    const ProgressLine progress(err, "fitting");
    std::size_t shapes = 0;
    for (const FittedKernel& kernel : kernels) shapes += kernel.measured.table.rows.size();
    constexpr std::size_t rounds = 100;  // in which a fit prices each shape, about
    each_in_parallel(kernels.size(), rounds * shapes, [&](std::size_t i) {
      const KernelRows& measured = kernels[i].measured;
      kernels[i].fit = fit_kernel(measured.table);
      if (measured.built_in) kernels[i].built_in = error_of(measured.table, *measured.built_in);
    });
  }
  if (const auto profile = options.text("profile")) {
    OutputFile file(*profile);
    file.stream() << kernels_section(kernels, "slipway kernels --profile");
    file.commit();
  }
  if (csv) {
    OutputFile file(*csv);
    file.stream() << shapes_csv(kernels);
    file.commit();
  }
  out << (options.has("json") ? kernels_json(kernels) : kernels_text(kernels));
  return status_done;
}

const RegisterCommand registered({.place = 11,
                                  .name = "kernels",
                                  .summary = "fit the constants of a GPU's kernels to measured times",
                                  .run = kernels_command,
                                  .answers = kernels_answers});

}  // namespace

}  // namespace slipway::scenarios
