(** Runs on a maze as tables, which Coq can compute: the time is linear in the number of iterations,
    whereas [run] computes a tile once for every neighbour that reads it. *)
From MazeNCA Require Import Mazes.
Local Open Scope Z_scope.

(** The signals of each tile, by its place. *)
Definition table : Type := list (Z * Z * list bool).
Definition is_at (p q : Z * Z) : bool := (fst p =? fst q) && (snd p =? snd q).
Definition shown (m : maze) (found : table) : state (grid m) := fun x g =>
  match find (fun '(p, _) => is_at p (proj1_sig x)) found with
  | Some (_, signals) => nth g signals false
  | None => false
  end.
Definition tabled (m : maze) (a : automaton) (s : state (grid m)) : table :=
  map (fun x => (proj1_sig x, map (s x) (seq 0 (length (rules a))))) (cells m).
Fixpoint table_run (m : maze) (a : automaton) (t : nat) : table :=
  match t with
  | O => tabled m a (fun _ _ => false)
  | S t => tabled m a (step (grid m) a (shown m (table_run m a t)))
  end.
(** A signal after t iterations, row by row. *)
Definition picture (m : maze) (a : automaton) (t g : nat) : list (list bool) :=
  let found := table_run m a t in
  let upto n := map Z.of_nat (seq 0 (Z.to_nat n)) in
  map (fun row => map (fun column => match cell_at m (row, column) with
    | Some x => shown m found x g
    | None => false
    end) (upto (width m))) (upto (height m)).

Lemma shown_tabled m a s x g :
  (forall y h, (length (rules a) <= h)%nat -> s y h = false) -> shown m (tabled m a s) x g = s x g.
Proof.
  intro Hoff; unfold shown, tabled; pose proof (cells_all m x) as Hin.
  induction (cells m) as [|y l IH]; [destruct Hin|]; cbn [map find].
  destruct (is_at (proj1_sig y) (proj1_sig x)) eqn:E.
  - apply andb_prop in E as [Ha%Z.eqb_eq Hb%Z.eqb_eq].
    assert (E : proj1_sig y = proj1_sig x)
      by (destruct (proj1_sig y), (proj1_sig x); cbn in *; congruence).
    apply cell_at_some in E; rewrite cell_at_own in E; injection E as <-.
    destruct (Nat.lt_ge_cases g (length (rules a))) as [Hg|Hg].
    + rewrite (nth_indep _ false (s x 0%nat)) by (rewrite map_length, seq_length; exact Hg).
      rewrite map_nth, seq_nth by exact Hg; reflexivity.
    + rewrite nth_overflow by (rewrite map_length, seq_length; exact Hg); symmetry; auto.
  - apply IH; destruct Hin as [->|Hin]; [|exact Hin].
    unfold is_at in E; rewrite !Z.eqb_refl in E; discriminate E.
Qed.
Lemma step_off m a s y h : (length (rules a) <= h)%nat -> step (grid m) a s y h = false.
Proof.
  intro Hh; unfold step, rule; rewrite nth_overflow by exact Hh; cbn [eval].
  destruct (is_pooled a h); [|reflexivity]; unfold anywhere; cbn [highest grid];
    unfold grid_highest.
  destruct (cells m) as [|x l]; [reflexivity|].
  change ((0 <? fold_right Z.max 0 (map (fun _ : cell m => 0) l)) = false).
  induction l as [|z l IH]; cbn [map fold_right]; [reflexivity|].
  apply Z.ltb_ge in IH; apply Z.ltb_ge; lia.
Qed.
Lemma step_same m a s s' x g : (forall y h, s y h = s' y h) ->
  step (grid m) a s x g = step (grid m) a s' x g.
Proof.
  intro H; unfold step.
  assert (E : forall y, eval (rule a g) (see (grid m) s y) (tile (grid m) y) =
    eval (rule a g) (see (grid m) s' y) (tile (grid m) y)).
  { intro y; induction (rule a g); cbn [eval]; try congruence.
    unfold see; destruct (at_tap _ _ _); [apply H | reflexivity]. }
  destruct (is_pooled a g); [|apply E]; unfold anywhere; f_equal; cbn [highest grid].
  unfold grid_highest; rewrite (map_ext _ (fun y => if eval (rule a g) (see (grid m) s' y)
    (tile (grid m) y) then 1 else 0)) by (intro y; rewrite E; reflexivity); reflexivity.
Qed.
(** Tables hold what a run does. *)
Theorem table_run_is m a t x g : shown m (table_run m a t) x g = run (grid m) a t x g.
Proof.
  revert x g; induction t as [|t IH]; intros x g; cbn [table_run run].
  - apply (shown_tabled m a (fun _ _ => false)); reflexivity.
  - rewrite shown_tabled by (intros; apply step_off; assumption); apply step_same, IH.
Qed.
