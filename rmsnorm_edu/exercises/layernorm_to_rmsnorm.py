"""The exercises of the chapter "From LayerNorm to RMSNorm"."""

from rmsnorm_edu.exercises.model import Exercise

EXERCISES: dict[str, Exercise] = {}
