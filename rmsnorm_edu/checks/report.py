"""What `verify` found, as objects and as text."""

from dataclasses import dataclass

from rmsnorm_edu.checks import text


@dataclass(frozen=True)
class Failure:
    """One way in which a function fails.

    `function` is "forward", "vjp", "add" or "add_vjp", `fault` what is wrong ("y", "dx",
    "dweight", "new_residual", "dtype", "shape", "nan", "written to", "raised", "changing",
    "reused", "batch"), `reason` a sentence, `code` the smallest
    input found with what came out and what should; `kinds` of inputs it fails on, `inputs` how
    many of them.
    """

    function: str
    fault: str
    reason: str
    code: str
    kinds: tuple[str, ...]
    inputs: int


@dataclass(frozen=True)
class Report:
    """The verdict of `verify`: `ok`, and the `failures`, one for each way of failing.

    `judged` are the functions, `against` the convention and the type they were held to, `inputs`
    and `kinds` the numbers of inputs and of kinds of them.
    """

    failures: tuple[Failure, ...]
    judged: str
    against: str
    inputs: int
    kinds: int

    @property
    def ok(self) -> bool:
        """Nothing failed."""
        return not self.failures

    def __repr__(self) -> str:
        return "\n".join(text.plain(self.ok, *block) for block in self._blocks())

    def _repr_html_(self) -> str:
        return "".join(text.boxed(self.ok, *block) for block in self._blocks())

    def _blocks(self) -> list[tuple[str, str]]:
        if self.ok:
            return [(f"{self.judged} ({self.against}): right on all {self.inputs} inputs.", "")]
        return [(self._sentence(failure), failure.code) for failure in self.failures]

    def _sentence(self, failure: Failure) -> str:
        if failure.fault in ("changing", "reused", "batch"):  # no matter of single inputs
            return f"{failure.function} ({self.against}): {failure.reason}"
        every = len(failure.kinds) == self.kinds
        where = "every kind of input" if every else ", ".join(failure.kinds)
        return (
            f"{failure.function} ({self.against}): {failure.reason} "
            f"Wrong on {failure.inputs} of {self.inputs} inputs: {where}."
        )
