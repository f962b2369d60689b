"""Data sets and events in files: CSV, Parquet, npz, LIBSVM and JSON lines."""
