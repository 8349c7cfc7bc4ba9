(** Fixed points on finitely many tiles: in which round a tile comes on, and that it does so soon.
    *)
From MazeNCA Require Import Statements.
Export Statements.Fixpoints.
Lemma filter_grows {A} (f g : A -> bool) l : (forall x, f x = true -> g x = true) ->
  length (filter f l) < length (filter g l) \/ length (filter f l) = length (filter g l) /\
    forall x, In x l -> f x = g x.
Proof.
  intro H; induction l as [|x l [IH|[IH Hl]]]; cbn; [right; split; [reflexivity | intros ? []]| |];
    pose proof (H x) as Hx; destruct (f x) eqn:Ef, (g x) eqn:Eg; cbn; try (left; lia);
      try (discriminate (Hx eq_refl)).
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
  Context {tile : Type} (tiles : list tile) (names : list nat) (round : (tile -> nat -> bool) ->
    tile -> nat -> bool).
  Notation within := (@within tile). Notation after := (after round).
    Notation pairs := (pairs tiles names).
  Notation rounds := (rounds tiles names). Notation fixed := (fixed tiles names round).
  Notation stage := (stage tiles names round).
  Definition monotone : Prop := forall s s', within s s' -> within (round s) (round s').
  Definition count (t : nat) : nat := length (filter (fun '(x, g) => after t x g) pairs).
  Lemma count_all : (count rounds <= length tiles * length names)%nat.
  Proof. unfold count; rewrite filter_length_le; unfold pairs; rewrite prod_length; reflexivity.
    Qed.
  Lemma count_one g : names = [g] -> count rounds = length (filter (fun x => fixed x g) tiles).
  Proof.
    unfold count, fixed; generalize rounds as n; intros n ->; unfold pairs.
    induction tiles as [|x l IH]; cbn; [reflexivity|]; destruct (after n x g); cbn; rewrite IH;
      reflexivity.
  Qed.
  Hypotheses (every : forall x, In x tiles) (named : forall s x g, round s x g = true -> In g names)
    (same : forall s s', (forall x g, s x g = s' x g) -> forall x g, round s x g = round s' x g)
    (grows : forall t, within (after t) (after (S t))).
  Lemma after_le s t : s <= t -> within (after s) (after t).
  Proof. unfold within; induction 1; intros x g Hx; [exact Hx | apply grows; auto]. Qed.
  (** What comes on is on in every state that the rules are satisfied by. *)
  Lemma after_least t s : monotone -> within (round s) s -> within (after t) s.
  Proof. intros Hm Hs; induction t as [|t IH]; intros x g; [discriminate | intro H;
    exact (Hs x g (Hm _ _ IH x g H))]. Qed.
  Definition still (t : nat) : Prop := forall x g, after (S t) x g = after t x g.
  Lemma count_or_still t : count t < count (S t) \/ still t.
  Proof.
    destruct (filter_grows (fun '(x, g) => after t x g) (fun '(x, g) => after (S t) x g) pairs) as
      [H|[_ H]];
      [intros [x g]; apply grows | left; exact H | right; intros x g].
    destruct (after (S t) x g) eqn:E; [|destruct (after t x g) eqn:E'; [apply grows in E';
      congruence | reflexivity]].
    rewrite <- E; symmetry; apply (H (x, g)), in_prod; [apply every | exact (named _ _ _ E)].
  Qed.
  Lemma still_for_good s t x g : still s -> s <= t -> after t x g = after s x g.
  Proof. intros Hs Ht; revert x g; induction Ht as [|t Ht IH]; intros x g;
    [reflexivity | rewrite <- (Hs x g); apply same, IH]. Qed.
  Lemma counts t : t <= count t \/ exists s, s < t /\ still s.
  Proof.
    induction t as [|t [IH|(s & Hs & H)]]; [left; lia | | right; exists s; split; [lia | exact H]].
    destruct (count_or_still t) as [H|H]; [left; lia | right; exists t; split; [lia | exact H]].
  Qed.
  Lemma settled t : within (after t) (after rounds).
  Proof.
    intros x g H; destruct (counts (S rounds)) as [Hc|(s & Hs & Hstill)].
    - pose proof (filter_length_le (fun '(x, g) => after (S rounds) x g) pairs);
        unfold count, rounds in *; lia.
    - destruct (Nat.le_gt_cases t rounds) as [Ht|Ht]; [exact (after_le _ _ Ht x g H)|].
      rewrite (still_for_good s) in H by (assumption || lia); apply (after_le s); [lia | exact H].
  Qed.
  Theorem fixed_is_least x g : monotone -> fixed x g = true <-> forall s, within (round s) s ->
    s x g = true.
  Proof.
    intro Hm; split; [intros H s Hs; exact (after_least _ _ Hm Hs x g H)|]; intro H; apply H;
      intros y h Hy; exact (settled (S rounds) y h Hy).
  Qed.
  Local Open Scope Z_scope.
  Lemma fixed_iff x g : fixed x g = (0 <=? stage x g).
  Proof.
    unfold stage; destruct (fixed x g) eqn:E; [|reflexivity]; symmetry; apply Z.leb_le.
    pose proof (first_on_spec (fun t => after t x g) rounds (fun s t Hst =>
      after_le s t Hst x g) E 0) as H; cbn in H.
    destruct (first_on _ _); [discriminate (proj2 H (le_n 0)) | lia].
  Qed.
  Lemma stage_range x g : 0 <= stage x g \/ stage x g = -1.
  Proof. unfold stage; destruct (fixed x g); lia. Qed.
  Lemma stage_spec t x g : after t x g = (0 <=? stage x g) && (stage x g <? Z.of_nat t).
  Proof.
    rewrite <- fixed_iff; unfold stage; destruct (fixed x g) eqn:E; cbn.
    - pose proof (first_on_spec (fun t => after t x g) rounds (fun s t Hst =>
        after_le s t Hst x g) E t) as H; cbn in H.
      apply eq_true_iff_eq; rewrite H, Z.ltb_lt; lia.
    - apply not_true_is_false; intro H; unfold fixed in E; rewrite (settled _ _ _ H) in E;
        discriminate.
  Qed.
  (** What is the same at two tiles in each round comes on at the same time. *)
  Lemma stage_same x y g : (forall s, round s x g = round s y g) -> stage x g = stage y g.
  Proof.
    intro H; assert (E : forall t, after t x g = after t y g) by (intros [|t];
      [reflexivity | apply H]).
    assert (F : forall n, first_on (fun t => after t x g) n = first_on (fun t => after t y g) n) by
      (induction n as [|n IH]; cbn; [|rewrite E, IH]; reflexivity).
    unfold stage, fixed; rewrite E, F; reflexivity.
  Qed.
  Lemma comes_on x g : 0 <= stage x g -> round (after (Z.to_nat (stage x g))) x g = true.
  Proof.
    intro H; change (after (S (Z.to_nat (stage x g))) x g = true); rewrite stage_spec;
      apply andb_true_iff; rewrite Z.leb_le, Z.ltb_lt; lia.
  Qed.
  Lemma stage_few x g : 0 <= stage x g -> stage x g < Z.of_nat (count rounds).
  Proof.
    intro Hle; set (s := Z.to_nat (stage x g)).
    assert (Hon : after (S s) x g = true) by (rewrite stage_spec; apply andb_true_iff;
      rewrite Z.leb_le, Z.ltb_lt; lia).
    assert (Hoff : after s x g = false) by (rewrite stage_spec; apply andb_false_iff;
      rewrite Z.ltb_ge; lia).
    destruct (counts (S s)) as [Hc|(r & Hr & Hstill)].
    - enough (count (S s) <= count rounds)%nat by lia; unfold count at 1 2.
      destruct (filter_grows (fun '(x, g) => after (S s) x g) (fun '(x, g) =>
        after rounds x g) pairs) as [|[E _]]; [|lia|rewrite E; lia].
      intros [y h]; apply settled.
    - rewrite (still_for_good r) in Hon by (assumption || lia);
        rewrite (still_for_good r) in Hoff by (assumption || lia); congruence.
  Qed.
End Fixpoints.
