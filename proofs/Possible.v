(** What the automaton of the shortest path never holds: the network relies on it. *)
From MazeNCA Require Import Mazes Refute Network ShortestPath.

Definition near_expr (p : place) : expr :=
  match p with
  | First => See NEAR_1 C | Second => See NEAR_2 C | Third => See NEAR_3 C
  | Last => And (And (See FLOOD C) (Not (Is TARGET C))) (Not (Or (Or (See NEAR_1 C) (See NEAR_2 C))
      (See NEAR_3 C)))
  end.
Definition enter_expr (p : place) : expr := See (enter_of p) C.
Definition never_both (a b : expr) : expr := Not (And a b).
(** A path enters a tile once, from a tile that is farther, and the source never; signals come where
    the flood was. *)
Definition possible (o : order) : list expr :=
  map (fun '(p, q) => never_both (enter_expr p) (enter_expr q))
    [(First, Second); (First, Third); (First, Last); (Second, Third); (Second, Last);
      (Third, Last)] ++
  flat_map (fun p => [never_both (enter_expr p) (near_expr (back o p));
    never_both (enter_expr p) (Is SOURCE C);
    never_both (enter_expr p) (Not (See FLOOD C))]) [First; Second; Third; Last] ++
  map (fun '(p, k) => never_both (near_expr p) (Is k C))
    [(First, TARGET); (First, WALL); (Second, TARGET); (Second, WALL); (Third, TARGET);
      (Third, WALL)] ++
  [never_both (See FLOOD C) (Is WALL C)].
Definition facts (o : order) : list form := facts_at 4 [C; N U; N L; N D; N R] (possible o).

Section Proof.
  Context (o : order) (w : world) (a : automaton).
  Hypotheses (same : forall g see tile, eval (rule a g) see tile = by_hand o see tile g)
    (unpooled : pooled a = []).
  Hypothesis one_source : forall x y, kind_of w x = SOURCE -> kind_of w y = SOURCE -> x = y.
  Notation after := (run w a).
  Notation nearer_at t y := (nearer (fun _ => after t y) (fun _ => Nat.eqb (kind_of w y)) C).

  Lemma entered t y d : after t y (enter_of d) = true -> exists s k x m, kind_of w s = SOURCE /\
    distance o w (k + S m) s /\ canonical o w s k x /\ distance o w (S m) x /\ goes o w d x y /\
      distance o w m y /\
    k + S m + 2 + k <= t.
  Proof.
    rewrite (enter_correct o w a same unpooled); intros (x & (s & n & k & Hs & Hn & Hk & Hle) & Hg).
    destruct (canonical_distance o w s n k x Hn Hk) as (l & -> & Hx),
      (goes_distance o w _ _ _ _ Hg Hx) as (m & -> & Hm).
    exists s, k, x, m; repeat (split; [assumption|]); assumption.
  Qed.

  Lemma enters_once d e t y : after t y (enter_of d) = true -> after t y (enter_of e) = true ->
    d = e.
  Proof.
    intros (s & k & x & m & Hs & Hn & Hk & Hx & Hg & Hy & _)%entered
      (s' & k' & x' & m' & Hs' & Hn' & Hk' & Hx' & Hg' & Hy' & _)%entered.
    assert (s' = s) as -> by auto; assert (m' = m) as -> by (eapply distance_unique; eauto).
    assert (k' = k) as -> by (pose proof (distance_unique _ _ _ _ _ Hn Hn'); lia).
    assert (x' = x) as -> by (eapply canonical_unique; eauto); eapply goes_unique; eauto.
  Qed.
  Lemma entered_where d t y : after t y (enter_of d) = true -> after t y FLOOD = true /\
    kind_of w y <> SOURCE.
  Proof.
    intros (s & k & x & m & Hs & Hn & _ & _ & _ & Hy & Hle)%entered; split;
      [apply (flooded_at o w a same unpooled); exists m; split; [assumption|lia]|].
    intro Hsource; assert (y = s) as -> by auto; pose proof (distance_unique _ _ _ _ _ Hn Hy); lia.
  Qed.
  Lemma nearer_leads d t y : nearer_at t y d = true -> exists z, leads o w d y z.
  Proof.
    intro H; destruct (near_of d) as [g|] eqn:Hg.
    - apply (near_correct o w a same unpooled d g y t Hg); destruct d; try discriminate Hg;
        injection Hg as <-; exact H.
    - destruct d; try discriminate Hg;
        enough (Hp : points (fun _ => after t y) (fun _ => Nat.eqb (kind_of w y)) C Last = true)
        by (apply (points_correct o w a same unpooled) in Hp as (_ & z & Hz & _); eauto).
      unfold points; rewrite H; cbn in *.
      destruct (after t y NEAR_1), (after t y NEAR_2), (after t y NEAR_3); cbn in H;
        rewrite ?andb_false_r in H; discriminate || reflexivity.
  Qed.
  Lemma entered_from_farther d t y : after t y (enter_of d) = true ->
    nearer_at t y (back o d) = true -> False.
  Proof.
    intros (s & k & x & m & _ & _ & _ & Hx & [[Hxy _] _] & Hy & _)%entered
      (z & Hz & l & Hzl & Hyl)%nearer_leads.
    apply (way_back o w) in Hxy; assert (z = x) as -> by congruence.
    pose proof (distance_unique _ _ _ _ _ Hy Hyl); pose proof (distance_unique _ _ _ _ _ Hx Hzl);
      lia.
  Qed.
  Lemma nearer_free d t y : nearer_at t y d = true -> kind_of w y <> TARGET /\ kind_of w y <> WALL.
  Proof.
    intros (z & Hl)%nearer_leads; split;
      [exact (leads_far _ _ _ _ _ Hl) | destruct Hl as (_ & m & _ & HS); eapply walk_free;
      apply HS].
  Qed.
  Lemma flooded_free t y : after t y FLOOD = true -> kind_of w y <> WALL.
  Proof. rewrite (flooded_at o w a same unpooled); intros (n & [Hn _] & _); eapply walk_free; eauto.
    Qed.

  Lemma possible_holds t y : Forall (fun e => says e (after t y) (Nat.eqb (kind_of w y)) = true)
    (possible o).
  Proof.
    assert (H : forall a b, (says a (after t y) (Nat.eqb (kind_of w y)) = true ->
      says b (after t y) (Nat.eqb (kind_of w y)) = true -> False) ->
      says (never_both a b) (after t y) (Nat.eqb (kind_of w y)) = true) by (unfold says; cbn;
        intros a' b'; destruct (eval a' _ _), (eval b' _ _); cbn; intuition).
    assert (Hn : forall p, says (near_expr p) (after t y) (Nat.eqb (kind_of w y)) = nearer_at t y p)
      by (destruct p; reflexivity).
    assert (Hk : forall k, says (Is k C) (after t y) (Nat.eqb (kind_of w y)) = true ->
      kind_of w y = k) by (intro; apply Nat.eqb_eq).
    unfold possible; cbn [map flat_map app]; repeat constructor; apply H; rewrite ?Hn; intros Ha Hb;
      try apply Hk in Hb.
    all: try discriminate (enters_once _ _ _ _ Ha Hb).
    all: try exact (entered_from_farther _ _ _ Ha Hb).
    all: try exact (proj2 (entered_where _ _ _ Ha) Hb).
    all: try exact (flooded_free _ _ Ha Hb).
    all: try (apply entered_where in Ha as [Ha _]; unfold says in Hb; cbn in Hb; rewrite Ha in Hb;
      discriminate).
    all: apply nearer_free in Ha; tauto.
  Qed.

  Theorem facts_known t : exists fs, In fs [facts o] /\ forall x, all (patch w (after t) x) fs.
  Proof.
    exists (facts o); split; [left; reflexivity | intro x; apply facts_hold;
      [apply possible_holds|]].
    unfold possible; cbn [map flat_map]; destruct (back o First), (back o Second), (back o Third),
      (back o Last); reflexivity.
  Qed.
End Proof.
