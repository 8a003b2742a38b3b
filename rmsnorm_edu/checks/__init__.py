"""Judges: `check` for the exercises of the book, `verify` for any implementation of RMSNorm."""

from rmsnorm_edu.checks.answers import Result, check, results
from rmsnorm_edu.checks.report import Failure, Report
from rmsnorm_edu.checks.trial import survives
from rmsnorm_edu.checks.verdict import verify

__all__ = ["Failure", "Report", "Result", "check", "results", "survives", "verify"]
