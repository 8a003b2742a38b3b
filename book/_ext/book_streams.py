"""Printed text that a kernel sent in pieces, put together as it was printed.

Where the pieces are cut depends on the time. MyST-NB ends each with a new line (nb_merge_streams),
so that a line whose own end comes late would be followed by an empty one.
"""

from copy import copy

from myst_nb.core import render

merged = render.coalesce_streams


def joined(outputs):
    """One output for each stream, its pieces end to end; then what MyST-NB makes of that."""
    kept, streams = [], {}
    for output in outputs:
        name = output.get("name") if output["output_type"] == "stream" else None
        if name in streams:
            streams[name]["text"] += output["text"]
            continue
        kept.append(copy(output))  # the notebook keeps its pieces
        if name:
            streams[name] = kept[-1]
    return merged(kept)


def setup(app):
    render.coalesce_streams = joined
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
