(** Worlds of tiles, and automata on them: what a person has to read first. *)
From Coq Require Export ZArith Bool List Lia.
Export ListNotations.

Inductive dir := U | L | D | R | UL | UR | DL | DR.
Definition opp (d : dir) : dir :=
  match d with U => D | L => R | D => U | R => L | UL => DR | UR => DL | DL => UR | DR => UL end.
(** The tiles that a rule may read: the tile itself and its neighbours. *)
Inductive tap := C | N (d : dir).

(** Kinds of tile and signals are numbers, as in the package. *)
Notation kind := nat (only parsing).
Notation EMPTY := 0%nat (only parsing). Notation WALL := 1%nat (only parsing).
Notation SOURCE := 2%nat (only parsing). Notation TARGET := 3%nat (only parsing).

(** A world: any graph in which a move can be taken back. It may have loops and double edges, and may be infinite. *)
Record world := World {
  node : Type;
  nb : dir -> node -> option node;
  kind_of : node -> kind;
  nb_opp : forall d x y, nb d x = Some y -> nb (opp d) y = Some x;
  (** The largest of the numbers of all tiles. Only pooled signals need it, and that it is that ([pools]). *)
  highest : (node -> Z) -> Z }.
Definition pools (w : world) : Prop :=
  forall f, (exists x, highest w f = f x) /\ forall x, (f x <= highest w f)%Z.

(** A rule: what is on at a tap, joined by and, or, not. *)
Inductive expr := See (g : nat) (t : tap) | Is (k : kind) (t : tap) | And (a b : expr) | Or (a b : expr) | Not (a : expr)
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
  nth (n - 1) (fold_left (fun found e => or_each found (e :: map (fun f => And f e) found)) es []) Never.

(** The rule of each signal, by its number. One that is [pooled] is on everywhere if its rule is on anywhere. *)
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
  Definition anywhere (f : node w -> bool) : bool := (0 <? highest w (fun x => if f x then 1 else 0))%Z.
  Definition step (a : automaton) (s : state) : state := fun x g =>
    let next y := eval (rule a g) (see s y) (tile y) in if is_pooled a g then anywhere next else next x.

  (** All signals are off at first, and change at once. *)
  Fixpoint run (a : automaton) (t : nat) : state := match t with O => fun _ _ => false | S t => step a (run a t) end.
End Run.
