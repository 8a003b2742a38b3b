"""RMSNorm of channels and of groups: the 2019 code's layer for convolutions, and Mamba-2's.

Both are plain torch operations; autograd differentiates them, twice if asked.
"""

import torch
from torch import Tensor
from torch.nn import Conv2d, Linear, Module, Parameter, Sequential

from rmsnorm_edu._inputs import checked_eps, positive
from rmsnorm_edu.nn._arithmetic import computing_type
from rmsnorm_edu.nn._inputs import checked_float

__all__ = ["ChannelRMSNorm", "GroupRMSNorm", "norm_after"]


class _Norm(Module):
    """Gain and bias of one number for each of `channels`; either may be absent."""

    weight: Parameter | None
    bias: Parameter | None
    eps: float

    def __init__(
        self,
        channels: int,
        eps: float,
        affine: bool,
        bias: bool,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.eps = checked_eps(eps)

        for name, wanted in (("weight", affine), ("bias", bias)):
            empty = torch.empty(channels, device=device, dtype=dtype)
            self.register_parameter(name, Parameter(empty) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the gain to 1 and the bias to 0."""
        if self.weight is not None:
            torch.nn.init.ones_(self.weight)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)


class ChannelRMSNorm(_Norm):
    """The Lasagne layer of the 2019 code: y_nchw = g_c · x_nchw / sqrt(mean_hw(x_nc²) + ε) + b_c.

    For x of shape (N, C, H, W) each channel of each sample has a mean square of its own, over H
    and W: an instance norm that subtracts no mean. It does not compare the channels, and a map of
    1 × 1 becomes its sign, up to ε. For x of shape (N, C) the mean runs over the C features, as in
    RMSNorm. `weight` and `bias` have shape (C,); `elementwise_affine=False` leaves the one out,
    `bias=False` the other, as g=None and b=None did.

    float16 and bfloat16 are computed in float32; the result has x's type and memory format. It
    holds for a batch of none. Raises TypeError for integers, ValueError for another number of
    channels or of axes. Source: bzhangGo/rmsnorm at 2e726f1, README.md, RMSNormLayer.

    >>> layer = ChannelRMSNorm(2, eps=0.0)
    >>> layer(torch.tensor([[[[3.0, -3.0]], [[0.5, 0.5]]]])).flatten().tolist()
    [1.0, -1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        num_channels: int,
        eps: float = 1e-6,
        bias: bool = True,
        *,
        elementwise_affine: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.num_channels = positive(num_channels, "num_channels")
        super().__init__(num_channels, eps, elementwise_affine, bias, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x, (N, C, H, W) or (N, C)."""
        checked_float(x, "x")
        if x.ndim not in (2, 4) or x.shape[1] != self.num_channels:
            raise ValueError(_wrong_axes(x, self.num_channels))
        axes, a_channel = ((2, 3), (-1, 1, 1)) if x.ndim == 4 else ((1,), (-1,))
        wide = x.to(computing_type(x.dtype))
        y = wide * _rstd(wide, axes, self.eps)
        if self.weight is not None:
            y = y * self.weight.view(a_channel)
        if self.bias is not None:
            y = y + self.bias.view(a_channel)
        return y.to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments that made the layer."""
        return (
            f"{self.num_channels}, eps={self.eps}, bias={self.bias is not None}, "
            f"elementwise_affine={self.weight is not None}"
        )


class GroupRMSNorm(_Norm):
    """RMSNorm of groups of features: y_i = w_i · x_i / sqrt(mean of x² over i's group + ε).

    The last axis, of num_channels, is cut into num_groups runs of neighbours, and each has an RMS
    of its own; `weight` has shape (num_channels,). Mamba-2 and its kin use it so that each
    device can normalise the group that it holds. torch.nn.GroupNorm differs three times: its
    channels are at axis 1, its statistics run over the spatial axes too, and it subtracts the mean.

    x has shape (..., num_channels). float16 and bfloat16 are computed in float32; the result has
    x's type. Raises TypeError for integers, ValueError for another width or for groups that do not
    divide the channels.

    >>> layer = GroupRMSNorm(2, 4, eps=0.0)
    >>> layer(torch.tensor([3.0, -3.0, 0.5, 0.5])).tolist()
    [1.0, -1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-6,
        elementwise_affine: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.num_groups = positive(num_groups, "num_groups")
        self.num_channels = positive(num_channels, "num_channels")
        if num_channels % num_groups:
            raise ValueError(
                f"num_groups = {num_groups} does not divide num_channels = {num_channels}; "
                "give groups of one size"
            )
        self.group_size = num_channels // num_groups
        super().__init__(num_channels, eps, elementwise_affine, False, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each group of x, (..., num_channels)."""
        checked_float(x, "x")
        if x.ndim == 0 or x.shape[-1] != self.num_channels:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; give (..., {self.num_channels}), "
                "the channels at the last axis"
            )
        groups = x.to(computing_type(x.dtype)).reshape(
            *x.shape[:-1], self.num_groups, self.group_size
        )
        y = (groups * _rstd(groups, (-1,), self.eps)).flatten(-2)
        return (y if self.weight is None else y * self.weight).to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments that made the layer."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, "
            f"elementwise_affine={self.weight is not None}"
        )


def norm_after(layer: Linear | Conv2d | Sequential, norm: Module | None = None) -> Sequential:
    """Put a norm behind a layer and before its activation: Sequential(layer, norm, activation).

    `layer` is a Linear or a Conv2d (1 × 1 is Lasagne's NIN), or a Sequential of one of them and an
    activation; without an activation the result has two modules. `norm` is
    ChannelRMSNorm(channels) of the layer's type and device unless given. The layer itself becomes
    the first module and loses its bias, since the norm brings one. A norm that subtracts the mean
    would cancel that bias; this one does not, so the function changes: it is what the 2019 helper
    did. That helper raised KeyError for a layer without bias and TypeError at the output of a layer
    without an activation; both work here.

    Raises TypeError for another layer, ValueError for a Sequential of other than two modules.

    >>> norm_after(Sequential(Linear(3, 4), torch.nn.ReLU()))
    Sequential(
      (0): Linear(in_features=3, out_features=4, bias=False)
      (1): ChannelRMSNorm(4, eps=1e-06, bias=True, elementwise_affine=True)
      (2): ReLU()
    )
    """
    inner, activation = _parts(layer)
    if norm is None:
        channels = inner.out_features if isinstance(inner, Linear) else inner.out_channels
        norm = ChannelRMSNorm(channels, device=inner.weight.device, dtype=inner.weight.dtype)
    wrapped = Sequential(inner, norm, *activation)
    inner.bias = None  # after what may fail
    return wrapped


def _parts(layer: Module) -> tuple[Linear | Conv2d, list[Module]]:
    if isinstance(layer, Sequential) and len(layer) != 2:
        raise ValueError(f"layer has {len(layer)} modules; give Sequential(layer, activation)")
    inner, *activation = layer if isinstance(layer, Sequential) else [layer]
    if not isinstance(inner, Linear | Conv2d):
        raise TypeError(f"layer is a {type(inner).__name__}; give a Linear or a Conv2d")
    return inner, activation


def _rstd(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    """1 / sqrt(mean(x²) + eps) over the axes, which stay with length 1."""
    return torch.rsqrt(x.square().mean(axes, keepdim=True) + eps)


def _wrong_axes(x: Tensor, channels: int) -> str:
    said = f"x has shape {tuple(x.shape)}; give (N, {channels}, H, W) or (N, {channels})"
    if x.ndim == 3:
        said += (
            ". The 2019 layer took the mean of three axes over axis 1, and laid its gain along "
            "the last: silently wrong where both have one length. For features at the last axis "
            "take RMSNorm"
        )
    return said
