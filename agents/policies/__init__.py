"""Policies, hand-coded or learned: functions from a maze and a state to the next state; and how they are stored."""
