(** Facts about a maze, in which theorems about automata are stated, and a checker of what follows from facts. *)
From Coq Require Import Lia FMapPositive.
Require Import World Refute.
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
(** [Below l]: the sum l is at most 0. [Truth n p]: a boolean of the tile at p. *)
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
Definition shift_terms (d : spot) := map (fun '(z, (n, q)) => (z, (n, if n <? 0 then q else plus d q)) : Z * var).
Fixpoint shift (d : spot) (f : fact) : fact :=
  match f with
  | Truth n q => Truth n (plus d q)
  | Below l => Below (Lin (constant l) (shift_terms d (terms l)))
  | Always b => Always b
  | Both f g => Both (shift d f) (shift d g)
  | Either f g => Either (shift d f) (shift d g)
  | No f => No (shift d f)
  end.
Fixpoint times (ts : list (Z * var)) : Z :=
  match ts with [] => 0 | (z, (n, _)) :: rest => (if n =? TIME then z else 0) + times rest end.
Fixpoint later (f : fact) : fact :=
  match f with
  | Truth n q => Truth n q
  | Below l => Below (Lin (constant l + times (terms l)) (terms l))
  | Always b => Always b
  | Both f g => Both (later f) (later g)
  | Either f g => Either (later f) (later g)
  | No f => No (later f)
  end.
(** Of no signal that is held: only then is the fact an iteration later [later]. *)
Fixpoint timeless (f : fact) : bool :=
  match f with
  | Truth n _ => 0 <=? n
  | Below _ | Always _ => true
  | Both f g | Either f g => timeless f && timeless g
  | No f => timeless f
  end.
Lemma plus_assoc p q r : plus (plus p q) r = plus p (plus q r).
Proof. unfold plus; cbn; f_equal; lia. Qed.
Lemma shift_says truth number d p f : (forall n q r, n < 0 -> number n q = number n r) ->
  says truth number p (shift d f) = says truth number (plus p d) f.
Proof.
  intro H; induction f as [n q|[c ts]| | | |]; cbn; rewrite ?plus_assoc; try congruence.
  f_equal; unfold amount; cbn; f_equal; induction ts as [|[z [n q]] rest IH]; cbn; [reflexivity|].
  rewrite IH; f_equal; f_equal; destruct (Z.ltb_spec n 0); [apply H; assumption | rewrite plus_assoc; reflexivity].
Qed.
Lemma later_says truth truth' number number' p f : timeless f = true ->
  (forall n q, 0 <= n -> truth' n q = truth n q) ->
  (forall n q, number' n q = if n =? TIME then number n q + 1 else number n q) ->
  says truth number p (later f) = says truth' number' p f.
Proof.
  intros Hf Ht Hn; induction f as [n q|[c ts]| |f IHf g IHg|f IHf g IHg|f IHf]; cbn in *; try apply andb_prop in Hf as [? ?];
    rewrite ?IHf, ?IHg by assumption; try reflexivity.
  - symmetry; apply Ht; apply Z.leb_le; assumption.
  - f_equal; unfold amount; cbn; clear Hf; induction ts as [|[z [n q]] rest IH]; cbn; [lia|]. rewrite Hn; destruct (n =? TIME); lia.
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
Fixpoint normal (f : fact) : fact :=
  match f with
  | Below l => below l
  | Both f g => Both (normal f) (normal g)
  | Either f g => Either (normal f) (normal g)
  | No f => No (normal f)
  | _ => f
  end.
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
  Proof. induction f; cbn [normal]; rewrite ?below_says; cbn; congruence. Qed.
End Normal.

(** * Linear facts: sums that are all at most 0, and with these factors add up to more than 0 *)
Definition claim : Type := list (Z * (bool * lin)).
Definition claimed (c : claim) : fact :=
  No (fold_right (fun '(_, (b, l)) f => Both (if b : bool then Below l else No (Below l)) f) (Always true) c).
Definition scaled (z : Z) (l : lin) : lin := Lin (z * constant l) (map (fun '(y, v) => (z * y, v)) (terms l)).
Definition total (c : claim) : lin :=
  fold_right (fun '(z, (b, l)) s => let l := scaled z (if b : bool then l else over l) in
    Lin (constant l + constant s) (terms l ++ terms s)) (Lin 0 []) c.
Definition absurd (c : claim) : bool :=
  forallb (fun '(z, _) => 0 <=? z) c && (0 <? constant (total c)) && match sorted (terms (total c)) with [] => true | _ => false end.
Section Linear.
  Variables (truth : Z -> spot -> bool) (number : Z -> spot -> Z) (p : spot).
  Lemma sum_app ts us : sum number p (ts ++ us) = sum number p ts + sum number p us.
  Proof. induction ts as [|[z [n q]] rest IH]; cbn; lia. Qed.
  Lemma scaled_amount z l : amount number p (scaled z l) = z * amount number p l.
  Proof. destruct l as [c ts]; unfold scaled, amount; cbn; induction ts as [|[y [n q]] rest IH]; cbn in *; nia. Qed.
  Lemma absurd_claimed c : absurd c = true -> says truth number p (claimed c) = true.
  Proof.
    unfold absurd; rewrite !andb_true_iff, forallb_forall; intros [[Hz Hc] Hs].
    unfold claimed; cbn [says]; apply negb_true_iff, not_true_is_false; intro H. assert (Ha : amount number p (total c) <= 0).
    { clear Hc Hs; induction c as [|[z [b l]] rest IH]; [reflexivity|]; cbn [fold_right says] in H; apply andb_prop in H as [Hl H].
      assert (Hr : amount number p (total rest) <= 0) by (apply IH; [intros x Hx; apply Hz; right; exact Hx | exact H]).
      assert (Hb : amount number p (if b then l else over l) <= 0).
      { destruct b; cbn [says] in Hl; [apply Z.leb_le; exact Hl | rewrite over_amount]; apply negb_true_iff, Z.leb_gt in Hl; lia. }
      assert (0 <= z) by (apply Z.leb_le; apply (Hz (z, (b, l))); left; reflexivity).
      cbn [total fold_right]; fold (total rest); pose proof (scaled_amount z (if b then l else over l)) as E.
      unfold amount in *; cbn [constant terms] in *; rewrite sum_app; nia. }
    apply Z.ltb_lt in Hc; unfold amount in Ha; rewrite <- sorted_sum in Ha; destruct (sorted (terms (total c))); [cbn in Ha; lia | discriminate].
  Qed.
End Linear.

(** * The checker: atoms become numbers, and a search by case distinctions finds that formulas cannot all be true *)
Definition spot_eqb (p q : spot) : bool := (fst p =? fst q) && (snd p =? snd q).
Fixpoint terms_eqb (ts us : list (Z * var)) : bool :=
  match ts, us with
  | [], [] => true
  | (z, (n, p)) :: ts, (y, (m, q)) :: us => (z =? y) && (n =? m) && spot_eqb p q && terms_eqb ts us
  | _, _ => false
  end.
Definition atom_eqb (f g : fact) : bool :=
  match f, g with
  | Truth n p, Truth m q => (n =? m) && spot_eqb p q
  | Below l, Below k => (constant l =? constant k) && terms_eqb (terms l) (terms k)
  | _, _ => false
  end.
Fixpoint place_of (f : fact) (table : list fact) (n : positive) : option positive :=
  match table with [] => None | g :: rest => if atom_eqb f g then Some n else place_of f rest (Pos.succ n) end.
Fixpoint added (f : fact) (table : list fact) : list fact :=
  match f with
  | Truth _ _ | Below _ => match place_of f table 1 with Some _ => table | None => table ++ [f] end
  | Always _ => table
  | Both f g | Either f g => added g (added f table)
  | No f => added f table
  end.
Fixpoint form_of (table : list fact) (f : fact) : option form :=
  let two join f g := match f, g with Some f, Some g => Some (join f g) | _, _ => None end in
  match f with
  | Truth _ _ | Below _ => option_map Atom (place_of f table 1)
  | Always b => Some (Const b)
  | Both f g => two conj (form_of table f) (form_of table g)
  | Either f g => two disj (form_of table f) (form_of table g)
  | No f => option_map neg (form_of table f)
  end.
Fixpoint forced (sign : bool) (f : form) : option positive :=
  let first a b := match a with Some n => Some n | None => b end in
  match f with
  | Atom n => Some n
  | Conj f g => if sign then first (forced sign f) (forced sign g) else None
  | Disj f g => if sign then None else first (forced sign f) (forced sign g)
  | Neg f => forced (negb sign) f
  | _ => None
  end.
Fixpoint size (f : form) : BinNums.N :=
  match f with Conj f g | Disj f g => size f + size g | Neg f => size f | _ => 1 end%N.
(** An atom that has but one value if there is one, or else the first of a smallest formula. *)
Fixpoint chosen (fs : list form) (best : form) : option positive :=
  match fs with
  | [] => first_atom best
  | f :: rest => match forced true f with
      | Some n => Some n
      | None => chosen rest (if (size f <? size best)%N then f else best)
      end
  end.
Fixpoint search (fuel : nat) (fs : list form) : bool :=
  match fuel, fs with
  | S fuel, f :: _ => match chosen fs f with
      | Some n =>
          match assign_all n true fs with None => true | Some gs => search fuel gs end &&
          match assign_all n false fs with None => true | Some gs => search fuel gs end
      | None => existsb (fun f => match f with Const false => true | _ => false end) fs
      end
  | _, _ => false
  end.
Fixpoint all_forms (table : list fact) (fs : list fact) : option (list form) :=
  match fs with
  | [] => Some []
  | f :: rest => match form_of table f, all_forms table rest with Some f, Some gs => Some (f :: gs) | _, _ => None end
  end.
(** Clauses, each of which follows from the facts and clauses of these numbers before it; the last is empty. *)
Definition cut : Type := list Z * list positive.
Definition literal (z : Z) : form := match z with Zpos n => Atom n | Zneg n => Neg (Atom n) | Z0 => Const false end.
Definition clause (c : list Z) : form := fold_right (fun z f => disj (literal z) f) (Const false) c.
Definition picked (known : PositiveMap.t form) (uses : list positive) : list form :=
  flat_map (fun n => match PositiveMap.find n known with Some f => [f] | None => [] end) uses.
Fixpoint learnt (fuel : nat) (n : positive) (known : PositiveMap.t form) (cuts : list cut) : bool :=
  match cuts with
  | [] => false
  | (c, uses) :: rest => search fuel (map (fun z => neg (literal z)) c ++ picked known uses) &&
      match c with [] => true | _ => learnt fuel (Pos.succ n) (PositiveMap.add n (clause c) known) rest end
  end.
Fixpoint after_facts (fuel : nat) (n : positive) (known : PositiveMap.t form) (fs : list form) (cuts : list cut) : bool :=
  match fs with [] => learnt fuel n known cuts | f :: rest => after_facts fuel (Pos.succ n) (PositiveMap.add n f known) rest cuts end.
Definition impossible (atoms : list fact) (cuts : list cut) (fs : list fact) : bool :=
  let fs := map normal fs in
  match all_forms (fold_left (fun table f => added f table) fs atoms) fs with
  | Some fs => after_facts enough 1 (PositiveMap.empty form) fs cuts
  | None => false
  end.
Section Checker.
  Variables (truth : Z -> spot -> bool) (number : Z -> spot -> Z) (p : spot).
  Notation says := (says truth number p).
  Definition valued (table : list fact) (n : positive) : bool := says (nth (Pos.to_nat n - 1) table (Always false)).
  Lemma spot_eqb_eq q r : spot_eqb q r = true -> q = r.
  Proof. destruct q, r; unfold spot_eqb; cbn; rewrite andb_true_iff, !Z.eqb_eq; intros [-> ->]; reflexivity. Qed.
  Lemma atom_eqb_eq f g : atom_eqb f g = true -> f = g.
  Proof.
    destruct f as [n q|[c ts]| | | |], g as [m r|[d us]| | | |]; try discriminate; cbn; rewrite andb_true_iff, Z.eqb_eq.
    - intros [-> ->%spot_eqb_eq]; reflexivity.
    - intros [-> H]; f_equal; f_equal; revert us H; induction ts as [|[z [n q]] ts IH]; intros [|[y [m r]] us]; try discriminate; [reflexivity|].
      cbn; rewrite !andb_true_iff, !Z.eqb_eq; intros [[[-> ->] ->%spot_eqb_eq] H]; f_equal; auto.
  Qed.
  Lemma place_of_nth f table n k : place_of f table n = Some k ->
    (Pos.to_nat n <= Pos.to_nat k)%nat /\ nth (Pos.to_nat k - Pos.to_nat n) table (Always false) = f.
  Proof.
    revert n; induction table as [|g rest IH]; cbn; intros n; [discriminate|]. destruct (atom_eqb f g) eqn:E.
    - intros [= <-]; rewrite Nat.sub_diag; split; [lia | symmetry; apply atom_eqb_eq, E].
    - intros [Hle <-]%IH; rewrite Pos2Nat.inj_succ in *; split; [lia|].
      replace (Pos.to_nat k - Pos.to_nat n)%nat with (S (Pos.to_nat k - S (Pos.to_nat n)))%nat by lia; reflexivity.
  Qed.
  Lemma form_of_holds table f g : form_of table f = Some g -> holds (valued table) g = says f.
  Proof.
    assert (H : forall f n, place_of f table 1 = Some n -> valued table n = says f)
      by (intros h n [_ <-]%place_of_nth; reflexivity).
    revert g; induction f as [n q|l|b|f IHf h IHh|f IHf h IHh|f IHf]; intros g; cbn [form_of].
    1, 2: destruct (place_of _ table 1) eqn:E; [|discriminate]; intros [= <-]; apply H, E.
    - intros [= <-]; reflexivity.
    - destruct (form_of table f), (form_of table h); try discriminate; intros [= <-]; rewrite conj_holds, (IHf _ eq_refl), (IHh _ eq_refl); reflexivity.
    - destruct (form_of table f), (form_of table h); try discriminate; intros [= <-]; rewrite disj_holds, (IHf _ eq_refl), (IHh _ eq_refl); reflexivity.
    - destruct (form_of table f); try discriminate; intros [= <-]; rewrite neg_holds, (IHf _ eq_refl); reflexivity.
  Qed.
  Lemma search_sound v fuel fs : search fuel fs = true -> all v fs -> False.
  Proof.
    revert fs; induction fuel as [|fuel IH]; intros [|f fs] H Hall; try discriminate; cbn [search] in H.
    destruct (chosen (f :: fs) f) as [n|].
    - apply andb_prop in H as [Ht Hf]; destruct (assign_all_holds v n _ Hall) as (gs & Hgs & Hg).
      destruct (v n); rewrite Hgs in *; eapply IH; eauto.
    - apply existsb_exists in H as (g & Hin & Hg); unfold all in Hall; rewrite Forall_forall in Hall; specialize (Hall g Hin).
      destruct g as [|[]| | | |]; discriminate.
  Qed.
  Definition all_known v (known : PositiveMap.t form) : Prop := forall n f, PositiveMap.find n known = Some f -> holds v f = true.
  Lemma all_known_add v n f known : all_known v known -> holds v f = true -> all_known v (PositiveMap.add n f known).
  Proof.
    intros H Hf m g; destruct (Pos.eq_dec m n) as [->|Hne]; [rewrite PositiveMap.gss; intros [= <-]; exact Hf|].
    rewrite PositiveMap.gso by exact Hne; apply H.
  Qed.
  Lemma learnt_sound v fuel n known cuts : learnt fuel n known cuts = true -> all_known v known -> False.
  Proof.
    revert n known; induction cuts as [|[c uses] rest IH]; intros n known H Hk; [discriminate|]; cbn [learnt] in H.
    apply andb_prop in H as [Hs H]. assert (Hc : holds v (clause c) = true).
    { destruct (holds v (clause c)) eqn:E; [reflexivity | exfalso; apply (search_sound v _ _ Hs), Forall_app]; split.
      - clear Hs H; induction c as [|z c IHc]; [constructor|]; cbn [clause fold_right] in E; rewrite disj_holds in E.
        apply orb_false_elim in E as [Ez E]; constructor; [rewrite neg_holds, Ez; reflexivity | exact (IHc E)].
      - apply Forall_forall; intros f (m & _ & Hm)%in_flat_map; destruct (PositiveMap.find m known) eqn:Em; [|destruct Hm].
        destruct Hm as [<-|[]]; exact (Hk m _ Em). }
    destruct c; [discriminate Hc | exact (IH _ _ H (all_known_add _ _ _ _ Hk Hc))].
  Qed.
  Lemma after_facts_sound v fuel n known fs cuts : after_facts fuel n known fs cuts = true -> all_known v known -> all v fs -> False.
  Proof.
    intros H Hk Hall; revert n known H Hk; induction Hall as [|f fs Hf _ IH]; intros n known H Hk; [exact (learnt_sound _ _ _ _ _ H Hk)|].
    exact (IH _ _ H (all_known_add _ _ _ _ Hk Hf)).
  Qed.
  Lemma impossible_sound atoms cuts fs : impossible atoms cuts fs = true -> Forall (fun f => says f = true) fs -> False.
  Proof.
    unfold impossible; intros H Hall; destruct (all_forms _ (map normal fs)) as [gs|] eqn:E; [|discriminate].
    remember (fold_left _ _ _) as table eqn:Et; clear Et. assert (Hg : all (valued table) gs).
    { clear H; revert gs E; induction Hall as [|f fs Hf _ IH]; cbn; intros gs.
      - intros [= <-]; constructor.
      - destruct (form_of table (normal f)) eqn:Ef; [|discriminate]; destruct (all_forms table (map normal fs)) eqn:Er; [|discriminate].
        intros [= <-]; constructor; [|apply IH; reflexivity]. rewrite (form_of_holds table _ _ Ef), normal_says; exact Hf. }
    refine (after_facts_sound _ _ _ _ _ _ H _ Hg); intros n f; rewrite PositiveMap.gempty; discriminate.
  Qed.
End Checker.
