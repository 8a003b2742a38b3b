"""RMSNorm in small steps, and what a mutant is: the same steps with one of them wrong."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]


class RMSNorm:
    """A right RMSNorm in NumPy, forward and backward, as steps that a mutant replaces.

    x, dy and residual have shape (rows, n), weight (n,); float16, bfloat16 (ml_dtypes), float32
    or float64, results the same. Everything is computed in float32, for float64 in float64, and
    rounded once.
    """

    def widened(self, a: Array) -> Array:
        """`a` in the computing type."""
        return a.astype(np.float64 if a.dtype == np.float64 else np.float32)

    def mean_square(self, x: Array) -> Array:
        """mean(x²) of each row, (rows, 1)."""
        mean: Array = np.mean(np.square(x), axis=-1, keepdims=True)
        return mean

    def divisor(self, x: Array, eps: float) -> Array:
        """D = sqrt(mean(x²) + eps), (rows, 1)."""
        radicand = self.mean_square(x) + x.dtype.type(eps)
        return np.asarray(np.sqrt(radicand))

    def xhat(self, x: Array, eps: float) -> Array:
        """x̂ = x / D."""
        return np.asarray(x / self.divisor(x, eps))

    def gain(self, weight: Array) -> Array:
        """What x̂ is multiplied by."""
        return self.widened(weight)

    def product(self, xhat: Array, weight: Array) -> Array:
        """y, before it is rounded."""
        return np.asarray(xhat * self.gain(weight))

    def stored(self, a: Array, dtype: DTypeLike) -> Array:
        """`a`, rounded to the type of the caller."""
        return a.astype(dtype)

    def forward(self, x: Array, weight: Array, eps: float) -> Array:
        """y = x̂ · weight."""
        return self.stored(self.product(self.xhat(self.widened(x), eps), weight), x.dtype)

    def projected(self, u: Array, xhat: Array) -> Array:
        """D · dx: u without its part along x̂."""
        along = np.mean(u * xhat, axis=-1, keepdims=True)
        return np.asarray(u - xhat * along)

    def dx(self, dy: Array, x: Array, weight: Array, eps: float) -> Array:
        """The gradient of x, before it is rounded."""
        u = dy * self.gain(weight)
        return np.asarray(self.projected(u, self.xhat(x, eps)) / self.divisor(x, eps))

    def dweight(self, dy: Array, xhat: Array) -> Array:
        """Σ over the rows of dy · x̂, (n,)."""
        total: Array = np.sum(dy * xhat, axis=0)
        return total

    def vjp(self, dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        """(dx, dweight): the gradients of Σ dy · y."""
        dy_wide, wide = self.widened(dy), self.widened(x)
        dx = self.dx(dy_wide, wide, weight, eps)
        dweight = self.dweight(dy_wide, self.xhat(wide, eps))
        return self.stored(dx, x.dtype), self.stored(dweight, weight.dtype)

    def add(self, x: Array, residual: Array, weight: Array, eps: float) -> tuple[Array, Array]:
        """(y, new residual): the norm of x + residual, and that sum."""
        total = self.widened(x) + self.widened(residual)
        y = self.product(self.xhat(total, eps), weight)
        return self.stored(y, x.dtype), self.stored(total, x.dtype)

    def add_vjp(
        self,
        dy: Array,
        dnew_residual: Array,
        x: Array,
        residual: Array,
        weight: Array,
        eps: float,
    ) -> tuple[Array, Array]:
        """(dx, dweight) of Σ dy · y + Σ dnew_residual · (x + residual); dx is both's gradient."""
        dy_wide, total = self.widened(dy), self.widened(x) + self.widened(residual)
        dx = self.widened(dnew_residual) + self.dx(dy_wide, total, weight, eps)
        dweight = self.dweight(dy_wide, self.xhat(total, eps))
        return self.stored(dx, x.dtype), self.stored(dweight, weight.dtype)


class Mutant(RMSNorm):
    """A wrong RMSNorm. Its methods are the right ones, but for the step that is written out.

    `name` is what the book calls it, `what` says what is wrong, `reported` where this class of
    fault was reported (project and issue or pull request). `path` is the part of the program:
    "forward", "dx", "dweight", "partial", "residual", "cast", "memory" or "batch"; `wrong` are the
    methods that give wrong results. `dtype`, `convention` and `p` are those of the implementation
    that it claims to be.
    """

    name: ClassVar[str]
    what: ClassVar[str]
    reported: ClassVar[str]
    path: ClassVar[str] = "forward"
    wrong: ClassVar[tuple[str, ...]] = ("forward",)
    dtype: ClassVar[str] = "float32"
    convention: ClassVar[str] = "torch"
    p: ClassVar[float | None] = None

    def judged(self) -> dict[str, Any]:
        """Keywords of `checks.verify`: the wrong functions, and what they are held to."""
        functions = {name: getattr(self, name) for name in self.wrong}
        return functions | {"dtype": self.dtype, "convention": self.convention, "p": self.p}
