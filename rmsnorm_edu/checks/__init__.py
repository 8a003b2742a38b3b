"""Judges: `check` for the exercises of the book, `verify` for any implementation of RMSNorm."""

from rmsnorm_edu.checks.answers import Result, check, results

__all__ = ["Result", "check", "results"]
