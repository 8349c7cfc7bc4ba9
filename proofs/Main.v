(** The theorems: the package's own rules and networks, as printed, on every maze, in every order of directions. *)
From Coq Require Import Permutation.
Require Import Mazes Refute Network Floats ShortestPath Canonical Worlds Healing Changes Possible Package Checked.
Local Open Scope Z_scope.

(** All 24 orders are in it. *)
Definition found (l : list dir) : bool := if in_dec (list_eq_dec dir_eq_dec) l (map directions package) then true else false.
Lemma all_found : let each := fun f => forallb f [U; L; D; R] in
  each (fun a => each (fun b => each (fun c => each (fun d =>
    implb (length (nodup dir_eq_dec [a; b; c; d]) =? 4)%nat (found [a; b; c; d]))))) = true.
Proof. vm_compute; reflexivity. Qed.
Theorem every_order l : Permutation [U; L; D; R] l -> In l (map directions package).
Proof.
  intro H; pose proof (Permutation_length H) as Hl.
  assert (Hd : NoDup l) by (apply (Permutation_NoDup H); repeat constructor; cbn; intuition discriminate).
  assert (Hin : forall d, In d l -> In d [U; L; D; R]) by (intros d Hd'; exact (Permutation_in d (Permutation_sym H) Hd')).
  destruct l as [|a [|b [|c [|d [|]]]]]; try discriminate Hl.
  pose proof all_found as E; cbv zeta in E.
  let use x := rewrite forallb_forall in E; specialize (E x ltac:(apply Hin; cbn; tauto)) in use a; use b; use c; use d.
  rewrite (nodup_fixed_point dir_eq_dec Hd) in E; cbn [length Nat.eqb implb] in E; unfold found in E.
  destruct (in_dec (list_eq_dec dir_eq_dec) [a; b; c; d] (map directions package)); [assumption | discriminate].
Qed.

(** * The theorems *)

Section Theorems.
  Variables (e : entry) (known : In e package).
  Variables (m : maze) (s : cell m).
  Hypotheses (is_source : kind_at m (proj1_sig s) = SOURCE)
    (only_one : forall x : cell m, kind_at m (proj1_sig x) = SOURCE -> x = s).

  Lemma of_package : exists o, is_order o (directions e) /\ solved o (grid m) s (fun t x => run (grid m) (its_rules e) t x PATH) /\
    (forall t x, agree (its_parts e) (net_run (grid m) (its_network e) t x) (run (grid m) (its_rules e) t x)) /\
    small (its_network e) (its_parts e) = true /\ pooling (its_network e) = 0%nat /\ nth_error (its_parts e) PATH = Some (Single 0).
  Proof.
    destruct (proj1 (Forall_forall _ _) package_checked e known) as (o & Ho & _ & Hp & Hsame & Hf & Hrest); exists o.
    split; [exact Ho|]; split; [|split; [|exact Hrest]].
    - apply automaton_solves; try assumption; apply (solvable_or_not o (grid m) (its_rules e) Hsame Hp (cells m)), cells_all.
    - intros t x; apply (network_follows (grid m) _ _ _ [facts o] Hf); [rewrite Hp; contradiction|].
      apply facts_known; try assumption; intros y z Hy Hz; rewrite (only_one y Hy), (only_one z Hz); reflexivity.
  Qed.

  (** The rules: PATH is on at the first shortest path from 2 L + 2 iterations on, before that nowhere else, and never
      where there is none. *)
  Theorem rules_solve : exists o, is_order o (directions e) /\
    solved o (grid m) s (fun t x => run (grid m) (its_rules e) t x PATH).
  Proof. destruct of_package as (o & Ho & Hs & _); eauto. Qed.

  (** The network: its first channel is 0 or 1, two halves, and does the same. *)
  Theorem network_solves : exists o, is_order o (directions e) /\
    solved o (grid m) s (fun t x => net_run (grid m) (its_network e) t x 0%nat =? 2) /\
    forall t x, net_run (grid m) (its_network e) t x 0%nat = 0 \/ net_run (grid m) (its_network e) t x 0%nat = 2.
  Proof.
    destruct of_package as (o & Ho & Hs & Hf & _ & _ & Hpath); exists o; split; [exact Ho|].
    assert (H : forall t x, net_run (grid m) (its_network e) t x 0%nat = on (run (grid m) (its_rules e) t x PATH))
      by (intros t x; exact (Hf t x PATH _ Hpath)).
    split; [|intros t x; rewrite H; destruct (run _ _ _ _ _); auto].
    assert (E : forall t x, (net_run (grid m) (its_network e) t x 0%nat =? 2) = run (grid m) (its_rules e) t x PATH)
      by (intros t x; rewrite H; destruct (run _ _ _ _ _); reflexivity).
    unfold solved in *; setoid_rewrite E; exact Hs.
  Qed.

  (** Rounding changes nothing: in float32, sums in any order, the numbers are those of exact arithmetic. *)
  Theorem network_exact round t v : exact_below round -> float_run round (grid m) (its_network e) t v ->
    forall x c, v x c = net_run (grid m) (its_network e) t x c.
  Proof.
    destruct of_package as (o & _ & _ & Hf & Hsmall & Hpool & _).
    exact (floats_exact (grid m) _ (its_parts e) Hsmall (fun h => False_ind _ (h Hpool)) (run (grid m) (its_rules e)) round t v Hf).
  Qed.

  (** The rules that heal. From a fresh start PATH is on at the first shortest path from 2 L + 3 iterations on, and never
      elsewhere. And let the kinds of tiles be others in every iteration, in any way but that there is one target at most,
      and no tile be more than F moves away. Then PATH is on nowhere else from [T + max 9 (F + 4)] on, and at all of the
      path from T + 2 L + 9 on: the maze has stayed as it is since T. *)
  Theorem healing_heals : exists o, is_order o (directions e) /\ let solved_from := solved_from o (grid m) s in
    ((forall x y : cell m, kind_at m (proj1_sig x) = TARGET -> kind_at m (proj1_sig y) = TARGET -> x = y) ->
      solved_from 0%nat (fun L => 2 * L + 3)%nat (fun t x => run (grid m) (its_healing e) t x PATH)) /\
    forall kinds T F, (forall t (x y : cell m), kinds t x = TARGET -> kinds t y = TARGET -> x = y) ->
      (forall t x, T <= t -> kinds t x = kind_at m (proj1_sig x))%nat -> (forall x moves, shortest o (grid m) x moves -> length moves <= F)%nat ->
      solved_from (T + max 9 (F + 4))%nat (fun L => T + (2 * L + 9))%nat (fun t x => run_through (grid m) kinds (its_healing e) t x PATH).
  Proof.
    destruct (proj1 (Forall_forall _ _) package_checked e known) as (o & Ho & Hh & Hp & Hsame & _); exists o; split; [exact Ho|].
    assert (Hpools : pools (grid m)) by (apply grid_pools; intro E; pose proof (cells_all m s) as H; rewrite E in H; exact H).
    assert (Hcolour : forall p x y, nb (grid m) (way o p) x = Some y ->
      let colour z := Z.odd (fst (proj1_sig z) + snd (proj1_sig z)) in colour y = negb (colour x)).
    { intros p x y H%cell_at_some; cbv beta zeta; rewrite H; destruct Hh as (_ & _ & Hp' & _); specialize (Hp' p); rewrite back_way in Hp'.
      destruct (proj1_sig x) as [row col], (way o p); try discriminate Hp';
        cbn [moved fst snd]; rewrite !Z.odd_add, ?Z.odd_sub; destruct (Z.odd row), (Z.odd col); reflexivity. }
    assert (Hsource : forall x, kind_of (grid m) x = SOURCE <-> x = s) by (intro x; split; [apply only_one | intros ->; exact is_source]).
    pose proof (solvable_or_not o (grid m) (its_rules e) Hsame Hp (cells m) s (cells_all m)) as Hsolvable.
    split; [apply (fresh_right o (grid m) (its_healing e) (its_rules e) Hsame Hp Hh Hpools _ s Hcolour Hsource Hsolvable)|].
    apply (changed_right o (grid m) (its_healing e) (its_rules e) Hsame Hp Hh Hpools _ s Hcolour Hsource Hsolvable).
  Qed.
End Theorems.

(** The network that learned the rules that heal: its first channel is 0 or 1, two halves, in float32 too, and does the same. *)
Theorem network_heals (m : maze) (s : cell m) : kind_at m (proj1_sig s) = SOURCE -> (forall x : cell m, kind_at m (proj1_sig x) = SOURCE -> x = s) ->
  exists o, is_order o [U; L; D; R] /\ forall kinds T F, (forall t (x y : cell m), kinds t x = TARGET -> kinds t y = TARGET -> x = y) ->
    (forall t x, T <= t -> kinds t x = kind_at m (proj1_sig x))%nat -> (forall x moves, shortest o (grid m) x moves -> length moves <= F)%nat ->
    (forall t x, kinds t x < 4)%nat -> let shown t x := net_through (grid m) kinds healing_network t x 0%nat in
    (forall round t v, exact_below round -> float_through round (grid m) kinds healing_network t v -> forall x, v x 0%nat = shown t x) /\
    solved_from o (grid m) s (T + max 9 (F + 4))%nat (fun L => T + (2 * L + 9))%nat (fun t x => shown t x =? 2) /\
    forall t x, shown t x = 0 \/ shown t x = 2.
Proof.
  intros Hs Hone; assert (Hin : exists e, In e package /\ directions e = [U; L; D; R] /\ its_healing e = healing_ULDR)
    by (eexists; split; [left; reflexivity | split; reflexivity]).
  destruct Hin as (e & Hin & Hd & Hr), (healing_heals e Hin m s Hs Hone) as (o & Ho & _ & H); rewrite Hd in Ho; rewrite Hr in H.
  exists o; split; [exact Ho|]; intros kinds T F H1 H2 H3 Hk; specialize (H kinds T F H1 H2 H3); destruct healing_checked as (Hc & Hb & Hf & Ha & Hsmall).
  assert (Hp : pools (grid m)) by (apply grid_pools; intro E; pose proof (cells_all m s) as Hin'; rewrite E in Hin'; exact Hin').
  assert (E : forall t x, net_through (grid m) kinds healing_network t x 0%nat = on (run_through (grid m) kinds healing_ULDR t x PATH)).
  { intros t x; exact (proj1 (follows_through (grid m) healing_network healing_parts healing_ULDR healing_taps healing_worlds kinds Hk Hp Hc Hb Hf Ha t) x PATH _ eq_refl). }
  split; [intros round t v Hround Hv x; exact (floats_through (grid m) healing_network healing_parts healing_ULDR healing_taps healing_worlds kinds Hk Hp Hc Hb Hf Ha Hsmall round t v Hround Hv x 0%nat)|].
  split; [|intros t x; rewrite E; destruct (run_through _ _ _ _ _); auto].
  assert (E' : forall t x, (net_through (grid m) kinds healing_network t x 0%nat =? 2) = run_through (grid m) kinds healing_ULDR t x PATH)
    by (intros t x; rewrite E; destruct (run_through _ _ _ _ _); reflexivity).
  unfold solved_from in *; setoid_rewrite E'; exact H.
Qed.

(** The bound is tight: on a corridor of three moves, 7 iterations do not show the target, 8 do. *)
Definition corridor : maze := Maze 1 4 (fun p => match snd p with 0 => SOURCE | 3 => TARGET | _ => EMPTY end).
Definition drawn (a : automaton) (m : maze) (t : nat) : list bool := map (fun x => run (grid m) a t x PATH) (cells m).
Theorem tight : map (fun e => (drawn (its_rules e) corridor 7, drawn (its_rules e) corridor 8)) package =
  repeat ([true; true; true; false], [true; true; true; true]) (length package).
Proof. vm_compute; reflexivity. Qed.

Print Assumptions every_order.
Print Assumptions rules_solve.
Print Assumptions network_solves.
Print Assumptions network_exact.
Print Assumptions healing_heals.
Print Assumptions network_heals.
Print Assumptions tight.
