"""The pure core against models of a few lines."""

from hypothesis import settings

settings.register_profile("reconciler", deadline=None)
settings.load_profile("reconciler")
