"""The exercises of the chapter "Gradients"."""

from rmsnorm_edu.exercises.model import Exercise

EXERCISES: dict[str, Exercise] = {}
