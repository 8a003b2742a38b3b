"""Three answers of Keras that a normalisation trips over, asked of the Keras that is installed."""

import math
import warnings
from typing import Any

import numpy as np


def ask() -> dict[str, Any]:
    """What `ops.mean`, `ops.add` and LayerNormalization(rms_scaling=True) give on one input each.

    `mean`: the relative error of the mean of eight float64 numbers, 0.1, 0.2, …, 0.8.
    `add`: zeros of shape (1, 3, 2, 3) plus a bias 1, 2, 3 of shape (3, 1, 1), the first column of
    pixels: one number for each channel, [1, 2, 3] where channels are channels.
    `rms_scaling`: the output for the row 10, 11, 12.
    """
    from rmsnorm_edu.frameworks.keras import keras, ops

    values = np.arange(1, 9) / 10
    mean = np.asarray(ops.convert_to_numpy(ops.mean(ops.convert_to_tensor(values))))
    bias = np.array([1.0, 2.0, 3.0], np.float32).reshape(3, 1, 1)
    image = np.zeros((1, 3, 2, 3), np.float32)
    added = ops.convert_to_numpy(ops.add(ops.convert_to_tensor(image), ops.convert_to_tensor(bias)))
    row = np.array([[10.0, 11.0, 12.0]], np.float32)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scaled = keras.layers.LayerNormalization(epsilon=1e-6, rms_scaling=True)(row)
    return {
        "mean": float(f"{abs(float(mean) * len(values) / math.fsum(values) - 1):.1e}"),
        "add": added[0, :, 0, 0].tolist(),
        "rms_scaling": [
            round(value, 2) for value in np.ravel(ops.convert_to_numpy(scaled)).tolist()
        ],
        "rms_scaling_warns": any("rms_scaling" in str(each.message) for each in said),
    }
