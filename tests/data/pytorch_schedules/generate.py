"""Writes the orders of PyTorch's schedule classes as CSV, in the form of their _dump_csv.

python3 generate.py FOLDER, with PyTorch 2.11. No process group is needed: a stand-in stage has what the classes read.
A file is CLASS_RANKSp_MICROBATCHESm.csv (compute_only), with _comms the order with SEND, RECV and REDUCE_GRAD.
"""
import csv
import sys

from torch.distributed.pipelining import schedules


class Stage:
    """What a schedule class reads of a stage, without a module and without other ranks."""

    def __init__(self, ranks, stages, index):
        self.group_size, self.group_rank = ranks, 0
        self.num_stages, self.stage_index = stages, index
        self.submod, self.has_backward = None, False


def order_of(name, ranks, chunks, micro_batches):
    stages = [Stage(ranks, ranks * chunks, i * ranks) for i in range(chunks)]
    schedule = getattr(schedules, name)
    if chunks == 1:  # such a class has one stage and gives its order on request
        schedule = schedule(stages[0], micro_batches)
        return schedule._get_pipeline_order(), None
    schedule = schedule(stages, micro_batches)
    return schedule.pipeline_order, schedule.pipeline_order_with_comms


def write(path, order):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        for rank in sorted(order):
            writer.writerow(["" if action is None else action for action in order[rank]])


def main(folder):
    shapes = [
        ("Schedule1F1B", 4, 1, 8), ("Schedule1F1B", 4, 1, 4), ("ScheduleGPipe", 3, 1, 5),
        ("ScheduleInterleaved1F1B", 4, 2, 8), ("ScheduleInterleaved1F1B", 4, 2, 10),
        ("ScheduleInterleaved1F1B", 4, 3, 3), ("ScheduleInterleaved1F1B", 4, 2, 6),
        ("ScheduleInterleavedZeroBubble", 2, 2, 8), ("ScheduleInterleavedZeroBubble", 2, 2, 4), ("ScheduleInterleavedZeroBubble", 4, 2, 10),
        ("ScheduleZBVZeroBubble", 2, 2, 8), ("ScheduleZBVZeroBubble", 4, 2, 10),
        ("ScheduleDualPipeV", 2, 2, 4), ("ScheduleDualPipeV", 4, 2, 10), ("ScheduleLoopedBFS", 2, 2, 4),
        ("ScheduleLoopedBFS", 4, 2, 6),
    ]
    for name, ranks, chunks, micro_batches in shapes:
        compute, comms = order_of(name, ranks, chunks, micro_batches)
        path = f"{folder}/{name.removeprefix('Schedule')}_{ranks}p{chunks}v_{micro_batches}m"
        write(path + ".csv", compute)
        if comms is not None and micro_batches <= 4:
            write(path + "_comms.csv", comms)


if __name__ == "__main__":
    main(sys.argv[1])
