(** Facts about a maze, in which theorems about automata are stated, and a checker of what follows
    from facts. *)
From Coq Require Import FMapPositive.
From MazeNCA Require Import Statements.
Export Statements.Facts.
Local Open Scope Z_scope.
Definition same (f g : fact) : fact := Either (Both f g) (Both (No f) (No g)).
Lemma says_same truth number p f g : says truth number p (same f g) = Bool.eqb
  (says truth number p f) (says truth number p g).
Proof. cbn; destruct (says truth number p f), (says truth number p g); reflexivity. Qed.

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
  (fun l => Below (Lin (constant l) (map (fun '(z, (n, q)) =>
    (z, (n, if n <? 0 then q else plus d q))) (terms l)))).
Fixpoint times (ts : list (Z * var)) : Z :=
  match ts with [] => 0 | (z, (n, _)) :: rest => (if n =? TIME then z else 0) + times rest end.
Definition later : fact -> fact := mapped (fun n => Truth (if n <? 0 then n + 1 else n)) (fun l =>
  Below (Lin (constant l + times (terms l)) (terms l))).
(** Of no signal that is held, nor what is after the next iteration: only then is the fact an
    iteration later [later]. *)
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
  intro H; unfold shift; induction f as [n q|[c ts]| | | |]; cbn; rewrite ?plus_assoc;
    try congruence.
  f_equal; unfold amount; cbn; f_equal; induction ts as [|[z [n q]] rest IH]; cbn; [reflexivity|].
  rewrite IH; f_equal; f_equal; destruct (Z.ltb_spec n 0);
    [apply H; assumption | rewrite plus_assoc; reflexivity].
Qed.
Lemma later_says truth truth' number number' p f : timeless f = true ->
  (forall n q, timeless (Truth n q) = true -> truth' n q = truth (if n <? 0 then n + 1 else n) q) ->
  (forall n q, number' n q = if n =? TIME then number n q + 1 else number n q) ->
  says truth number p (later f) = says truth' number' p f.
Proof.
  intros Hf Ht Hn; unfold later; induction f as [n q|[c ts]| |f IHf g IHg|f IHf g IHg|f IHf];
    [symmetry; apply Ht, Hf|..];
    cbn in *; try apply andb_prop in Hf as [? ?]; rewrite ?IHf, ?IHg by assumption; try reflexivity.
  f_equal; unfold amount; cbn; clear Hf; induction ts as [|[z [n q]] rest IH]; cbn; [lia|].
    rewrite Hn; destruct (n =? TIME); lia.
Qed.

(** * Normal forms: of two atoms that mean the same, one; no disjunctions, and nothing is negated
    twice *)
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
Definition sorted (ts : list (Z * var)) : list (Z * var) := fold_right (fun '(z, v) =>
  insert z v) [] ts.
(** One that the negation of l <= 0 is: 1 - l <= 0. *)
Definition over (l : lin) : lin := Lin (1 - constant l) (map (fun '(z, v) => (- z, v)) (terms l)).
Definition no (f : fact) : fact := match f with No f => f | _ => No f end.
Definition always (b : bool) : fact := if b then Always true else No (Always true).
Definition below (l : lin) : fact :=
  match sorted (terms l) with
  | [] => always (constant l <=? 0)
  | (z, v) :: rest => let l := Lin (constant l) ((z, v) :: rest) in if 0 <? z then Below l else No
      (Below (over l))
  end.
Fixpoint normal (f : fact) : fact :=
  match f with
  | Truth _ _ => f
  | Below l => below l
  | Always b => always b
  | Both f g => Both (normal f) (normal g)
  | Either f g => no (Both (no (normal f)) (no (normal g)))
  | No f => no (normal f)
  end.
Section Normal.
  Variables (truth : Z -> spot -> bool) (number : Z -> spot -> Z) (p : spot).
  Notation sum := (sum number p). Notation amount := (amount number p).
    Notation says := (says truth number p).
  Lemma compare_vars_eq u v : compare_vars u v = Eq -> u = v.
  Proof.
    destruct u as [n [a b]], v as [m [c d]]; unfold compare_vars; cbn.
    destruct (Z.compare_spec n m); try discriminate; destruct (Z.compare_spec a c);
      try discriminate.
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
    destruct (sorted ts) as [|[z v] rest]; [cbn; rewrite Z.add_0_r; destruct (c <=? 0);
      reflexivity|].
    destruct (0 <? z); cbn [says Facts.says]; [reflexivity|]. rewrite over_amount; unfold amount;
      cbn [constant terms].
    generalize (c + sum ((z, v) :: rest)); intro a;
      destruct (Z.leb_spec (1 - a) 0), (Z.leb_spec a 0); cbn; lia.
  Qed.
  Lemma no_says f : says (no f) = negb (says f).
  Proof. destruct f; cbn; rewrite ?negb_involutive; reflexivity. Qed.
  Lemma normal_says f : says (normal f) = says f.
  Proof.
    induction f as [| |[]|f IHf g IHg|f IHf g IHg|f IHf]; cbn [normal];
      rewrite ?below_says, ?no_says; try (cbn; congruence).
    cbn [says Facts.says]; rewrite !no_says, IHf, IHg, negb_andb, !negb_involutive; reflexivity.
  Qed.
End Normal.

(** * The checker: facts are made of nodes, and clauses follow one from another until none is left
    that could be true *)
(** Literals: n is the atom or node of number n, -n its contrary. The first atom is always true. *)
Definition clause : Type := list Z.
(** Atoms; nodes, each the conjunction of two literals before it; which literal each fact is; linear
    facts that with these factors add up to more than 0, by their literals; and clauses, the last of
    them empty, each with the numbers of those from which it follows: the first atom, what nodes
    mean, three for each, facts, linear facts, and clauses before. *)
Record refutation := Refutation { atoms : list fact; nodes : list (Z * Z); roots : list Z;
  claims : list (list (Z * Z));
  cuts : list (clause * list positive) }.
Definition fact_dec (f g : fact) : {f = g} + {f <> g}.
Proof. repeat decide equality. Defined.
(** Items by their numbers. *)
Fixpoint listed {A} (n : positive) (l : list A) (m : PositiveMap.t A) : PositiveMap.t A :=
  match l with [] => m | x :: rest => listed (Pos.succ n) rest (PositiveMap.add n x m) end.
Definition entry (table : PositiveMap.t fact) (n : positive) : fact :=
  match PositiveMap.find n table with Some f => f | None => Always false end.
Definition literal (table : PositiveMap.t fact) (z : Z) : fact :=
  match z with Zpos n => entry table n | Zneg n => No (entry table n) | Z0 => Always false end.
Fixpoint with_nodes (n : positive) (ns : list (Z * Z)) (table : PositiveMap.t fact) : PositiveMap.t
  fact :=
  match ns with
  | [] => table
  | (a, b) :: rest => with_nodes (Pos.succ n) rest (PositiveMap.add n (Both (literal table a)
      (literal table b)) table)
  end.
(** The sum that a fact says is at most 0. *)
Definition line_of (f : fact) : lin := match f with Below l => l | No (Below l) => over l | _ =>
  Lin 0 [] end.
Definition scaled (z : Z) (l : lin) : lin := Lin (z * constant l) (map (fun '(y, v) => (z * y, v))
  (terms l)).
Definition total (table : PositiveMap.t fact) (c : list (Z * Z)) : lin :=
  fold_right (fun '(z, n) s => let l := scaled z (line_of (literal table n)) in Lin
    (constant l + constant s) (terms l ++ terms s)) (Lin 0 []) c.
Definition absurd (table : PositiveMap.t fact) (c : list (Z * Z)) : bool :=
  forallb (fun '(z, _) => 0 <=? z) c && (0 <? constant (total table c)) &&
  match sorted (terms (total table c)) with [] => true | _ => false end.
(** The clauses to begin with, each if it is what the table says. *)
Fixpoint meanings (table : PositiveMap.t fact) (n : positive) (ns : list (Z * Z)) : list clause :=
  match ns with
  | [] => []
  | (a, b) :: rest => (if fact_dec (entry table n) (Both (literal table a) (literal table b))
      then if a * b =? 0 then [] else [[Zneg n; a]; [Zneg n; b];
        [Zpos n; - a; - b]] else []) ++ meanings table (Pos.succ n) rest
  end.
Definition clauses (table : PositiveMap.t fact) (r : refutation) (n : positive)
  (fs : list fact) : list clause :=
  (if fact_dec (entry table 1) (Always true) then [[1]] else []) ++ meanings table n (nodes r) ++
  flat_map (fun '(f, z) => if fact_dec (normal f) (literal table z) then [[z]] else [])
    (combine fs (roots r)) ++
  flat_map (fun c => if absurd table c then [map (fun '(_, z) => - z) c] else []) (claims r).
Definition assign (z : Z) (m : PositiveMap.t bool) : PositiveMap.t bool :=
  match z with Zpos n => PositiveMap.add n true m | Zneg n => PositiveMap.add n false m | Z0 =>
    m end.
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
  | c :: rest => match filter (not_false m) c with [] => true | [z] =>
      contradict (assign z m) rest | _ => false end
  end.
Fixpoint learnt (n : positive) (known : PositiveMap.t clause) (cs : list (clause * list positive)) :
  bool :=
  match cs with
  | [] => false
  | (c, uses) :: rest =>
      contradict (fold_right (fun z => assign (- z)) (PositiveMap.empty bool) c)
        (flat_map (fun k => match PositiveMap.find k known with Some d => [d] | None =>
          [] end) uses) &&
      match c with [] => true | _ => learnt (Pos.succ n) (PositiveMap.add n c known) rest end
  end.
Definition impossible (r : refutation) (fs : list fact) : bool :=
  let n := Pos.of_succ_nat (S (length (atoms r))) in
  let given :=
    clauses (with_nodes n (nodes r) (listed 1 (Always true :: atoms r) (PositiveMap.empty fact))) r
    n fs in
  learnt (Pos.of_succ_nat (length given)) (listed 1 given (PositiveMap.empty clause)) (cuts r).
Section Checker.
  Variables (truth : Z -> spot -> bool) (number : Z -> spot -> Z) (p : spot)
    (table : PositiveMap.t fact).
  Notation says := (says truth number p). Notation amount := (amount number p).
  Notation lit z := (says (literal table z)).
  Definition holds (c : clause) : Prop := existsb (fun z => lit z) c = true.
  Lemma lit_opp z : z <> 0 -> lit (- z) = negb (lit z).
  Proof. destruct z; cbn; [contradiction | | rewrite negb_involutive]; reflexivity. Qed.
  Lemma meanings_hold n ns : Forall holds (meanings table n ns).
  Proof.
    revert n; induction ns as [|[a b] rest IH]; intro n; cbn [meanings]; [constructor|];
      apply Forall_app; split; [|apply IH].
    destruct (fact_dec _ _) as [E|]; [destruct (Z.eqb_spec (a * b) 0) as [|Hab]|];
      repeat constructor; unfold holds;
      cbn [existsb literal says Facts.says]; rewrite E; cbn [says Facts.says];
        rewrite ?lit_opp by (intros ->; lia);
      destruct (lit a), (lit b); reflexivity.
  Qed.
  Lemma line_of_says f : says f = true -> amount (line_of f) <= 0.
  Proof.
    destruct f as [|l| | | |[|l| | | |]]; cbn [says Facts.says line_of];
      try (intros _; reflexivity).
    - apply Z.leb_le.
    - rewrite negb_true_iff, over_amount, Z.leb_gt; lia.
  Qed.
  Lemma sum_app ts us : sum number p (ts ++ us) = sum number p ts + sum number p us.
  Proof. induction ts as [|[z [n q]] rest IH]; cbn; lia. Qed.
  Lemma scaled_amount z l : amount (scaled z l) = z * amount l.
  Proof. destruct l as [c ts]; unfold scaled, Facts.amount; cbn;
    induction ts as [|[y [n q]] rest IH]; cbn in *; nia. Qed.
  Lemma absurd_holds c : absurd table c = true -> holds (map (fun '(_, z) => - z) c).
  Proof.
    unfold absurd; rewrite !andb_true_iff, forallb_forall; intros [[Hz Hc] Hs]; unfold holds.
    apply not_false_is_true; intro H; assert (Ha : amount (total table c) <= 0).
    { clear Hc Hs; induction c as [|[z n] rest IH]; [reflexivity|]; cbn [map existsb] in H;
      apply orb_false_elim in H as [Hn H].
      assert (Hr : amount (total table rest) <= 0) by (apply IH; [intros x Hx; apply Hz; right;
        exact Hx | exact H]).
      assert (Hb : amount (line_of (literal table n)) <= 0) by (destruct (Z.eq_dec n 0) as [->|Hne];
        [reflexivity|];
        apply line_of_says; rewrite lit_opp in Hn by exact Hne; apply negb_false_iff, Hn).
      assert (0 <= z) by (apply Z.leb_le; apply (Hz (z, n)); left; reflexivity).
      cbn [total fold_right]; fold (total table rest);
        pose proof (scaled_amount z (line_of (literal table n))) as E.
      unfold Facts.amount in *; cbn [constant terms] in *; rewrite sum_app; nia. }
    apply Z.ltb_lt in Hc; unfold Facts.amount in Ha; rewrite <- sorted_sum in Ha;
      destruct (sorted (terms (total table c))); [cbn in Ha; lia | discriminate].
  Qed.
  Lemma clauses_hold r n fs : Forall (fun f => says f = true) fs ->
    Forall holds (clauses table r n fs).
  Proof.
    intro Hall; rewrite Forall_forall in Hall; repeat (apply Forall_app; split);
      [| apply meanings_hold | |]; apply Forall_forall.
    - intros c H; destruct (fact_dec _ _) as [E|]; [destruct H as [<-|[]] | destruct H];
        unfold holds; cbn; rewrite E; reflexivity.
    - intros c ((f & z) & Hin & H)%in_flat_map; apply in_combine_l in Hin;
        destruct (fact_dec _ _) as [E|]; [destruct H as [<-|[]] | destruct H].
      unfold holds; cbn [existsb]; rewrite <- E, normal_says, Hall by exact Hin; reflexivity.
    - intros c (l & _ & H)%in_flat_map; destruct (absurd table l) eqn:E; [destruct H as [<-|[]];
        exact (absurd_holds l E) | destruct H].
  Qed.
  (** What is true of each item of a map with its number. *)
  Definition each {A} (P : positive -> A -> Prop) (m : PositiveMap.t A) : Prop :=
    forall n x, PositiveMap.find n m = Some x -> P n x.
  Lemma each_empty {A} (P : positive -> A -> Prop) : each P (PositiveMap.empty A).
  Proof. intros n x; rewrite PositiveMap.gempty; discriminate. Qed.
  Lemma each_add {A} (P : positive -> A -> Prop) n x m : P n x -> each P m ->
    each P (PositiveMap.add n x m).
  Proof.
    intros Hx Hm k y; destruct (Pos.eq_dec k n) as [->|Hne]; [rewrite PositiveMap.gss;
      intros [= <-]; exact Hx|].
    rewrite PositiveMap.gso by exact Hne; apply Hm.
  Qed.
  Lemma each_listed {A} (P : A -> Prop) n l m : Forall P l -> each (fun _ => P) m ->
    each (fun _ => P) (listed n l m).
  Proof. intro H; revert n m; induction H; intros n m Hm; cbn; auto using each_add. Qed.
  Definition agrees : PositiveMap.t bool -> Prop := each (fun n b => says (entry table n) = b).
  Lemma agrees_assign z m : agrees m -> lit z = true -> agrees (assign z m).
  Proof. intros Hm Hz; destruct z; [exact Hm | |]; apply each_add;
    [exact Hz | exact Hm | apply negb_true_iff, Hz | exact Hm]. Qed.
  Lemma agrees_not_false m z : agrees m -> lit z = true -> not_false m z = true.
  Proof.
    intros Hm Hz; destruct z as [|n|n]; cbn in *; [discriminate Hz | |];
      destruct (PositiveMap.find n m) as [[]|] eqn:E; try reflexivity;
      apply Hm in E; rewrite E in Hz; discriminate.
  Qed.
  Lemma contradict_sound m cs : agrees m -> Forall holds cs -> contradict m cs = true -> False.
  Proof.
    intros Hm Hall; revert m Hm; induction Hall as [|c cs Hc _ IH]; intros m Hm H; [discriminate|];
      cbn in H.
    apply existsb_exists in Hc as (z & Hin & Hz); assert (Hf : In z (filter (not_false m) c))
      by (apply filter_In; split; [exact Hin | exact (agrees_not_false _ _ Hm Hz)]).
    destruct (filter (not_false m) c) as [|y [|]]; [destruct Hf | | discriminate].
    destruct Hf as [->|[]]; exact (IH _ (agrees_assign _ _ Hm Hz) H).
  Qed.
  Lemma learnt_sound n known cs : each (fun _ => holds) known -> learnt n known cs = true -> False.
  Proof.
    revert n known; induction cs as [|[c uses] rest IH]; intros n known Hk H; [discriminate|];
      cbn [learnt] in H.
    apply andb_prop in H as [Hs H]; assert (Hc : holds c).
    { unfold holds; apply not_false_is_true; intro E; refine (contradict_sound _ _ _ _ Hs).
      - clear Hs H; induction c as [|z c IHc]; cbn; [apply each_empty|]; cbn in E;
          apply orb_false_elim in E as [Ez E].
        destruct (Z.eq_dec z 0) as [->|Hne]; [exact (IHc E)|]; apply agrees_assign;
          [exact (IHc E) | rewrite lit_opp, Ez by exact Hne; reflexivity].
      - apply Forall_forall; intros d (k & _ & Hd)%in_flat_map;
          destruct (PositiveMap.find k known) eqn:Ek; [|destruct Hd].
        destruct Hd as [<-|[]]; exact (Hk _ _ Ek). }
    destruct c; [discriminate Hc | exact (IH _ _ (each_add _ _ _ _ Hc Hk) H)].
  Qed.
End Checker.
Lemma impossible_sound truth number p r fs : impossible r fs = true ->
  Forall (fun f => says truth number p f = true) fs -> False.
Proof.
  intros H Hall;
    refine (learnt_sound truth number p _ _ _ _ (each_listed _ _ _ _
    (clauses_hold _ _ _ _ _ _ _ Hall) (each_empty _)) H).
Qed.
