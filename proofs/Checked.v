(** What is checked of each order of directions: its rules are those by hand, and its network
    follows them. *)
From Coq Require Import Btauto Permutation.
From MazeNCA Require Import Mazes Refute Network Floats ShortestPath Canonical Worlds Healing
  Changes Possible Package.
Import Statements.Package.
Local Open Scope Z_scope.

Definition back_in (l : list dir) (p : place) : place :=
  match find (fun q => dir_beq (way_in l q) (opp (way_in l p))) [First; Second;
    Third] with Some q => q | None => Last end.
Definition order_in (l : list dir) (h : forall p, way_in l (back_in l p) = opp (way_in l p)) : order
  :=
  Order (way_in l) (back_in l) h.

(** What is checked of an entry of the package. *)
Definition checked (e : entry) : Prop := exists o, is_order o (directions e) /\
  heals o (its_healing e) /\ pooled (its_rules e) = [] /\
  (forall g see tile, eval (rule (its_rules e) g) see tile = by_hand o see tile g) /\
  follows (its_network e) (its_parts e) (its_rules e) [facts o] = true /\
  small (its_network e) (its_parts e) = true /\ pooling (its_network e) = 0%nat /\
    nth_error (its_parts e) PATH = Some (Single 0).

Ltac check_healing := split; [reflexivity|]; split;
  [ intros [] [=]; first [exists First; reflexivity | exists Second; reflexivity | exists Third;
    reflexivity | exists Last; reflexivity]
  | split; [intros []; reflexivity|]; intros see tile; cbv beta delta [heals_by] zeta;
    repeat match goal with |- _ /\ _ => split | |- forall p : place, _ => intros [] end;
      cbv -[andb orb negb]; first [reflexivity | btauto] ].
Ltac check_entry :=
  match goal with |- checked (Entry ?l _ _ _ _) => exists (order_in l ltac:(intros [];
    reflexivity)) end;
  cbn [directions its_rules its_network its_parts its_healing]; split; [intro; reflexivity|]; split;
    [check_healing|]; split; [reflexivity|]; split;
  [ intros g see tile; do 9 (destruct g as [|g]; [cbv -[andb orb negb]; btauto|]); destruct g;
    reflexivity
  | do 2 (split; [vm_cast_no_check (eq_refl true)|]); split; reflexivity ].
Lemma package_checked : Forall checked package.
Proof. unfold package; repeat (apply Forall_cons; [check_entry|]); apply Forall_nil. Qed.

(** What is checked of the network that learned the rules that heal. *)
Lemma healing_checked : let n := Network.kinds healing_network in
  closed n healing_taps healing_ULDR [] healing_worlds = true /\ starts n healing_worlds = true /\
  follows healing_network healing_parts healing_ULDR (map (fun '(h, _) =>
    world_facts n healing_taps healing_ULDR [] h) healing_worlds) = true /\
  forallb (fun '(h, _) => same_of_all n h) healing_worlds = true /\
    small healing_network healing_parts = true.
Proof. do 4 (split; [vm_cast_no_check (eq_refl true)|]); vm_cast_no_check (eq_refl true). Qed.
