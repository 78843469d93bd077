#include "scenarios/commands/execute/execute_options.h"

#include "scenarios/commands/execute/execution.h"
#include "scenarios/report/page.h"

namespace slipway::scenarios {

namespace {

constexpr const char* how_it_runs =
    "The ranks are processes of slipway-rank (beside slipway, or SLIPWAY_RANK), one per rank, on this\n"
    "machine, each on cores of its own where there are enough. With cluster.ranks_per_gpu a process\n"
    "runs that many ranks, which share its device. So one GPU can try any small layout.\n"
    "DIR gets the bundle (run.slip), the ranks' records, losses.csv and trace.json.\n"
    "\n"
    "Started by torchrun, srun or mpirun, once per rank, execute joins that run instead of starting\n"
    "one. It recognises RANK and WORLD_SIZE, SLURM_PROCID inside a job step, and OMPI_COMM_WORLD_RANK.\n"
    "Every rank lowers the scenario by itself, with the same result. The process of rank 0\n"
    "merges the records when all have ended, so --out must name a folder that the machines share.\n"
    "\n"
    "With run.checkpoint_steps the ranks save checkpoints in DIR/checkpoints. --resume latest resumes\n"
    "from the newest one, --resume FOLDER from another run's. --resume if-any starts where DIR has no\n"
    "checkpoint and resumes from the newest whole one where it has: one command for torchrun\n"
    "--max-restarts, srun with requeued jobs, or a loop. The layout may change; model, seed,\n"
    "sequence length and data must be the same (the data may lie elsewhere). Steps are\n"
    "counted from the beginning of the training. With the same layout on the same machine, the losses\n"
    "are those of an uninterrupted run, to the last bit. A decaying learning rate needs\n"
    "run.optimizer.lr_decay_samples for that; otherwise it decays to the end of the training by this\n"
    "start's run.steps.\n"
    "\n"
    "--weights and --save-weights read and write what transformers saves of dense Llama, Qwen2 and Qwen3\n"
    "models. The layout does not matter. Saved weights have run.dtype and are those of the checkpoint of\n"
    "the last step, which is made also without run.checkpoint_steps. With --resume, a training goes on\n"
    "with its own weights; of a complete one, --resume latest --save-weights DIR writes the weights.\n"
    "\n"
    "If a complete training was interrupted (or the disk was full) while its trace was made, --resume\n"
    "latest makes the trace and prints the answer, without training again.\n"
    "\n"
    "With training.growth the batch grows. A step program for each batch is lowered beforehand. The line\n"
    "of a step prints its batch; the answer prints the step time of each batch. The norm test adds\n"
    "noise/norm, the share of noise in the gradient's norm, which grows the batch when it exceeds\n"
    "training.growth.eta, and the gradient noise scale of each batch.\n"
    "\n"
    "With schedule.fill evaluation, held-out micro-batches of run.evaluation_data run in the bubbles. The\n"
    "line of a window's last step prints their loss with the weights of the window's beginning.\n"
    "\n"
    "When a rank fails or is killed, all others end within ten seconds. The error names the first one and\n"
    "its cause. Ctrl-C (SIGTERM, SIGHUP) ends all ranks, with exit status 1 too. Either way the losses of\n"
    "all completed steps are kept in DIR/losses.csv, and the records of the ranks that could still\n"
    "write them; no trace is made. A training that diverges (a loss, or with run.clip_norm a gradient's\n"
    "norm, that is not finite) fails in the same way at that step, without a checkpoint.";

}  // namespace

CommandOptions execute_options() {
  CommandOptions options("execute SCENARIO [options]",
                         "Trains the scenario: starts one process per rank (LibTorch, Gloo), streams the loss, and\n"
                         "writes the same kind of trace as simulate, for `slipway compare`.",
                         "slipway execute scenarios/examples/tiny-llama-cpu.yaml --set run.steps=10 --out /tmp/run");
  options.positional("scenario file (YAML)", 1, 1)
      .values("set", "KEY=VALUE", "override a key of the scenario; may be repeated (`slipway list keys`)")
      .value("out", "DIR", "folder of the run (default: <scenario>.run here)")
      .value("trace", "FILE", "write the trace there instead of DIR/trace.json")
      .value("report", "FILE", report_meaning)
      .value(
          "resume", "WHAT",
          "resume from a checkpoint: latest (of --out), if-any (the same, or start), a run's folder, or a checkpoint's")
      .value("weights", "DIR", "start from Hugging Face safetensors: config.json and model.safetensors, or shards")
      .value("save-weights", "DIR", "write the weights after the last step there, in the same form")
      .flag("confirm", "simulate first, and print the prediction's error per kind of task at the end")
      .flag("cuda-graphs", "record segments and replay them as CUDA graphs; needs slipway-rank-cuda as SLIPWAY_RANK")
      .json_keys(execute_answers)
      .flag("json", "print only the summary, as JSON, on standard output")
      .flag("overwrite",
            "replace the run of --out: its trace, losses and checkpoints (once a step of this one is done)")
      .flag("force", "start even if the simulator predicts too little memory")
      .notes(how_it_runs);
  return options;
}

}  // namespace slipway::scenarios
