(** The theorem of an automaton, as [Lemmas] has it, on every maze of any height and width. *)
Require Import Mazes Facts Fixpoints Described Lemmas.
Lemma lemmas_checked : checked its_statement its_lemmas its_proofs = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Section Proven.
  Context (m : maze).
  Hypothesis is_about : about its_statement m.
  Notation after_t t x g := (run (grid m) (of_rules its_statement) t x g).
  Notation its_relations := (relations its_statement).
  Notation its_round g := (layer_round its_relations m (layer (relation_of its_relations g))).
  (** After t iterations each signal is what is said of it, and so what the statement does not speak of aside. *)
  Theorem signals_are t g f x : nth g (said its_statement) None = Some f ->
    after_t t x g = true_at its_statement m t (proj1_sig x) f.
  Proof. exact (described its_statement its_lemmas its_proofs lemmas_checked m is_about t g f x). Qed.
  (** An answer never shows more than is wanted, and all of it once as many iterations are over as the statement has. *)
  Theorem answers_are t g wanted due x : In (g, (wanted, due)) (answers its_statement) ->
    (after_t (S t) x g = true -> true_at its_statement m t (proj1_sig x) wanted = true) /\
    ((amount (number its_statement m t) (proj1_sig x) due <= Z.of_nat (S t))%Z ->
      after_t (S t) x g = true_at its_statement m t (proj1_sig x) wanted).
  Proof. exact (answered its_statement its_lemmas its_proofs lemmas_checked m is_about t g wanted due x). Qed.
  (** The relations in terms of which this is said are the least that the rules of their layer are satisfied by, if these
      negate none of that layer. *)
  Theorem relations_are_least x g : negates_nothing its_relations (layer (relation_of its_relations g)) = true ->
    (0 <= stage_of its_relations m g x)%Z <-> forall s, within (its_round g s) s -> s x g = true.
  Proof.
    destruct (parts_checked _ _ _ lemmas_checked) as (_ & _ & _ & Hl); exact (stage_of_least its_relations m Hl x g).
  Qed.
  (** The stage of a tile is the number of rounds of the layer before that in which it comes on. *)
  Theorem stages_are_rounds t x g : after (its_round g) t x g =
    ((0 <=? stage_of its_relations m g x)%Z && (stage_of its_relations m g x <? Z.of_nat t)%Z).
  Proof.
    destruct (parts_checked _ _ _ lemmas_checked) as (_ & _ & _ & Hl); exact (stage_of_spec its_relations m Hl t x g).
  Qed.
End Proven.
Print Assumptions signals_are.
Print Assumptions answers_are.
Print Assumptions relations_are_least.
Print Assumptions stages_are_rounds.
