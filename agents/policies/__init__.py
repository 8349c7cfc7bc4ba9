"""Policies: whatever maps a maze and a state to the next state, hand-coded or learned, and how they are stored."""
