(** A network does what an automaton does, on any world, at every iteration: both as [Printed] has them. *)
Require Import World Refute Network Floats Worlds Printed.

Lemma worlds_closed : closed (kinds its_network) its_taps its_rules its_given its_worlds = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma worlds_start : starts (kinds its_network) its_worlds = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma sums_checked : follows its_network its_parts its_rules
  (map (fun '(h, _) => world_facts (kinds its_network) its_taps its_rules its_given h) its_worlds) = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma sums_small : small its_network its_parts = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Section Followed.
  Context (w : world).
  Hypothesis known_kinds : forall x, kind_of w x < kinds its_network.
  Hypothesis pooling_is : pooled its_rules <> [] \/ pooling its_network <> 0 -> pools w.
  (** What is supposed of the automaton: nothing, where [its_given] is empty. *)
  Hypothesis supposed : forall t y, Forall (fun e => says e (run w its_rules t y) (Nat.eqb (kind_of w y)) = true) its_given.

  (** Each channel or pair of channels shows its signal, 1 or 0. *)
  Theorem network_does_the_same t x : agree its_parts (net_run w its_network t x) (run w its_rules t x).
  Proof.
    apply (network_follows w its_network its_parts its_rules _ sums_checked); [intro; apply pooling_is; left; assumption|].
    intro u; apply worlds_hold; try assumption; [intro; apply pooling_is; left; assumption | exact worlds_closed | exact worlds_start].
  Qed.
  (** So it does in float32, with sums in any order. *)
  Theorem network_exact round t v : exact_below round -> float_run round w its_network t v ->
    forall x c, v x c = net_run w its_network t x c.
  Proof.
    exact (floats_exact w its_network its_parts sums_small (fun h => pooling_is (or_intror h)) (run w its_rules) round t v network_does_the_same).
  Qed.
End Followed.

Print Assumptions network_does_the_same.
Print Assumptions network_exact.
