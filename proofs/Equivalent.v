(** A network does what an automaton does, on any world, at every iteration: both as [Printed] has
    them. *)
From MazeNCA Require Import Statements Refute Network Floats Worlds Printed.

Lemma worlds_closed : closed (kinds its_network) its_taps its_rules its_given its_worlds = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma worlds_start : starts (kinds its_network) its_worlds = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma sums_checked : follows its_network its_parts its_rules
  (map (fun '(h, _) => world_facts (kinds its_network) its_taps its_rules its_given h) its_worlds) =
    true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma sums_small : small its_network its_parts = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Theorem network_does_the_same : Statements.Equivalent.network_does_the_same its_network its_parts
  its_rules its_given.
Proof.
  intros w known_kinds pooling_is supposed t x.
  apply (network_follows w its_network its_parts its_rules _ sums_checked);
    [intro; apply pooling_is; left; assumption|].
  intro u; apply worlds_hold; try assumption;
    [intro; apply pooling_is; left; assumption | exact worlds_closed | exact worlds_start].
Qed.
Theorem network_exact : Statements.Equivalent.network_exact its_network its_rules its_given.
Proof.
  intros w known_kinds pooling_is supposed round t v.
  exact (floats_exact w its_network its_parts sums_small (fun h => pooling_is (or_intror h))
    (run w its_rules) round t v
    (network_does_the_same w known_kinds pooling_is supposed)).
Qed.
