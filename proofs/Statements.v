(** Every definition that a person must read: worlds and automata, mazes, networks, float32, facts
    about mazes, and what each theorem claims. The other files have proofs alone. *)
From Coq Require Export ZArith Bool List Lia.
From Coq Require Import Eqdep_dec Permutation.
Export ListNotations.

(** * Worlds of tiles, and automata on them *)

Module World.
Inductive dir := U | L | D | R | UL | UR | DL | DR.
Definition opp (d : dir) : dir :=
  match d with U => D | L => R | D => U | R => L | UL => DR | UR => DL | DL => UR | DR => UL end.
(** The tiles that a rule may read: the tile itself and its neighbours. *)
Inductive tap := C | N (d : dir).

(** Kinds of tile and signals are numbers, as in the package. *)
Notation kind := nat (only parsing).
Notation EMPTY := 0%nat (only parsing). Notation WALL := 1%nat (only parsing).
Notation SOURCE := 2%nat (only parsing). Notation TARGET := 3%nat (only parsing).

(** A world: any graph in which a move can be taken back. It may have loops and double edges, and
    may be infinite. *)
Record world := World {
  node : Type;
  nb : dir -> node -> option node;
  kind_of : node -> kind;
  nb_opp : forall d x y, nb d x = Some y -> nb (opp d) y = Some x;
  (** The largest of the numbers of all tiles. Only pooled signals need it, and that it is that
      ([pools]). *)
  highest : (node -> Z) -> Z }.
Definition pools (w : world) : Prop :=
  forall f, (exists x, highest w f = f x) /\ forall x, (f x <= highest w f)%Z.

(** A rule: what is on at a tap, joined by and, or, not. *)
Inductive expr := See (g : nat) (t : tap) | Is (k : kind) (t : tap) | And (a b : expr) | Or
  (a b : expr) | Not (a : expr)
  | Never.
Fixpoint eval (e : expr) (see : tap -> nat -> bool) (tile : tap -> kind -> bool) : bool :=
  match e with
  | See g t => see t g
  | Is k t => tile t k
  | And a b => eval a see tile && eval b see tile
  | Or a b => eval a see tile || eval b see tile
  | Not a => negb (eval a see tile)
  | Never => false
  end.

(** At least n of some rules: item k says that more than k of those so far are true. *)
Fixpoint or_each (es fs : list expr) : list expr :=
  match es, fs with e :: es, f :: fs => Or e f :: or_each es fs | [], _ => fs | _, [] => es end.
Definition at_least (n : nat) (es : list expr) : expr :=
  nth (n - 1) (fold_left (fun found e => or_each found (e :: map (fun f => And f e) found)) es [])
    Never.

(** The rule of each signal, by its number. One that is [pooled] is on everywhere if its rule is on
    anywhere. *)
Record automaton := Automaton { rules : list expr; pooled : list nat }.
Definition rule (a : automaton) (g : nat) : expr := nth g (rules a) Never.
Definition is_pooled (a : automaton) (g : nat) : bool := existsb (Nat.eqb g) (pooled a).

Section Run.
  Context (w : world).
  Definition state := node w -> nat -> bool.
  Definition at_tap (t : tap) (x : node w) : option (node w) :=
    match t with C => Some x | N d => nb w d x end.
  (** Beyond the edge every signal is off, and a tile is of no kind. *)
  Definition see (s : state) (x : node w) (t : tap) (g : nat) : bool :=
    match at_tap t x with Some y => s y g | None => false end.
  Definition tile (x : node w) (t : tap) (k : kind) : bool :=
    match at_tap t x with Some y => Nat.eqb (kind_of w y) k | None => false end.
  Definition anywhere (f : node w -> bool) : bool :=
    (0 <? highest w (fun x => if f x then 1 else 0))%Z.
  Definition step (a : automaton) (s : state) : state := fun x g =>
    let next y := eval (rule a g) (see s y) (tile y) in if is_pooled a g then anywhere next
      else next x.

  (** All signals are off at first, and change at once. *)
  Fixpoint run (a : automaton) (t : nat) : state := match t with O => fun _ _ => false | S t =>
    step a (run a t) end.
End Run.
End World.
Export World.

(** * Mazes, and their first shortest solutions *)

Module Mazes.
(** An order of directions. A move is named after its place in it. *)
Inductive place := First | Second | Third | Last.
Record order := Order {
  way : place -> dir;
  back : place -> place;
  back_way : forall p, way (back p) = opp (way p) }.
Definition earlier (p : place) : list place :=
  match p with First => [] | Second => [First] | Third => [First; Second] | Last => [First; Second;
    Third] end.

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
  (** The order of words: of two that differ, that comes first which has the earlier move where they
      first do. *)
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
  (** What an automaton's first signal has to show, [L] being the number of moves of the first
      shortest solution. *)
  Definition solved (s : node w) (shown : nat -> node w -> bool) : Prop :=
    (exists moves, first_shortest s moves /\ (forall others, first_shortest s others ->
      others = moves) /\
      let L := length moves in
      forall t x, (shown t x = true -> visits s moves x) /\ (visits s moves x -> 2 * L + 2 <= t ->
        shown t x = true)) \/
    ((forall moves, ~ solution s moves) /\ forall t x, shown t x = false).
End Solutions.

(** ** Grids of any height and width, with or without a border of walls *)

Local Open Scope Z_scope.
(** Rows count from 0 downwards, columns from 0 to the right. *)
Record maze := Maze { height : Z; width : Z; kind_at : Z * Z -> kind }.
Definition inside (m : maze) (p : Z * Z) : bool :=
  (0 <=? fst p) && (fst p <? height m) && (0 <=? snd p) && (snd p <? width m).
Definition moved (d : dir) (p : Z * Z) : Z * Z :=
  let (row, col) := p in
  match d with
  | U => (row - 1, col) | L => (row, col - 1) | D => (row + 1, col) | R => (row, col + 1)
  | UL => (row - 1, col - 1) | UR => (row - 1, col + 1) | DL => (row + 1, col - 1) | DR =>
      (row + 1, col + 1)
  end.
(** A tile: a place on the maze. *)
Definition cell (m : maze) : Type := { p : Z * Z | inside m p = true }.
Definition cell_at (m : maze) (p : Z * Z) : option (cell m) :=
  match bool_dec (inside m p) true with left h => Some (exist _ p h) | right _ => None end.
Definition grid_nb (m : maze) (d : dir) (x : cell m) : option (cell m) :=
  cell_at m (moved d (proj1_sig x)).
(** All tiles, row by row. *)
Definition cells (m : maze) : list (cell m) :=
  let upto n := map Z.of_nat (seq 0 (Z.to_nat n)) in
  flat_map (fun p => match cell_at m p with Some x => [x] | None =>
    [] end) (list_prod (upto (height m)) (upto (width m))).
Definition grid_highest (m : maze) (f : cell m -> Z) : Z :=
  match map f (cells m) with [] => 0 | z :: rest => fold_right Z.max z rest end.

Lemma cell_at_some m p x : cell_at m p = Some x <-> proj1_sig x = p.
Proof.
  unfold cell_at; destruct x as [q hq]; cbn; destruct (bool_dec (inside m p) true) as [h|h]; split;
    intros [= <-]; try contradiction; [reflexivity|].
  rewrite (UIP_dec bool_dec h hq); reflexivity.
Qed.
Lemma moved_back d p : moved (opp d) (moved d p) = p.
Proof. destruct p, d; cbn; f_equal; lia. Qed.
Lemma grid_nb_opp m d x y : grid_nb m d x = Some y -> grid_nb m (opp d) y = Some x.
Proof. unfold grid_nb; rewrite !cell_at_some; intros ->; symmetry; apply moved_back. Qed.
Definition grid (m : maze) : world :=
  World (cell m) (grid_nb m) (fun x => kind_at m (proj1_sig x)) (grid_nb_opp m) (grid_highest m).
End Mazes.

(** * Networks with whole weights, in exact arithmetic *)

Module Network.
Local Open Scope Z_scope.
(** Its biases and its numbers count halves: 1 is two halves. *)

(** A weight, of an input at a tap. The inputs are the kinds of tile, then the channels. *)
Inductive weight := W (size : Z) (input : nat) (t : tap).
Record network := Network {
  kinds : nat;
  biases : list Z;
  (** The weights of each channel; those that are not listed are 0. *)
  weights : list (list weight);
  (** How many channels before the last become their maxima over all tiles. If any does, the last
      becomes that over all channels. *)
  pooling : nat }.
Definition channels (n : network) : nat := length (biases n).
Definition is_maximum (n : network) (c : nat) : bool := (channels n <=? S c + pooling n)%nat &&
  (S c <? channels n)%nat.
Definition is_largest (n : network) (c : nat) : bool := (0 <? pooling n)%nat &&
  (S c =? channels n)%nat.

Definition on (b : bool) : Z := if b then 2 else 0.

Section Network.
  Context (w : world) (n : network).
  Definition net_state := node w -> nat -> Z.
  (** What a tile adds to the sums of its neighbours: 1 for its kind, and its channels; beyond the
      edge 0. *)
  Definition value (v : net_state) (x : node w) (input : nat) (t : tap) : Z :=
    match at_tap w t x with
    | None => 0
    | Some y => if (input <? kinds n)%nat then on (Nat.eqb (kind_of w y) input) else v y
        (input - kinds n)%nat
    end.
  Fixpoint dot (ws : list weight) (v : nat -> tap -> Z) : Z :=
    match ws with [] => 0 | W z input t :: rest => z * v input t + dot rest v end.
  Definition weights_of (c : nat) : list weight := nth c (weights n) [].
  Definition net_sum (v : net_state) (x : node w) (c : nat) : Z :=
    nth c (biases n) 0 + dot (weights_of c) (value v x).
  Definition largest (numbers : list Z) : Z := fold_right Z.max 0 numbers.
  (** The state that follows from the sums of all tiles: no number below 0, and the maxima. *)
  Definition net_step (sums : node w -> nat -> Z) : net_state := fun x c =>
    let next y c := Z.max 0 (sums y c) in
    if is_maximum n c then highest w (fun y => next y c)
    else if is_largest n c then largest (map (next x) (seq 0 (channels n)))
    else next x c.
  Fixpoint net_run (t : nat) : net_state := match t with O => fun _ _ => 0 | S t =>
    net_step (net_sum (net_run t)) end.
End Network.

(** What its channels mean: a signal is one channel, 1 or 0, or the difference of two *)

Inductive part := Single (c : nat) | Pair (low high : nat).
Definition shows (p : part) (v : nat -> Z) (b : bool) : Prop :=
  match p with Single c => v c = on b | Pair low high => v low - v high = on b end.
(** The channels show the signals: the first part the first signal, and so on. *)
Definition agree (parts : list part) (v : nat -> Z) (s : nat -> bool) : Prop :=
  forall g p, nth_error parts g = Some p -> shows p v (s g).
(** What an expression says of a tile that holds some signals and is of a kind. *)
Definition says (e : expr) (s : nat -> bool) (k : nat -> bool) : bool :=
  eval e (fun _ => s) (fun _ => k).
End Network.

(** * Rounded arithmetic *)

Module Floats.
Import Network.
Local Open Scope Z_scope.
(** float32 has all halves of whole numbers up to 2 ^ 24, so rounding leaves them alone, whatever
    its mode. *)
Definition exact_below (round : Z -> Z) : Prop := forall z, Z.abs z <= 2 ^ 24 -> round z = z.
(** The sum of some terms, added in any order, each time rounded. *)
Inductive adds (round : Z -> Z) : list Z -> Z -> Prop :=
| adds_none : adds round [] 0
| adds_one z : adds round [z] z
| adds_both a b l x y : Permutation l (a ++ b) -> adds round a x -> adds round b y ->
    adds round l (round (x + y)).
Section Floats.
  Context (round : Z -> Z) (w : world) (n : network).
  (** The terms of a sum: each weight times what it reads, rounded, the bias, and the zeros of the
      weights that are 0. *)
  Definition terms (v : net_state w) (x : node w) (c zeros : nat) : list Z :=
    nth c (biases n) 0 :: map (fun '(W z i t) => round (z * value w n v x i t))
      (weights_of n c) ++ repeat 0 zeros.
  Inductive float_run : nat -> net_state w -> Prop :=
  | float_first v : (forall x c, v x c = 0) -> float_run 0 v
  | float_next t v v' sums zeros : float_run t v ->
      (forall x c, adds round (terms v x c zeros) (sums x c)) ->
      (forall x c, v' x c = net_step w n sums x c) -> float_run (S t) v'.
End Floats.
End Floats.

(** * Mazes that change *)

Module Changes.
Import Mazes Network Floats.
(** The same tiles, of other kinds. *)
Definition with_kinds (w : world) (k : node w -> kind) : world := World (node w) (nb w) k (nb_opp w)
  (highest w).
(** A run from all signals off, in which tiles may be of other kinds in each iteration. *)
Fixpoint run_through (w : world) (kinds : nat -> node w -> kind) (a : automaton)
  (t : nat) : state w :=
  match t with O => fun _ _ => false | S t => step (with_kinds w (kinds t)) a
    (run_through w kinds a t) end.
(** What is shown is the first shortest solution, or nothing where there is none: nothing else from
    iteration [since] on, and all of it from an iteration on that depends on its number of moves. *)
Definition solved_from (o : order) (w : world) (s : node w) (since : nat) (due : nat ->
  nat) (shown : nat -> node w -> bool) : Prop :=
  (exists moves, first_shortest o w s moves /\ (forall others, first_shortest o w s others ->
    others = moves) /\ forall t x,
    (since <= t -> shown t x = true -> visits o w s moves x) /\ (due (length moves) <= t ->
      visits o w s moves x -> shown t x = true)) \/
  ((forall moves, ~ solution o w s moves) /\ forall t x, since <= t -> shown t x = false).
Local Open Scope Z_scope.
(** The network's run: in each iteration tiles may be of other kinds. *)
Fixpoint net_through (w : world) (kinds : nat -> node w -> kind) (n : network)
  (t : nat) : net_state w :=
  match t with O => fun _ _ => 0 | S t => let w' := with_kinds w (kinds t) in net_step w' n
    (net_sum w' n (net_through w kinds n t)) end.

(** And in rounded arithmetic. *)
Inductive float_through (round : Z -> Z) (w : world) (kinds : nat -> node w ->
  kind) (n : network) : nat -> net_state w -> Prop :=
| through_first v : (forall x c, v x c = 0) -> float_through round w kinds n 0 v
| through_next t v v' sums zeros : float_through round w kinds n t v ->
    (forall x c, v' x c = net_step (with_kinds w (kinds t)) n sums x c) ->
    (forall x c, adds round (terms round (with_kinds w (kinds t)) n v x c zeros) (sums x c)) ->
      float_through round w kinds n (S t) v'.
End Changes.

(** * Facts about a maze *)

Module Facts.
Local Open Scope Z_scope.
(** Places are (row, column), and so are offsets. *)
Definition spot : Type := Z * Z.
Definition plus (p q : spot) : spot := (fst p + fst q, snd p + snd q).
Definition offset (t : tap) : spot :=
  match t with
  | C => (0, 0) | N U => (-1, 0) | N L => (0, -1) | N D => (1, 0) | N R => (0, 1)
  | N UL => (-1, -1) | N UR => (-1, 1) | N DL => (1, -1) | N DR => (1, 1)
  end.
(** A number: which, and where. KIND is the kind of a tile, -1 beyond the edge; TIME the number of
    iterations. Below 0 are those of the whole map. *)
Definition var : Type := Z * spot.
Notation KIND := 0 (only parsing). Notation TIME := (-1) (only parsing).
Record lin := Lin { constant : Z; terms : list (Z * var) }.
(** [Below l]: the sum l is at most 0. [Truth n p]: a boolean of the tile at p. Below 0 is what
    changes: where -1 - n is 100 g, signal g; where it is 100 g + 1, what ghost g will be after the
    next iteration, where it is 100 g + 2, what it is after this one, and so on. *)
Inductive fact := Truth (n : Z) (p : spot) | Below (l : lin) | Always (b : bool) | Both
  (f g : fact) | Either (f g : fact)
  | No (f : fact).
Definition inside_at : fact := No (Below (Lin 1 [(1, (KIND, (0, 0)))])).
Section Meaning.
  Variables (truth : Z -> spot -> bool) (number : Z -> spot -> Z).
  Fixpoint sum (p : spot) (ts : list (Z * var)) : Z :=
    match ts with [] => 0 | (z, (n, q)) :: rest => z * number n (plus p q) + sum p rest end.
  Definition amount (p : spot) (l : lin) : Z := constant l + sum p (terms l).
  Fixpoint says (p : spot) (f : fact) : bool :=
    match f with
    | Truth n q => truth n (plus p q)
    | Below l => amount p l <=? 0
    | Always b => b
    | Both f g => says p f && says p g
    | Either f g => says p f || says p g
    | No f => negb (says p f)
    end.
End Meaning.
End Facts.

(** * Fixed points, round by round *)

Module Fixpoints.
(** The first number from which a boolean is true on, if it is at n. *)
Fixpoint first_on (f : nat -> bool) (n : nat) : nat :=
  match n with O => O | S m => if f m then first_on f m else n end.
Section Fixpoints.
  (** What is on at a tile, by number, and what a round switches on of some numbers, from what is on
      before. *)
  Context {tile : Type} (tiles : list tile) (names : list nat) (round : (tile -> nat -> bool) ->
    tile -> nat -> bool).
  Definition within (s s' : tile -> nat -> bool) : Prop := forall x g, s x g = true ->
    s' x g = true.
  Fixpoint after (t : nat) : tile -> nat -> bool := match t with O => fun _ _ => false | S t =>
    round (after t) end.
  Definition pairs := list_prod tiles names.
  Definition rounds : nat := length pairs.
  (** What comes on, and the round in which it does, from 0; -1 if it never does. *)
  Definition fixed (x : tile) (g : nat) : bool := after rounds x g.
  Definition stage (x : tile) (g : nat) : Z :=
    if fixed x g then (Z.of_nat (first_on (fun t => after t x g) rounds) - 1)%Z else (-1)%Z.
End Fixpoints.
End Fixpoints.

(** * What is said of the signals of an automaton *)

Module Characterised.
Import Mazes Facts Fixpoints.
Local Open Scope Z_scope.
Notation N_TILES := (-2) (only parsing). Notation SPREAD := (-3) (only parsing).
(** A relation on tiles, which comes on round by round: where its rule is true of what is on already
    or, if it is [for_all], everywhere as soon as its rule is true anywhere. The rounds of a layer
    begin when those of the layers before are over, and its rules may read the stages of these. *)
Record relation := Relation { layer : nat; for_all : bool; cause : fact }.
(** An automaton, what is said of it, and the relations and the game in terms of which that is said.
    A number of the whole map is the stage of a relation at the first tile, perhaps at the first of
    a kind; no maze has two tiles of a kind in [once]. The numbers after these are the rounds of a
    layer in [resting]. Of a pooled signal, the number of the map whose relation a tile shows why to
    come on: it also shows why the signal does; or the number of the rounds of a layer, in one of
    which a tile where something comes on shows it. *)
Record statement := Statement {
  of_rules : automaton;
  relations : list relation;
  of_map : list (nat * option kind);
  once : list kind;
  begins : list expr;
  follows : list expr;
  n_kinds : nat;
  said : list (option fact);
  answers : list (nat * (fact * lin));
  witnesses : list (nat * nat);
  resting : list nat;
  changes : list (nat * (nat * lin)) }.
(** The mazes that it is about: of kinds that it knows, with a tile at least, and with no two tiles
    of a kind in [once]. *)
Definition about (th : statement) (m : maze) : Prop :=
  (forall x : cell m, (kind_at m (proj1_sig x) < n_kinds th)%nat) /\ cells m <> [] /\
  forall k, In k (once th) -> forall x y : cell m, kind_at m (proj1_sig x) = k ->
    kind_at m (proj1_sig y) = k -> x = y.
(** A game: it begins with what tiles show of their kinds, and goes on by rules of what was an
    iteration before. *)
Fixpoint played (w : world) (th : statement) (t : nat) : state w :=
  match t with
  | O => fun x g => eval (nth g (begins th) Never) (fun _ _ => false) (tile w x)
  | S t => step w (Automaton (follows th) []) (played w th t)
  end.
Section Relations.
  Context (rs : list relation) (m : maze).
  Definition on_spot (f : cell m -> bool) (p : spot) : bool := match cell_at m p with Some x =>
    f x | None => false end.
  Definition number_on (f : cell m -> Z) (p : spot) : Z := match cell_at m p with Some x =>
    f x | None => -1 end.
  Definition relation_of (g : nat) : relation := nth g rs (Relation 0 false (Always false)).
  Definition in_layer (i g : nat) : bool := Nat.eqb (layer (relation_of g)) i.
  Definition layer_names (i : nat) : list nat := filter (in_layer i) (seq 0 (length rs)).
  (** Numbers are kinds of tile and, from 1, [stages]: the rounds, from 0, in which tiles come on,
      -1 where they never do. *)
  Definition number_by (stages : nat -> cell m -> Z) (n : Z) : spot -> Z :=
    number_on (if n =? KIND then fun x => Z.of_nat (kind_at m (proj1_sig x)) else stages
      (Z.to_nat (n - 1))).
  (** Whether the rule of a relation is true at a tile: of its layer [s] is on, of those before what
      has a stage. *)
  Definition causes (stages : nat -> cell m -> Z) (s : cell m -> nat -> bool) (x : cell m)
    (g : nat) : bool :=
    says (fun n => let h := Z.to_nat n in on_spot (fun y => if in_layer (layer (relation_of g)) h
      then s y h else 0 <=? stages h y))
      (number_by stages) (proj1_sig x) (cause (relation_of g)).
  Definition round (i : nat) (stages : nat -> cell m -> Z) (s : cell m -> nat -> bool) (x : cell m)
    (g : nat) : bool :=
    in_layer i g && if for_all (relation_of g) then existsb (fun y => causes stages s y g) (cells m)
      else causes stages s x g.
  Fixpoint stages_before (i : nat) (g : nat) (x : cell m) : Z :=
    match i with
    | O => -1
    | S i => if in_layer i g then stage (cells m) (layer_names i) (round i (stages_before i)) x g
        else stages_before i g x
    end.
  Definition stage_of (g : nat) : cell m -> Z := stages_before (S (layer (relation_of g))) g.
  (** What the rounds of a layer switch on. *)
  Definition layer_round (i : nat) := round i (stages_before i).
  (** Rules that negate no relation of their layer. *)
  Fixpoint positive (i : nat) (b : bool) (f : fact) : bool :=
    match f with
    | Truth n _ => b || negb (in_layer i (Z.to_nat n))
    | Below _ | Always _ => true
    | Both f g | Either f g => positive i b f && positive i b g
    | No f => positive i (negb b) f
    end.
  Definition negates_nothing (i : nat) : bool := forallb (fun r => negb (Nat.eqb (layer r) i) ||
    positive i true (cause r)) rs.
End Relations.
Section Ghosts.
  Context (th : statement) (m : maze) (t : nat).
  Definition n_on : nat := length (filter (fun x => 0 <=? stage_of (relations th) m 0 x) (cells m)).
  (** The number of rounds of a layer in which something comes on. *)
  Definition rounds_of (i : nat) : Z :=
    fold_right Z.max 0 (map (fun '(x, g) => stage_of (relations th) m g x + 1)
      (list_prod (cells m) (layer_names (relations th) i))).
  Definition of_kind (k : option kind) (x : cell m) : bool := match k with Some k =>
    Nat.eqb (kind_at m (proj1_sig x)) k | None => true end.
  Definition number_of_map (i : nat) : Z :=
    match nth_error (of_map th) i with
    | Some (h, k) => match find (of_kind k) (cells m) with Some x =>
        stage_of (relations th) m h x | None => -1 end
    | None => match nth_error (resting th) (i - length (of_map th)) with Some l => rounds_of l
      | None => -1 end
    end.
  Definition number (n : Z) (p : spot) : Z :=
    if n =? TIME then Z.of_nat t
    else if n =? N_TILES then Z.of_nat (length (cells m))
    else if n =? SPREAD then Z.max (Z.of_nat n_on - 1) 0
    else if n <? 0 then number_of_map (Z.to_nat (-4 - n))
    else number_by m (stage_of (relations th) m) n p.
  (** Below 0 are the signals that tiles hold, and what of a game was, then come the relations. *)
  Definition truth (n : Z) (p : spot) : bool :=
    if n <? 0 then let g := Z.to_nat ((-1 - n) / 100) in let ago := (-1 - n) mod 100 in
      on_spot m (fun x => if ago =? 0 then run (grid m) (of_rules th) t x g else played (grid m) th
        (t + 2 - Z.to_nat ago) x g) p
    else on_spot m (fun x => 0 <=? stage_of (relations th) m (Z.to_nat n) x) p.
  Definition true_at (p : spot) (f : fact) : bool := says truth number p f.
End Ghosts.
End Characterised.

(** * What is printed of the package *)

Module Package.
Import Mazes Network.
Notation PATH := 0%nat (only parsing).
(** The rules of the canonical shortest path in one order of directions, a network that follows
    them, the channels of its signals, and the rules that heal. *)
Record entry := Entry {
  directions : list dir;
  its_rules : automaton;
  its_network : network;
  its_parts : list part;
  its_healing : automaton }.
(** An order of directions, as a list. *)
Definition way_in (l : list dir) (p : place) : dir := nth match p with First => 0 | Second =>
  1 | Third => 2 | Last => 3 end l U.
Definition is_order (o : order) (l : list dir) : Prop := forall p, way o p = way_in l p.
(** A corridor of three moves, and which of its tiles PATH is on at. *)
Local Open Scope Z_scope.
Definition corridor : maze := Maze 1 4 (fun p => match snd p with 0 => SOURCE | 3 => TARGET | _ =>
  EMPTY end).
Definition drawn (a : automaton) (m : maze) (t : nat) : list bool :=
  map (fun x => run (grid m) a t x PATH) (cells m).
End Package.

(** * What the theorems claim: each is proven of the printed rules, networks and statements *)

(** ** The canonical shortest path *)

Module Main.
Import Mazes Network Floats Changes Package.
Local Open Scope Z_scope.
(** All 24 orders of directions are among what is printed. *)
Definition every_order (package : list entry) : Prop := forall l, Permutation [U; L; D;
  R] l -> In l (map directions package).
Section Claims.
  Context (package : list entry).
  (** What is claimed of every entry, on every maze with one source. *)
  Definition of_each (claim : entry -> forall m : maze, cell m -> Prop) : Prop :=
    forall e, In e package ->
    forall (m : maze) (s : cell m), kind_at m (proj1_sig s) = SOURCE ->
      (forall x : cell m, kind_at m (proj1_sig x) = SOURCE -> x = s) -> claim e m s.
  (** The rules: PATH is on at the first shortest path from 2 L + 2 iterations on, before that
      nowhere else, and never where there is none. *)
  Definition rules_solve : Prop := of_each (fun e m s => exists o, is_order o (directions e) /\
    solved o (grid m) s (fun t x => run (grid m) (its_rules e) t x PATH)).
  (** The network: its first channel is 0 or 1, two halves, and does the same. *)
  Definition network_solves : Prop := of_each (fun e m s => exists o, is_order o (directions e) /\
    solved o (grid m) s (fun t x => net_run (grid m) (its_network e) t x 0%nat =? 2) /\
    forall t x, net_run (grid m) (its_network e) t x 0%nat = 0 \/
      net_run (grid m) (its_network e) t x 0%nat = 2).
  (** Rounding changes nothing: in float32, sums in any order, the numbers are those of exact
      arithmetic. *)
  Definition network_exact : Prop := of_each (fun e m s => forall round t v, exact_below round ->
    float_run round (grid m) (its_network e) t v -> forall x c, v x c = net_run (grid m)
      (its_network e) t x c).
  (** The rules that heal. From a fresh start PATH is on at the first shortest path from 2 L + 3
      iterations on, and never elsewhere. And let the kinds of tiles be others in every iteration,
      in any way but that there is one target at most, and no tile be more than F moves away. Then
      PATH is on nowhere else from [T + max 9 (F + 4)] on, and at all of the path from T + 2 L + 9
      on: the maze has stayed as it is since T. *)
  Definition healing_heals : Prop := of_each (fun e m s => exists o, is_order o (directions e) /\
    let solved_from := solved_from o (grid m) s in
    ((forall x y : cell m, kind_at m (proj1_sig x) = TARGET -> kind_at m (proj1_sig y) = TARGET ->
      x = y) ->
      solved_from 0%nat (fun L => 2 * L + 3)%nat (fun t x => run (grid m) (its_healing e) t x PATH))
        /\
    forall kinds T F, (forall t (x y : cell m), kinds t x = TARGET -> kinds t y = TARGET ->
      x = y) ->
      (forall t x, T <= t -> kinds t x = kind_at m (proj1_sig x))%nat ->
      (forall x moves, shortest o (grid m) x moves -> length moves <= F)%nat ->
      solved_from (T + max 9 (F + 4))%nat (fun L => T + (2 * L + 9))%nat
        (fun t x => run_through (grid m) kinds (its_healing e) t x PATH)).
  (** The bound is tight: on a corridor of three moves, 7 iterations do not show the target, 8 do.
      *)
  Definition tight : Prop :=
    map (fun e => (drawn (its_rules e) corridor 7, drawn (its_rules e) corridor 8)) package =
    repeat ([true; true; true; false], [true; true; true; true]) (length package).
End Claims.
(** The network that learned the rules that heal: its first channel is 0 or 1, two halves, in
    float32 too, and does the same. *)
Definition network_heals (n : network) : Prop :=
  forall (m : maze) (s : cell m), kind_at m (proj1_sig s) = SOURCE ->
    (forall x : cell m, kind_at m (proj1_sig x) = SOURCE -> x = s) -> exists o, is_order o [U; L; D;
      R] /\
  forall kinds T F, (forall t (x y : cell m), kinds t x = TARGET -> kinds t y = TARGET -> x = y) ->
    (forall t x, T <= t -> kinds t x = kind_at m (proj1_sig x))%nat ->
    (forall x moves, shortest o (grid m) x moves -> length moves <= F)%nat ->
    (forall t x, kinds t x < 4)%nat -> let shown t x := net_through (grid m) kinds n t x 0%nat in
    (forall round t v, exact_below round -> float_through round (grid m) kinds n t v ->
      forall x, v x 0%nat = shown t x) /\
    solved_from o (grid m) s (T + max 9 (F + 4))%nat (fun L => T + (2 * L + 9))%nat (fun t x =>
      shown t x =? 2) /\
    forall t x, shown t x = 0 \/ shown t x = 2.
End Main.

(** ** A network and the rules that it follows *)

Module Equivalent.
Import Network Floats.
Section Claims.
  Context (n : network) (parts : list part) (a : automaton) (given : list expr).
  (** What is claimed on every world with the network's kinds of tile. [given] is supposed of the
      automaton: nothing, where it is empty. *)
  Definition on_worlds (claim : world -> Prop) : Prop := forall w : world,
    (forall x, kind_of w x < kinds n) ->
    (pooled a <> [] \/ pooling n <> 0 -> pools w) ->
    (forall t y, Forall (fun e => says e (run w a t y) (Nat.eqb (kind_of w y)) = true) given) ->
      claim w.
  (** Each channel or pair of channels shows its signal, 1 or 0. *)
  Definition network_does_the_same : Prop :=
    on_worlds (fun w => forall t x, agree parts (net_run w n t x) (run w a t x)).
  (** So it does in float32, with sums in any order. *)
  Definition network_exact : Prop := on_worlds (fun w => forall round t v, exact_below round ->
    float_run round w n t v ->
    forall x c, v x c = net_run w n t x c).
End Claims.
End Equivalent.

(** ** The theorem of an automaton *)

Module Proven.
Import Mazes Facts Fixpoints Characterised.
Section Claims.
  Context (th : statement).
  (** After t iterations each signal is what is said of it, and so what the statement does not speak
      of aside. *)
  Definition signals_are : Prop := forall m, about th m -> forall t g f x,
    nth g (said th) None = Some f ->
    run (grid m) (of_rules th) t x g = true_at th m t (proj1_sig x) f.
  (** An answer never shows more than is wanted, and all of it once as many iterations are over as
      the statement has. *)
  Definition answers_are : Prop := forall m, about th m -> forall t g wanted due x,
    In (g, (wanted, due)) (answers th) ->
    (run (grid m) (of_rules th) (S t) x g = true -> true_at th m t (proj1_sig x) wanted = true) /\
    ((amount (number th m t) (proj1_sig x) due <= Z.of_nat (S t))%Z ->
      run (grid m) (of_rules th) (S t) x g = true_at th m t (proj1_sig x) wanted).
  Definition its_round (m : maze) (g : nat) :=
    layer_round (relations th) m (layer (relation_of (relations th) g)).
  (** The relations in terms of which this is said are the least that the rules of their layer are
      satisfied by, if these negate none of that layer. *)
  Definition relations_are_least : Prop := forall (m : maze) (x : cell m) g,
    negates_nothing (relations th) (layer (relation_of (relations th) g)) = true ->
    (0 <= stage_of (relations th) m g x)%Z <-> forall s, within (its_round m g s) s -> s x g = true.
  (** The stage of a tile is the number of rounds of the layer before that in which it comes on. *)
  Definition stages_are_rounds : Prop := forall (m : maze) t (x : cell m) g,
    after (its_round m g) t x g =
    ((0 <=? stage_of (relations th) m g x)%Z && (stage_of (relations th) m g x <? Z.of_nat t)%Z).
End Claims.
End Proven.

(** ** The theorem of an automaton and of its network together *)

Module Joined.
Import Mazes Network Floats Facts Characterised.
Section Claims.
  Context (th : statement) (n : network) (parts : list part) (joins : list (list nat)) (pace : nat).
  (** The channel of a signal that is one channel. *)
  Definition channel_of (g : nat) : option nat :=
    match nth g joins [] with
    | [k] => match nth_error parts k with Some (Single c) => Some c | _ => None end
    | _ => None
    end.
  (** The numbers of a signal that is one channel are what is said of the signal, by 0 or two
      halves, [pace] iterations for each of the rules. *)
  Definition network_signals : Prop := forall m, about th m -> forall round t v x g f c,
    exact_below round ->
    float_run round (grid m) n t v -> nth g (said th) None = Some f -> channel_of g = Some c ->
    v x c = if true_at th m (t / pace) (proj1_sig x) f then 2%Z else 0%Z.
  (** Those of an answer show nothing else than what is wanted, and all of it once so many
      iterations are over as the statement has, [pace] times. *)
  Definition network_answers : Prop := forall m, about th m -> forall g wanted due,
    In (g, (wanted, due)) (answers th) -> exists c, channel_of g = Some c /\
    forall round u v x, exact_below round -> float_run round (grid m) n u v ->
    (v x c = 0 \/ v x c = 2)%Z /\
    (v x c = 2%Z -> exists t, u / pace = S t /\ true_at th m t (proj1_sig x) wanted = true) /\
    forall t, u / pace = S t -> (amount (number th m t) (proj1_sig x) due <= Z.of_nat (S t))%Z ->
      v x c = if true_at th m t (proj1_sig x) wanted then 2%Z else 0%Z.
End Claims.
End Joined.
