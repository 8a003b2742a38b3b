"""RMSNorm for Flax: one pure function of JAX arrays, and the layer in both of Flax's styles.

`RMSNorm` is an `nnx` module, an object that holds its parameters; `LinenRMSNorm` is a `linen`
module, a description whose parameters live outside. float64 needs
``jax.config.update("jax_enable_x64", True)`` before the first array.
"""

from typing import Any

from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu.frameworks import _needed
from rmsnorm_edu.reference import partial_size

flax = _needed("flax", "jax")
jax = _needed("jax", "jax")
jnp = jax.numpy
linen, nnx = _needed("flax.linen", "jax"), _needed("flax.nnx", "jax")
Module: Any = nnx.Module
LinenModule: Any = linen.Module
compact: Any = linen.compact


def rms_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-6,
    eps_outside: bool = False,
    p: float | None = None,
    rounding: str = "ceil",
) -> Any:
    """yᵢ = xᵢ / sqrt(RMS(x)² + eps) · weightᵢ + biasᵢ over the last axis.

    With `eps_outside` the divisor is RMS(x) + eps; with `p` the RMS is that
    of the first ``partial_size(n, p, rounding)`` features. x (..., n), weight
    and bias (n,); the statistic is in float32 or wider, y in x's dtype.
    TypeError for integers, ValueError for a parameter of another length.
    Source: Zhang & Sennrich 2019, equation (4), section 5 for p.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(f"x has dtype {x.dtype}: cast it to a float type first")
    if x.ndim == 0:
        raise ValueError("x is 0-dimensional; give (..., n)")
    k = None if p is None else partial_size(x.shape[-1], p, rounding)
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    y = wide * _rstd(wide[..., :k], checked_eps(eps), eps_outside)
    if weight is not None:
        y = y * _vector(weight, wide, "weight")
    if bias is not None:
        y = y + _vector(bias, wide, "bias")
    return y.astype(x.dtype)


def _rstd(x: Any, eps: float, eps_outside: bool) -> Any:
    """One number a row. Where the mean square is 0 the root is taken of 1:
    its slope at 0 is infinite, and 0 · ∞ would make the gradient nan."""
    mean_square = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
    if not eps_outside:
        return jax.lax.rsqrt(mean_square + eps)
    zero = mean_square == 0
    root = jnp.sqrt(jnp.where(zero, 1.0, mean_square))
    return 1.0 / (jnp.where(zero, 0.0, root) + eps)


def _vector(parameter: Any, x: Any, name: str) -> Any:
    if parameter.shape != x.shape[-1:]:
        raise ValueError(
            f"{name} has shape {parameter.shape} and x {x.shape}: give ({x.shape[-1]},)"
        )
    return parameter.astype(x.dtype)


class RMSNorm(Module):
    """`rms_norm` as an nnx module: weight and bias are `nnx.Param`s of `param_dtype`.

    y has `dtype`, or x's when that is None. `rngs` is taken so that the layer can stand where
    `nnx.RMSNorm` does; nothing here is random.
    """

    def __init__(
        self,
        num_features: int,
        *,
        eps: float = 1e-6,
        eps_outside: bool = False,
        p: float | None = None,
        rounding: str = "ceil",
        use_weight: bool = True,
        use_bias: bool = False,
        dtype: Any = None,
        param_dtype: Any = jnp.float32,
        rngs: Any = None,
    ) -> None:
        self.options: dict[str, Any] = {
            "eps": eps,
            "eps_outside": eps_outside,
            "p": p,
            "rounding": rounding,
        }
        self.num_features, self.dtype = num_features, dtype
        shape = (num_features,)
        self.weight = nnx.Param(jnp.ones(shape, param_dtype)) if use_weight else None
        self.bias = nnx.Param(jnp.zeros(shape, param_dtype)) if use_bias else None

    def __call__(self, x: Any) -> Any:
        """Normalise each row of x, (..., num_features)."""
        if x.shape[-1:] != (self.num_features,):
            n = self.num_features
            raise ValueError(f"x has shape {x.shape}: give (..., {n})")
        weight = None if self.weight is None else self.weight[...]
        bias = None if self.bias is None else self.bias[...]
        return rms_norm(_cast(x, self.dtype), weight, bias, **self.options)


class LinenRMSNorm(LinenModule):
    """`rms_norm` as a linen module: ``init`` makes {"params": {"weight", "bias"}}, ``apply`` takes
    it. The number of features is that of the first x. Options as `RMSNorm`."""

    eps: float = 1e-6
    eps_outside: bool = False
    p: float | None = None
    rounding: str = "ceil"
    use_weight: bool = True
    use_bias: bool = False
    dtype: Any = None
    param_dtype: Any = jnp.float32

    @compact
    def __call__(self, x: Any) -> Any:
        """Normalise each row of x, (..., n)."""
        ones, zeros = linen.initializers.ones_init(), linen.initializers.zeros_init()
        shape = x.shape[-1:]
        weight = self.param("weight", ones, shape, self.param_dtype) if self.use_weight else None
        bias = self.param("bias", zeros, shape, self.param_dtype) if self.use_bias else None
        return rms_norm(
            _cast(x, self.dtype),
            weight,
            bias,
            eps=self.eps,
            eps_outside=self.eps_outside,
            p=self.p,
            rounding=self.rounding,
        )


def _cast(x: Any, dtype: Any) -> Any:
    return x if dtype is None else x.astype(dtype)
