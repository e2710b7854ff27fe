"""Faults: crashes after every step, kills at random moments, memory under a stuck watermark and under a backlog."""
