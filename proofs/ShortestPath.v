(** The automaton of the canonical shortest path: its rules by hand, and what its signals are after t iterations. *)
Require Import Mazes.

(** * The rules, written by hand, for any order of directions *)

Notation PATH := 0%nat (only parsing). Notation FLOOD := 1%nat (only parsing).
Notation NEAR_1 := 2%nat (only parsing). Notation NEAR_2 := 3%nat (only parsing). Notation NEAR_3 := 4%nat (only parsing).
Notation ENTER_1 := 5%nat (only parsing). Notation ENTER_2 := 6%nat (only parsing).
Notation ENTER_3 := 7%nat (only parsing). Notation ENTER_4 := 8%nat (only parsing).

Section Rules.
  Variables (o : order) (see : tap -> nat -> bool) (tile : tap -> kind -> bool).

  Definition nearer (t : tap) (d : place) : bool :=
    match d with
    | First => see t NEAR_1
    | Second => see t NEAR_2
    | Third => see t NEAR_3
    | Last => see t FLOOD && negb (tile t TARGET) && negb (see t NEAR_1 || see t NEAR_2 || see t NEAR_3)
    end.
  Definition points (t : tap) (d : place) : bool := nearer t d && forallb (fun e => negb (nearer t e)) (earlier d).
  Definition on_path (t : tap) : bool :=
    see t ENTER_1 || see t ENTER_2 || see t ENTER_3 || see t ENTER_4 || tile t SOURCE.
  Definition near_rule (g : nat) (d : place) : bool :=
    negb (tile C WALL) && (see C g || (see (N (way o d)) FLOOD && negb (see C FLOOD))).
  Definition enter_rule (d : place) : bool := on_path (N (way o (back o d))) && points (N (way o (back o d))) d.
  Definition by_hand (g : nat) : bool :=
    match g with
    | PATH => see C FLOOD && on_path C
    | FLOOD => tile C TARGET || (negb (tile C WALL) && (see C FLOOD || existsb (fun d => see (N (way o d)) FLOOD) [First; Second; Third; Last]))
    | NEAR_1 => near_rule NEAR_1 First
    | NEAR_2 => near_rule NEAR_2 Second
    | NEAR_3 => near_rule NEAR_3 Third
    | ENTER_1 => enter_rule First
    | ENTER_2 => enter_rule Second
    | ENTER_3 => enter_rule Third
    | ENTER_4 => enter_rule Last
    | _ => false
    end.
End Rules.

(** * What is claimed *)

Section Claims.
  Context (o : order) (w : world).
  Notation node := (node w).

  (** A walk of n moves over free tiles from a tile to a target. *)
  Inductive walk : nat -> node -> Prop :=
  | walk_end x : kind_of w x = TARGET -> walk 0 x
  | walk_move n d x y : kind_of w x <> WALL -> nb w (way o d) x = Some y -> walk n y -> walk (S n) x.

  Definition distance (n : nat) (x : node) : Prop := walk n x /\ forall m, walk m x -> n <= m.
  (** The move d leads from x to y, which is nearer to the target. *)
  Definition leads (d : place) (x y : node) : Prop :=
    nb w (way o d) x = Some y /\ exists n, distance n y /\ distance (S n) x.
  (** It is the first such move in the order of directions. *)
  Definition goes (d : place) (x y : node) : Prop :=
    leads d x y /\ forall e z, In e (earlier d) -> ~ leads e x z.
  (** The tile at which the canonical path from s is after k moves. *)
  Inductive canonical (s : node) : nat -> node -> Prop :=
  | canonical_start n : distance n s -> canonical s 0 s
  | canonical_move k d x y : canonical s k x -> goes d x y -> canonical s (S k) y.

  Definition near_of (d : place) : option nat :=
    match d with First => Some NEAR_1 | Second => Some NEAR_2 | Third => Some NEAR_3 | Last => None end.
  Definition enter_of (d : place) : nat :=
    match d with First => ENTER_1 | Second => ENTER_2 | Third => ENTER_3 | Last => ENTER_4 end.
End Claims.

(** * The proof, for any rules that equal these *)

Section Proof.
  Context (o : order) (w : world) (a : automaton).
  Hypotheses (same : forall g see tile, eval (rule a g) see tile = by_hand o see tile g) (unpooled : pooled a = []).
  Notation node := (node w).
  Notation after := (run w a).
  Notation walk := (walk o w).
  Notation distance := (distance o w).
  Notation leads := (leads o w).
  Notation goes := (goes o w).
  Notation canonical := (canonical o w).

  Lemma run_next t x g : after (S t) x g = by_hand o (see w (after t) x) (tile w x) g.
  Proof. cbn [run]; unfold step, is_pooled; rewrite unpooled; apply same. Qed.
  Lemma way_back d x y : nb w (way o d) x = Some y -> nb w (way o (back o d)) y = Some x.
  Proof. rewrite back_way; apply nb_opp. Qed.
  Lemma way_forth d x y : nb w (way o (back o d)) x = Some y -> nb w (way o d) y = Some x.
  Proof.
    rewrite back_way; intro H; apply nb_opp in H; replace (opp (opp (way o d))) with (way o d) in H; [exact H|].
    destruct (way o d); reflexivity.
  Qed.

  Lemma walk_free n x : walk n x -> kind_of w x <> WALL.
  Proof. destruct 1; congruence. Qed.

  Theorem flood_correct t x : after t x FLOOD = true <-> exists n, walk n x /\ n < t.
  Proof.
    revert x; induction t as [|t IH]; intro x.
    - cbn; split; [discriminate | intros (n & _ & ?); lia].
    - rewrite run_next; cbn [by_hand existsb]; unfold see, tile; cbn [at_tap].
      rewrite orb_true_iff, andb_true_iff, negb_true_iff, !orb_true_iff, Nat.eqb_eq, <- not_true_iff_false, Nat.eqb_eq.
      assert (Hd : forall d, match nb w (way o d) x with Some y => after t y FLOOD | None => false end = true <->
        exists y n, nb w (way o d) x = Some y /\ walk n y /\ n < t).
      { intro d; destruct (nb w (way o d) x) as [y|].
        - rewrite IH; split; [intros (n & ?); exists y, n; tauto | intros (? & n & [= <-] & ?); eauto].
        - split; [discriminate | intros (? & ? & ? & _); discriminate]. }
      rewrite !Hd, IH; clear Hd IH; split.
      + intros [Ht | [Hw [(n & ? & ?) | H]]].
        * exists 0; split; [constructor; assumption | lia].
        * exists n; split; [assumption | lia].
        * assert (exists d y n, nb w (way o d) x = Some y /\ walk n y /\ n < t) as (d & y & n & ? & ? & ?)
            by (decompose [or] H; eauto; discriminate).
          exists (S n); split; [econstructor; eauto | lia].
      + intros (n & Hn & Hlt); destruct Hn as [x Ht | n d x y Hw Hy Hn]; [tauto | right; split; [assumption|]].
        right; destruct d; eauto 10 with arith.
  Qed.

  Lemma flood_at n x t : distance n x -> after t x FLOOD = (n <? t).
  Proof.
    intros [Hn Hleast]; apply eq_true_iff_eq; rewrite flood_correct, Nat.ltb_lt; split.
    - intros (m & Hm & ?); specialize (Hleast m Hm); lia.
    - eauto.
  Qed.

  Lemma distance_least n x : walk n x -> exists m, m <= n /\ distance m x.
  Proof.
    induction n as [n IH] using lt_wf_ind; intro Hn; destruct (after n x FLOOD) eqn:E.
    - apply flood_correct in E as (m & Hm & ?); destruct (IH m) as (k & ? & ?); auto; exists k; split; [lia|auto].
    - exists n; repeat split; auto; intros m Hm; destruct (le_lt_dec n m) as [|]; auto.
      enough (after n x FLOOD = true) by congruence; apply flood_correct; eauto.
  Qed.

  Lemma flooded_at t x : after t x FLOOD = true <-> exists n, distance n x /\ n < t.
  Proof.
    rewrite flood_correct; split.
    - intros (n & Hn & ?); apply distance_least in Hn as (m & ? & ?); exists m; split; [auto|lia].
    - intros (n & [] & ?); eauto.
  Qed.

  Lemma distance_unique n m x : distance n x -> distance m x -> n = m.
  Proof. intros [? Hn] [? Hm]; apply Nat.le_antisymm; auto. Qed.

  Lemma distance_step n x : distance (S n) x -> exists d y, leads d x y.
  Proof.
    intros [Hn Hleast]; inversion Hn as [|? d ? y Hw Hy Hwalk]; subst; exists d, y; split; [auto|].
    exists n; repeat split; auto; intros m Hm.
    enough (S n <= S m) by lia; apply Hleast; econstructor; eauto.
  Qed.

  Theorem near_correct d g x t : near_of d = Some g ->
    (after t x g = true <-> exists y n, leads d x y /\ distance n x /\ n < t).
  Proof.
    intro Hg; induction t as [|t IH].
    - cbn; split; [discriminate | intros (? & ? & _ & _ & ?); lia].
    - replace (after (S t) x g) with (near_rule o (see w (after t) x) (tile w x) g d) by (rewrite run_next; destruct d; try discriminate Hg; injection Hg as <-; reflexivity).
      unfold near_rule, see, tile; cbn [at_tap].
      rewrite andb_true_iff, orb_true_iff, andb_true_iff, !negb_true_iff, IH, <- !not_true_iff_false, Nat.eqb_eq; split.
      + intros [Hw [(y & n & ? & ? & ?) | [Hy Hx]]]; [exists y, n; auto with arith|].
        destruct (nb w (way o d) x) as [y|] eqn:E; [|discriminate].
        apply flooded_at in Hy as (m & Hm & ?).
        destruct (distance_least (S m) x) as (n & ? & Hn); [econstructor; eauto; apply Hm|].
        rewrite (flood_at n x t Hn), Nat.ltb_lt in Hx.
        assert (n = S m) as -> by lia; exists y, (S m); split; [split; [|exists m]|]; auto with arith.
      + intros (y & n & Hl & Hn & Hlt); destruct Hn as [Hwalk Hleast] eqn:?; split; [eauto using walk_free|].
        destruct (le_lt_dec t n) as [Hle|]; [right | left; exists y, n; auto].
        destruct Hl as (Hy & m & Hm & HSm); rewrite Hy, (flood_at m y t Hm), (flood_at n x t), !Nat.ltb_lt by assumption.
        assert (n = S m) as -> by (eapply distance_unique; eauto); lia.
  Qed.

  (** Where the flood has come, the signals tell which move is the first that leads nearer. *)
  Lemma points_correct d x t : after t x FLOOD = true ->
    (points (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C d = true <-> exists y, goes d x y).
  Proof.
    intro HF; pose proof HF as HF'; apply flooded_at in HF' as (n & Hn & Hlt).
    assert (Hg : forall d g, near_of d = Some g -> (after t x g = true <-> exists y, leads d x y)).
    { intros e g Hg; rewrite (near_correct e g x t Hg); split; [intros (y & ? & ? & _); eauto | intros (y & ?); eauto]. }
    pose proof (Hg First NEAR_1 eq_refl) as HU; pose proof (Hg Second NEAR_2 eq_refl) as HL.
    pose proof (Hg Third NEAR_3 eq_refl) as HD; clear Hg; unfold points, goes.
    destruct d; cbn [nearer forallb earlier In]; rewrite ?HF, ?andb_true_iff, ?negb_true_iff, ?orb_false_iff,
      <- ?not_true_iff_false, ?HU, ?HL, ?HD, ?Nat.eqb_eq; split.
    - intros [(y & ?) _]; eauto.
    - intros (y & ? & _); eauto.
    - intros [(y & ?) [HnU _]]; exists y; split; auto; intros e z [<-|[]] ?; eauto.
    - intros (y & ? & Hno); repeat split; eauto; intros (z & Hz); revert Hz; apply Hno; tauto.
    - intros [(y & ?) [HnU [HnL _]]]; exists y; split; auto; intros e z [<-|[<-|[]]] ?; eauto.
    - intros (y & ? & Hno); repeat split; eauto; intros (z & Hz); revert Hz; apply Hno; tauto.
    - intros [[[_ Ht] _] [HnU [HnL [HnD _]]]]; destruct n as [|n]; [destruct Hn as [H _]; inversion H; contradiction|].
      destruct (distance_step n x Hn) as (d & y & Hl); destruct d; [exfalso; eauto .. |].
      exists y; split; auto; intros e z [<-|[<-|[<-|[]]]] ?; eauto.
    - intros (y & (Hy & n' & Hn' & HS) & Hno); repeat split; try (intros (z & Hz); revert Hz; apply Hno; tauto).
      intro Ht; assert (S n' <= 0) by (apply HS; constructor; assumption); lia.
  Qed.

  (** The canonical path from a source at distance n is at distance n - k after k moves. *)
  Lemma goes_distance d x y n : goes d x y -> distance n x -> exists m, n = S m /\ distance m y.
  Proof. intros [(_ & m & ? & ?) _] ?; exists m; split; eauto using distance_unique. Qed.

  Lemma canonical_distance s n k x : distance n s -> canonical s k x -> exists m, n = k + m /\ distance m x.
  Proof.
    intro Hn; induction 1 as [n' Hn'|k d x y Hc (m & -> & Hm) Hg]; [exists n; auto|].
    destruct (goes_distance _ _ _ _ Hg Hm) as (m' & -> & ?); exists m'; split; [lia|auto].
  Qed.

  Lemma goes_unique d e x y z : goes d x y -> goes e x z -> d = e /\ y = z.
  Proof.
    intros [Hd Hfirst] [He Hfirst'].
    assert (d = e) as ->.
    { destruct d, e; try reflexivity; exfalso; first [solve [revert He; apply Hfirst; cbn; tauto] | revert Hd; apply Hfirst'; cbn; tauto]. }
    destruct Hd, He; split; [reflexivity | congruence].
  Qed.

  Lemma canonical_unique s k x y : canonical s k x -> canonical s k y -> x = y.
  Proof.
    intro Hx; revert y; induction Hx as [|k d x x' Hx IH Hg]; intros y Hy; inversion Hy as [|? e ? ? Hc Hg']; subst; auto.
    apply IH in Hc as <-; eapply goes_unique; eauto.
  Qed.

  (** What the rule of ENTER reads at the tile before. *)
  Lemma enter_step d y t : after (S t) y (enter_of d) = true <-> exists x, nb w (way o d) x = Some y /\
    on_path (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C = true /\
    points (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C d = true.
  Proof.
    assert (after (S t) y (enter_of d) = enter_rule o (see w (after t) y) (tile w y) d) as ->
      by (rewrite run_next; destruct d; reflexivity).
    unfold enter_rule; rewrite andb_true_iff; destruct (nb w (way o (back o d)) y) as [x|] eqn:E.
    - replace (on_path (see w (after t) y) (tile w y) (N (way o (back o d))))
        with (on_path (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C)
        by (unfold on_path, see, tile; cbn [at_tap]; rewrite E; reflexivity).
      replace (points (see w (after t) y) (tile w y) (N (way o (back o d))) d)
        with (points (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C d)
        by (unfold points, nearer, see, tile; cbn [at_tap]; rewrite E; reflexivity).
      split; [intro; exists x; split; [|assumption]|].
      + apply way_forth; assumption.
      + intros (x' & Hx' & H); apply way_back in Hx'; rewrite E in Hx'; injection Hx' as <-; exact H.
    - split; [|intros (x & Hx & _); apply way_back in Hx; congruence].
      unfold on_path, see, tile; cbn [at_tap]; rewrite E; intros [[=] _].
  Qed.

  (** [comes t x]: the path from some source has come to x by a move, within t iterations. *)
  Definition enters (d : place) (t : nat) (y : node) : Prop := exists s n k x,
    kind_of w s = SOURCE /\ distance n s /\ canonical s k x /\ goes d x y /\ n + 2 + k <= t.

  Lemma on_path_read t x : (forall d, after t x (enter_of d) = true <-> enters d t x) ->
    (on_path (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C = true <->
      kind_of w x = SOURCE \/ exists d, enters d t x).
  Proof.
    intro H; pose proof (H First) as HU; pose proof (H Second) as HL; pose proof (H Third) as HD; pose proof (H Last) as HR.
    cbn in HU, HL, HD, HR; unfold on_path; rewrite !orb_true_iff, HU, HL, HD, HR, Nat.eqb_eq; split.
    - intros [[[[]|]|]|]; eauto.
    - intros [|[[] ?]]; tauto.
  Qed.

  Lemma points_flooded t x d :
    points (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C d = true -> after t x FLOOD = true.
  Proof.
    intro H; destruct (after t x FLOOD) eqn:E; [reflexivity|]; exfalso.
    assert (Hg : forall d g, near_of d = Some g -> after t x g = false).
    { intros e g Hg; apply not_true_iff_false; rewrite (near_correct e g x t Hg); intros (y & n & _ & ? & ?).
      enough (after t x FLOOD = true) by congruence; apply flooded_at; eauto. }
    unfold points in H; apply andb_true_iff in H as [H _].
    destruct d; cbn [nearer] in H; rewrite ?E, ?(Hg First NEAR_1), ?(Hg Second NEAR_2), ?(Hg Third NEAR_3) in H by reflexivity; discriminate.
  Qed.

  Theorem enter_correct d t y : after t y (enter_of d) = true <-> enters d t y.
  Proof.
    revert d y; induction t as [|t IH]; intros d y.
    - destruct d; cbn; (split; [discriminate | intros (s & n & k & x & _ & _ & _ & _ & ?); lia]).
    - rewrite enter_step; split.
      + intros (x & Hy & Hon & Hp); apply on_path_read in Hon; [|intro; apply IH].
        pose proof (points_flooded _ _ _ Hp) as HF; apply (points_correct d x t HF) in Hp as (z & Hz).
        assert (z = y) as -> by (destruct Hz as [[? _] _]; congruence).
        destruct Hon as [Hs | (e & s & n & k & x' & Hs & Hn & Hk & Hg & Hle)].
        * apply flooded_at in HF as (n & Hn & ?); exists x, n, 0, x; repeat (split; [eauto using canonical_start, canonical_move|]); lia.
        * exists s, n, (S k), x; repeat (split; [eauto using canonical_start, canonical_move|]); lia.
      + intros (s & n & k & x & Hs & Hn & Hk & Hg & Hle); exists x.
        destruct (canonical_distance s n k x Hn Hk) as (m & -> & Hm).
        split; [apply Hg|split].
        * apply on_path_read; [intro; apply IH|]; inversion Hk as [n' Hn'|k' e x' ? Hk' Hg']; subst; [left; assumption|right].
          exists e, s, (S k' + m), k', x'; repeat (split; [assumption|]); lia.
        * apply points_correct; [apply flooded_at; exists m; split; [assumption|lia] | eauto].
  Qed.

  (** What PATH shows after t iterations: of each canonical path to which the flood has come, the first tiles. *)
  Theorem path_correct t x : after t x PATH = true <-> exists s n k,
    kind_of w s = SOURCE /\ distance n s /\ canonical s k x /\ n + 2 + k <= t.
  Proof.
    destruct t as [|t]; [cbn; split; [discriminate | intros (? & ? & ? & _ & _ & _ & ?); lia]|].
    assert (after (S t) x PATH = true <-> after t x FLOOD = true /\
      on_path (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C = true) as ->
      by (rewrite run_next; apply andb_true_iff).
    rewrite on_path_read, flooded_at by (intro; apply enter_correct); split.
    - intros [(m & Hm & Hlt) [Hs | (d & s & n & k & x' & Hs & Hn & Hk & Hg & Hle)]].
      + exists x, m, 0; repeat (split; [eauto using canonical_start, canonical_move|]); lia.
      + exists s, n, (S k); repeat (split; [eauto using canonical_start, canonical_move|]); lia.
    - intros (s & n & k & Hs & Hn & Hk & Hle); destruct (canonical_distance s n k x Hn Hk) as (m & -> & Hm).
      split; [exists m; split; [assumption|lia]|].
      inversion Hk as [n' Hn'|k' e x' ? Hk' Hg']; subst; [left; assumption | right].
      exists e, s, (S k' + m), k', x'; repeat (split; [assumption|]); lia.
  Qed.
End Proof.
