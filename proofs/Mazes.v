(** Mazes, their canonical shortest solutions, and what is to be shown of them: the rest of what a person has to read. *)
From Coq Require Import Eqdep_dec.
Require Export World.

(** An order of directions. A move is named after its place in it. *)
Inductive place := First | Second | Third | Last.
Record order := Order {
  way : place -> dir;
  back : place -> place;
  back_way : forall p, way (back p) = opp (way p) }.
Definition earlier (p : place) : list place :=
  match p with First => [] | Second => [First] | Third => [First; Second] | Last => [First; Second; Third] end.

Section Solutions.
  Context (o : order) (w : world).
  (** Where a list of moves leads; no move leads away from a wall. *)
  Fixpoint follow (moves : list place) (x : node w) : option (node w) :=
    match moves with
    | [] => Some x
    | p :: moves => if Nat.eqb (kind_of w x) WALL then None else
        match nb w (way o p) x with Some y => follow moves y | None => None end
    end.
  Definition solution (s : node w) (moves : list place) : Prop :=
    exists x, follow moves s = Some x /\ kind_of w x = TARGET.
  Definition shortest (s : node w) (moves : list place) : Prop :=
    solution s moves /\ forall others, solution s others -> length moves <= length others.
  (** The order of words: of two that differ, that comes first which has the earlier move where they first do. *)
  Fixpoint word_le (a b : list place) : Prop :=
    match a, b with
    | [], _ => True
    | p :: a, q :: b => In p (earlier q) \/ (p = q /\ word_le a b)
    | _ :: _, [] => False
    end.
  Definition first_shortest (s : node w) (moves : list place) : Prop :=
    shortest s moves /\ forall others, shortest s others -> word_le moves others.
  (** A tile of the path: where the first so many moves lead. *)
  Definition visits (s : node w) (moves : list place) (x : node w) : Prop :=
    exists k, follow (firstn k moves) s = Some x.
  (** What an automaton's first signal has to show, [L] being the number of moves of the first shortest solution. *)
  Definition solved (s : node w) (shown : nat -> node w -> bool) : Prop :=
    (exists moves, first_shortest s moves /\ (forall others, first_shortest s others -> others = moves) /\
      let L := length moves in
      forall t x, (shown t x = true -> visits s moves x) /\ (visits s moves x -> 2 * L + 2 <= t -> shown t x = true)) \/
    ((forall moves, ~ solution s moves) /\ forall t x, shown t x = false).
End Solutions.

(** * Grids of any height and width, with or without a border of walls *)

Local Open Scope Z_scope.
(** Rows count from 0 downwards, columns from 0 to the right. *)
Record maze := Maze { height : Z; width : Z; kind_at : Z * Z -> kind }.
Definition inside (m : maze) (p : Z * Z) : bool :=
  (0 <=? fst p) && (fst p <? height m) && (0 <=? snd p) && (snd p <? width m).
Definition moved (d : dir) (p : Z * Z) : Z * Z :=
  let (row, col) := p in
  match d with
  | U => (row - 1, col) | L => (row, col - 1) | D => (row + 1, col) | R => (row, col + 1)
  | UL => (row - 1, col - 1) | UR => (row - 1, col + 1) | DL => (row + 1, col - 1) | DR => (row + 1, col + 1)
  end.
(** A tile: a place on the maze. *)
Definition cell (m : maze) : Type := { p : Z * Z | inside m p = true }.
Definition cell_at (m : maze) (p : Z * Z) : option (cell m) :=
  match bool_dec (inside m p) true with left h => Some (exist _ p h) | right _ => None end.
Definition grid_nb (m : maze) (d : dir) (x : cell m) : option (cell m) := cell_at m (moved d (proj1_sig x)).
(** All tiles, row by row. *)
Definition cells (m : maze) : list (cell m) :=
  let upto n := map Z.of_nat (seq 0 (Z.to_nat n)) in
  flat_map (fun p => match cell_at m p with Some x => [x] | None => [] end) (list_prod (upto (height m)) (upto (width m))).
Definition grid_highest (m : maze) (f : cell m -> Z) : Z :=
  match map f (cells m) with [] => 0 | z :: rest => fold_right Z.max z rest end.

Lemma cell_at_some m p x : cell_at m p = Some x <-> proj1_sig x = p.
Proof.
  unfold cell_at; destruct x as [q hq]; cbn; destruct (bool_dec (inside m p) true) as [h|h]; split; intros [= <-]; try contradiction; [reflexivity|].
  rewrite (UIP_dec bool_dec h hq); reflexivity.
Qed.
Lemma cell_at_own m x : cell_at m (proj1_sig x) = Some x.
Proof. apply cell_at_some; reflexivity. Qed.
Lemma moved_back d p : moved (opp d) (moved d p) = p.
Proof. destruct p, d; cbn; f_equal; lia. Qed.
Lemma grid_nb_opp m d x y : grid_nb m d x = Some y -> grid_nb m (opp d) y = Some x.
Proof. unfold grid_nb; rewrite !cell_at_some; intros ->; symmetry; apply moved_back. Qed.
Definition grid (m : maze) : world :=
  World (cell m) (grid_nb m) (fun x => kind_at m (proj1_sig x)) (grid_nb_opp m) (grid_highest m).

Lemma cells_all m x : In x (cells m).
Proof.
  unfold cells; apply in_flat_map; exists (proj1_sig x); split.
  - destruct x as [[row col] h]; cbn; unfold inside in h; cbn in h; rewrite !andb_true_iff in h.
    apply in_prod; apply in_map_iff; [exists (Z.to_nat row) | exists (Z.to_nat col)]; rewrite in_seq; lia.
  - rewrite cell_at_own; left; reflexivity.
Qed.
Lemma grid_pools m : cells m <> [] -> pools (grid m).
Proof.
  intros Hm f; cbn; unfold grid_highest; pose proof (cells_all m) as H; destruct (cells m) as [|x rest]; [contradiction|]; cbn [map].
  set (top := fold_right Z.max (f x) (map f rest)).
  enough (In top (map f (x :: rest)) /\ forall z, In z (map f (x :: rest)) -> z <= top) as [(y & Hy & _)%in_map_iff Hle]
    by (split; [eauto | intro z; apply Hle, in_map, H]).
  clear H Hm; subst top; induction rest as [|y rest [IH Hle]]; cbn [map fold_right] in *; [split; [left; reflexivity | intros z [<-|[]]; lia]|].
  split; [destruct (Z.max_spec (f y) (fold_right Z.max (f x) (map f rest))) as [[_ ->]|[_ ->]]; cbn in *; tauto|].
  intros z [E|[E|E]]; [specialize (Hle z (or_introl E)) | | specialize (Hle z (or_intror E))]; lia.
Qed.
