(** The automaton that heals: once the maze stays, its path becomes correct, whatever mazes there
    were before. *)
From MazeNCA Require Import Mazes Refute ShortestPath Canonical.
Export Statements.Changes.

(** * The rules, in any order of directions *)

Notation ROOT := 6%nat (only parsing). Notation ON := 11%nat (only parsing).
  Notation WAS_WALL := 12%nat (only parsing).
Notation OPENED := 13%nat (only parsing). Notation ALARM := 19%nat (only parsing).
  Notation RESET := 20%nat (only parsing).
Notation ORPHAN := 18%nat (only parsing).
Definition sides : list nat := [14; 15; 16; 17].
Definition found : list nat := [OPENED; 14; 15; 16; 17; ORPHAN].
Definition index (d : dir) : nat := match d with U => 0 | L => 1 | D => 2 | _ => 3 end.
Definition checked_from (d : dir) : bool := match d with D | R => true | _ => false end.
Definition places : list place := [First; Second; Third; Last].

Section Rules.
  Context (o : order).
  Definition near_in (d : dir) : nat := 2 + index d.
  Definition enter_in (d : dir) : nat := 7 + index d.
  Variables (see : tap -> nat -> bool) (tile : tap -> kind -> bool).
  Definition joins (t : tap) : bool := existsb (fun p => see t (enter_in (way o p))) places ||
    tile t SOURCE.
  Definition leaves (t : tap) (p : place) : bool :=
    see t (near_in (way o p)) && forallb (fun e => negb (see t (near_in (way o e)))) (earlier p).
  Definition many (d : dir) : bool := let (one, other) :=
    (see C (near_in d), see (N d) (near_in (opp d))) in
    one && other || (one || other) && negb (see C FLOOD && see (N d) FLOOD).
  Definition few (d : dir) : bool :=
    see C FLOOD && see (N d) FLOOD && negb (see C (near_in d)) &&
      negb (see (N d) (near_in (opp d))).
  Definition orphan : bool := see C FLOOD && negb (see C ROOT) &&
    negb (existsb (fun p => see C (near_in (way o p))) places).
  Definition fails : bool := existsb (fun b => b) [many D; few D; many R; few R; orphan].
  Definition heals_by (rule : nat -> bool) : Prop :=
    let wiped b := b && negb (see C RESET) in
    rule PATH = wiped (see C FLOOD && see C ON) /\
    rule FLOOD = wiped (tile C TARGET ||
      (see C FLOOD || existsb (fun p => see (N (way o p)) FLOOD) places) && negb (tile C WALL)) /\
    (forall p, rule (near_in (way o p)) =
      wiped ((see C (near_in (way o p)) || see (N (way o p)) FLOOD && negb (see C FLOOD)) &&
        negb (tile C WALL))) /\
    rule ROOT = wiped (tile C TARGET) /\
    (forall p, rule (enter_in (way o p)) = wiped (joins (N (way o (back o p))) &&
      leaves (N (way o (back o p))) p)) /\
    rule ON = wiped (joins C) /\
    rule WAS_WALL = tile C WALL /\
    rule OPENED = wiped (see C WAS_WALL && negb (tile C WALL)) /\
    map rule sides = map wiped [many D; few D; many R; few R] /\
    rule ORPHAN = wiped orphan /\
    rule ALARM = wiped (existsb (see C) found) /\
    rule RESET = see C ALARM.
End Rules.
Definition heals (o : order) (a : automaton) : Prop :=
  pooled a = [RESET] /\ (forall d, checked_from d = true -> exists p, way o p = d) /\
  (forall p, checked_from (way o p) || checked_from (way o (back o p)) = true) /\
  forall see tile, heals_by o see tile (fun g => eval (rule a g) see tile).

(** * The proof *)

Section Proof.
  Context (o : order) (w : world) (a am : automaton).
  Hypotheses (same : forall g see tile, eval (rule am g) see tile = by_hand o see tile g)
    (unpooled : pooled am = []).
  Hypotheses (healing : heals o a) (its_highest : pools w).
  Notation node := (node w).
  Notation W k := (with_kinds w k).
  Notation next k s := (step (W k) a s).
  Notation distance k := (distance o (W k)).
  Notation walk k := (walk o (W k)).
  Notation leads k := (leads o (W k)).
  Notation goes k := (goes o (W k)).
  Notation near p := (near_in (way o p)).
  Notation enter p := (enter_in (way o p)).
  Implicit Types (k : node -> kind) (s : node -> nat -> bool) (x y : node).

  (** What the next state is, where no tile is told to start anew. *)
  Definition calm s : Prop := forall x, s x RESET = false.
  Definition off s (gs : list nat) : Prop := forall x, existsb (s x) gs = false.
  Definition around s x (p : place) (g : nat) : Prop := exists y, nb w (way o p) x = Some y /\
    s y g = true.
  Definition one k : Prop := forall x y, k x = TARGET -> k y = TARGET -> x = y.

  Definition joined k s x : Prop := (exists p, s x (enter p) = true) \/ k x = SOURCE.
  Definition leaving s x (p : place) : Prop := s x (near p) = true /\ forall e, In e (earlier p) ->
    s x (near e) = false.

  Lemma some_place f : existsb f places = true <-> exists p, f p = true.
  Proof. rewrite existsb_exists; split; [firstorder | intros (p & H); exists p; split;
    [destruct p; cbn; tauto | exact H]]. Qed.
  Lemma seen_around k s x p g : see (W k) s x (N (way o p)) g = true <-> around s x p g.
  Proof. unfold see, around; cbn; destruct (nb w (way o p) x) as [y|]; split;
    [eauto | intros (? & [= <-] & ?); auto | discriminate | intros (? & [=] & _)]. Qed.
  Lemma next_rule k s x g : g <> RESET -> next k s x g = eval (rule a g) (see (W k) s x)
    (tile (W k) x).
  Proof. intros Hg%Nat.eqb_neq; unfold step, is_pooled; rewrite (proj1 healing); cbn [existsb];
    rewrite Hg; reflexivity. Qed.
  Lemma next_reset k s x : next k s x RESET = true <-> exists y, s y ALARM = true.
  Proof.
    unfold step, is_pooled; rewrite (proj1 healing); cbn [existsb Nat.eqb orb];
      rewrite (anywhere_iff (W k) _ its_highest).
    enough (H : forall y, eval (rule a RESET) (see (W k) s y) (tile (W k) y) = s y ALARM) by
      (setoid_rewrite H; reflexivity).
    intro y; apply (proj2 (proj2 (proj2 healing))).
  Qed.
  Lemma not_reset p : near p <> RESET /\ enter p <> RESET.
  Proof. unfold near_in, enter_in; destruct (way o p); cbn; split; discriminate. Qed.
  Lemma next_is k s x : calm s ->
    (next k s x PATH = s x FLOOD && s x ON) /\
    (next k s x FLOOD = true <-> k x = TARGET \/ (s x FLOOD = true \/
      exists p, around s x p FLOOD) /\ k x <> WALL) /\
    (forall p, next k s x (near p) = true <-> (s x (near p) = true \/ around s x p FLOOD /\
      s x FLOOD = false) /\ k x <> WALL) /\
    (next k s x ROOT = true <-> k x = TARGET) /\
    (forall p, next k s x (enter p) = true <-> exists y, nb w (way o p) y = Some x /\
      joined k s y /\ leaving s y p) /\
    (next k s x ON = true <-> joined k s x) /\
    (next k s x WAS_WALL = true <-> k x = WALL) /\
    (existsb (next k s x) found = true <-> s x WAS_WALL = true /\ k x <> WALL \/
      fails o (see w s x) = true) /\
    (next k s x ALARM = true <-> existsb (s x) found = true).
  Proof.
    intro Hcalm; pose proof (Hcalm x) as Hx.
    destruct (proj2 (proj2 (proj2 healing)) (see (W k) s x) (tile (W k) x)) as
      (E1 & E2 & E3 & E4 & E5 & E6 & E7 & E8 & E9 & E10 & E11 & _).
    replace (see (W k) s x C RESET) with false in * by (symmetry; exact Hx); cbv zeta beta in *;
      cbn [negb map sides] in *.
    injection E9 as V1 V2 H1 H2; cbn [existsb found].
    rewrite !next_rule, E1, E2, E4, E6, E7, E8, E10, E11, V1, V2, H1, H2,
      !andb_true_r by discriminate.
    assert (Hk : forall h, tile (W k) x C h = true <-> k x = h) by (intro; apply Nat.eqb_eq).
    assert (Hj : forall t y, at_tap (W k) t x = Some y ->
      joins o (see (W k) s x) (tile (W k) x) t = true <-> joined k s y).
    { intros t y Hy; unfold joins, joined; rewrite orb_true_iff, some_place; unfold see, tile;
      rewrite Hy, Nat.eqb_eq; reflexivity. }
    assert (Hl : forall t y p, at_tap (W k) t x = Some y -> leaves o (see (W k) s x) t p = true <->
      leaving s y p).
    { intros t y p Hy; unfold leaves, leaving, see; rewrite andb_true_iff, forallb_forall, Hy;
      setoid_rewrite negb_true_iff; reflexivity. }
    split; [reflexivity|]; split;
      [|split;
      [|split;
      [apply Hk|split; [|split; [apply Hj; reflexivity | split;
      [apply Hk | split; [|reflexivity]]]]]]].
    - rewrite orb_true_iff, andb_true_iff, orb_true_iff, negb_true_iff, <- not_true_iff_false, !Hk,
        some_place.
      setoid_rewrite seen_around; reflexivity.
    - intro p; rewrite next_rule, E3, andb_true_r, andb_true_iff, orb_true_iff, andb_true_iff,
        !negb_true_iff, <- (not_true_iff_false (tile _ _ _ _)), Hk, seen_around by apply not_reset;
        reflexivity.
    - intro p; rewrite next_rule, E5, andb_true_r, andb_true_iff by apply not_reset; split.
      + intros [Hon Hp]; destruct (nb w (way o (back o p)) x) as [y|] eqn:Hy.
        * exists y; split; [apply way_forth; exact Hy | split;
            [apply (Hj (N (way o (back o p))) y) | apply (Hl (N (way o (back o p))) y)]];
            assumption.
        * unfold leaves, see in Hp; cbn [at_tap nb with_kinds] in Hp; rewrite Hy in Hp;
            discriminate.
      + intros (y & Hy%way_back & Hon & Hp); split; [eapply Hj | eapply Hl]; eassumption.
    - rewrite orb_true_iff, andb_true_iff, negb_true_iff, <- (not_true_iff_false (tile _ _ _ _)),
        Hk; unfold fails; cbn [existsb]; reflexivity.
  Qed.

  (** A move that leads one nearer to the target. *)
  Definition down k p x y m : Prop := nb w (way o p) x = Some y /\ distance k m y /\
    distance k (S m) x.
  (** The flood is as n iterations after a fresh start. *)
  Definition good k n s : Prop := forall x,
    (s x FLOOD = true <-> exists m, distance k m x /\ m < n) /\
    (forall p, s x (near p) = true <-> exists y m, down k p x y m /\ S m < n) /\
    (s x FLOOD = true -> k x = TARGET -> s x ROOT = true) /\
    (s x WAS_WALL = true -> k x = WALL) /\ (0 < n -> k x = WALL -> s x WAS_WALL = true).

  (** What is known of distances and neighbours: they are unique. *)
  Ltac unique := unfold down in *; repeat match goal with
    | H : ShortestPath.distance _ _ ?n ?x, H' : ShortestPath.distance _ _ ?m ?x |- _ =>
        pose proof (distance_unique _ _ _ _ _ H H'); clear H'
    | H : nb _ _ ?x = Some ?y, H' : nb _ _ ?x = Some ?z |- _ => assert (z = y) by (cbn in *;
        congruence); clear H'; subst z
    end; subst; try lia.
  Lemma distance_0 k x : distance k 0 x <-> k x = TARGET.
  Proof. split; [intros [H _]; inversion H; assumption | intro; split;
    [constructor; assumption | lia]]. Qed.
  Lemma walk_least k n x : walk k n x -> exists m, m <= n /\ distance k m x.
  Proof. apply (distance_least o (W k) am same unpooled). Qed.
  Lemma neighbour k p x y m : nb w (way o p) x = Some y -> k x <> WALL -> distance k m y ->
    exists n, n <= S m /\ distance k n x.
  Proof. intros Hy Hx [Hm _]; apply walk_least; econstructor; eauto. Qed.
  Lemma steps_down k m x : distance k (S m) x -> exists p y, down k p x y m.
  Proof. intro H; destruct (distance_step o (W k) m x H) as (p & y & Hy & l & Hl & HS); exists p, y;
    unique; assert (l = m) as -> by lia; repeat split; assumption || apply Hl || apply H. Qed.
  Lemma distance_free k m x : distance k m x -> k x <> WALL.
  Proof. intros [H _]; exact (walk_free o (W k) _ _ H). Qed.

  Lemma good_0 k s : (forall x, s x FLOOD = false /\ (forall p, s x (near p) = false) /\
    (s x WAS_WALL = true -> k x = WALL)) -> good k 0 s.
  Proof.
    intros H x; destruct (H x) as (-> & HN & HW); split; [split; [discriminate | intros (m & _ & ?);
      lia] | split; [intro p; rewrite HN | repeat split; auto; discriminate || lia]].
    split; [discriminate | intros (y & m & _ & ?); lia].
  Qed.
  Lemma wiped k s : (forall x, s x RESET = true) -> good k 0 (next k s) /\
    off (next k s) (ALARM :: found) /\ forall x p, next k s x (enter p) = false.
  Proof.
    intro Hreset; assert (H : forall x, let S := next k s x in existsb S (ALARM :: found) = false /\
      (forall p, S (enter p) = false) /\
      S FLOOD = false /\ (forall p, S (near p) = false) /\ (S WAS_WALL = true -> k x = WALL)).
    { intro x; destruct (proj2 (proj2 (proj2 healing)) (see (W k) s x) (tile (W k) x)) as
      (E1 & E2 & E3 & E4 & E5 & E6 & E7 & E8 & E9 & E10 & E11 & _).
      replace (see (W k) s x C RESET) with true in * by (symmetry; apply Hreset);
        cbv zeta beta in *; cbn [negb map sides] in *.
      injection E9 as V1 V2 H1 H2; cbn [existsb found].
      rewrite !next_rule, E2, E7, E8, E10, E11, V1, V2, H1, H2, !andb_false_r by discriminate.
      do 2 (split; [reflexivity || intro p; rewrite next_rule, E5, andb_false_r by apply not_reset;
        reflexivity|]).
      split; [reflexivity | split; [intro p; rewrite next_rule, E3, andb_false_r by apply not_reset;
        reflexivity | apply Nat.eqb_eq]]. }
    split; [apply good_0|split]; intros x **; apply (H x).
  Qed.

  (** Where tiles that a check compares agree, what is near was flooded on both sides. *)
  Lemma not_many s x y p : (forall x, fails o (see w s x) = false) -> nb w (way o p) x = Some y ->
    s x (near p) = true -> s x FLOOD = true /\ s y FLOOD = true.
  Proof.
    intros H Hy Hx; assert (Hm : forall d x y, checked_from d = true -> nb w d x = Some y ->
      s x (near_in d) || s y (near_in (opp d)) = true -> s x FLOOD && s y FLOOD = true).
    { clear - H; intros d x y Hd Hy Hor; specialize (H x); unfold fails in H; cbn [existsb] in H;
      rewrite !orb_false_iff in H.
      assert (Hd' : many (see w s x) d = false) by (destruct d; discriminate Hd || apply H).
      unfold many, see in Hd'; cbn [at_tap] in Hd'; rewrite Hy, Hor, orb_false_iff in Hd';
        apply negb_false_iff, Hd'. }
    apply andb_true_iff;
      destruct (proj1 (orb_true_iff _ _) (proj1 (proj2 (proj2 healing)) p)) as [Hp|Hp];
      [|rewrite andb_comm]; apply (Hm _ _ _ Hp).
    1,3: assumption || apply way_back, Hy. 1: rewrite Hx; reflexivity.
    rewrite back_way, orb_true_iff; right;
      replace (opp (opp (way o p))) with (way o p) by (destruct (way o p); reflexivity); exact Hx.
  Qed.
  Lemma not_orphan s x : fails o (see w s x) = false -> s x FLOOD = true -> s x ROOT <> true ->
    exists p, s x (near p) = true.
  Proof.
    intros H HF HR%not_true_iff_false; apply some_place; unfold fails, orphan, see in H;
      cbn [existsb at_tap] in H; rewrite HF, HR, !orb_false_iff in H.
    apply negb_false_iff, H.
  Qed.

  (** One iteration, in which the maze may be replaced: [k] before, [k'] now. *)
  Section Next.
    Context (k k' : node -> kind) (n : nat) (s : node -> nat -> bool).
    Hypotheses (was : good k n s) (is_calm : calm s).
    Notation S := (next k' s).
    Lemma flood_next x : S x FLOOD = true <-> k' x = TARGET \/ (s x FLOOD = true \/
      exists p, around s x p FLOOD) /\ k' x <> WALL.
    Proof. apply next_is, is_calm. Qed.
    Lemma near_next x p : S x (near p) = true <-> (s x (near p) = true \/ around s x p FLOOD /\
      s x FLOOD = false) /\ k' x <> WALL.
    Proof. apply (proj2 (proj2 (next_is k' s x is_calm))). Qed.
    Lemma to_good m : (forall x, S x FLOOD = true <-> exists l, distance k' l x /\ l < m) ->
      (forall x p, S x (near p) = true <-> exists y l, down k' p x y l /\ Datatypes.S l < m) ->
        good k' m S.
    Proof. intros HF HN x; destruct (next_is k' s x is_calm) as (_ & _ & _ & HR & _ & _ & HW & _);
      rewrite HR, HW; auto 6. Qed.

    Lemma begun : (forall x, S x FLOOD = true -> k' x = TARGET) ->
      (forall x p, S x (near p) <> true) -> good k' 1 S.
    Proof.
      intros HF HN; apply to_good; [intro x; split | intros x p; split;
        [intro H; contradiction (HN x p H) | intros (y & m & _ & ?); lia]].
      - intro H; exists 0; split; [apply distance_0; auto | lia].
      - intros (l & Hl & ?); assert (l = 0) as -> by lia; apply flood_next; left;
          apply distance_0, Hl.
    Qed.
    Lemma lost : (forall x, k x = TARGET -> k' x <> TARGET) ->
      (forall x, fails o (see w S x) = false) -> good k' 1 S.
    Proof.
      intros Ht Hquiet; assert (Hnear : forall m x y p, down k p x y m -> Datatypes.S m < n ->
        s x (near p) = true)
        by (intros m x y p Hd Hlt; apply was; eauto).
      assert (gone : forall m x, distance k m x -> m < n -> S x FLOOD <> true).
      { induction m as [|m IH]; intros x Hx Hlt H;
        assert (Hw : k' x <> WALL) by (apply flood_next in H as [H|[_ H]]; congruence).
        - destruct (not_orphan S x (Hquiet x) H) as
            (p & [[(y & m & (_ & _ & HS) & _)%was|[_ Hp]] _]%near_next); [| unique |].
          + intro HR; apply (next_is k' s x is_calm) in HR; apply (Ht x);
              [apply distance_0, Hx | exact HR].
          + enough (s x FLOOD = true) by congruence; apply was; eauto.
        - destruct (steps_down k m x Hx) as (p & y & Hd); apply (IH y); [apply Hd | lia|].
          apply (not_many S x y p Hquiet (proj1 Hd)), near_next; eauto. }
      assert (Hno : forall x p, S x (near p) <> true).
      { intros x p H;
        pose proof H as [[(y & m & (Hy & Hm & _) & Hlt)%was|[(y & Hy & (m & Hm & Hlt)%was) _]]
        _]%near_next;
          apply (gone m y Hm); try lia; apply (not_many S x y p Hquiet Hy H). }
      apply begun; [|exact Hno]; intros x H;
        pose proof H as [Hx|[[(m & Hm & Hlt)%was|(p & Hp)] Hw]]%flood_next;
        [exact Hx | contradiction (gone m x Hm Hlt H)|].
      destruct (s x FLOOD) eqn:E; [apply was in E as (m & Hm & Hlt);
        contradiction (gone m x Hm Hlt H)|]; contradiction (Hno x p); apply near_next; auto.
    Qed.

    (** If no wall was opened, and the target stays. *)
    Hypotheses (closed : forall x, k x = WALL -> k' x = WALL) (stays : forall x, k' x = TARGET <->
      k x = TARGET).
    Lemma flood_far x : S x FLOOD = true -> exists m, distance k m x /\ m <= n.
    Proof.
      intros [H%stays%distance_0|[[(m & Hm & Hl)%was|(p & y & Hy & (m & Hm & Hl)%was)]
        Hx]]%flood_next; [exists 0 | exists m | ]; auto with arith.
      destruct (neighbour k p x y m Hy) as (l & ? & ?); [auto | exact Hm | exists l; split;
        [assumption | lia]].
    Qed.
    Lemma far_flood m x : distance k m x -> m <= n -> k' x <> WALL -> S x FLOOD = true.
    Proof.
      intros Hm Hle Hx; apply flood_next; destruct m as [|m];
        [left; apply stays, distance_0, Hm | right; split; [right | exact Hx]].
      destruct (steps_down k m x Hm) as (p & y & Hy & Hl & _); exists p, y; split;
        [exact Hy | apply was; eauto].
    Qed.
    Lemma near_down x p : S x (near p) = true -> exists y m, down k p x y m /\ Datatypes.S m <= n.
    Proof.
      intros [[(y & m & Hd & Hl)%was|[(y & Hy & (m & Hm & Hlt)%was) HF]] Hx]%near_next;
        [exists y, m; auto with arith|].
      destruct (neighbour k p x y m Hy) as (l & Hle & Hl); [auto | exact Hm|].
      assert (n <= l) by (apply Nat.nlt_ge; intro; enough (s x FLOOD = true) by congruence;
        apply was; eauto).
      exists y, m; repeat split; try apply Hm; trivial; replace (Datatypes.S m) with l by lia;
        apply Hl.
    Qed.
    Lemma kept : (forall x m, S x FLOOD = true -> distance k m x -> walk k' m x) ->
      (forall x y p, nb w (way o p) x = Some y -> S x (near p) = true -> S x FLOOD = true /\
        S y FLOOD = true) -> good k' (1 + n) S.
    Proof.
      intros Hwalk Hmany; assert (Hback : forall m x, walk k' m x -> walk k m x) by (induction 1;
        econstructor; try apply stays; cbn in *; eauto).
      assert (Hd : forall x m, S x FLOOD = true -> distance k m x -> distance k' m x) by
        (intros x m HF Hm; split; [auto | intros l Hl; apply Hm, Hback, Hl]).
      assert (HF : forall x, S x FLOOD = true <-> exists m, distance k' m x /\ m < 1 + n).
      { intro x; split; [intro H; destruct (flood_far x H) as (m & ? & ?); exists m; split;
        [auto | lia]|]; intros (m & Hm & Hlt).
        destruct (walk_least k m x (Hback m x (proj1 Hm))) as (l & Hle & Hl); apply (far_flood l);
          [exact Hl | lia | exact (distance_free k' m x Hm)]. }
      assert (Hd' : forall x m, S x FLOOD = true -> distance k' m x -> distance k m x).
      { intros x m H Hm; destruct (flood_far x H) as (l & Hl & _);
        rewrite (distance_unique _ _ _ _ _ Hm (Hd x l H Hl)); exact Hl. }
      apply to_good; [exact HF|]; intros x p; split.
      - intro H; destruct (near_down x p H) as (y & m & (Hy & Hm & HS) & ?),
          (Hmany x y p) as [Hx Hy']; trivial.
        exists y, m; repeat split; try lia; [exact Hy | apply Hd; assumption ..].
      - intros (y & m & (Hy & Hm & HS) & Hlt); assert (Hx : S x FLOOD = true) by (apply HF; eauto).
        assert (Hy' : S y FLOOD = true) by (apply HF; exists m; split; [exact Hm | lia]).
        apply near_next; split; [|exact (distance_free k' _ x HS)]; apply Hd' in Hm, HS; trivial.
        destruct (le_lt_dec n (Datatypes.S m)); [right | left; apply was; exists y, m; repeat split;
          assumption || apply Hm || apply HS].
        split; [exists y; split; [exact Hy | apply was; exists m; split; [exact Hm | lia]]|].
        apply not_true_iff_false; intros (i & Hi & ?)%was; unique.
    Qed.
  End Next.

  (** After a good state comes one for the next maze, where no check fails. *)
  Lemma good_next k k' n s : good k n s -> calm s -> one k -> one k' -> off (next k' s) found ->
    (forall x, fails o (see w (next k' s) x) = false) -> exists m, good k' m (next k' s).
  Proof.
    intros was Hcalm Hone Hone' Hfound Hquiet;
      destruct (anywhere w (fun x => Nat.eqb (k x) TARGET && Nat.eqb (k' x) TARGET &&
      (0 <? n))) eqn:E.
    - apply (anywhere_iff w _ its_highest) in E as
        (z & [[Hz%Nat.eqb_eq Hz'%Nat.eqb_eq]%andb_true_iff Hn%Nat.ltb_lt]%andb_true_iff).
      assert (Ht : forall x, k' x = TARGET <-> k x = TARGET) by (intro x; split; intro Hx;
        [rewrite (Hone' x z) | rewrite (Hone x z)]; assumption).
      assert (Hclosed : forall x, k x = WALL -> k' x = WALL).
      { intros x Hx; destruct (Nat.eq_dec (k' x) WALL) as [|Hx']; [assumption | exfalso;
        enough (existsb (next k' s x) found = true) by (rewrite Hfound in *; discriminate)].
        apply next_is; [exact Hcalm | left; split; [apply was; assumption | exact Hx']]. }
      exists (1 + n); apply (kept k k' n); try assumption;
        [|intros x y p Hy; apply (not_many _ x y p Hquiet Hy)].
      intros x m; revert x; induction m as [|m IH]; intros x H Hx;
        [constructor; apply Ht, distance_0, Hx|].
      destruct (not_orphan _ x (Hquiet x) H) as (p & Hp);
        [intro HR; apply (next_is k' s x Hcalm), Ht, distance_0 in HR; unique|].
      destruct (near_down k k' n s was Hcalm Hclosed x p Hp) as (y & l & (Hy & Hl & HS) & _);
        assert (l = m) as -> by unique.
      apply (walk_move o (W k') m p x y); [apply near_next in Hp;
        [apply Hp | exact Hcalm] | exact Hy | apply IH;
        [apply (not_many _ x y p Hquiet Hy Hp) | exact Hl]].
    - exists 1; destruct n as [|n]; [|apply (lost k k' (1 + n)); try assumption; intros x Hx Hx'].
      + assert (Hs : forall x, s x FLOOD <> true) by (intros x (m & _ & ?)%was; lia);
          apply (begun k' s Hcalm).
        * intros x [H|[[H|(p & y & _ & H)] _]]%flood_next;
            [exact H | contradiction (Hs _ H) ..|exact Hcalm].
        * intros x p [[(y & m & _ & ?)%was|[(y & _ & H) _]] _]%near_next;
            [lia | contradiction (Hs _ H) | exact Hcalm].
      + apply not_true_iff_false in E; apply E, (anywhere_iff w _ its_highest); exists x;
          rewrite Hx, Hx'; reflexivity.
  Qed.

  (** * The maze that stays: no check fails *)

  Hypothesis colour : node -> bool.
  Hypothesis alternates : forall p x y, nb w (way o p) x = Some y -> colour y = negb (colour x).
  Lemma walk_colour k n x : walk k n x -> exists z, k z = TARGET /\
    colour x = xorb (Nat.odd n) (colour z).
  Proof.
    induction 1 as [x H|n p x y _ Hy _ (z & Hz & E)];
      [exists x; split; [exact H | destruct (colour x); reflexivity]|].
    exists z; split; [exact Hz|]; rewrite (alternates p x y Hy) in E;
      rewrite Nat.odd_succ, <- Nat.negb_odd.
    destruct (colour x), (Nat.odd n), (colour z); cbn in *; congruence.
  Qed.
  Lemma beside k p x y m l : one k -> nb w (way o p) x = Some y -> distance k m x ->
    distance k l y -> m = S l /\ down k p x y l \/ l = S m /\ down k (back o p) y x m.
  Proof.
    intros Hone Hy Hm Hl; pose proof (way_back o w _ _ _ Hy) as Hx.
    destruct (neighbour k p x y l Hy (distance_free k m x Hm) Hl) as (m' & ? & Hm'),
      (neighbour k (back o p) y x m Hx (distance_free k l y Hl) Hm) as (l' & ? & Hl').
    assert (m <> l).
    { intros ->; destruct (walk_colour k l x (proj1 Hm)) as (z & Hz & Ex),
      (walk_colour k l y (proj1 Hl)) as (z' & Hz' & Ey).
      rewrite (Hone z z' Hz Hz') in Ex; pose proof (alternates p x y Hy);
        destruct (colour x), (colour y); cbn in *; congruence. }
    assert (m' = m /\ l' = l) as [-> ->] by (split; eapply distance_unique; eassumption).
    destruct (Nat.lt_total m l) as [|[|]]; [right | contradiction | left]; (split; [lia|]);
      [assert (l = S m) as -> by lia | assert (m = S l) as -> by lia]; repeat split;
      assumption || apply Hm || apply Hl.
  Qed.
  Lemma passes k n s x : one k -> good k n s -> fails o (see w s x) = false.
  Proof.
    intros Hone was.
    assert (Hnear : forall p x y, nb w (way o p) x = Some y -> s x (near p) = true ->
      s x FLOOD = true /\ s y FLOOD = true /\ s y (near (back o p)) = false).
    { intros p y z Hz; pose proof (way_back o w _ _ _ Hz);
      intros (z' & m & (Hz' & Hm & HS) & Hlt)%was; unique; repeat split;
        [apply was; exists (S m) | apply was; exists m | apply not_true_iff_false;
          intros (y' & l & (Hy & Hl & HS') & _)%was]; try (split; [assumption | lia]); unique. }
    assert (Hside : forall d, checked_from d = true -> many (see w s x) d = false /\
      few (see w s x) d = false).
    { intros d Hd; destruct (proj1 (proj2 healing) d Hd) as (p & <-); unfold many, few, see;
      cbn [at_tap]; rewrite <- back_way.
      destruct (nb w (way o p) x) as [y|] eqn:Hy; [|destruct (s x (near p)) eqn:E;
        [apply was in E as (y & m & (Hy' & _) & _); congruence | cbn; rewrite andb_false_r; auto]].
      pose proof (Hnear p x y Hy) as H;
        pose proof (Hnear (back o p) y x (way_back o w _ _ _ Hy)) as H'.
      assert (H'' : s x FLOOD = true -> s y FLOOD = true -> s x (near p) = true \/
        s y (near (back o p)) = true).
      { intros (m & Hm & ?)%was (l & Hl & ?)%was;
        destruct (beside k p x y m l Hone Hy Hm Hl) as [[-> Hd']|[-> Hd']]; [left | right];
        apply was; eauto. }
      destruct (s x (near p)), (s y (near (back o p))), (s x FLOOD), (s y FLOOD); cbn; split;
        intuition congruence. }
    unfold fails; cbn [existsb];
      destruct (Hside D eq_refl) as [-> ->], (Hside R eq_refl) as [-> ->]; cbn [orb];
      rewrite orb_false_r.
    unfold orphan, see; cbn [at_tap]; destruct (s x FLOOD) eqn:HF; [|reflexivity];
      pose proof HF as (m & Hm & Hlt)%was.
    destruct m as [|m]; [apply distance_0 in Hm; destruct (was x) as (_ & _ & HR & _);
      rewrite HR by assumption; reflexivity|].
    destruct (steps_down k m x Hm) as (p & y & Hd);
      replace (existsb _ places) with true by (symmetry; apply some_place; exists p; apply was;
      eauto); apply andb_false_r.
  Qed.

  (** All that checks raise is off. *)
  Definition rests k n s : Prop := good k n s /\ off s (RESET :: ALARM :: found).
  Lemma rests_calm k n s : rests k n s -> calm s.
  Proof. intros [_ H] x; exact (proj1 (proj1 (orb_false_iff _ _) (H x))). Qed.
  Lemma rests_next k n s : one k -> rests k n s -> rests k (1 + n) (next k s).
  Proof.
    intros Hone Hs; pose proof (rests_calm k n s Hs) as Hcalm; destruct Hs as [was Hoff]; split.
    - apply (kept k k n s was Hcalm); [auto | tauto | intros x m _ []; assumption|];
        intros x y p Hy Hp.
      destruct (near_down k k n s was Hcalm (fun _ h => h) x p Hp) as
        (y' & m & (Hy' & Hm & HS) & Hle).
      split; [apply (far_flood k k n s was Hcalm (fun z => iff_refl _) (S m)) | apply
        (far_flood k k n s was Hcalm (fun z => iff_refl _) m)]; unique;
        assumption || eapply distance_free; eassumption.
    - assert (Hall : forall x, s x ALARM = false /\ existsb (s x) found = false) by (intro x;
        specialize (Hoff x); cbn [existsb] in Hoff; rewrite !orb_false_iff in Hoff; apply Hoff).
      intro x; destruct (next_is k s x Hcalm) as (_ & _ & _ & _ & _ & _ & _ & Hf & Ha);
        cbn [existsb]; fold (existsb (next k s x) found).
      rewrite !orb_false_iff, <- !not_true_iff_false, Ha, next_reset, (proj2 (Hall x));
        repeat split; [intros (y & H); rewrite (proj1 (Hall y)) in H;
        discriminate | discriminate |].
      intros [[HW HK]|H]%Hf;
        [apply was in HW; contradiction | rewrite (passes k n s x Hone was) in H; discriminate].
  Qed.

  (** * The path *)
  Section Path.
    Context (k : node -> kind) (source : node) (n b : nat) (states : nat -> node -> nat -> bool).
    Hypotheses (single : one k) (begins : rests k n (states 0)) (goes_on : forall i,
      states (1 + i) = next k (states i)).
    Hypotheses (its_source : forall x, k x = SOURCE <-> x = source)
      (few_left : forall x p m, states 0 x (enter p) = true -> distance k m x -> m < b).
    Notation canonical := (canonical o (W k) source).

    Lemma rests_on i : rests k (n + i) (states i).
    Proof. induction i as [|i IH]; [rewrite Nat.add_0_r; exact begins|];
      rewrite goes_on, Nat.add_succ_r; apply rests_next; assumption. Qed.
    Lemma leaving_goes i x p : leaving (states i) x p <-> states i x FLOOD = true /\
      exists y, goes k p x y.
    Proof.
      destruct (rests_on i) as [was _]; unfold leaving.
      assert (HN : forall p, states i x (near p) = true <-> states i x FLOOD = true /\
        exists y, leads k p x y).
      { intro q; split;
        [intros (y & m & (Hy & Hm & HS) & Hlt)%was | intros [(l & Hl & Hlt)%was
        (y & Hy & m & Hm & HS)]; apply was].
        - split; [apply was; eauto | exists y; split; [exact Hy | eauto]].
        - exists y, m; repeat split; try apply Hm; try apply HS; [exact Hy | unique]. }
      rewrite HN; setoid_rewrite <- not_true_iff_false; setoid_rewrite HN; split.
      - intros [[HF (y & Hy)] He]; split; [exact HF | exists y; split; [exact Hy|]].
        intros e z Hin Hz; apply (He e Hin); eauto.
      - intros [HF (y & Hy & He)]; split; [eauto|]; intros e Hin [_ (z & Hz)];
          exact (He e z Hin Hz).
    Qed.
    Lemma sound i x m : joined k (states i) x -> distance k m x -> (exists j, canonical j x) \/
      m + i < b.
    Proof.
      revert x m; induction i as [|i IH]; intros x m [[p Hp]|Hs] Hm.
      2,4: left; exists 0; apply its_source in Hs as ->; econstructor; exact Hm.
      - right; rewrite Nat.add_0_r; eauto.
      - rewrite goes_on in Hp; apply next_is in Hp as (y & Hy & Hj & [HF (x' & Hg)]%leaving_goes);
          [|apply rests_calm with k (n + i), rests_on].
        assert (x' = x) as -> by (destruct Hg as [[Hx' _] _]; cbn in Hx'; congruence).
        apply rests_on in HF as (l & Hl & _);
          destruct (goes_distance o (W k) p y x l Hg Hl) as (m' & -> & Hm').
        pose proof (distance_unique _ _ _ _ _ Hm Hm') as <-.
        destruct (IH y (S m) Hj Hl) as [(j & Hc)|]; [left; exists (S j); econstructor;
          eauto | right; lia].
    Qed.
    Lemma complete i j L x : distance k L source -> canonical j x -> j <= i -> L + j < n + i ->
      joined k (states i) x.
    Proof.
      intros HL; revert i x; induction j as [|j IH]; intros i x Hc Hi Hlt;
        inversion Hc as [|? p y ? Hc' Hg]; subst.
      - right; apply its_source; reflexivity.
      - destruct i as [|i]; [lia|]; left; exists p; rewrite goes_on; apply next_is;
          [apply rests_calm with k (n + i), rests_on|].
        exists y; split; [apply Hg | split; [apply IH; [exact Hc' | lia | lia]|]];
          apply leaving_goes; split; [|eauto].
        destruct (canonical_distance o (W k) source L j y HL Hc') as (m & -> & Hm); apply rests_on;
          exists m; split; [exact Hm | lia].
    Qed.
    Theorem shown i x : (b <= i -> states (2 + i) x PATH = true -> exists j, canonical j x) /\
      forall L j, distance k L source -> canonical j x -> L <= i -> 2 * L < n + i ->
        states (2 + i) x PATH = true.
    Proof.
      assert (H : states (2 + i) x PATH = true <-> states (1 + i) x FLOOD = true /\
        joined k (states i) x).
      { change (2 + i) with (1 + (1 + i));
        rewrite (goes_on (1 + i)), (proj1 (next_is _ _ _ (rests_calm _ _ _ (rests_on (1 + i))))),
        andb_true_iff.
        replace (states (1 + i) x ON) with (next k (states i) x ON) by (rewrite goes_on;
          reflexivity).
        rewrite (proj1
          (proj2 (proj2 (proj2 (proj2 (proj2 (next_is k _ x (rests_calm _ _ _ (rests_on i)))))))));
          reflexivity. }
      split.
      - intros Hb [HF Hj]%H; apply rests_on in HF as (m & Hm & _); destruct (sound i x m Hj Hm);
          [assumption | lia].
      - intros L j HL Hc Hi Hlt; destruct (canonical_distance o (W k) source L j x HL Hc) as (m & ->
          & Hm).
        apply H; split; [apply rests_on; exists m; split;
          [exact Hm | lia] | apply (complete i j (j + m)); auto; lia].
    Qed.
  End Path.

  (** * Any sequence of mazes *)
  Section Sequence.
    Context (kinds : nat -> node -> kind).
    Hypothesis single : forall t, one (kinds t).
    Notation after := (run_through w kinds a).
    Definition resets t : Prop := forall x, after t x RESET = true.
    Lemma resets_or_calm t : resets t \/ calm (after t).
    Proof.
      assert (H : forall x y, after t x RESET = after t y RESET) by (intros x y;
        apply eq_true_iff_eq; destruct t; [|cbn [run_through]; rewrite !next_reset]; reflexivity).
      destruct (its_highest (fun _ => 0%Z)) as [[x _] _]; destruct (after t x RESET) eqn:E;
        [left | right]; intro y; rewrite <- (H x); exact E.
    Qed.
    Lemma resets_soon n t : (exists i, i < n /\ resets (i + t)) \/ forall i, i < n ->
      calm (after (i + t)).
    Proof.
      induction n as [|n [(i & Hi & Hr)|IH]]; [right; lia | left; exists i; auto|];
        destruct (resets_or_calm (n + t)) as [Hr|Hc]; [left; exists n; auto | right].
      intros i Hi; destruct (Nat.eq_dec i n) as [->|]; [exact Hc | apply IH; lia].
    Qed.
    (** Whatever is raised, or fails, has led to a reset within three iterations. *)
    Lemma quiet t : (forall i, i < 4 -> calm (after (i + t))) ->
      off (after t) (RESET :: ALARM :: found) /\ forall x, fails o (see w (after t) x) = false.
    Proof.
      intro Hc; assert (Ha : forall i x, i <= 2 -> after (i + t) x ALARM = true -> False).
      { intros i x Hi H; enough (after (1 + i + t) x RESET = true) by (rewrite Hc in *;
        [discriminate | lia]); apply next_reset; eauto. }
      assert (Hf : forall i x, i <= 1 -> existsb (after (i + t) x) found = true -> False).
      { intros i x Hi H; apply (Ha (1 + i) x); [lia | apply next_is; [apply Hc; lia | exact H]]. }
      split; intro x; [cbn [existsb]; rewrite !orb_false_iff; repeat split|];
        try (apply (Hc 0); lia); apply not_true_iff_false; intro H.
      - apply (Ha 0 x); [lia | exact H].
      - apply (Hf 0 x); [lia | exact H].
      - apply (Hf 1 x); [lia | apply next_is; [apply (Hc 0); lia | right; exact H]].
    Qed.
    Lemma settled t : (forall i, i < 4 -> calm (after (i + t))) -> exists n, good (kinds (pred t)) n
      (after t).
    Proof.
      induction t as [|t IH]; intro Hc; [exists 0; apply good_0; repeat split; discriminate|].
      destruct (resets_or_calm t) as [Hr|Hc']; [exists 0; apply wiped, Hr|].
      assert (Hall : forall i, i < 4 -> calm (after (i + t))) by (intros [|i] Hi;
        [exact Hc' | rewrite Nat.add_succ_comm; apply Hc; lia]).
      destruct (IH Hall) as (n & was), (quiet (S t) Hc) as [Hoff Hfails];
        apply (good_next (kinds (pred t)) (kinds t) n (after t)); auto.
      intro x; specialize (Hoff x); cbn [existsb] in Hoff; rewrite !orb_false_iff in Hoff;
        apply Hoff.
    Qed.

    Context (k : node -> kind) (T F : nat) (source : node).
    Hypotheses (stays : forall t, T <= t -> kinds t = k) (its_source : forall x, k x = SOURCE <->
      x = source)
      (farthest : forall n x, distance k n x -> n <= F).
    Lemma next_stays t : T <= t -> after (1 + t) = next k (after t).
    Proof. intro H; cbn; rewrite stays by exact H; reflexivity. Qed.
    Lemma resets_rests t : T <= t -> resets t -> exists i, i <= 2 /\ rests k 0 (after (i + t)) /\
      forall x p, after (i + t) x (enter p) = false.
    Proof.
      assert (Hone : forall u, T <= u -> resets u -> off (after (1 + u)) (ALARM :: found) /\
        (calm (after (1 + u)) -> rests k 0 (after (1 + u)) /\
          forall x p, after (1 + u) x (enter p) = false)).
      { intros u Hu Hr; rewrite (next_stays u Hu);
        destruct (wiped k (after u) Hr) as (Hg & Hoff & He); split; [exact Hoff|].
        intro Hc; split; [split; [exact Hg | intro x; cbn [existsb]; rewrite Hc;
          exact (Hoff x)] | exact He]. }
      intros Ht Hr; destruct (Hone t Ht Hr) as (Hoff & Hrest), (resets_or_calm (1 + t)) as [Hr'|Hc];
        [exists 2 | exists 1; auto].
      split; [lia|]; apply (Hone (1 + t)); [lia | exact Hr'|].
      intro x; apply not_true_iff_false; intros (y & Hy)%next_reset;
        exact (eq_true_false_abs _ Hy (proj1 (proj1 (orb_false_iff _ _) (Hoff y)))).
    Qed.
    Theorem becomes_correct t x : let correct := canonical o (W k) source in
      (T + max 9 (F + 4) <= t -> after t x PATH = true -> exists j, correct j x) /\
      forall L j, distance k L source -> correct j x -> T + (2 * L + 9) <= t ->
        after t x PATH = true.
    Proof.
      assert (H : exists u n b, T < u /\ 2 + b + u <= T + max 9 (F + 4) /\ 3 + u <= T + 9 /\
        rests k n (after u) /\
        forall x p m, after u x (enter p) = true -> distance k m x -> m < b).
      { destruct (resets_soon 4 (1 + T)) as [(i & Hi & Hr)|Hc].
        - destruct (resets_rests (i + (1 + T))) as (i' & Hi' & Hs & He); [lia | exact Hr|].
          exists (i' + (i + (1 + T))), 0, 0; do 3 (split; [lia|]); split;
            [exact Hs | intros y p m Hp; rewrite He in Hp; discriminate].
        - destruct (settled _ Hc) as (n & Hn); cbn [pred plus] in Hn;
            rewrite (stays T (le_n T)) in Hn; exists (1 + T), n, (1 + F).
          do 3 (split; [lia|]); split; [split; [exact Hn | apply (quiet _ Hc)] | intros y p m _ Hm;
            apply farthest in Hm; lia]. }
      destruct H as (u & n & b & Hu & Hb & Hu' & Hrests & Hleft); cbv zeta.
      assert (Hone : one k) by (rewrite <- (stays T (le_n T)); apply single).
      assert (Hnext : forall i, after (1 + i + u) = next k (after (i + u))) by (intro i;
        apply (next_stays (i + u)); lia).
      destruct (shown k source n b (fun i => after (i + u)) Hone Hrests Hnext its_source Hleft
        (t - u - 2) x) as [Hs Hc]; cbv beta in *.
      split; [intro Ht | intros L j HL Hj Ht]; replace (2 + (t - u - 2) + u) with t in * by lia;
        [apply Hs | apply (Hc L j HL Hj)]; lia.
    Qed.
  End Sequence.

  Lemma run_same kinds kinds' t : (forall t x, kinds t x = kinds' t x) ->
    forall x g, run_through w kinds a t x g = run_through w kinds' a t x g.
  Proof.
    intro Hk; induction t as [|t IH]; [reflexivity|]; intros x g; cbn [run_through]; unfold step.
    assert (H : forall y, eval (rule a g) (see (W (kinds t)) (run_through w kinds a t) y)
      (tile (W (kinds t)) y) =
      eval (rule a g) (see (W (kinds' t)) (run_through w kinds' a t) y) (tile (W (kinds' t)) y)).
    { intro y; apply eval_same; intros [|d] h; unfold see, tile; cbn; rewrite ?IH, ?Hk;
      try reflexivity; destruct (nb w d y); rewrite ?IH, ?Hk; reflexivity. }
    rewrite H; destruct (is_pooled a g); [|reflexivity].
    apply eq_true_iff_eq; rewrite !(anywhere_iff (W _) _ its_highest); setoid_rewrite H;
      reflexivity.
  Qed.
End Proof.

Section Theorems.
  Context (o : order) (w : world) (a am : automaton).
  Hypotheses (same : forall g see tile, eval (rule am g) see tile = by_hand o see tile g)
    (unpooled : pooled am = []).
  Hypotheses (healing : heals o a) (its_highest : pools w).
  Context (colour : node w -> bool) (source : node w).
  Hypotheses (alternates : forall p x y, nb w (way o p) x = Some y -> colour y = negb (colour x))
    (its_source : forall x, kind_of w x = SOURCE <-> x = source)
    (solvable : (exists moves, solution o w source moves) \/
      (forall moves, ~ solution o w source moves)).

  Lemma concludes since due shown : (forall t x, (since <= t -> shown t x = true ->
    exists j, canonical o w source j x) /\
      forall L j, distance o w L source -> canonical o w source j x -> due L <= t ->
        shown t x = true) -> solved_from o w source since due shown.
  Proof.
    intro H; destruct solvable as [(moves & Hm)|Hm]; [left | right].
    - apply solution_walk, (distance_least o w am same unpooled) in Hm as (n & _ & Hn).
      destruct (first_shortest_exists o w am same unpooled n source Hn) as (first & <- & Hf & _);
        exists first; split; [exact Hf | split; [intros; eapply first_shortest_unique; eauto|]].
      intros t x; rewrite (visits_canonical o w am same unpooled source first x Hf); split;
        [apply H | intros Ht (j & Hj); exact (proj2 (H t x) _ j Hn Hj Ht)].
    - split; [exact Hm|]; intros t x Ht; apply not_true_iff_false; intros (j & Hj)%H; [|exact Ht].
      enough (exists n, distance o w n source) as (n & [(moves & _ & Hs)%walk_solution _]) by exact
        (Hm moves Hs); induction Hj; eauto.
  Qed.

  (** From a fresh start, where the maze stays. *)
  Theorem fresh_right : (forall x y, kind_of w x = TARGET -> kind_of w y = TARGET -> x = y) ->
    solved_from o w source 0 (fun L => 2 * L + 3) (fun t x => run w a t x PATH).
  Proof.
    intro Hone; apply concludes; intros t x; destruct w as [node nb k opp top];
      cbn [kind_of World.node] in *; set (v := World node nb k opp top) in *.
    destruct t as [|[|t]]; [split; [discriminate | lia] | split; [intros _ H | lia] |].
    { discriminate (eq_trans (eq_sym (proj1 (next_is o v a healing k (fun _ _ => false) x (fun _ =>
      eq_refl)))) H). }
    destruct (shown o v a am same unpooled healing its_highest colour alternates k source 0 0
      (run v a)) with (i := t) (x := x) as [Hs Hc];
      [exact Hone | split; [apply good_0; repeat split; discriminate | intro;
        reflexivity] | reflexivity | exact its_source | discriminate |].
    split; [intros _; apply Hs; lia | intros L j HL Hj Ht; apply (Hc L j HL Hj); lia].
  Qed.
  (** Once the maze stays as it is, F being the largest number of moves from any tile. *)
  Theorem changed_right kinds T F : (forall t x y, kinds t x = TARGET -> kinds t y = TARGET ->
    x = y) ->
    (forall t x, T <= t -> kinds t x = kind_of w x) -> (forall x moves, shortest o w x moves ->
      length moves <= F) ->
    solved_from o w source (T + max 9 (F + 4)) (fun L => T + (2 * L + 9)) (fun t x =>
      run_through w kinds a t x PATH).
  Proof.
    intros Hone Hstays Hfar; apply concludes; intros t x;
      set (kinds' := fun t => if T <=? t then kind_of w else kinds t).
    assert (Hk : forall t x, kinds t x = kinds' t x) by (intros u y; unfold kinds';
      destruct (Nat.leb_spec T u); auto).
    rewrite (run_same w a its_highest kinds kinds' t Hk).
    assert (Hf : forall n x, distance o w n x -> n <= F).
    { intros n y Hn; destruct (first_shortest_exists o w am same unpooled n y Hn) as
      (moves & <- & [Hs _] & _); eauto. }
    assert (Hw : forall t, T <= t -> kinds' t = kind_of w) by (intros u Hu; unfold kinds';
      apply Nat.leb_le in Hu; rewrite Hu; reflexivity).
    assert (Hone' : forall t, one w (kinds' t)) by (intros u y z; rewrite <- !Hk; apply Hone).
    clearbody kinds'; clear Hk Hstays; destruct w as [node nb k opp top];
      cbn [kind_of World.node] in *.
    exact (becomes_correct o (World node nb k opp top) a am same unpooled healing its_highest colour
      alternates kinds' Hone' k T F source Hw its_source Hf t x).
  Qed.
End Theorems.
