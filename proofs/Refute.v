(** A checker: it shows by case distinctions that formulas cannot all be true. The kernel computes it. *)
From Coq Require Import Lia.
Require Import World.
Local Open Scope Z_scope.

Inductive form :=
| Atom (n : positive) | Const (b : bool) | Conj (f g : form) | Disj (f g : form) | Neg (f : form)
| Least (low : Z) (terms : list (Z * positive)).

Definition conj f g := match f, g with Const true, h | h, Const true => h | Const false, _ | _, Const false => Const false | _, _ => Conj f g end.
Definition disj f g := match f, g with Const false, h | h, Const false => h | Const true, _ | _, Const true => Const true | _, _ => Disj f g end.
Definition neg f := match f with Const b => Const (negb b) | Neg g => g | _ => Neg f end.

Fixpoint least_of (terms : list (Z * positive)) : Z :=
  match terms with [] => 0 | (z, _) :: rest => Z.min z 0 + least_of rest end.
Fixpoint most_of (terms : list (Z * positive)) : Z :=
  match terms with [] => 0 | (z, _) :: rest => Z.max z 0 + most_of rest end.
Definition least low terms :=
  if low <=? least_of terms then Const true else if most_of terms <? low then Const false else Least low terms.
(** The sum of the terms of an atom, and the other terms. *)
Fixpoint settle n (terms : list (Z * positive)) : Z * list (Z * positive) :=
  match terms with
  | [] => (0, [])
  | (z, m) :: rest => let (sum, others) := settle n rest in
      if Pos.eqb m n then (z + sum, others) else (sum, (z, m) :: others)
  end.

(** A formula in which an atom is given a value. *)
Fixpoint assign (n : positive) (b : bool) (f : form) : form :=
  match f with
  | Atom m => if Pos.eqb m n then Const b else f
  | Const _ => f
  | Conj f g => conj (assign n b f) (assign n b g)
  | Disj f g => disj (assign n b f) (assign n b g)
  | Neg f => neg (assign n b f)
  | Least low terms => let (sum, others) := settle n terms in least (if b then low - sum else low) others
  end.
Fixpoint first_atom (f : form) : option positive :=
  match f with
  | Atom n => Some n
  | Const _ => None
  | Conj f g | Disj f g => match first_atom f with Some n => Some n | None => first_atom g end
  | Neg f => first_atom f
  | Least _ [] => None
  | Least _ ((_, n) :: _) => Some n
  end.
(** None if one of the formulas is false; else those that are not yet true. *)
Fixpoint assign_all n b (fs : list form) : option (list form) :=
  match fs with
  | [] => Some []
  | f :: rest => match assign n b f with
      | Const false => None
      | Const true => assign_all n b rest
      | g => option_map (cons g) (assign_all n b rest)
      end
  end.
Fixpoint refute (fuel : nat) (fs : list form) : bool :=
  match fuel, fs with
  | S fuel, f :: _ => match first_atom f with
      | Some n =>
          if match assign_all n true fs with None => true | Some gs => refute fuel gs end
          then match assign_all n false fs with None => true | Some gs => refute fuel gs end else false
      | None => match f with Const false => true | _ => false end
      end
  | _, _ => false
  end.
(** The atoms of a formula. *)
Fixpoint atoms (f : form) : list positive :=
  match f with
  | Atom n => [n]
  | Const _ => []
  | Conj f g | Disj f g => atoms f ++ atoms g
  | Neg f => atoms f
  | Least _ terms => map snd terms
  end.
(** More than the number of atoms of any check. *)
Definition enough : nat := 1000.
Section Sound.
  Variable v : positive -> bool.
  Fixpoint total (terms : list (Z * positive)) : Z :=
    match terms with [] => 0 | (z, n) :: rest => (if v n then z else 0) + total rest end.
  Fixpoint holds (f : form) : bool :=
    match f with
    | Atom n => v n
    | Const b => b
    | Conj f g => holds f && holds g
    | Disj f g => holds f || holds g
    | Neg f => negb (holds f)
    | Least low terms => low <=? total terms
    end.
  Definition all (fs : list form) : Prop := Forall (fun f => holds f = true) fs.

  Lemma conj_holds f g : holds (conj f g) = holds f && holds g.
  Proof. destruct f as [|[]| | | |], g as [|[]| | | |]; cbn; rewrite ?andb_true_r, ?andb_false_r; reflexivity. Qed.
  Lemma disj_holds f g : holds (disj f g) = holds f || holds g.
  Proof. destruct f as [|[]| | | |], g as [|[]| | | |]; cbn; rewrite ?orb_true_r, ?orb_false_r; reflexivity. Qed.
  Lemma neg_holds f : holds (neg f) = negb (holds f).
  Proof. destruct f; cbn; rewrite ?negb_involutive; reflexivity. Qed.
  Lemma total_range terms : least_of terms <= total terms <= most_of terms.
  Proof. induction terms as [|[z n] rest IH]; cbn; [|destruct (v n)]; lia. Qed.
  Lemma least_holds low terms : holds (least low terms) = (low <=? total terms).
  Proof.
    pose proof (total_range terms); unfold least.
    destruct (Z.leb_spec low (least_of terms)), (Z.ltb_spec (most_of terms) low); cbn; symmetry;
      first [apply Z.leb_le; lia | apply Z.leb_gt; lia | reflexivity].
  Qed.
  Lemma settle_total n terms : let (sum, others) := settle n terms in total terms = (if v n then sum else 0) + total others.
  Proof.
    induction terms as [|[z m] rest IH]; cbn; [destruct (v n); reflexivity|].
    destruct (settle n rest) as [sum others], (Pos.eqb_spec m n) as [->|]; cbn; rewrite IH; [destruct (v n)|]; lia.
  Qed.
  Lemma assign_holds n f : holds (assign n (v n) f) = holds f.
  Proof.
    induction f as [m| |f IHf g IHg|f IHf g IHg|f IHf|low terms]; cbn [assign].
    - destruct (Pos.eqb_spec m n) as [->|]; reflexivity.
    - reflexivity.
    - rewrite conj_holds, IHf, IHg; reflexivity.
    - rewrite disj_holds, IHf, IHg; reflexivity.
    - rewrite neg_holds, IHf; reflexivity.
    - pose proof (settle_total n terms) as H; destruct (settle n terms) as [sum others]; rewrite least_holds; cbn.
      rewrite H; apply eq_true_iff_eq; rewrite !Z.leb_le; destruct (v n); lia.
  Qed.
  Lemma assign_all_holds n fs : all fs -> exists gs, assign_all n (v n) fs = Some gs /\ all gs.
  Proof.
    induction 1 as [|f fs Hf _ (gs & Hgs & Hall)]; [exists []; split; [reflexivity|constructor]|].
    rewrite <- (assign_holds n f) in Hf; cbn; rewrite Hgs.
    destruct (assign n (v n) f) as [|[]| | | |]; try discriminate;
      eexists; (split; [reflexivity|]); try constructor; assumption.
  Qed.
  Theorem refute_sound fuel fs : refute fuel fs = true -> all fs -> False.
  Proof.
    revert fs; induction fuel as [|fuel IH]; intros [|f fs] H Hall; try discriminate; cbn [refute] in H.
    destruct (first_atom f) as [n|].
    - apply andb_prop in H as [Ht Hf]; destruct (assign_all_holds n _ Hall) as (gs & Hgs & Hg).
      destruct (v n); rewrite Hgs in *; eapply IH; eauto.
    - inversion Hall as [|? ? Hf]; subst; destruct f as [|[]| | | |]; discriminate.
  Qed.
End Sound.

(** * Rules as formulas: an atom is a signal or a kind of tile at a tap *)

Definition number_of (t : tap) : nat :=
  match t with C => 0 | N U => 1 | N L => 2 | N D => 3 | N R => 4 | N UL => 5 | N UR => 6 | N DL => 7 | N DR => 8 end%nat.
Definition tap_of (n : nat) : tap := nth n [C; N U; N L; N D; N R; N UL; N UR; N DL; N DR] C.
Definition atom_of (t : tap) (n : nat) : positive := Pos.of_succ_nat (n * 9 + number_of t).
Definition seen_atom (t : tap) (g : nat) : positive := atom_of t (g * 2).
Definition is_atom (t : tap) (k : nat) : positive := atom_of t (1 + k * 2).
Definition seen (t : tap) (g : nat) : form := Atom (seen_atom t g).
Definition is (t : tap) (k : nat) : form := Atom (is_atom t k).
Fixpoint form_of (e : expr) (see tile : tap -> nat -> form) : form :=
  match e with
  | See g t => see t g
  | Is k t => tile t k
  | And a b => conj (form_of a see tile) (form_of b see tile)
  | Or a b => disj (form_of a see tile) (form_of b see tile)
  | Not a => neg (form_of a see tile)
  | Never => Const false
  end.

(** Whether a formula contradicts others. The values of its atoms are distinguished first; then what the others say of one
    tap is contradictory, of those that it reads, or all of it together. *)
Fixpoint some_refuted (most : nat) (groups : list (list form)) : bool :=
  match groups with [] => false | fs :: rest => if refute most fs then true else some_refuted most rest end.
Definition assign_groups n b (groups : list (list form)) : option (list (list form)) :=
  fold_right (fun fs found => match assign_all n b fs, found with Some gs, Some found => Some (gs :: found) | _, _ => None end) (Some []) groups.
Fixpoint refute_goal (most fuel : nat) (goal : form) (groups : list (list form)) : bool :=
  match fuel, goal with
  | _, Const b => if b then some_refuted most groups else true
  | S fuel, _ => match first_atom goal with
      | Some n => forallb (fun b => match assign_groups n b groups with
          | Some groups => refute_goal most fuel (assign n b goal) groups
          | None => true
          end) [true; false]
      | None => false
      end
  | _, _ => false
  end.
Definition contradicts (goal : form) (fs : list form) : bool :=
  let reads f t := existsb (fun n => ((N.pos n - 1) mod 9 =? t)%N) (atoms f) in
  refute_goal enough enough goal (map (fun t => filter (fun f => reads f t) fs) (filter (reads goal) [0; 1; 2; 3; 4; 5; 6; 7; 8]%N) ++ [fs]).
Lemma some_refuted_sound v most groups : some_refuted most groups = true -> Forall (all v) groups -> False.
Proof.
  intros H Hall; induction Hall as [|fs groups Hfs _ IH]; [discriminate|]; cbn [some_refuted] in H.
  destruct (refute most fs) eqn:E; [exact (refute_sound v _ _ E Hfs) | exact (IH H)].
Qed.
Lemma assign_groups_hold v n groups : Forall (all v) groups -> exists gs, assign_groups n (v n) groups = Some gs /\ Forall (all v) gs.
Proof.
  induction 1 as [|fs rest Hfs _ (gs & E & Hgs)]; [exists []; split; [reflexivity | constructor]|].
  destruct (assign_all_holds v n fs Hfs) as (gs' & E' & Hgs'); exists (gs' :: gs); cbn; fold (assign_groups n (v n) rest).
  rewrite E, E'; auto.
Qed.
Lemma refute_goal_sound v most fuel goal groups : refute_goal most fuel goal groups = true -> holds v goal = true -> Forall (all v) groups -> False.
Proof.
  revert goal groups; induction fuel as [|fuel IH]; intros goal groups H Hg Hall.
  - destruct goal as [|[]| | | |]; discriminate || exact (some_refuted_sound v _ _ H Hall).
  - destruct (first_atom goal) as [n|] eqn:E; [|destruct goal as [|[]| | | |]; cbn [refute_goal] in H; rewrite ?E in H;
      discriminate || exact (some_refuted_sound v _ _ H Hall)].
    destruct (assign_groups_hold v n groups Hall) as (gs & Eg & Hgs).
    assert (Hn : refute_goal most fuel (assign n (v n) goal) gs = true).
    { destruct goal as [| | | | |]; cbn [refute_goal] in H; try discriminate E; rewrite E, forallb_forall in H;
        specialize (H (v n) ltac:(destruct (v n); cbn; auto)); rewrite Eg in H; exact H. }
    apply (IH _ _ Hn); [rewrite assign_holds; exact Hg | exact Hgs].
Qed.
Lemma contradicts_sound v goal fs : contradicts goal fs = true -> holds v goal = true -> all v fs -> False.
Proof.
  unfold contradicts; cbv zeta; set (groups := map _ _ ++ _); intros H Hg Hall; refine (refute_goal_sound v _ _ _ groups H Hg _).
  apply Forall_app; split; [|repeat constructor; exact Hall].
  apply Forall_map, Forall_forall; intros t _; apply incl_Forall with (2 := Hall); apply incl_filter.
Qed.

Section Around.
  Context (see tile : tap -> nat -> bool).
  (** The values of atoms around a tile. *)
  Definition around (p : positive) : bool :=
    let n := (Pos.to_nat p - 1)%nat in let t := tap_of (n mod 9) in let k := (n / 9)%nat in
    if Nat.even k then see t (k / 2)%nat else tile t (k / 2)%nat.
  Lemma around_atom t n : around (atom_of t n) = if Nat.even n then see t (n / 2)%nat else tile t (n / 2)%nat.
  Proof.
    unfold around, atom_of; rewrite SuccNat2Pos.id_succ; cbn [Nat.sub]; rewrite Nat.sub_0_r, Nat.add_comm, Nat.mod_add, Nat.div_add by discriminate.
    destruct t as [|[]]; reflexivity.
  Qed.
  Lemma around_seen t g : around (seen_atom t g) = see t g.
  Proof. unfold seen_atom; rewrite around_atom, Nat.even_mul, orb_true_r, Nat.div_mul by discriminate; reflexivity. Qed.
  Lemma around_is t k : around (is_atom t k) = tile t k.
  Proof. unfold is_atom; rewrite around_atom, Nat.even_add, Nat.even_mul, orb_true_r, Nat.div_add by discriminate; reflexivity. Qed.
  Lemma form_of_holds e fsee ftile :
    holds around (form_of e fsee ftile) = eval e (fun t g => holds around (fsee t g)) (fun t k => holds around (ftile t k)).
  Proof. induction e; cbn; rewrite ?conj_holds, ?disj_holds, ?neg_holds; congruence. Qed.
  Lemma eval_same e see' tile' : (forall t g, see t g = see' t g) -> (forall t k, tile t k = tile' t k) ->
    eval e see tile = eval e see' tile'.
  Proof. intros Hs Ht; induction e; cbn; congruence. Qed.
  Lemma rule_holds e : holds around (form_of e seen is) = eval e see tile.
  Proof. rewrite form_of_holds; symmetry; apply eval_same; intros; [rewrite <- around_seen | rewrite <- around_is]; reflexivity. Qed.
End Around.
Definition numbered {A} (xs : list A) : list (nat * A) := combine (seq 0 (length xs)) xs.
Lemma numbered_in {A} (xs : list A) i x : nth_error xs i = Some x -> In (i, x) (numbered xs).
Proof.
  intro H; assert (Hlt : (i < length xs)%nat) by (apply nth_error_Some; congruence).
  apply nth_error_In with i; unfold numbered; rewrite nth_error_nth' with (d := (0%nat, x)).
  - rewrite combine_nth, seq_nth, (nth_error_nth _ _ x H) by (rewrite ?seq_length; trivial); reflexivity.
  - rewrite combine_length, seq_length, Nat.min_id; exact Hlt.
Qed.
Lemma anywhere_iff w f : pools w -> anywhere w f = true <-> exists x, f x = true.
Proof.
  intro Hp; unfold anywhere; destruct (Hp (fun x => if f x then 1 else 0)) as [[y Hy] Hf]; rewrite Hy, Z.ltb_lt; split.
  - intro H; exists y; destruct (f y); [reflexivity | lia].
  - intros (x & Hx); specialize (Hf x); rewrite Hy, Hx in Hf; lia.
Qed.
