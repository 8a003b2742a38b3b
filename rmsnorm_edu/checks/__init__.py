"""Judges: `check` for the exercises of the book, `verify` for any implementation of RMSNorm."""

from rmsnorm_edu.checks.answers import Result, check, results
from rmsnorm_edu.checks.judge import verify
from rmsnorm_edu.checks.report import Failure, Report

__all__ = ["Failure", "Report", "Result", "check", "results", "verify"]
