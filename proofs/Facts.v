(** Facts about a maze, in which theorems about automata are stated, and a checker of what follows from facts. *)
From Coq Require Import FMapPositive.
Require Import World.
Local Open Scope Z_scope.
(** Places are (row, column), and so are offsets. *)
Definition spot : Type := Z * Z.
Definition plus (p q : spot) : spot := (fst p + fst q, snd p + snd q).
Definition offset (t : tap) : spot :=
  match t with
  | C => (0, 0) | N U => (-1, 0) | N L => (0, -1) | N D => (1, 0) | N R => (0, 1)
  | N UL => (-1, -1) | N UR => (-1, 1) | N DL => (1, -1) | N DR => (1, 1)
  end.
(** A number: which, and where. KIND is the kind of a tile, -1 beyond the edge; TIME the number of iterations. Below 0 are
    those of the whole map. *)
Definition var : Type := Z * spot.
Notation KIND := 0 (only parsing). Notation TIME := (-1) (only parsing).
Record lin := Lin { constant : Z; terms : list (Z * var) }.
(** [Below l]: the sum l is at most 0. [Truth n p]: a boolean of the tile at p. Below 0 is
    what changes: where -1 - n is 100 g, signal g; where it is 100 g + 1, what ghost g will be after the next iteration, where
    it is 100 g + 2, what it is after this one, and so on. *)
Inductive fact := Truth (n : Z) (p : spot) | Below (l : lin) | Always (b : bool) | Both (f g : fact) | Either (f g : fact)
  | No (f : fact).
Definition same (f g : fact) : fact := Either (Both f g) (Both (No f) (No g)).
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
  Lemma says_same p f g : says p (same f g) = Bool.eqb (says p f) (says p g).
  Proof. cbn; destruct (says p f), (says p g); reflexivity. Qed.
End Meaning.

(** * The same fact elsewhere, and an iteration later *)
Fixpoint mapped (of_truth : Z -> spot -> fact) (of_lin : lin -> fact) (f : fact) : fact :=
  match f with
  | Truth n q => of_truth n q
  | Below l => of_lin l
  | Always b => Always b
  | Both f g => Both (mapped of_truth of_lin f) (mapped of_truth of_lin g)
  | Either f g => Either (mapped of_truth of_lin f) (mapped of_truth of_lin g)
  | No f => No (mapped of_truth of_lin f)
  end.
Definition shift (d : spot) : fact -> fact := mapped (fun n q => Truth n (plus d q))
  (fun l => Below (Lin (constant l) (map (fun '(z, (n, q)) => (z, (n, if n <? 0 then q else plus d q))) (terms l)))).
Fixpoint times (ts : list (Z * var)) : Z :=
  match ts with [] => 0 | (z, (n, _)) :: rest => (if n =? TIME then z else 0) + times rest end.
Definition later : fact -> fact := mapped (fun n => Truth (if n <? 0 then n + 1 else n)) (fun l => Below (Lin (constant l + times (terms l)) (terms l))).
(** Of no signal that is held, nor what is after the next iteration: only then is the fact an iteration later [later]. *)
Fixpoint timeless (f : fact) : bool :=
  match f with
  | Truth n _ => (0 <=? n) || (2 <=? (-1 - n) mod 100)
  | Below _ | Always _ => true
  | Both f g | Either f g => timeless f && timeless g
  | No f => timeless f
  end.
Lemma plus_assoc p q r : plus (plus p q) r = plus p (plus q r).
Proof. unfold plus; cbn; f_equal; lia. Qed.
Lemma shift_says truth number d p f : (forall n q r, n < 0 -> number n q = number n r) ->
  says truth number p (shift d f) = says truth number (plus p d) f.
Proof.
  intro H; unfold shift; induction f as [n q|[c ts]| | | |]; cbn; rewrite ?plus_assoc; try congruence.
  f_equal; unfold amount; cbn; f_equal; induction ts as [|[z [n q]] rest IH]; cbn; [reflexivity|].
  rewrite IH; f_equal; f_equal; destruct (Z.ltb_spec n 0); [apply H; assumption | rewrite plus_assoc; reflexivity].
Qed.
Lemma later_says truth truth' number number' p f : timeless f = true ->
  (forall n q, timeless (Truth n q) = true -> truth' n q = truth (if n <? 0 then n + 1 else n) q) ->
  (forall n q, number' n q = if n =? TIME then number n q + 1 else number n q) ->
  says truth number p (later f) = says truth' number' p f.
Proof.
  intros Hf Ht Hn; unfold later; induction f as [n q|[c ts]| |f IHf g IHg|f IHf g IHg|f IHf]; [symmetry; apply Ht, Hf|..];
    cbn in *; try apply andb_prop in Hf as [? ?]; rewrite ?IHf, ?IHg by assumption; try reflexivity.
  f_equal; unfold amount; cbn; clear Hf; induction ts as [|[z [n q]] rest IH]; cbn; [lia|]. rewrite Hn; destruct (n =? TIME); lia.
Qed.

(** * Normal forms: of two atoms that mean the same, one *)
Definition compare_vars (u v : var) : comparison :=
  match fst u ?= fst v with
  | Eq => match fst (snd u) ?= fst (snd v) with Eq => snd (snd u) ?= snd (snd v) | c => c end
  | c => c
  end.
Fixpoint insert (z : Z) (v : var) (ts : list (Z * var)) : list (Z * var) :=
  match ts with
  | [] => if z =? 0 then [] else [(z, v)]
  | (y, u) :: rest => match compare_vars v u with
      | Lt => if z =? 0 then ts else (z, v) :: ts
      | Eq => if z + y =? 0 then rest else (z + y, u) :: rest
      | Gt => (y, u) :: insert z v rest
      end
  end.
Definition sorted (ts : list (Z * var)) : list (Z * var) := fold_right (fun '(z, v) => insert z v) [] ts.
(** One that the negation of l <= 0 is: 1 - l <= 0. *)
Definition over (l : lin) : lin := Lin (1 - constant l) (map (fun '(z, v) => (- z, v)) (terms l)).
Definition below (l : lin) : fact :=
  match sorted (terms l) with
  | [] => Always (constant l <=? 0)
  | (z, v) :: rest => let l := Lin (constant l) ((z, v) :: rest) in if 0 <? z then Below l else No (Below (over l))
  end.
Definition normal : fact -> fact := mapped Truth below.
Section Normal.
  Variables (truth : Z -> spot -> bool) (number : Z -> spot -> Z) (p : spot).
  Notation sum := (sum number p). Notation amount := (amount number p). Notation says := (says truth number p).
  Lemma compare_vars_eq u v : compare_vars u v = Eq -> u = v.
  Proof.
    destruct u as [n [a b]], v as [m [c d]]; unfold compare_vars; cbn.
    destruct (Z.compare_spec n m); try discriminate; destruct (Z.compare_spec a c); try discriminate.
    intros ?%Z.compare_eq; congruence.
  Qed.
  Lemma insert_sum z v ts : sum (insert z v ts) = sum ((z, v) :: ts).
  Proof.
    destruct v as [n q]; induction ts as [|[y [m r]] rest IH]; cbn [insert].
    - destruct (Z.eqb_spec z 0) as [->|]; cbn; lia.
    - destruct (compare_vars (n, q) (m, r)) eqn:E.
      + apply compare_vars_eq in E as [= -> ->]; destruct (Z.eqb_spec (z + y) 0); cbn; nia.
      + destruct (Z.eqb_spec z 0) as [->|]; cbn; lia.
      + cbn in *; rewrite IH; lia.
  Qed.
  Lemma sorted_sum ts : sum (sorted ts) = sum ts.
  Proof.
    induction ts as [|[z v] rest IH]; [reflexivity|]; cbn [sorted fold_right]; rewrite insert_sum.
    destruct v; cbn in *; unfold sorted in IH; rewrite IH; reflexivity.
  Qed.
  Lemma over_amount l : amount (over l) = 1 - amount l.
  Proof.
    destruct l as [c ts]; unfold over, amount; cbn [constant terms].
    enough (H : sum (map (fun '(z, v) => (- z, v)) ts) = - sum ts) by (rewrite H; lia).
    induction ts as [|[z [n q]] rest IH]; cbn; [reflexivity | rewrite IH; lia].
  Qed.
  Lemma below_says l : says (below l) = (amount l <=? 0).
  Proof.
    destruct l as [c ts]; unfold below, amount; cbn [constant terms]; rewrite <- (sorted_sum ts).
    destruct (sorted ts) as [|[z v] rest]; [cbn; rewrite Z.add_0_r; reflexivity|].
    destruct (0 <? z); cbn [says Facts.says]; [reflexivity|]. rewrite over_amount; unfold amount; cbn [constant terms].
    generalize (c + sum ((z, v) :: rest)); intro a; destruct (Z.leb_spec (1 - a) 0), (Z.leb_spec a 0); cbn; lia.
  Qed.
  Lemma normal_says f : says (normal f) = says f.
  Proof. unfold normal; induction f; cbn [mapped]; rewrite ?below_says; cbn; congruence. Qed.
End Normal.

(** * The checker: facts are made of nodes, and clauses follow one from another until none is left that could be true *)
(** A literal: n is the atom or node of number n, -n its contrary. The first atom is always true. *)
Definition lit (v : positive -> bool) (z : Z) : bool := match z with Zpos n => v n | Zneg n => negb (v n) | Z0 => false end.
Definition clause : Type := list Z.
(** Atoms; nodes, each the conjunction of two literals before it; which literal each fact is; linear facts that with these
    factors add up to more than 0, by their literals; and clauses, the last of them empty, each with the numbers of those from
    which it follows: the first atom, what nodes mean, three for each, facts, linear facts, and clauses before. *)
Record refutation := Refutation { atoms : list fact; nodes : list (Z * Z); roots : list Z; claims : list (list (Z * Z));
  cuts : list (clause * list positive) }.
Definition fact_dec (f g : fact) : {f = g} + {f <> g}.
Proof. repeat decide equality. Defined.
Definition atom (table : list fact) (n : positive) : fact := nth (Pos.to_nat n - 1) table (Always false).
(** Whether a literal is a fact. *)
Fixpoint means (table : list fact) (its_nodes : PositiveMap.t (Z * Z)) (f : fact) (z : Z) : bool :=
  let node n := PositiveMap.find n its_nodes in
  match f, z with
  | (Truth _ _ | Below _), Zpos n => if fact_dec f (atom table n) then true else false
  | Always b, _ => z =? (if b then 1 else -1)
  | Both f g, Zpos n => match node n with Some (a, b) => means table its_nodes f a && means table its_nodes g b | None => false end
  | Either f g, Zneg n => match node n with Some (a, b) => means table its_nodes f (- a) && means table its_nodes g (- b) | None => false end
  | No f, _ => means table its_nodes f (- z)
  | _, _ => false
  end.
Fixpoint all_mean table its_nodes (fs : list fact) (zs : list Z) : bool :=
  match fs, zs with
  | [], [] => true
  | f :: fs, z :: zs => means table its_nodes f z && all_mean table its_nodes fs zs
  | _, _ => false
  end.
Fixpoint well_formed (n : positive) (ns : list (Z * Z)) : bool :=
  let before z := negb (z =? 0) && (Z.abs z <? Zpos n) in
  match ns with [] => true | (a, b) :: rest => before a && before b && well_formed (Pos.succ n) rest end.
Fixpoint meanings (n : positive) (ns : list (Z * Z)) : list clause :=
  match ns with [] => [] | (a, b) :: rest => [Zneg n; a] :: [Zneg n; b] :: [Zpos n; - a; - b] :: meanings (Pos.succ n) rest end.
Fixpoint listed {A} (n : positive) (l : list A) (m : PositiveMap.t A) : PositiveMap.t A :=
  match l with [] => m | x :: rest => listed (Pos.succ n) rest (PositiveMap.add n x m) end.
Definition line_of (table : list fact) (z : Z) : lin :=
  match atom table (Z.to_pos (Z.abs z)) with Below l => if 0 <? z then l else over l | _ => Lin 0 [] end.
Definition scaled (z : Z) (l : lin) : lin := Lin (z * constant l) (map (fun '(y, v) => (z * y, v)) (terms l)).
Definition total (table : list fact) (c : list (Z * Z)) : lin :=
  fold_right (fun '(z, n) s => let l := scaled z (line_of table n) in Lin (constant l + constant s) (terms l ++ terms s)) (Lin 0 []) c.
Definition absurd (table : list fact) (c : list (Z * Z)) : bool :=
  forallb (fun '(z, _) => 0 <=? z) c && (0 <? constant (total table c)) &&
  match sorted (terms (total table c)) with [] => true | _ => false end.
Definition assign (z : Z) (m : PositiveMap.t bool) : PositiveMap.t bool :=
  match z with Zpos n => PositiveMap.add n true m | Zneg n => PositiveMap.add n false m | Z0 => m end.
Definition not_false (m : PositiveMap.t bool) (z : Z) : bool :=
  match z with
  | Zpos n => match PositiveMap.find n m with Some false => false | _ => true end
  | Zneg n => match PositiveMap.find n m with Some true => false | _ => true end
  | Z0 => false
  end.
(** Whether clauses, one after another, each force a literal, until one is false. *)
Fixpoint contradict (m : PositiveMap.t bool) (cs : list clause) : bool :=
  match cs with
  | [] => false
  | c :: rest => match filter (not_false m) c with [] => true | [z] => contradict (assign z m) rest | _ => false end
  end.
Fixpoint learnt (n : positive) (known : PositiveMap.t clause) (cs : list (clause * list positive)) : bool :=
  match cs with
  | [] => false
  | (c, uses) :: rest =>
      contradict (fold_right (fun z => assign (- z)) (PositiveMap.empty bool) c)
        (flat_map (fun k => match PositiveMap.find k known with Some d => [d] | None => [] end) uses) &&
      match c with [] => true | _ => learnt (Pos.succ n) (PositiveMap.add n c known) rest end
  end.
Definition impossible (r : refutation) (fs : list fact) : bool :=
  let table := Always true :: atoms r in let n := Pos.of_succ_nat (length table) in
  let given := [1] :: meanings n (nodes r) ++ map (fun z => [z]) (roots r) ++ map (map (fun '(_, z) => - z)) (claims r) in
  well_formed n (nodes r) && forallb (absurd table) (claims r) &&
  all_mean table (listed n (nodes r) (PositiveMap.empty (Z * Z))) (map normal fs) (roots r) &&
  learnt (Pos.of_succ_nat (length given)) (listed 1 given (PositiveMap.empty clause)) (cuts r).
Section Checker.
  Variables (truth : Z -> spot -> bool) (number : Z -> spot -> Z) (p : spot).
  Notation says := (says truth number p). Notation amount := (amount number p).
  Lemma lit_opp v z : z <> 0 -> lit v (- z) = negb (lit v z).
  Proof. destruct z; cbn; [contradiction | | rewrite negb_involutive]; reflexivity. Qed.
  (** The values of nodes, from those of atoms. *)
  Fixpoint extended (v : positive -> bool) (n : positive) (ns : list (Z * Z)) : positive -> bool :=
    match ns with
    | [] => v
    | (a, b) :: rest => extended (fun m => if Pos.eqb m n then lit v a && lit v b else v m) (Pos.succ n) rest
    end.
  Lemma extended_below v n ns m : (m < n)%positive -> extended v n ns m = v m.
  Proof.
    revert v n; induction ns as [|[a b] rest IH]; intros v n H; [reflexivity|]; cbn; rewrite IH by lia.
    destruct (Pos.eqb_spec m n); [lia | reflexivity].
  Qed.
  Lemma lit_below v v' n z : (forall m, (m < n)%positive -> v m = v' m) -> Z.abs z < Zpos n -> lit v z = lit v' z.
  Proof. intros H Hz; destruct z as [|m|m]; cbn; [reflexivity | apply H; lia | f_equal; apply H; lia]. Qed.
  (** What is true of each item of a list with its number. *)
  Fixpoint each {A} (P : positive -> A -> Prop) (n : positive) (l : list A) : Prop :=
    match l with [] => True | x :: rest => P n x /\ each P (Pos.succ n) rest end.
  Lemma listed_each {A} (P : positive -> A -> Prop) n l m : each P n l -> (forall k x, PositiveMap.find k m = Some x -> P k x) ->
    forall k x, PositiveMap.find k (listed n l m) = Some x -> P k x.
  Proof.
    revert n m; induction l as [|x rest IH]; intros n m Hl Hm; [exact Hm|]; destruct Hl as [Hx Hl]; apply (IH _ _ Hl); intros k y.
    destruct (Pos.eq_dec k n) as [->|Hne]; [rewrite PositiveMap.gss; intros [= <-]; exact Hx | rewrite PositiveMap.gso by exact Hne; apply Hm].
  Qed.
  Definition is_node v n (ab : Z * Z) : Prop := v n = lit v (fst ab) && lit v (snd ab) /\ fst ab <> 0 /\ snd ab <> 0.
  Lemma extended_each v n ns : well_formed n ns = true -> each (is_node (extended v n ns)) n ns.
  Proof.
    revert v n; induction ns as [|[a b] rest IH]; intros v n H; [exact I|]; cbn [well_formed] in H.
    rewrite !andb_true_iff, !negb_true_iff, !Z.eqb_neq, !Z.ltb_lt in H; destruct H as [[[Ha Ha'] [Hb Hb']] H].
    split; [|exact (IH _ _ H)]; split; [|auto]; cbn [fst snd extended]; rewrite extended_below, Pos.eqb_refl by lia.
    f_equal; apply (lit_below _ _ n); try assumption; intros m Hm; rewrite extended_below by lia;
      destruct (Pos.eqb_spec m n); lia || reflexivity.
  Qed.
  Definition holds v (c : clause) : Prop := existsb (lit v) c = true.
  Lemma meanings_hold v n ns : each (is_node v) n ns -> Forall (holds v) (meanings n ns).
  Proof.
    revert n; induction ns as [|[a b] rest IH]; intros n H; [constructor|]; destruct H as [(E & Ha & Hb) H]; cbn [fst snd] in *.
    repeat constructor; [..| exact (IH _ H)]; unfold holds; cbn; rewrite E, ?lit_opp by assumption; destruct (lit v a), (lit v b); reflexivity.
  Qed.
  Section Table.
    Variables (table : list fact) (v : positive -> bool) (its_nodes : PositiveMap.t (Z * Z)).
    Hypotheses (first : v 1%positive = true) (of_atoms : forall n, (Pos.to_nat n <= length table)%nat -> v n = says (atom table n))
      (of_nodes : forall n ab, PositiveMap.find n its_nodes = Some ab -> is_node v n ab).
    Lemma atom_beyond n : (length table < Pos.to_nat n)%nat -> atom table n = Always false.
    Proof. intro H; unfold atom; apply nth_overflow; lia. Qed.
    Lemma means_says f z : means table its_nodes f z = true -> z <> 0 /\ lit v z = says f.
    Proof.
      assert (Hatom : forall n g, g <> Always false -> (if fact_dec g (atom table n) then true else false) = true -> v n = says g).
      { intros n g Hg H; destruct (fact_dec g (atom table n)) as [->|]; [apply of_atoms | discriminate].
        destruct (Nat.le_gt_cases (Pos.to_nat n) (length table)) as [|Hn]; [assumption | contradiction (Hg (atom_beyond n Hn))]. }
      revert z; induction f as [n q|l|b|f IHf g IHg|f IHf g IHg|f IHf]; intros z H; cbn [means] in H.
      - destruct z; try discriminate; split; [discriminate | refine (Hatom _ _ _ H); discriminate].
      - destruct z; try discriminate; split; [discriminate | refine (Hatom _ _ _ H); discriminate].
      - apply Z.eqb_eq in H; subst z; destruct b; (split; [discriminate|]); cbn; rewrite first; reflexivity.
      - destruct z as [|n|]; try discriminate; destruct (PositiveMap.find n its_nodes) as [[a b]|] eqn:E; [|discriminate].
        apply andb_prop in H as [[_ Hf]%IHf [_ Hg]%IHg]; destruct (of_nodes _ _ E) as (En & _); split; [discriminate|].
        cbn in *; rewrite En, Hf, Hg; reflexivity.
      - destruct z as [| |n]; try discriminate; destruct (PositiveMap.find n its_nodes) as [[a b]|] eqn:E; [|discriminate].
        apply andb_prop in H as [[_ Hf]%IHf [_ Hg]%IHg]; destruct (of_nodes _ _ E) as (En & Ha & Hb); split; [discriminate|].
        cbn in *; rewrite En, <- Hf, <- Hg, !lit_opp by assumption; destruct (lit v a), (lit v b); reflexivity.
      - apply IHf in H as [Hz H]; assert (z <> 0) by lia; split; [assumption|]; cbn; rewrite <- H, lit_opp, negb_involutive by assumption; reflexivity.
    Qed.
    Lemma all_mean_says fs zs : all_mean table its_nodes fs zs = true -> Forall (fun f => says f = true) fs ->
      Forall (holds v) (map (fun z => [z]) zs).
    Proof.
      revert zs; induction fs as [|f fs IH]; intros [|z zs] H Hall; try discriminate; [constructor|]; cbn in H.
      apply andb_prop in H as [[_ Hf]%means_says H]; inversion Hall; subst; constructor; [|apply IH; assumption].
      unfold holds; cbn; rewrite Hf, orb_false_r; assumption.
    Qed.
    Lemma line_of_says z : atom table 1 = Always true -> lit v (- z) = false -> amount (line_of table z) <= 0.
    Proof.
      intros H1 Hz; unfold line_of; destruct (Z.eq_dec z 0) as [->|Hne]; [cbn; rewrite H1; cbn; lia|].
      rewrite lit_opp in Hz by exact Hne; apply negb_false_iff in Hz; set (n := Z.to_pos (Z.abs z)).
      destruct (Nat.le_gt_cases (Pos.to_nat n) (length table)) as [Hn|Hn]; [|rewrite atom_beyond by exact Hn; cbn; lia].
      apply of_atoms in Hn; destruct (atom table n) as [|l| | | |]; try (cbn; lia); cbn [says Facts.says] in Hn.
      destruct z as [|m|m]; [contradiction | |]; cbn in n; subst n; cbn in Hz; cbn [Z.ltb Z.compare].
      - rewrite Hn in Hz; apply Z.leb_le, Hz.
      - rewrite Hn in Hz; apply negb_true_iff, Z.leb_gt in Hz; rewrite over_amount; lia.
    Qed.
    Lemma sum_app ts us : sum number p (ts ++ us) = sum number p ts + sum number p us.
    Proof. induction ts as [|[z [n q]] rest IH]; cbn; lia. Qed.
    Lemma scaled_amount z l : amount (scaled z l) = z * amount l.
    Proof. destruct l as [c ts]; unfold scaled, Facts.amount; cbn; induction ts as [|[y [n q]] rest IH]; cbn in *; nia. Qed.
    Lemma absurd_holds c : atom table 1 = Always true -> absurd table c = true -> holds v (map (fun '(_, z) => - z) c).
    Proof.
      unfold absurd; rewrite !andb_true_iff, forallb_forall; intros H1 [[Hz Hc] Hs]; unfold holds.
      apply not_false_is_true; intro H; assert (Ha : amount (total table c) <= 0).
      { clear Hc Hs; induction c as [|[z n] rest IH]; [reflexivity|]; cbn [map existsb] in H; apply orb_false_elim in H as [Hn H].
        assert (Hr : amount (total table rest) <= 0) by (apply IH; [intros x Hx; apply Hz; right; exact Hx | exact H]).
        pose proof (line_of_says n H1 Hn) as Hb; assert (0 <= z) by (apply Z.leb_le; apply (Hz (z, n)); left; reflexivity).
        cbn [total fold_right]; fold (total table rest); pose proof (scaled_amount z (line_of table n)) as E.
        unfold Facts.amount in *; cbn [constant terms] in *; rewrite sum_app; nia. }
      apply Z.ltb_lt in Hc; unfold Facts.amount in Ha; rewrite <- sorted_sum in Ha; destruct (sorted (terms (total table c))); [cbn in Ha; lia | discriminate].
    Qed.
  End Table.
  Definition agrees v (m : PositiveMap.t bool) : Prop := forall n b, PositiveMap.find n m = Some b -> v n = b.
  Lemma agrees_assign v z m : agrees v m -> lit v z = true -> agrees v (assign z m).
  Proof.
    intros H Hz; destruct z as [|n|n]; cbn in *; [exact H | |]; intros k b; (destruct (Pos.eq_dec k n) as [->|Hne];
      [rewrite PositiveMap.gss; intros [= <-] | rewrite PositiveMap.gso by exact Hne; apply H]); [exact Hz | apply negb_true_iff, Hz].
  Qed.
  Lemma agrees_not_false v m z : agrees v m -> lit v z = true -> not_false m z = true.
  Proof.
    intros H Hz; destruct z as [|n|n]; cbn in *; [discriminate Hz | |]; destruct (PositiveMap.find n m) as [[]|] eqn:E; try reflexivity;
      rewrite (H _ _ E) in Hz; discriminate.
  Qed.
  Lemma contradict_sound v m cs : agrees v m -> Forall (holds v) cs -> contradict m cs = true -> False.
  Proof.
    intros Hm Hall; revert m Hm; induction Hall as [|c cs Hc _ IH]; intros m Hm H; [discriminate|]; cbn in H.
    apply existsb_exists in Hc as (z & Hin & Hz); assert (Hf : In z (filter (not_false m) c))
      by (apply filter_In; split; [exact Hin | exact (agrees_not_false _ _ _ Hm Hz)]).
    destruct (filter (not_false m) c) as [|y [|]]; [destruct Hf | | discriminate].
    destruct Hf as [->|[]]; exact (IH _ (agrees_assign _ _ _ Hm Hz) H).
  Qed.
  Lemma learnt_sound v n known cs : (forall k c, PositiveMap.find k known = Some c -> holds v c) -> learnt n known cs = true -> False.
  Proof.
    revert n known; induction cs as [|[c uses] rest IH]; intros n known Hk H; [discriminate|]; cbn [learnt] in H.
    apply andb_prop in H as [Hs H]; assert (Hc : holds v c).
    { unfold holds; apply not_false_is_true; intro E; refine (contradict_sound v _ _ _ _ Hs).
      - clear Hs H; induction c as [|z c IHc]; cbn; [intros ? ?; rewrite PositiveMap.gempty; discriminate|].
        cbn in E; apply orb_false_elim in E as [Ez E]; destruct (Z.eq_dec z 0) as [->|Hne]; [exact (IHc E)|].
        apply agrees_assign; [exact (IHc E) | rewrite lit_opp, Ez by exact Hne; reflexivity].
      - apply Forall_forall; intros d (k & _ & Hd)%in_flat_map; destruct (PositiveMap.find k known) eqn:Ek; [|destruct Hd].
        destruct Hd as [<-|[]]; exact (Hk _ _ Ek). }
    destruct c; [discriminate Hc|]; refine (IH _ _ _ H); intros k d.
    destruct (Pos.eq_dec k n) as [->|Hne]; [rewrite PositiveMap.gss; intros [= <-]; exact Hc | rewrite PositiveMap.gso by exact Hne; apply Hk].
  Qed.
  Lemma Forall_each {A} (P : A -> Prop) n l : Forall P l -> each (fun _ => P) n l.
  Proof. intro H; revert n; induction H; intro n; cbn; auto. Qed.
  Lemma impossible_sound r fs : impossible r fs = true -> Forall (fun f => says f = true) fs -> False.
  Proof.
    unfold impossible; rewrite !andb_true_iff, forallb_forall; set (table := Always true :: atoms r); set (n := Pos.of_succ_nat (length table)).
    set (v := extended (fun k => says (atom table k)) n (nodes r)); intros [[[Hw Hc] Hm] H] Hall.
    assert (Hn : Pos.to_nat n = S (length table)) by apply SuccNat2Pos.id_succ.
    assert (Hv : forall k, (Pos.to_nat k <= length table)%nat -> v k = says (atom table k)) by (intros k Hk; apply extended_below; lia).
    assert (H1 : v 1%positive = true) by (rewrite Hv by (cbn; lia); reflexivity).
    pose proof (extended_each (fun k => says (atom table k)) n (nodes r) Hw) as He; fold v in He.
    refine (learnt_sound v _ _ _ _ H); apply listed_each; [apply Forall_each|intros k c; rewrite PositiveMap.gempty; discriminate].
    constructor; [unfold holds; cbn; rewrite H1; reflexivity|]; apply Forall_app; split; [exact (meanings_hold _ _ _ He)|]; apply Forall_app; split.
    - refine (all_mean_says table v _ H1 Hv _ _ _ Hm _); [|apply Forall_map, (Forall_impl _ (fun f Hf => eq_trans (normal_says _ _ _ f) Hf) Hall)].
      apply listed_each; [exact He | intros k c; rewrite PositiveMap.gempty; discriminate].
    - apply Forall_map, Forall_forall; intros c Hin; apply (absurd_holds table v Hv c); [reflexivity | exact (Hc c Hin)].
  Qed.
End Checker.
