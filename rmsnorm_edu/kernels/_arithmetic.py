"""Division and root as the equations mean them: rounded to the nearest number, tiny ones too.

A GPU has faster instructions for float32, and `/`, `tl.sqrt` and `tl.rsqrt` become those:
``div.full.f32`` is off by up to two steps of the type, and ``rsqrt.approx.ftz.f32`` takes what is
below 2⁻¹²⁶ for 0, so that a row of 1e-20 gets an infinite rstd where eps = 0. Those here cost
some instructions more, once a row, and no byte. In float64 `/` and `tl.sqrt` are such already.
"""

from rmsnorm_edu.kernels._runtime import tl, triton


@triton.jit
def mean_of(total, d):
    """total / d, for the sum of d numbers."""
    n = tl.cast(d, total.dtype)
    return tl.div_rn(total, n) if total.dtype == tl.float32 else total / n


@triton.jit
def rstd_of(total, d, eps: tl.constexpr):
    """1/√(total / d + eps), for the sum of d squares."""
    n = tl.cast(d, total.dtype)
    if total.dtype == tl.float32:
        rstd = tl.div_rn(1.0, tl.sqrt_rn(tl.div_rn(total, n) + eps))
    else:
        rstd = 1.0 / tl.sqrt(total / n + eps)
    return rstd
