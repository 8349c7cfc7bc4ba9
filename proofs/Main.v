(** The theorems: the package's own rules and networks, as printed, on every maze, in every order of
    directions. *)
From Coq Require Import Permutation.
From MazeNCA Require Import Mazes Refute Network Floats ShortestPath Canonical Worlds Healing
  Changes Possible Package Checked.
Import Statements.Package.
Local Open Scope Z_scope.

(** All 24 orders are in it. *)
Definition found (l : list dir) : bool := if in_dec (list_eq_dec dir_eq_dec) l
  (map directions package) then true else false.
Lemma all_found : let each := fun f => forallb f [U; L; D; R] in
  each (fun a => each (fun b => each (fun c => each (fun d =>
    implb (length (nodup dir_eq_dec [a; b; c; d]) =? 4)%nat (found [a; b; c; d]))))) = true.
Proof. vm_compute; reflexivity. Qed.
Theorem every_order : Statements.Main.every_order package.
Proof.
  intros l H; pose proof (Permutation_length H) as Hl.
  assert (Hd : NoDup l) by (apply (Permutation_NoDup H); repeat constructor; cbn;
    intuition discriminate).
  assert (Hin : forall d, In d l -> In d [U; L; D; R]) by (intros d Hd';
    exact (Permutation_in d (Permutation_sym H) Hd')).
  destruct l as [|a [|b [|c [|d [|]]]]]; try discriminate Hl.
  pose proof all_found as E; cbv zeta in E.
  let use x := rewrite forallb_forall in E; specialize (E x ltac:(apply Hin; cbn; tauto)) in use a;
    use b; use c; use d.
  rewrite (nodup_fixed_point dir_eq_dec Hd) in E; cbn [length Nat.eqb implb] in E;
    unfold found in E.
  destruct (in_dec (list_eq_dec dir_eq_dec) [a; b; c; d] (map directions package));
    [assumption | discriminate].
Qed.

(** * The theorems *)

Section Theorems.
  Variables (e : entry) (known : In e package).
  Variables (m : maze) (s : cell m).
  Hypotheses (is_source : kind_at m (proj1_sig s) = SOURCE)
    (only_one : forall x : cell m, kind_at m (proj1_sig x) = SOURCE -> x = s).

  Lemma of_package : exists o, is_order o (directions e) /\ solved o (grid m) s (fun t x =>
    run (grid m) (its_rules e) t x PATH) /\
    (forall t x, agree (its_parts e) (net_run (grid m) (its_network e) t x)
      (run (grid m) (its_rules e) t x)) /\
    small (its_network e) (its_parts e) = true /\ pooling (its_network e) = 0%nat /\
      nth_error (its_parts e) PATH = Some (Single 0).
  Proof.
    destruct (proj1 (Forall_forall _ _) package_checked e known) as
      (o & Ho & _ & Hp & Hsame & Hf & Hrest); exists o.
    split; [exact Ho|]; split; [|split; [|exact Hrest]].
    - apply automaton_solves; try assumption;
        apply (solvable_or_not o (grid m) (its_rules e) Hsame Hp (cells m)), cells_all.
    - intros t x; apply (network_follows (grid m) _ _ _ [facts o] Hf); [rewrite Hp; contradiction|].
      apply facts_known; try assumption; intros y z Hy Hz; rewrite (only_one y Hy), (only_one z Hz);
        reflexivity.
  Qed.
End Theorems.

Theorem rules_solve : Statements.Main.rules_solve package.
Proof. intros e known m s is_source only_one;
  destruct (of_package e known m s is_source only_one) as (o & Ho & Hs & _); eauto. Qed.
Theorem network_solves : Statements.Main.network_solves package.
Proof.
  intros e known m s is_source only_one.
  destruct (of_package e known m s is_source only_one) as (o & Ho & Hs & Hf & _ & _ & Hpath);
    exists o; split; [exact Ho|].
    assert (H : forall t x, net_run (grid m) (its_network e) t x 0%nat = on
      (run (grid m) (its_rules e) t x PATH))
      by (intros t x; exact (Hf t x PATH _ Hpath)).
    split; [|intros t x; rewrite H; destruct (run _ _ _ _ _); auto].
    assert (E : forall t x, (net_run (grid m) (its_network e) t x 0%nat =? 2) = run (grid m)
      (its_rules e) t x PATH)
      by (intros t x; rewrite H; destruct (run _ _ _ _ _); reflexivity).
    unfold solved in *; setoid_rewrite E; exact Hs.
Qed.
Theorem network_exact : Statements.Main.network_exact package.
Proof.
  intros e known m s is_source only_one round t v.
  destruct (of_package e known m s is_source only_one) as (o & _ & _ & Hf & Hsmall & Hpool & _).
    exact (floats_exact (grid m) _ (its_parts e) Hsmall (fun h => False_ind _ (h Hpool))
      (run (grid m) (its_rules e)) round t v Hf).
Qed.
Theorem healing_heals : Statements.Main.healing_heals package.
Proof.
  intros e known m s is_source only_one.
    destruct (proj1 (Forall_forall _ _) package_checked e known) as (o & Ho & Hh & Hp & Hsame & _);
      exists o; split; [exact Ho|].
    assert (Hpools : pools (grid m)) by (apply grid_pools; intro E; pose proof (cells_all m s) as H;
      rewrite E in H; exact H).
    assert (Hcolour : forall p x y, nb (grid m) (way o p) x = Some y ->
      let colour z := Z.odd (fst (proj1_sig z) + snd (proj1_sig z)) in colour y = negb (colour x)).
    { intros p x y H%cell_at_some; cbv beta zeta; rewrite H; destruct Hh as (_ & _ & Hp' & _);
      specialize (Hp' p); rewrite back_way in Hp'.
      destruct (proj1_sig x) as [row col], (way o p); try discriminate Hp';
        cbn [moved fst snd]; rewrite !Z.odd_add, ?Z.odd_sub; destruct (Z.odd row), (Z.odd col);
          reflexivity. }
    assert (Hsource : forall x, kind_of (grid m) x = SOURCE <-> x = s) by (intro x; split;
      [apply only_one | intros ->; exact is_source]).
    pose proof (solvable_or_not o (grid m) (its_rules e) Hsame Hp (cells m) s (cells_all m)) as
      Hsolvable.
    split; [apply (fresh_right o (grid m) (its_healing e) (its_rules e) Hsame Hp Hh Hpools _ s
      Hcolour Hsource Hsolvable)|].
    apply (changed_right o (grid m) (its_healing e) (its_rules e) Hsame Hp Hh Hpools _ s Hcolour
      Hsource Hsolvable).
Qed.

Theorem network_heals : Statements.Main.network_heals healing_network.
Proof.
  intros m s.
  intros Hs Hone; assert (Hin : exists e, In e package /\ directions e = [U; L; D;
    R] /\ its_healing e = healing_ULDR)
    by (eexists; split; [left; reflexivity | split; reflexivity]).
  destruct Hin as (e & Hin & Hd & Hr), (healing_heals e Hin m s Hs Hone) as (o & Ho & _ & H);
    rewrite Hd in Ho; rewrite Hr in H.
  exists o; split; [exact Ho|]; intros kinds T F H1 H2 H3 Hk; specialize (H kinds T F H1 H2 H3);
    destruct healing_checked as (Hc & Hb & Hf & Ha & Hsmall).
  assert (Hp : pools (grid m)) by (apply grid_pools; intro E; pose proof (cells_all m s) as Hin';
    rewrite E in Hin'; exact Hin').
  assert (E : forall t x, net_through (grid m) kinds healing_network t x 0%nat = on
    (run_through (grid m) kinds healing_ULDR t x PATH)).
  { intros t x;
    exact (proj1 (follows_through (grid m) healing_network healing_parts healing_ULDR healing_taps
    healing_worlds kinds Hk Hp Hc Hb Hf Ha t) x PATH _ eq_refl). }
  split; [intros round t v Hround Hv x;
    exact (floats_through (grid m) healing_network healing_parts healing_ULDR healing_taps
    healing_worlds kinds Hk Hp Hc Hb Hf Ha Hsmall round t v Hround Hv x 0%nat)|].
  split; [|intros t x; rewrite E; destruct (run_through _ _ _ _ _); auto].
  assert (E' : forall t x, (net_through (grid m) kinds healing_network t x 0%nat =? 2) = run_through
    (grid m) kinds healing_ULDR t x PATH)
    by (intros t x; rewrite E; destruct (run_through _ _ _ _ _); reflexivity).
  unfold solved_from in *; setoid_rewrite E'; exact H.
Qed.

Theorem tight : Statements.Main.tight package.
Proof. vm_compute; reflexivity. Qed.
