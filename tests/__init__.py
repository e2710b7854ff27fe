"""Tests: properties against a model, golden messages, real servers, faults, black box, benchmark."""
