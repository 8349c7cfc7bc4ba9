(** The theorem of an automaton, as [Lemmas] has it, on every maze of any height and width. *)
From MazeNCA Require Import Mazes Facts Fixpoints Characterised Lemmas.
Lemma lemmas_checked : checked its_statement its_lemmas its_proofs = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Theorem signals_are : Statements.Proven.signals_are its_statement.
Proof.
  intros m is_about t g f x.
  exact (characterised its_statement its_lemmas its_proofs lemmas_checked m is_about t g f x).
Qed.
Theorem answers_are : Statements.Proven.answers_are its_statement.
Proof.
  intros m is_about t g wanted due x.
  exact (answered its_statement its_lemmas its_proofs lemmas_checked m is_about t g wanted due x).
Qed.
Theorem relations_are_least : Statements.Proven.relations_are_least its_statement.
Proof.
  intros m x g; destruct (parts_checked _ _ _ lemmas_checked) as (_ & _ & _ & Hl).
  exact (stage_of_least (relations its_statement) m Hl x g).
Qed.
Theorem stages_are_rounds : Statements.Proven.stages_are_rounds its_statement.
Proof.
  intros m t x g; destruct (parts_checked _ _ _ lemmas_checked) as (_ & _ & _ & Hl).
  exact (stage_of_spec (relations its_statement) m Hl t x g).
Qed.
