"""A stand-in for a weak language model: it sees the request alone, and a published table says what it does.

What a study finds on it is known beforehand, so that it proves the study and says nothing of any real model.
"""

from __future__ import annotations

from reyn_jupyter.evaluation.models.simulator.behaviour_table import BehaviourTable
from reyn_jupyter.evaluation.models.simulator.simulator import Simulator

__all__ = ["BehaviourTable", "Simulator"]
