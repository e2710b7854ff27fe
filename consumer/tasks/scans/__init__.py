"""Scans: what a reading task does with each message of a range; `choose_scan` says which one it uses."""
