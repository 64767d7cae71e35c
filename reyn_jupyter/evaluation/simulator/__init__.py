"""A stand-in for a weak language model: it sees the request alone, and a published table says what it does.

What a study finds on it is known beforehand, so that it proves the study and says nothing of any real model.
"""

from __future__ import annotations

from reyn_jupyter.evaluation.simulator.model import Simulator
from reyn_jupyter.evaluation.simulator.table import BehaviourTable
from reyn_jupyter.evaluation.simulator.truth import COMPUTED, TrueRate, phrasing_shares, true_rates

__all__ = ["COMPUTED", "BehaviourTable", "Simulator", "TrueRate", "phrasing_shares", "true_rates"]
