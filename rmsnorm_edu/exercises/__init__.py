"""The exercises of the book as data, under the names that `checks.check` takes.

`EXERCISES[name]` is a `Task` (write a function) or a `Conviction` (find an input on which a
broken norm is wrong); `broken[name]` is the broken norm of a conviction. `signature` is what the
stub on the page defines. One module of data for each chapter.
"""

from rmsnorm_edu.exercises import (
    backward_kernel,
    cost_model,
    cpu,
    first_kernel,
    forward_kernel,
    frameworks,
    fusion,
    gradients,
    invariance,
    layernorm_to_rmsnorm,
    numpy_,
    partial,
    precision,
    pytorch_module,
    recurrent,
    testing,
    why_normalise,
)
from rmsnorm_edu.exercises.model import Conviction, Exercise, Norm, Task, Wrong

__all__ = ["EXERCISES", "Conviction", "Exercise", "Task", "Wrong", "broken"]

EXERCISES: dict[str, Exercise] = {
    **why_normalise.EXERCISES,
    **layernorm_to_rmsnorm.EXERCISES,
    **numpy_.EXERCISES,
    **invariance.EXERCISES,
    **gradients.EXERCISES,
    **precision.EXERCISES,
    **testing.EXERCISES,
    **frameworks.EXERCISES,
    **pytorch_module.EXERCISES,
    **partial.EXERCISES,
    **recurrent.EXERCISES,
    **cost_model.EXERCISES,
    **cpu.EXERCISES,
    **first_kernel.EXERCISES,
    **fusion.EXERCISES,
    **forward_kernel.EXERCISES,
    **backward_kernel.EXERCISES,
}
broken: dict[str, Norm] = {
    name: exercise.broken
    for name, exercise in EXERCISES.items()
    if isinstance(exercise, Conviction)
}
