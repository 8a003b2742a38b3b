"""Wrong RMSNorms, each the right one but for one step, and each a fault that was made somewhere.

`MUTANTS` holds them by name, as the book prints it (``list(MUTANTS)`` shows all); `RMSNorm` is
the right one. ``checks.verify(**MUTANTS[name].judged())`` judges one.

>>> MUTANTS["n − 1"].what
'the sum of squares is divided by n - 1, as an unbiased variance is.'
"""

from collections.abc import Mapping
from types import MappingProxyType

from rmsnorm_edu.mutants import casts, forward, gradients, memory, paths
from rmsnorm_edu.mutants.base import Mutant, RMSNorm

__all__ = ["MUTANTS", "Mutant", "RMSNorm"]

_ALL: tuple[Mutant, ...] = (
    forward.Unbiased(),
    forward.WrongAxis(),
    forward.WholeArray(),
    forward.MeanSubtracted(),
    forward.StandardDeviation(),
    forward.EpsOutside(),
    forward.EpsTooLarge(),
    forward.OwnEps(),
    forward.WithoutEps(),
    forward.EpsOnTheSum(),
    forward.EpsNotRescaled(),
    forward.DividedByRstd(),
    forward.RootOfTheRms(),
    forward.OverRootN(),
    forward.OnePlusWeight(),
    forward.HalfTheWeight(),
    forward.ApproximateRsqrt(),
    casts.SquaresOverflow(),
    casts.WidenedLate(),
    casts.HalfSums(),
    casts.CastTwice(),
    casts.HalfRstd(),
    casts.Truncated(),
    casts.PromotedOutput(),
    casts.OffsetInHalf(),
    casts.OffsetForgotten(),
    gradients.NoSecondTerm(),
    gradients.WrongSign(),
    gradients.SumForMean(),
    gradients.WeightTwice(),
    gradients.WithoutWeight(),
    gradients.WeightTwiceInTheMean(),
    gradients.WeightTwiceEverywhere(),
    gradients.WithoutWeightInTheMean(),
    gradients.AcrossColumns(),
    gradients.SavedMeanSquare(),
    gradients.OtherEps(),
    gradients.XhatFromY(),
    gradients.HalfRstdSaved(),
    gradients.BiasGradient(),
    gradients.XForXhat(),
    gradients.YForXhat(),
    gradients.LastRowDropped(),
    gradients.LastBlockDropped(),
    gradients.WeightGradientPerRank(),
    gradients.HalfDweight(),
    gradients.Frozen(),
    memory.InputMutated(),
    memory.UpstreamMutated(),
    memory.StridesIgnored(),
    memory.PaddingCounted(),
    memory.NextRowRead(),
    memory.NextRowWritten(),
    memory.TailForgotten(),
    memory.RowsBeyondTheGrid(),
    memory.PerRank(),
    memory.BatchDependent(),
    paths.KRoundedDown(),
    paths.KOffByOne(),
    paths.NInTheRoot(),
    paths.PartIgnored(),
    paths.SlopeEverywhere(),
    paths.ResidualThroughTheNorm(),
    paths.CastFlagIgnored(),
    paths.ResidualMutated(),
    paths.AddedTwice(),
)
MUTANTS: Mapping[str, Mutant] = MappingProxyType({mutant.name: mutant for mutant in _ALL})
