(** A checker: it shows by case distinctions that formulas cannot all be true. The kernel computes
    it. *)
From MazeNCA Require Import Statements.
Local Open Scope Z_scope.

(** What may be so at a tap: that a signal is on, or that the tile is of a kind. *)
Inductive atom := Seen (t : tap) (g : nat) | OfKind (t : tap) (k : nat).
Scheme Equality for dir.
Scheme Equality for tap.
Scheme Equality for atom.
Notation terms := (list (Z * atom)).
(** [Join true] is and, [Join false] is or. *)
Inductive form := Atom (a : atom) | Const (b : bool) | Join (both : bool) (f g : form) | Neg
  (f : form) | Least (low : Z) (ts : terms).

Definition join both f g :=
  match f, g with Const b, h | h, Const b => if Bool.eqb b both then h else Const b | _, _ =>
    Join both f g end.
Definition conj := join true. Definition disj := join false.
Definition neg f := match f with Const b => Const (negb b) | Neg g => g | _ => Neg f end.
Definition conjunction (fs : list form) : form := fold_right conj (Const true) fs.

Definition least_of (ts : terms) : Z := fold_right (fun '(z, _) rest => Z.min z 0 + rest) 0 ts.
Definition most_of (ts : terms) : Z := fold_right (fun '(z, _) rest => Z.max z 0 + rest) 0 ts.
Definition least low ts := if low <=? least_of ts then Const true else if most_of ts <? low
  then Const false else Least low ts.
(** A formula in which an atom is given a value. *)
Fixpoint assign (a : atom) (b : bool) (f : form) : form :=
  match f with
  | Atom c => if atom_beq c a then Const b else f
  | Const _ => f
  | Join both f g => match assign a b f with
      | Const c => if Bool.eqb c both then assign a b g else Const c
      | f => join both f (assign a b g)
      end
  | Neg f => neg (assign a b f)
  | Least low ts => let (low, others) := fold_right (fun '(z, c) '(low, others) =>
      if atom_beq c a then (if b then low - z else low, others) else (low, (z, c) :: others)) (low,
        []) ts in least low others
  end.
(** The first atom of some kind. *)
Fixpoint first_atom (p : atom -> bool) (f : form) : option atom :=
  match f with
  | Atom a => if p a then Some a else None
  | Const _ => None
  | Join _ f g => match first_atom p f with Some a => Some a | None => first_atom p g end
  | Neg f => first_atom p f
  | Least _ ts => find p (map snd ts)
  end.
Definition wrong (f : form) : bool := match f with Const false => true | _ => false end.
(** Whether a formula and others are contradictory: the values of its atoms are distinguished, and
    where it is true, one of the others is shown to be contradictory by itself. *)
Fixpoint refute (fuel : nat) (f : form) (others : list form) : bool :=
  match fuel with
  | O => false
  | S fuel => if existsb wrong (f :: others) then true else match first_atom (fun _ => true) f with
      | Some a => let if_it_is b := let f := assign a b f in if wrong f then true else refute fuel f
          (map (assign a b) others) in
          if if_it_is true then if_it_is false else false
      | None => match find (fun g => refute fuel g []) others with Some _ => true | None =>
          false end
      end
  end.
(** More than the number of atoms of any check. *)
Definition enough : nat := 1000.
(** Of the others: what they say of one tap, of those that the formula reads, or all of it together.
    *)
Definition contradicts (f : form) (fs : list form) : bool :=
  let at_tap t a := match a with Seen s _ | OfKind s _ => tap_beq s t end in
  let reads f t := match first_atom (at_tap t) f with Some _ => true | None => false end in
  refute enough f (map (fun t => conjunction (filter (fun g => reads g t) fs))
    (filter (reads f) [C; N U; N L; N D; N R; N UL; N UR; N DL; N DR]) ++ [conjunction fs]).
Section Sound.
  Variable v : atom -> bool.
  Definition total (ts : terms) : Z := fold_right (fun '(z, a) rest =>
    (if v a then z else 0) + rest) 0 ts.
  Fixpoint holds (f : form) : bool :=
    match f with
    | Atom a => v a
    | Const b => b
    | Join both f g => if both then holds f && holds g else holds f || holds g
    | Neg f => negb (holds f)
    | Least low ts => low <=? total ts
    end.
  Definition all (fs : list form) : Prop := Forall (fun f => holds f = true) fs.

  Lemma join_holds b f g : holds (join b f g) = if b then holds f && holds g else holds f ||
    holds g.
  Proof. destruct b, f as [|[]| | |], g as [|[]| | |]; cbn;
    rewrite ?andb_true_r, ?andb_false_r, ?orb_true_r, ?orb_false_r; reflexivity. Qed.
  Lemma conj_holds f g : holds (conj f g) = holds f && holds g. Proof. apply join_holds. Qed.
  Lemma disj_holds f g : holds (disj f g) = holds f || holds g. Proof. apply join_holds. Qed.
  Lemma neg_holds f : holds (neg f) = negb (holds f).
  Proof. destruct f; cbn; rewrite ?negb_involutive; reflexivity. Qed.
  Lemma conjunction_holds fs : holds (conjunction fs) = forallb holds fs.
  Proof. induction fs as [|f fs IH]; cbn; [|rewrite conj_holds, <- IH]; reflexivity. Qed.
  Lemma total_range ts : least_of ts <= total ts <= most_of ts.
  Proof. unfold least_of, total, most_of; induction ts as [|[z a] rest IH]; cbn; [|destruct (v a)];
    lia. Qed.
  Lemma least_holds low ts : holds (least low ts) = (low <=? total ts).
  Proof. 
    pose proof (total_range ts); unfold least;
      destruct (Z.leb_spec low (least_of ts)), (Z.ltb_spec (most_of ts) low); cbn [holds];
      destruct (Z.leb_spec low (total ts)); reflexivity || lia.
  Qed.
  Lemma assign_holds a f : holds (assign a (v a) f) = holds f.
  Proof.
    induction f as [c| |b f IHf g IHg| |low ts]; cbn [assign holds]; rewrite ?neg_holds;
      try congruence.
    - destruct (atom_beq c a) eqn:E; [apply internal_atom_dec_bl in E as ->|]; reflexivity.
    - rewrite <- IHf, <- IHg; destruct b, (assign a (v a) f) as [|[]| | |]; rewrite ?join_holds;
        reflexivity.
    - set (r := fold_right _ _ ts); enough (fst r - total (snd r) = low - total ts) 
        by (destruct r; rewrite least_holds; apply eq_true_iff_eq; rewrite !Z.leb_le;
          cbn [fst snd] in *; lia).
      subst r; unfold total; induction ts as [|[z c] rest IH]; cbn; [reflexivity|].
      destruct (fold_right _ _ rest) as [low' others], (atom_beq c a) eqn:E;
        [apply internal_atom_dec_bl in E as ->|]; cbn in *; [destruct (v a)|]; lia.
  Qed.
  Theorem refute_sound fuel f others : refute fuel f others = true -> all (f :: others) -> False.
  Proof.
    revert f others; induction fuel as [|fuel IH]; intros f others H Hall; [discriminate|];
      cbn [refute] in H.
    destruct (existsb wrong (f :: others)) eqn:E.
    - apply existsb_exists in E as (g & Hg & E); pose proof (proj1 (Forall_forall _ _) Hall g Hg);
        destruct g as [|[]| | |]; discriminate.
    - destruct (first_atom _ f) as [a|]; [|destruct (find _ others) as [g|] eqn:Eg; [|discriminate];
        apply find_some in Eg as [Hg Eg]].
      + cbv zeta in H;
          assert (Ha : refute fuel (assign a (v a) f) (map (assign a (v a)) others) = true).
        { assert (Hw : wrong (assign a (v a) f) = false)
            by (pose proof (eq_trans (assign_holds a f) (Forall_inv Hall)) as Hf;
              destruct (assign a (v a) f) as [|[]| | |]; reflexivity || discriminate Hf).
          destruct (v a); rewrite Hw in H; [destruct (refute _ _ _);
            [reflexivity | discriminate H]|].
          destruct (wrong (assign a true f)); [exact H | destruct (refute fuel (assign a true f) _);
            [exact H | discriminate H]]. }
        apply (IH _ _ Ha), (Forall_map (assign a (v a)) _ (f :: others)),
          (Forall_impl _ (fun g Hg => eq_trans (assign_holds a g) Hg) Hall).
      + apply (IH _ _ Eg); repeat constructor;
          exact (proj1 (Forall_forall _ _) Hall g (or_intror Hg)).
  Qed.
  Lemma contradicts_sound f fs : contradicts f fs = true -> all fs -> holds f = false.
  Proof.
    unfold contradicts; cbv zeta; intros H Hall; apply not_true_is_false; intro Hf;
      apply (refute_sound _ _ _ H); constructor; [exact Hf|].
    assert (Hsome : forall p, holds (conjunction (filter p fs)) = true)
      by (intro p; rewrite conjunction_holds; apply forallb_forall; intros g (Hg & _)%filter_In;
        exact (proj1 (Forall_forall _ _) Hall g Hg)).
    apply Forall_app; split; [apply Forall_map, Forall_forall; intros t _; apply Hsome|].
    repeat constructor; rewrite conjunction_holds; apply forallb_forall, Forall_forall, Hall.
  Qed.
End Sound.

(** * Rules as formulas *)

Definition seen (t : tap) (g : nat) : form := Atom (Seen t g).
Definition is (t : tap) (k : nat) : form := Atom (OfKind t k).
Fixpoint form_of (e : expr) (see tile : tap -> nat -> form) : form :=
  match e with
  | See g t => see t g
  | Is k t => tile t k
  | And a b => conj (form_of a see tile) (form_of b see tile)
  | Or a b => disj (form_of a see tile) (form_of b see tile)
  | Not a => neg (form_of a see tile)
  | Never => Const false
  end.
(** The values of atoms around a tile. *)
Definition around (see tile : tap -> nat -> bool) (a : atom) : bool := match a with Seen t g =>
  see t g | OfKind t k => tile t k end.
Lemma form_of_holds v e fsee ftile :
  holds v (form_of e fsee ftile) = eval e (fun t g => holds v (fsee t g)) (fun t k =>
    holds v (ftile t k)).
Proof. induction e; cbn; rewrite ?conj_holds, ?disj_holds, ?neg_holds; congruence. Qed.
Lemma rule_holds see tile e : holds (around see tile) (form_of e seen is) = eval e see tile.
Proof. apply form_of_holds. Qed.
Lemma eval_same e see tile see' tile' : (forall t g, see t g = see' t g) ->
  (forall t k, tile t k = tile' t k) ->
  eval e see tile = eval e see' tile'.
Proof. intros Hs Ht; induction e; cbn; congruence. Qed.
Definition numbered {A} (xs : list A) : list (nat * A) := combine (seq 0 (length xs)) xs.
Lemma numbered_in {A} (xs : list A) i x : In (i, x) (numbered xs) <-> nth_error xs i = Some x.
Proof.
  unfold numbered; enough (H : forall k, In (k + i, x)%nat (combine (seq k (length xs)) xs) <->
    nth_error xs i = Some x) by apply (H 0%nat).
  revert i; induction xs as [|y xs IH]; intros [|i] k; cbn; try (split; [intros [] | discriminate]).
  - split; [intros [[= _ <-]|H%in_combine_l%in_seq]; [reflexivity | lia] | intros [= <-]; left;
      f_equal; lia].
  - rewrite <- (IH i (S k)), Nat.add_succ_r; split; [intros [[= E _]|H]; [lia | exact H] | auto].
Qed.
Lemma numbered_all {A} (f : nat * A -> bool) xs i x : forallb f (numbered xs) = true ->
  nth_error xs i = Some x -> f (i, x) = true.
Proof. rewrite forallb_forall; intros H Hx; apply H, numbered_in, Hx. Qed.
Lemma anywhere_iff w f : pools w -> anywhere w f = true <-> exists x, f x = true.
Proof.
  intro Hp; unfold anywhere; destruct (Hp (fun x => if f x then 1 else 0)) as [[y Hy] Hf];
    rewrite Hy, Z.ltb_lt; split.
  - intro H; exists y; destruct (f y); [reflexivity | lia].
  - intros (x & Hx); specialize (Hf x); rewrite Hy, Hx in Hf; lia.
Qed.
