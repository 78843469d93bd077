"""Pipeline schedules as Python functions."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Callable, NamedTuple, Union, overload


class Shape(NamedTuple):
    """What a schedule is asked for."""

    pipeline: int  #: ranks
    chunks: int  #: stages on each rank
    micro_batches: int  #: of a pipeline, in one step

    @property
    def stages(self) -> int:
        return self.pipeline * self.chunks


#: The actions of each pipeline rank in their order: "0F3" is the forward of micro-batch 3 through stage 0.
Lists = Iterable[Union[str, Iterable[str]]]


def F(stage: int, micro_batch: int) -> str:
    """The forward of a micro-batch through a stage."""
    return f"{stage}F{micro_batch}"


def B(stage: int, micro_batch: int) -> str:
    """Its whole backward."""
    return f"{stage}B{micro_batch}"


def I(stage: int, micro_batch: int) -> str:  # noqa: E743
    """Its backward without the gradients of weights."""
    return f"{stage}I{micro_batch}"


def W(stage: int, micro_batch: int) -> str:
    """The gradients of weights, after I."""
    return f"{stage}W{micro_batch}"


def pair(forward: str, backward: str) -> str:
    """A forward and a backward of different micro-batches that run at the same time (DualPipe)."""
    return f"({forward};{backward})OVERLAP_F_B"


class Schedule:
    """A function from a shape to the actions of each pipeline rank. `@slipway.schedule` makes one.

    Simulations, plans and runs check its lists: each stage runs each micro-batch once forward and once backward, and no
    ranks wait for each other in a circle. The function is called once for each shape.
    """

    def __init__(self, function: Callable[[Shape], Lists], name: str | None = None, chunks: int = 1) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or str(getattr(function, "__name__", "schedule"))
        self.chunks = chunks
        self._texts: dict[Shape, str] = {}
        self._held = threading.Lock()

    def __call__(self, shape: Shape) -> Lists:
        return self.function(shape)

    def csv(self, pipeline: int, micro_batches: int, chunks: int | None = None) -> str:
        """The lists in the CSV of PyTorch's pipelining, one row a rank, as the key schedule.csv takes it. Unchecked."""
        shape = Shape(pipeline, self.chunks if chunks is None else chunks, micro_batches)
        with self._held:
            text = self._texts.get(shape)
        if text is None:
            rows = self.function(shape)
            text = "".join((row if isinstance(row, str) else ",".join(map(str, row))) + "\n" for row in rows)
            with self._held:
                self._texts[shape] = text
        return text

    def _scenario(self, pipeline: int, micro_batches: int, chunks: int | None) -> Any:
        from .scenario import Scenario

        chunks = self.chunks if chunks is None else chunks
        return Scenario({
            "model": {"family": "llama", "layers": pipeline * chunks, "hidden": 64, "ffn": 160, "heads": 4, "kv_heads": 2,
                      "vocab": 256, "sequence": 64},
            "cluster": {"machine": "h100-80gb", "nodes": pipeline, "gpus_per_node": 1},
            "layout": {"pipeline": pipeline, "chunks": chunks},
            "schedule": {"micro_batch": 1, "global_batch": micro_batches},
        }, schedule=self)

    def draw(self, pipeline: int, micro_batches: int, chunks: int | None = None) -> Drawing:
        """The schedule as a grid, where a forward takes one unit of time. Raises ScenarioError where it is no whole step."""
        return Drawing(self._scenario(pipeline, micro_batches, chunks).draw())

    def check(self, pipeline: int, micro_batches: int, chunks: int | None = None) -> None:
        """Raises ScenarioError with what is wrong where the lists are no whole step."""
        self._scenario(pipeline, micro_batches, chunks).schedule_csv()


class Drawing(str):
    """A text with lines of equal letters, also in a notebook."""

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self)}</pre>"

    def __repr__(self) -> str:
        return str(self)


@overload
def schedule(function: Callable[[Shape], Lists]) -> Schedule: ...
@overload
def schedule(*, name: str | None = ..., chunks: int = ...) -> Callable[[Callable[[Shape], Lists]], Schedule]: ...
def schedule(function: Callable[[Shape], Lists] | None = None, *, name: str | None = None, chunks: int = 1) -> Any:
    """Makes a function a schedule.

        @slipway.schedule
        def gpipe(shape):
            micro_batches = range(shape.micro_batches)
            return [[F(rank, m) for m in micro_batches] + [B(rank, m) for m in micro_batches]
                    for rank in range(shape.pipeline)]

    `chunks`: stages on each rank where the scenario does not set layout.chunks. The function raises ValueError for shapes
    that it cannot run: a plan leaves them out.
    """
    if function is None:
        return lambda each: Schedule(each, name, chunks)
    return Schedule(function, name, chunks)


def as_schedule(given: Schedule | Callable[[Shape], Lists] | Sequence[Any] | None) -> Schedule | None:
    if given is None or isinstance(given, Schedule):
        return given
    if callable(given):
        return Schedule(given)
    raise TypeError(f"{given!r} is no schedule; give a function of a shape, as @slipway.schedule makes one")
