"""What the tests of `conventions` share: types, torch's tensors as arrays, what counts as near."""

import numpy as np
import pytest

ULP = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133}
# float32: of the row's largest value, for the order of the sum (README there)
TOLERANCE = {**ULP, "float32": 3.1e-7, "float64": 1e-15}


def numpy_type(name):
    if name != "bfloat16":
        return np.dtype(name)
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def of(tensor):
    """A torch tensor as a NumPy array, bfloat16 too."""
    if tensor.dtype.itemsize > 2 or "bfloat16" not in str(tensor.dtype):
        return tensor.numpy()
    bits = np.ascontiguousarray(tensor.float().numpy()).view(np.uint32) >> 16
    return bits.astype(np.uint16).view(numpy_type("bfloat16"))


def near(y, expected):
    """Within a last bit in half precision, within the sum's order otherwise; nan is nan."""
    narrow = y.dtype.name
    y, expected = y.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(expected))
    top = np.max(np.abs(expected), axis=-1, keepdims=True)
    if narrow in ULP:
        top = np.abs(expected) + SMALLEST[narrow] / ULP[narrow]
    assert np.all(~(np.abs(y - expected) > TOLERANCE[narrow] * top))


def differing(y, expected):
    y, expected = y.astype(np.float64), expected.astype(np.float64)
    return np.count_nonzero((y != expected) & ~np.isnan(expected))
