"""The exercises of the chapter "Testing"."""

from rmsnorm_edu.exercises.model import Exercise

EXERCISES: dict[str, Exercise] = {}
