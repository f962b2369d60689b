"""The paper's experiments and the stream comparison."""
