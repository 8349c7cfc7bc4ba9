(** The theorem of an automaton, as [Lemmas] has it, on every maze of any height and width. *)
Require Import Mazes Facts Fixpoints Described Lemmas.
Lemma lemmas_checked : checked its_statement its_lemmas its_proofs = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Section Proven.
  Context (m : maze).
  Hypotheses (known_kinds : forall x : cell m, kind_at m (proj1_sig x) < n_kinds its_statement) (some : cells m <> []).
  Notation after t x g := (run (grid m) (of_rules its_statement) t x g).
  Notation relations_of := (relations its_statement).
  (** After t iterations each signal is what is said of it, and so what the statement does not speak of aside. *)
  Theorem signals_are t g f x : nth g (said its_statement) None = Some f ->
    after t x g = true_at its_statement m t (proj1_sig x) f.
  Proof. exact (described its_statement its_lemmas its_proofs lemmas_checked m known_kinds some t g f x). Qed.
  (** An answer never shows more than is wanted, and all of it once as many iterations are over as the statement has. *)
  Theorem answers_are t g wanted due x : In (g, (wanted, due)) (answers its_statement) ->
    (after (S t) x g = true -> true_at its_statement m t (proj1_sig x) wanted = true) /\
    ((amount (number its_statement m t) (proj1_sig x) due <= Z.of_nat (S t))%Z ->
      after (S t) x g = true_at its_statement m t (proj1_sig x) wanted).
  Proof. exact (answered its_statement its_lemmas its_proofs lemmas_checked m known_kinds some t g wanted due x). Qed.
  (** The relations in terms of which this is said are the least that their rules are satisfied by, if these negate nothing. *)
  Theorem relations_are_least x g : monotone relations_of = true -> fixed (grid m) relations_of (cells m) x g = true <->
    forall s, closed_state (grid m) relations_of s -> s x g = true.
  Proof.
    destruct (parts_checked _ _ _ lemmas_checked) as (_ & _ & _ & Hg).
    exact (fixed_is_least (grid m) relations_of (cells m) (grid_pools m some) Hg (cells_all m) x g).
  Qed.
  (** The stage of a tile is the round before that in which it comes on. *)
  Theorem stages_are_rounds t x g : run (grid m) relations_of t x g =
    fixed (grid m) relations_of (cells m) x g && (stage (grid m) relations_of (cells m) x g <? Z.of_nat t)%Z.
  Proof.
    destruct (parts_checked _ _ _ lemmas_checked) as (_ & _ & _ & Hg).
    exact (stage_spec (grid m) relations_of (cells m) (grid_pools m some) Hg (cells_all m) t x g).
  Qed.
End Proven.
Print Assumptions signals_are.
Print Assumptions answers_are.
Print Assumptions relations_are_least.
Print Assumptions stages_are_rounds.
