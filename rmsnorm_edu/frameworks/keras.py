"""RMSNorm for Keras 3, in `keras.ops` alone: the same file runs on TensorFlow, torch and JAX.

Like every Keras layer it computes in its dtype policy's compute_dtype: a layer that is to take
float64 needs ``dtype="float64"``. The backend is chosen before Keras is imported, by the
environment variable KERAS_BACKEND.
"""

import math
from typing import Any

from rmsnorm_edu._inputs import checked_eps
from rmsnorm_edu.frameworks import _needed
from rmsnorm_edu.reference import partial_size

keras = _needed("keras", "tensorflow")
ops = keras.ops
Layer: Any = keras.layers.Layer
Shape = tuple[int | None, ...]


def rstd(x: Any, axes: tuple[int, ...], eps: float, eps_outside: bool = False) -> Any:
    """1 / sqrt(mean square + eps) over `axes`, kept with length 1; x is float32 or float64.

    The mean is a sum, divided: `ops.mean` of Keras 3.15 averages float64 in float32 on torch and
    JAX. With `eps_outside` it is 1 / (RMS + eps); there the root is taken of 1 where the mean
    square is 0: its slope at 0 is infinite, and the gradient would be nan, 0 · ∞.
    """
    count = math.prod(ops.shape(x)[axis] for axis in axes)
    mean_square = ops.sum(ops.square(x), axis=axes, keepdims=True) / count
    if not eps_outside:
        return ops.rsqrt(mean_square + eps)
    zero = mean_square == 0
    root = ops.sqrt(ops.where(zero, ops.ones_like(mean_square), mean_square))
    return 1.0 / (ops.where(zero, ops.zeros_like(root), root) + eps)


class _Norm(Layer):
    """What both layers share: the parameters, and the casts around the arithmetic."""

    def __init__(self, eps: float, use_weight: bool, use_bias: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.eps, self.use_weight, self.use_bias = checked_eps(eps), use_weight, use_bias
        self.weight = self.bias = None
        self.supports_masking = True

    def add_parameters(self, n: int) -> None:
        """weight and bias, (n,). autocast=False: half precision must not round them first."""
        if self.use_weight:
            self.weight = self.add_weight(
                shape=(n,), initializer="ones", name="weight", autocast=False
            )
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(n,), initializer="zeros", name="bias", autocast=False
            )

    def widened(self, x: Any) -> Any:
        """x in float32, or in float64 if it is; TypeError for integers."""
        dtype = keras.backend.standardize_dtype(x.dtype)
        if not keras.backend.is_float_dtype(dtype):
            raise TypeError(f"x has dtype {dtype}: cast it to a float type first")
        return x if dtype == "float64" else ops.cast(x, "float32")

    def finished(self, xhat: Any, shape: Shape) -> Any:
        """xhat · weight + bias, laid out in `shape`, rounded once to compute_dtype.

        With +, not with `ops.add`: on TensorFlow Keras 3.15 takes a bias of shape (C, 1, 1) for
        one of the last axis when an image is as wide as it has channels.
        """
        if self.weight is not None:
            xhat = xhat * ops.cast(ops.reshape(self.weight, shape), xhat.dtype)
        if self.bias is not None:
            xhat = xhat + ops.cast(ops.reshape(self.bias, shape), xhat.dtype)
        return ops.cast(xhat, self.compute_dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Of a norm: the input's."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, from which Keras builds the layer again."""
        mine = {"eps": self.eps, "use_weight": self.use_weight, "use_bias": self.use_bias}
        config: dict[str, Any] = super().get_config()
        return config | mine


@keras.saving.register_keras_serializable("rmsnorm_edu")
class RMSNorm(_Norm):
    """yᵢ = xᵢ / sqrt(RMS(x)² + eps) · weightᵢ + biasᵢ over the last axis.

    With `eps_outside` the divisor is RMS(x) + eps. With `p` the RMS is that of the first
    ``partial_size(n, p, rounding)`` features. x (..., n) with a static n; the statistic is in
    float32 or wider, y in compute_dtype. A mask passes through. ValueError for another n than
    the layer was built for. Source: Zhang & Sennrich 2019, equation (4), section 5 for p.
    """

    def __init__(
        self,
        eps: float = 1e-6,
        *,
        eps_outside: bool = False,
        p: float | None = None,
        rounding: str = "ceil",
        use_weight: bool = True,
        use_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(eps, use_weight, use_bias, **kwargs)
        self.eps_outside, self.p, self.rounding = eps_outside, p, rounding

    def build(self, input_shape: Shape) -> None:
        """Make the parameters, now that the number of features is known."""
        n = input_shape[-1] if input_shape else None
        if n is None:
            raise ValueError(f"x has shape {input_shape}: the last axis needs a static size")
        self.k = None if self.p is None else partial_size(n, self.p, self.rounding)
        self.add_parameters(n)
        self.input_spec = keras.layers.InputSpec(min_ndim=1, axes={-1: n})

    def call(self, x: Any) -> Any:
        """Normalise each row of x."""
        wide = self.widened(x)
        xhat = wide * rstd(wide[..., : self.k], (-1,), self.eps, self.eps_outside)
        return self.finished(xhat, (-1,))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, from which Keras builds the layer again."""
        mine = {"eps_outside": self.eps_outside, "p": self.p, "rounding": self.rounding}
        return super().get_config() | mine


@keras.saving.register_keras_serializable("rmsnorm_edu")
class ChannelRMSNorm(_Norm):
    """The Lasagne layer of 2019: the mean square over an image's pixels, for each channel.

    x (N, C, H, W), or (N, H, W, C) with ``data_format="channels_last"``: over H and W, for each
    sample and channel (an instance norm that subtracts no mean). x (N, C): over C. weight and
    bias have shape (C,). Other ranks are a ValueError: the original took a 3-D x and laid the
    parameters along another axis than the statistic. `data_format` None is Keras' own setting.
    """

    def __init__(
        self,
        eps: float = 1e-6,
        *,
        data_format: str | None = None,
        use_weight: bool = True,
        use_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(eps, use_weight, use_bias, **kwargs)
        self.data_format = keras.config.image_data_format() if data_format is None else data_format
        if self.data_format not in ("channels_first", "channels_last"):
            raise ValueError(f'data_format = {data_format!r}; "channels_first" or "channels_last"')

    def build(self, input_shape: Shape) -> None:
        """Make the parameters, now that the number of channels is known."""
        if len(input_shape) not in (2, 4):
            raise ValueError(f"x has shape {input_shape}; give (N, C) or {self.data_format} images")
        axis = 1 if self.data_format == "channels_first" else -1
        n = input_shape[axis]
        if n is None:
            raise ValueError(f"x has shape {input_shape}: the channels need a static size")
        self.add_parameters(n)
        self.input_spec = keras.layers.InputSpec(ndim=len(input_shape), axes={axis: n})

    def call(self, x: Any) -> Any:
        """Normalise each map of x, or each row of a 2-D x."""
        wide = self.widened(x)
        if len(x.shape) == 2:
            return self.finished(wide * rstd(wide, (-1,), self.eps), (-1,))
        first = self.data_format == "channels_first"
        xhat = wide * rstd(wide, (2, 3) if first else (1, 2), self.eps)
        return self.finished(xhat, (-1, 1, 1) if first else (-1,))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, from which Keras builds the layer again."""
        return super().get_config() | {"data_format": self.data_format}
