(** Least fixed points of rules on a finite world: in which round a tile comes on, and that it does so soon. *)
From Coq Require Import Lia.
Require Import World Refute.
(** A rule that negates nothing that it sees but kinds of tile. *)
Fixpoint positive (b : bool) (e : expr) : bool :=
  match e with
  | See _ _ => b
  | Is _ _ | Never => true
  | And e f | Or e f => positive b e && positive b f
  | Not e => positive (negb b) e
  end.
Definition monotone (a : automaton) : bool := forallb (positive true) (rules a).
(** Rules by which each signal stays on, or that negate nothing. *)
Definition stays (g : nat) (e : expr) : bool := match e with Or (See h C) _ => Nat.eqb h g | _ => false end.
Definition growing (a : automaton) : bool := monotone a || forallb (fun g => stays g (rule a g)) (seq 0 (length (rules a))).
(** The first number from which a boolean is true on, if it is at n. *)
Fixpoint first_on (f : nat -> bool) (n : nat) : nat :=
  match n with O => O | S m => if f m then first_on f m else n end.
Lemma eval_grows see see' tile e : (forall t g, see t g = true -> see' t g = true) -> forall b, positive b e = true ->
  if b then eval e see tile = true -> eval e see' tile = true else eval e see' tile = true -> eval e see tile = true.
Proof.
  intro H; induction e as [g t|k t|e IHe f IHf|e IHe f IHf|e IHe|]; cbn; intros b Hb.
  - subst b; apply H.
  - destruct b; auto.
  - apply andb_prop in Hb as [He Hf]; specialize (IHe b He); specialize (IHf b Hf); destruct b; rewrite !andb_true_iff; tauto.
  - apply andb_prop in Hb as [He Hf]; specialize (IHe b He); specialize (IHf b Hf); destruct b; rewrite !orb_true_iff; tauto.
  - specialize (IHe (negb b) Hb); destruct b; cbn in IHe; destruct (eval e see tile), (eval e see' tile); cbn; intuition.
  - destruct b; auto.
Qed.
Lemma filter_grows {A} (f g : A -> bool) l : (forall x, f x = true -> g x = true) ->
  length (filter f l) < length (filter g l) \/ length (filter f l) = length (filter g l) /\ forall x, In x l -> f x = g x.
Proof.
  intro H; induction l as [|x l [IH|[IH Hl]]]; cbn; [right; split; [reflexivity | intros ? []]| |];
    pose proof (H x) as Hx; destruct (f x) eqn:Ef, (g x) eqn:Eg; cbn; try (left; lia); try (discriminate (Hx eq_refl)).
  all: right; split; [lia | intros y [<-|Hy]; [congruence | auto]].
Qed.
Lemma filter_length_le {A} (f : A -> bool) l : length (filter f l) <= length l.
Proof. induction l as [|x l IH]; cbn; [lia | destruct (f x); cbn; lia]. Qed.
Lemma first_on_spec f n : (forall s t, s <= t -> f s = true -> f t = true) -> f n = true ->
  forall t, f t = true <-> first_on f n <= t.
Proof.
  intro H; induction n as [|m IH]; cbn; intros Hn t.
  - split; [lia | intros _; apply (H 0); [lia | exact Hn]].
  - destruct (f m) eqn:E; [apply IH; reflexivity|]; split.
    + intro Ht; destruct (Nat.le_gt_cases (S m) t) as [|Hlt]; [assumption|].
      enough (f m = true) by congruence; apply (H t); [lia | exact Ht].
    + intro Hle; exact (H _ _ Hle Hn).
Qed.
Section Fixpoints.
  Context (w : world) (a : automaton) (tiles : list (node w)).
  Hypotheses (pooling : pools w) (grows : growing a = true) (every : forall x, In x tiles).
  Notation after := (run w a).
  (** A rule is true at a tile, or somewhere if the signal is pooled. *)
  Definition shows (s : state w) (x : node w) (g : nat) (y : node w) : Prop :=
    (is_pooled a g = true \/ y = x) /\ eval (rule a g) (see w s y) (tile w y) = true.
  Lemma step_iff s x g : step w a s x g = true <-> exists y, shows s x g y.
  Proof.
    unfold step, shows; destruct (is_pooled a g); [rewrite anywhere_iff by exact pooling; firstorder|].
    split; [eauto | intros (y & [E|E] & H); [discriminate E | subst y; exact H]].
  Qed.
  Lemma no_such_rule t x g : length (rules a) <= g -> after t x g = false.
  Proof.
    intro H; destruct t; [reflexivity|]; apply not_true_is_false; cbn [run]; rewrite step_iff; intros (y & _ & Hy).
    unfold rule in Hy; rewrite nth_overflow in Hy by exact H; discriminate Hy.
  Qed.
  Lemma rule_positive g : monotone a = true -> positive true (rule a g) = true.
  Proof.
    unfold monotone, rule; intro H; destruct (Nat.lt_ge_cases g (length (rules a))) as [Hg|Hg]; [|rewrite nth_overflow by exact Hg; reflexivity].
    rewrite forallb_forall in H; apply H, nth_In, Hg.
  Qed.
  Lemma see_grows (s s' : state w) x : (forall y h, s y h = true -> s' y h = true) ->
    forall t g, see w s x t g = true -> see w s' x t g = true.
  Proof. intros H t g; unfold see; destruct (at_tap w t x); [apply H | trivial]. Qed.
  Lemma step_grows (s s' : state w) x g : monotone a = true -> (forall y h, s y h = true -> s' y h = true) ->
    step w a s x g = true -> step w a s' x g = true.
  Proof.
    intros Hm H; rewrite !step_iff; intros (y & Hy & He); exists y; split; [exact Hy|].
    exact (eval_grows _ _ _ _ (see_grows _ _ y H) true (rule_positive g Hm) He).
  Qed.
  Lemma after_grows t x g : after t x g = true -> after (S t) x g = true.
  Proof.
    unfold growing in grows; apply orb_prop in grows as [Hm|Hs].
    - revert x g; induction t as [|t IH]; intros x g; [discriminate | apply step_grows; assumption].
    - intro H; destruct (Nat.lt_ge_cases g (length (rules a))) as [Hg|Hg]; [|rewrite no_such_rule in H by exact Hg; discriminate].
      rewrite forallb_forall in Hs; assert (Hi : In g (seq 0 (length (rules a)))) by (apply in_seq; lia); specialize (Hs g Hi).
      cbn [run]; rewrite step_iff; exists x; split; [auto|].
      destruct (rule a g) as [| | |[h []| | | | |] f| |]; try discriminate; apply Nat.eqb_eq in Hs; subst h.
      cbn; unfold see; cbn; rewrite H; reflexivity.
  Qed.
  Lemma after_le s t x g : s <= t -> after s x g = true -> after t x g = true.
  Proof. induction 1; auto using after_grows. Qed.
  (** What comes on is on in every state that the rules are satisfied by. *)
  Definition closed_state (s : state w) : Prop := forall x g, step w a s x g = true -> s x g = true.
  Lemma after_least t x g s : monotone a = true -> closed_state s -> after t x g = true -> s x g = true.
  Proof.
    intros Hm Hs; revert x g; induction t as [|t IH]; intros x g; [discriminate|]; intro H; apply Hs; exact (step_grows _ _ x g Hm IH H).
  Qed.
  Definition pairs := list_prod tiles (seq 0 (length (rules a))).
  Definition count (t : nat) : nat := length (filter (fun '(x, g) => after t x g) pairs).
  Definition rounds : nat := length pairs.
  Definition still (t : nat) : Prop := forall x g, after (S t) x g = after t x g.
  Lemma count_or_still t : count t < count (S t) \/ still t.
  Proof.
    destruct (filter_grows (fun '(x, g) => after t x g) (fun '(x, g) => after (S t) x g) pairs) as [H|[_ H]];
      [intros [x g]; apply after_grows | left; exact H | right; intros x g].
    destruct (Nat.lt_ge_cases g (length (rules a))) as [Hg|Hg]; [|rewrite !no_such_rule by exact Hg; reflexivity].
    symmetry; apply (H (x, g)), in_prod; [apply every | apply in_seq; lia].
  Qed.
  Lemma step_same (s s' : state w) x g : (forall y h, s y h = s' y h) -> step w a s x g = step w a s' x g.
  Proof.
    intro H; apply eq_true_iff_eq; rewrite !step_iff; unfold shows; split; intros (y & Hy & He); exists y; (split; [exact Hy|]); rewrite <- He;
      apply eval_same; try reflexivity; intros tap h; unfold see; destruct (at_tap w tap y); auto.
  Qed.
  Lemma still_for_good s t x g : still s -> s <= t -> after t x g = after s x g.
  Proof.
    intros Hs Ht; revert x g; induction Ht as [|t Ht IH]; intros x g; [reflexivity|].
    rewrite <- (Hs x g); apply step_same, IH.
  Qed.
  Lemma counts t : t <= count t \/ exists s, s < t /\ still s.
  Proof.
    induction t as [|t [IH|(s & Hs & H)]]; [left; lia | | right; exists s; split; [lia | exact H]].
    destruct (count_or_still t) as [H|H]; [left; lia | right; exists t; split; [lia | exact H]].
  Qed.
  Lemma settled t x g : after t x g = true -> after rounds x g = true.
  Proof.
    intro H; destruct (counts (S rounds)) as [Hc|(s & Hs & Hstill)].
    - pose proof (filter_length_le (fun '(x, g) => after (S rounds) x g) pairs); unfold count, rounds in *; lia.
    - destruct (Nat.le_gt_cases t rounds) as [Ht|Ht]; [exact (after_le _ _ _ _ Ht H)|].
      rewrite (still_for_good s) in H by (assumption || lia); apply (after_le s); [lia | exact H].
  Qed.
  (** What comes on, and the round in which it does, from 0; -1 if it never does. *)
  Definition fixed (x : node w) (g : nat) : bool := after rounds x g.
  Theorem fixed_is_least x g : monotone a = true -> fixed x g = true <-> forall s, closed_state s -> s x g = true.
  Proof.
    intro Hm; split; [intros H s Hs; exact (after_least _ _ _ _ Hm Hs H)|]; intro H; apply H; intros y h Hy; exact (settled (S rounds) y h Hy).
  Qed.
  Local Open Scope Z_scope.
  Definition stage (x : node w) (g : nat) : Z :=
    if fixed x g then Z.of_nat (first_on (fun t => after t x g) rounds) - 1 else -1.
  Lemma stage_spec t x g : after t x g = fixed x g && (stage x g <? Z.of_nat t).
  Proof.
    unfold stage; destruct (fixed x g) eqn:E; cbn.
    - pose proof (first_on_spec (fun t => after t x g) rounds (fun s t => after_le s t x g) E t) as H; cbn in H.
      apply eq_true_iff_eq; rewrite H, Z.ltb_lt; lia.
    - apply not_true_is_false; intro H; unfold fixed in E; rewrite (settled _ _ _ H) in E; discriminate.
  Qed.
  Lemma stage_least x g : fixed x g = true -> 0 <= stage x g.
  Proof.
    intro H; pose proof (stage_spec 0 x g) as E; rewrite H in E; cbn [run andb] in E; symmetry in E; apply Z.ltb_ge in E; exact E.
  Qed.
  (** A pooled relation is the same everywhere, and a tile shows why it comes on. *)
  Lemma pooled_same t x y g : is_pooled a g = true -> after t x g = after t y g.
  Proof. intro H; destruct t; [reflexivity|]; cbn [run]; unfold step; rewrite H; reflexivity. Qed.
  Lemma first_on_same f f' n : (forall t, f t = f' t) -> first_on f n = first_on f' n.
  Proof. intro H; induction n as [|n IH]; cbn; [reflexivity | rewrite H, IH; reflexivity]. Qed.
  Lemma stage_same x y g : is_pooled a g = true -> stage x g = stage y g.
  Proof.
    intro H; unfold stage, fixed; rewrite (pooled_same rounds x y g H), (first_on_same _ (fun t => after t y g)); [reflexivity|].
    intro t; apply pooled_same, H.
  Qed.
  Lemma shown_somewhere x g : fixed x g = true -> exists y, shows (after (Z.to_nat (stage x g))) x g y.
  Proof.
    intro H; apply step_iff; change (after (S (Z.to_nat (stage x g))) x g = true); rewrite stage_spec, H; apply Z.ltb_lt.
    pose proof (stage_least x g H); lia.
  Qed.
  Lemma stage_few x g : fixed x g = true -> stage x g < Z.of_nat (count rounds).
  Proof.
    intro H; pose proof (stage_least x g H) as Hle; set (s := Z.to_nat (stage x g)).
    assert (Hon : after (S s) x g = true) by (rewrite stage_spec, H; apply Z.ltb_lt; lia).
    assert (Hoff : after s x g = false) by (rewrite stage_spec, H; apply Z.ltb_ge; lia).
    destruct (counts (S s)) as [Hc|(r & Hr & Hstill)].
    - enough (count (S s) <= count rounds)%nat by lia; unfold count at 1 2.
      destruct (filter_grows (fun '(x, g) => after (S s) x g) (fun '(x, g) => after rounds x g) pairs) as [|[E _]]; [|lia|rewrite E; lia].
      intros [y h]; apply settled.
    - rewrite (still_for_good r) in Hon by (assumption || lia); rewrite (still_for_good r) in Hoff by (assumption || lia); congruence.
  Qed.
  Lemma count_all : Z.of_nat (count rounds) <= Z.of_nat (length (rules a)) * Z.of_nat (length tiles).
  Proof.
    pose proof (filter_length_le (fun '(x, g) => after rounds x g) pairs) as H; unfold count.
    unfold pairs in H at 2; rewrite prod_length, seq_length in H; lia.
  Qed.
  Lemma count_one : length (rules a) = 1%nat -> count rounds = length (filter (fun x => fixed x 0) tiles).
  Proof.
    unfold count, pairs, fixed; intros ->; generalize rounds as n; clear every; intro n; cbn [seq].
    induction tiles as [|x l IH]; cbn; [reflexivity|]; destruct (after n x 0%nat); cbn; rewrite IH; reflexivity.
  Qed.
End Fixpoints.
