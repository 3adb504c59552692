"""Rows as one binary value, in Arrow's stream format: how they pass through Spark untouched."""

import pyarrow as pa


def written(rows: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


def read(value: pa.BinaryScalar) -> pa.Table:
    """A table from bytes, which it shares with the value."""
    return pa.ipc.open_stream(value.as_buffer()).read_all()
