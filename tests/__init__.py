"""Tests: properties against a model, golden messages, real servers, faults, black box, benchmark."""

import os

from hypothesis import HealthCheck, Phase, settings

# how long an example takes says nothing where other tests run beside it
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("whole", _PATIENT)
settings.register_profile("unshrunk", _PATIENT, phases=[Phase.explicit, Phase.generate])
settings.register_profile("few", _PATIENT, max_examples=10)  # for what is not about our own code
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "whole"))
