"""The paper's study and the stream comparison, as functions that turn settings into rows of numbers."""
