"""Tests of what deploy/ holds, without a cluster and without a container engine."""
