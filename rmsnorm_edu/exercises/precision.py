"""The exercises of the chapter "Precision"."""

from rmsnorm_edu.exercises.model import Exercise

EXERCISES: dict[str, Exercise] = {}
