"""The pure core against models of a few lines."""

import os

from hypothesis import Phase, settings

settings.register_profile("whole", deadline=None)
settings.register_profile("unshrunk", deadline=None, phases=[Phase.explicit, Phase.generate])
settings.register_profile("few", deadline=None, max_examples=10)  # for what is not about our own code
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "whole"))
