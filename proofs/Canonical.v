(** The canonical path is the first shortest solution, in an order of directions. *)
From MazeNCA Require Import Mazes ShortestPath.

Section Solutions.
  Context (o : order) (w : world) (am : automaton).
  Hypotheses (same : forall g see tile, eval (rule am g) see tile = by_hand o see tile g)
    (unpooled : pooled am = []).
  Notation node := (node w).
  Notation walk := (walk o w).
  Notation distance := (distance o w).
  Notation leads := (leads o w).
  Notation goes := (goes o w).
  Notation canonical := (canonical o w).
  Notation follow := (follow o w).
  Notation solution := (solution o w).
  Notation shortest := (shortest o w).
  Notation first_shortest := (first_shortest o w).

  Lemma follow_move d moves x z : follow (d :: moves) x = Some z <->
    kind_of w x <> WALL /\ exists y, nb w (way o d) x = Some y /\ follow moves y = Some z.
  Proof.
    cbn; rewrite <- (Nat.eqb_eq _ WALL);
      destruct (Nat.eqb (kind_of w x) WALL), (nb w (way o d) x) as [y|]; firstorder congruence.
  Qed.

  Lemma solution_walk s moves : solution s moves -> walk (length moves) s.
  Proof.
    revert s; induction moves as [|d moves IH]; intros s (x & Hx & Ht).
    - injection Hx as ->; constructor; assumption.
    - apply follow_move in Hx as (Hw & y & Hy & Hx); cbn; econstructor; eauto; apply IH; exists x;
        auto.
  Qed.

  Lemma walk_solution n s : walk n s -> exists moves, length moves = n /\ solution s moves.
  Proof.
    induction 1 as [x Ht|n d x y Hw Hy _ (moves & <- & z & Hz & Ht)].
    - exists []; split; [reflexivity | exists x; auto].
    - exists (d :: moves); split; [reflexivity | exists z; rewrite follow_move; eauto].
  Qed.

  Lemma shortest_distance s moves : shortest s moves <-> solution s moves /\
    distance (length moves) s.
  Proof.
    split.
    - intros [Hs Hleast]; repeat split; auto using solution_walk.
      intros m Hm; apply walk_solution in Hm as (others & <- & ?); auto.
    - intros [Hs [_ Hleast]]; split; auto using solution_walk.
  Qed.

  Lemma word_le_antisym a b : word_le a b -> word_le b a -> a = b.
  Proof.
    revert b; induction a as [|d a IH]; intros [|e b]; cbn;
      try (intros; reflexivity || contradiction).
    intros [H|[-> H]] [H'|[E H']]; try subst; try solve [exfalso; try destruct d; try destruct e;
      cbn in *; intuition discriminate].
    f_equal; auto.
  Qed.

  Lemma first_shortest_unique s a b : first_shortest s a -> first_shortest s b -> a = b.
  Proof. intros [Ha HA] [Hb HB]; apply word_le_antisym; auto. Qed.

  Lemma canonical_shift d s x k y n : distance n s -> goes d s x -> canonical x k y ->
    canonical s (S k) y.
  Proof. intros Hn Hg; induction 1; econstructor; eauto using canonical_start, canonical_move. Qed.

  Lemma first_shortest_exists n s : distance n s -> exists moves, length moves = n /\
    first_shortest s moves /\
    forall k, k <= n -> exists x, follow (firstn k moves) s = Some x /\ canonical s k x.
  Proof.
    revert s; induction n as [|n IH]; intros s Hn.
    - assert (Ht : kind_of w s = TARGET) by (destruct Hn as [H _]; inversion H; assumption).
      exists []; split; [reflexivity|split].
      + split; [split; [exists s; auto | cbn; lia] | cbn; auto].
      + intros k Hk; assert (k = 0) as -> by lia; exists s;
          eauto using canonical_start, canonical_move.
    - destruct (goes_exists o w am same unpooled n s Hn) as (d & x & Hg);
        pose proof Hg as [[Hx (m & Hm & HS)] Hfirst].
      assert (m = n) as -> by (enough (S m = S n) by lia; eapply distance_unique; eauto).
      destruct (IH x Hm) as (moves & Hlen & Hmoves & Hk).
      assert (Hw : kind_of w s <> WALL) by (eapply walk_free; apply Hn).
      assert (Hs : solution s (d :: moves)) by (destruct Hmoves as [[(z & Hz & Ht) _] _]; exists z;
        rewrite follow_move; eauto).
      exists (d :: moves); split; [cbn; auto|split; [split|]].
      + apply shortest_distance; cbn; rewrite Hlen; auto.
      + intros others Ho; apply shortest_distance in Ho as [(z & Hz & Ht) Ho].
        assert (Hlo : length others = S n) by (eapply distance_unique; eauto).
        destruct others as [|e others]; [discriminate|]; injection Hlo as Hlo;
          apply follow_move in Hz as (_ & y & Hy & Hz).
        assert (Hso : solution y others) by (exists z; auto).
        assert (He : leads e s y) by (apply (walk_leads o w n);
          [assumption | assumption | rewrite <- Hlo; apply solution_walk, Hso]).
        assert (Hno : ~ In e (earlier d)) by (intro Hin; exact (Hfirst e y Hin He)).
        assert (Hde : In d (earlier e) \/ d = e) by (clear - Hno; destruct d, e; cbn in *; tauto).
        destruct Hde as [|<-]; cbn; [tauto|right; split; [reflexivity|]].
        assert (x = y) as <- by congruence; apply Hmoves, shortest_distance; rewrite Hlo; auto.
      + intros [|k] Hle.
        * exists s; eauto using canonical_start, canonical_move.
        * destruct (Hk k) as (y & Hy & Hc); [lia|]; exists y; cbn [firstn]; rewrite follow_move;
            split; [eauto|].
          eapply canonical_shift; eauto.
  Qed.

  Lemma visits_canonical s moves x : first_shortest s moves -> (visits o w s moves x <->
    exists k, canonical s k x).
  Proof.
    intro Hf; pose proof Hf as [Hs _]; apply shortest_distance in Hs as [_ Hn];
      destruct (first_shortest_exists _ s Hn) as (moves' & _ & Hf' & Hk).
    rewrite (first_shortest_unique s moves' moves Hf' Hf) in Hk; split; intros (k & H).
    - destruct (Hk (min k (length moves))) as (y & Hy & Hc); [lia|];
        rewrite <- firstn_firstn, firstn_all in Hy.
      assert (x = y) as -> by congruence; eauto.
    - destruct (canonical_distance o w s _ k x Hn H) as (m & Hm & _), (Hk k) as (y & Hy & Hc);
        [lia|].
      exists k; rewrite Hy; f_equal; eauto using canonical_unique.
  Qed.

  (** Right from 2 L + 2 iterations on, before that nothing else, and nothing ever where there is no
      solution. *)
  Theorem automaton_solves s :
    kind_of w s = SOURCE -> (forall x, kind_of w x = SOURCE -> x = s) ->
    (exists moves, solution s moves) \/ (forall moves, ~ solution s moves) ->
    solved o w s (fun t x => run w am t x PATH).
  Proof.
    intros Hsource Hone [(moves & Hs)|Hno]; [left | right].
    - apply solution_walk, (distance_least o w am same unpooled) in Hs as (n & _ & Hn).
      destruct (first_shortest_exists n s Hn) as (first & <- & Hf & _); exists first; split;
        [exact Hf | split].
      + intros others Ho; eapply first_shortest_unique; eauto.
      + intros L t x; rewrite (visits_canonical s first x Hf), (path_correct o w am same unpooled);
          split.
        * intros (s' & n & k & Hs' & _ & Hk & _); apply Hone in Hs' as ->; eauto.
        * intros (k & Hk) Ht; exists s, L, k; repeat (split; [assumption|]);
            destruct (canonical_distance o w s _ k x Hn Hk) as (m & Hm & _); lia.
    - split; [exact Hno|]; intros t x; apply not_true_iff_false;
        rewrite (path_correct o w am same unpooled).
      intros (s' & n & k & Hs' & [Hn _] & _); apply Hone in Hs' as ->;
        apply walk_solution in Hn as (moves & _ & H); exact (Hno moves H).
  Qed.

  (** On the way to the target there are tiles of all smaller distances. *)
  Lemma tiles_between n x : distance n x ->
    exists l, length l = S n /\ NoDup l /\ forall y, In y l -> exists k, k <= n /\ distance k y.
  Proof.
    revert x; induction n as [|n IH]; intros x Hx.
    - exists [x]; repeat split; [constructor; [intros []|constructor] | intros y [<-|[]]; eauto].
    - destruct (distance_step o w n x Hx) as (d & y & _ & n' & Hy & Hx').
      assert (n' = n) as -> by (pose proof (distance_unique _ _ _ _ _ Hx Hx'); lia).
      destruct (IH y Hy) as (l & Hl & Hd & Hk); exists (x :: l); repeat split;
        [cbn; auto | constructor; auto |].
      + intro Hin; destruct (Hk x Hin) as (k & Hle & Hkx);
          pose proof (distance_unique _ _ _ _ _ Hx Hkx); lia.
      + intros z [<-|Hz]; [exists (S n); auto | destruct (Hk z Hz) as (k & ? & ?); exists k; auto].
  Qed.

  (** Of a finite world it can be told, by the flood. *)
  Lemma solvable_or_not (tiles : list node) s : (forall x, In x tiles) ->
    (exists moves, solution s moves) \/ (forall moves, ~ solution s moves).
  Proof.
    intro Hall; destruct (run w am (length tiles) s FLOOD) eqn:E.
    - left; apply (flood_correct o w am same unpooled) in E as (n & Hn & _).
      apply walk_solution in Hn as (moves & _ & ?); eauto.
    - right; intros moves Hs; apply solution_walk, (distance_least o w am same unpooled) in Hs as
        (n & _ & Hn).
      enough (run w am (length tiles) s FLOOD = true) by congruence.
      apply (flooded_at o w am same unpooled); exists n; split; [assumption|].
      destruct (tiles_between n s Hn) as (l & Hl & Hd & _);
        enough (length l <= length tiles) by lia.
      apply NoDup_incl_length; [assumption | intros y _; apply Hall].
  Qed.
End Solutions.
