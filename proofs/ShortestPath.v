(** The automaton of the canonical shortest path: its rules by hand, and what its signals are after
    t iterations. *)
From MazeNCA Require Import Mazes.

(** * The rules, written by hand, for any order of directions *)

Notation PATH := 0%nat (only parsing). Notation FLOOD := 1%nat (only parsing).
Notation NEAR_1 := 2%nat (only parsing). Notation NEAR_2 := 3%nat (only parsing).
  Notation NEAR_3 := 4%nat (only parsing).
Notation ENTER_1 := 5%nat (only parsing). Notation ENTER_2 := 6%nat (only parsing).
Notation ENTER_3 := 7%nat (only parsing). Notation ENTER_4 := 8%nat (only parsing).

Section Rules.
  Variables (o : order) (see : tap -> nat -> bool) (tile : tap -> kind -> bool).

  Definition nearer (t : tap) (d : place) : bool :=
    match d with
    | First => see t NEAR_1
    | Second => see t NEAR_2
    | Third => see t NEAR_3
    | Last => see t FLOOD && negb (tile t TARGET) && negb (see t NEAR_1 || see t NEAR_2 ||
        see t NEAR_3)
    end.
  Definition points (t : tap) (d : place) : bool := nearer t d &&
    forallb (fun e => negb (nearer t e)) (earlier d).
  Definition on_path (t : tap) : bool :=
    see t ENTER_1 || see t ENTER_2 || see t ENTER_3 || see t ENTER_4 || tile t SOURCE.
  Definition near_rule (g : nat) (d : place) : bool :=
    negb (tile C WALL) && (see C g || (see (N (way o d)) FLOOD && negb (see C FLOOD))).
  Definition enter_rule (d : place) : bool := on_path (N (way o (back o d))) &&
    points (N (way o (back o d))) d.
  Definition by_hand (g : nat) : bool :=
    match g with
    | PATH => see C FLOOD && on_path C
    | FLOOD => tile C TARGET || (negb (tile C WALL) &&
        (see C FLOOD || existsb (fun d => see (N (way o d)) FLOOD) [First; Second; Third; Last]))
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
  | walk_move n d x y : kind_of w x <> WALL -> nb w (way o d) x = Some y -> walk n y ->
      walk (S n) x.

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
    match d with First => Some NEAR_1 | Second => Some NEAR_2 | Third => Some NEAR_3 | Last =>
      None end.
  Definition enter_of (d : place) : nat :=
    match d with First => ENTER_1 | Second => ENTER_2 | Third => ENTER_3 | Last => ENTER_4 end.
End Claims.

(** * The proof, for any rules that equal these *)

Section Proof.
  Context (o : order) (w : world) (a : automaton).
  Hypotheses (same : forall g see tile, eval (rule a g) see tile = by_hand o see tile g)
    (unpooled : pooled a = []).
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
    rewrite back_way; intro H; apply nb_opp in H; replace (opp (opp (way o d))) with (way o d) in H;
      [exact H|].
    destruct (way o d); reflexivity.
  Qed.

  Lemma walk_free n x : walk n x -> kind_of w x <> WALL.
  Proof. destruct 1; congruence. Qed.

  Theorem flood_correct t x : after t x FLOOD = true <-> exists n, walk n x /\ n < t.
  Proof.
    revert x; induction t as [|t IH]; intro x; [cbn; split; [discriminate | intros (n & _ & ?);
      lia]|].
    rewrite run_next; cbn [by_hand]; rewrite orb_true_iff, andb_true_iff, orb_true_iff,
      negb_true_iff, existsb_exists; unfold see at 1, tile; cbn [at_tap].
    rewrite Nat.eqb_eq, Nat.eqb_neq, IH; split.
    - intros [Ht|[Hw [(n & ? & ?)|(d & _ & H)]]];
        [exists 0; split; [constructor; assumption | lia] | exists n; auto|].
      unfold see in H; cbn [at_tap] in H; destruct (nb w (way o d) x) as [y|] eqn:E;
        [|discriminate].
      apply IH in H as (n & ? & ?); exists (S n); split; [econstructor; eauto | lia].
    - intros (n & Hn & Hlt); destruct Hn as [x Ht|n d x y Hw Hy Hn]; [tauto|]; right; split;
        [assumption|]; right; exists d.
      split; [destruct d; cbn; tauto|]; unfold see; cbn [at_tap]; rewrite Hy; apply IH;
        eauto with arith.
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
    - apply flood_correct in E as (m & Hm & ?); destruct (IH m) as (k & ? & ?); auto; exists k;
        split; [lia|auto].
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

  Lemma walk_leads n d x y : distance (S n) x -> nb w (way o d) x = Some y -> walk n y ->
    leads d x y.
  Proof.
    intros Hx Hy Hn; split; [assumption|]; exists n; split; [split; [assumption|] | assumption];
      intros m Hm.
    enough (S n <= S m) by lia; apply Hx; econstructor; eauto; eapply walk_free; apply Hx.
  Qed.
  Lemma distance_step n x : distance (S n) x -> exists d y, leads d x y.
  Proof. intros Hx; pose proof (proj1 Hx) as H; inversion H; eauto using walk_leads. Qed.

  Lemma leads_far d x y : leads d x y -> kind_of w x <> TARGET.
  Proof. intros (_ & n & _ & _ & H) Ht; specialize (H 0 (walk_end _ _ _ Ht)); lia. Qed.

  Theorem near_correct d g x t : near_of d = Some g ->
    (after t x g = true <-> after t x FLOOD = true /\ exists y, leads d x y).
  Proof.
    intro Hg; induction t as [|t IH]; [cbn; split; [discriminate | intros [[=] _]]|].
    replace (after (S t) x g) with (near_rule o (see w (after t) x) (tile w x) g d) by
      (rewrite run_next; destruct d; try discriminate Hg; injection Hg as <-; reflexivity).
    unfold near_rule, see, tile; cbn [at_tap]; rewrite andb_true_iff, orb_true_iff, andb_true_iff,
      !negb_true_iff, IH, Nat.eqb_neq, !flooded_at; split.
    - intros [Hw [[(n & ? & ?) Hl]|[Hy Hx]]]; [split; [exists n|]; auto|].
      destruct (nb w (way o d) x) as [y|] eqn:E; [|discriminate];
        apply flooded_at in Hy as (m & Hm & ?).
      destruct (distance_least (S m) x) as (n & ? & Hn); [econstructor; eauto; apply Hm|].
      rewrite (flood_at n x t Hn), Nat.ltb_ge in Hx; assert (n = S m) as -> by lia; split;
        [exists (S m) | exists y; split; [|exists m]]; auto with arith.
    - intros [(n & Hn & Hlt) (y & Hl)]; split; [eapply walk_free; apply Hn|];
        destruct (le_lt_dec t n); [right | left; eauto].
      destruct Hl as (-> & m & Hm & HSm); rewrite (flood_at m y t Hm), (flood_at n x t Hn),
        Nat.ltb_lt, Nat.ltb_ge.
      pose proof (distance_unique _ _ _ Hn HSm); lia.
  Qed.

  (** Where the flood has come, the signals tell which move is the first that leads nearer. *)
  Notation points_at t x d := (points (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C d).
  Lemma points_correct d x t : points_at t x d = true <-> after t x FLOOD = true /\
    exists y, goes d x y.
  Proof.
    assert (Hgoes : (exists y, goes d x y) <-> (exists y, leads d x y) /\
      Forall (fun e => ~ exists y, leads e x y) (earlier d))
      by (rewrite Forall_forall; unfold goes; firstorder).
    assert (Hsome : after t x FLOOD = true -> kind_of w x = TARGET \/ exists d y, leads d x y).
    { intros ([|n] & Hn & _)%flooded_at; [left; destruct Hn as [H _]; inversion H;
      assumption | right; exact (distance_step n x Hn)]. }
    assert (Hfar : forall d, (exists y, leads d x y) -> kind_of w x <> TARGET) by
      (intros e (y & Hl); exact (leads_far _ _ _ Hl)).
    pose proof (near_correct First _ x t eq_refl) as HU;
      pose proof (near_correct Second _ x t eq_refl) as HL.
    pose proof (near_correct Third _ x t eq_refl) as HD; unfold points; rewrite Hgoes; destruct d;
      cbn [nearer forallb earlier];
      rewrite ?Forall_cons_iff, Forall_nil_iff, ?andb_true_iff, ?negb_true_iff, ?orb_false_iff,
        <- ?not_true_iff_false, ?HU, ?HL, ?HD, ?Nat.eqb_eq; try tauto.
    split; [|specialize (Hfar Last); tauto]; intros H; destruct Hsome as [|([] & Hl)]; tauto.
  Qed.
  Lemma goes_exists n x : distance (S n) x -> exists d y, goes d x y.
  Proof.
    intro Hn; destruct (distance_step n x Hn) as (e & z & Hl); set (t := S (S n)).
    enough (exists d, points_at t x d = true) as (d & H) by (apply points_correct in H as [_ H];
      eauto).
    assert (HF : after t x FLOOD = true) by (apply flooded_at; eauto); clearbody t;
      apply leads_far, Nat.eqb_neq in Hl.
    unfold points; destruct (after t x NEAR_1) eqn:E1;
      [exists First | destruct (after t x NEAR_2) eqn:E2; [exists Second |
      destruct (after t x NEAR_3) eqn:E3; [exists Third | exists Last]]]; cbn;
        rewrite ?E1, ?E2, ?E3, ?HF, ?Hl; reflexivity.
  Qed.

  (** The canonical path from a source at distance n is at distance n - k after k moves. *)
  Lemma goes_distance d x y n : goes d x y -> distance n x -> exists m, n = S m /\ distance m y.
  Proof. intros [(_ & m & ? & ?) _] ?; exists m; split; eauto using distance_unique. Qed.

  Lemma canonical_distance s n k x : distance n s -> canonical s k x -> exists m, n = k + m /\
    distance m x.
  Proof.
    intro Hn; induction 1 as [n' Hn'|k d x y Hc (m & -> & Hm) Hg]; [exists n; auto|].
    destruct (goes_distance _ _ _ _ Hg Hm) as (m' & -> & ?); exists m'; split; [lia|auto].
  Qed.

  Lemma goes_unique d e x y z : goes d x y -> goes e x z -> d = e /\ y = z.
  Proof.
    intros [Hd Hfirst] [He Hfirst'].
    assert (d = e) as ->.
    { destruct d, e; try reflexivity; exfalso; first [solve [revert He; apply Hfirst; cbn;
      tauto] | revert Hd; apply Hfirst'; cbn; tauto]. }
    destruct Hd, He; split; [reflexivity | congruence].
  Qed.

  Lemma canonical_unique s k x y : canonical s k x -> canonical s k y -> x = y.
  Proof.
    intro Hx; revert y; induction Hx as [|k d x x' Hx IH Hg]; intros y Hy;
      inversion Hy as [|? e ? ? Hc Hg']; subst; auto.
    apply IH in Hc as <-; eapply goes_unique; eauto.
  Qed.

  (** The path from some source has come to x, within t iterations. *)
  Definition reached (t : nat) (x : node) : Prop := exists s n k,
    kind_of w s = SOURCE /\ distance n s /\ canonical s k x /\ n + 2 + k <= t.
  Notation on_path_at t x := (on_path (fun _ => after t x) (fun _ => Nat.eqb (kind_of w x)) C).

  (** What the rule of ENTER reads at the tile before. *)
  Lemma enter_step d y t : after (S t) y (enter_of d) = true <->
    exists x, on_path_at t x = true /\ after t x FLOOD = true /\ goes d x y.
  Proof.
    assert (after (S t) y (enter_of d) = match nb w (way o (back o d)) y with Some x =>
      on_path_at t x && points_at t x d | None => false end) as ->.
    { rewrite run_next; transitivity (enter_rule o (see w (after t) y) (tile w y) d);
      [destruct d; reflexivity|].
      unfold enter_rule, points, nearer, on_path, see, tile; cbn [at_tap]; destruct (nb w _ y);
        reflexivity. }
    destruct (nb w (way o (back o d)) y) as [x|] eqn:E; [apply way_forth in E as E'|].
    - rewrite andb_true_iff, points_correct; split.
      + intros (Hon & HF & z & Hz); exists x; assert (z = y) as -> by (destruct Hz as [[? _] _];
          congruence); auto.
      + intros (x' & Hon & HF & Hg); pose proof (way_back _ _ _ (proj1 (proj1 Hg)));
          assert (x' = x) as -> by congruence; eauto.
    - split; [discriminate | intros (x & _ & _ & [[Hx _] _]); apply way_back in Hx; congruence].
  Qed.

  Lemma reached_next t x : (forall d, after t x (enter_of d) = true <-> exists z, reached t z /\
    goes d z x) ->
    on_path_at t x = true /\ after t x FLOOD = true <-> reached (S t) x.
  Proof.
    intro H; assert (on_path_at t x = true <-> kind_of w x = SOURCE \/ exists d z, reached t z /\
      goes d z x) as ->.
    { setoid_rewrite <- H; unfold on_path; rewrite !orb_true_iff, Nat.eqb_eq; split.
      - intros [[[[]|]|]|]; [right; exists First | right; exists Second | right;
          exists Third | right; exists Last | left]; assumption.
      - intros [|[[] ?]]; cbn [enter_of] in *; tauto. }
    rewrite flooded_at; split.
    - intros [[Hs|(d & z & (s & n & k & Hs & Hn & Hk & Hle) & Hg)] (m & Hm & Hlt)].
      + exists x, m, 0; repeat (split; [eauto using canonical_start|]); lia.
      + exists s, n, (S k); repeat (split; [eauto using canonical_move|]); lia.
    - intros (s & n & k & Hs & Hn & Hk & Hle);
        destruct (canonical_distance s n k x Hn Hk) as (m & -> & Hm).
      split; [|exists m; split; [assumption | lia]]; inversion Hk as [n' Hn'|k' e z ? Hk' Hg'];
        subst; [auto | right].
      exists e, z; split; [|assumption]; exists s, (S k' + m), k'; repeat (split; [assumption|]);
        lia.
  Qed.

  Theorem enter_correct d t y : after t y (enter_of d) = true <-> exists x, reached t x /\
    goes d x y.
  Proof.
    revert d y; induction t as [|t IH]; intros d y.
    - destruct d; cbn; (split; [discriminate | intros (x & (s & n & k & _ & _ & _ & ?) & _); lia]).
    - rewrite enter_step; setoid_rewrite <- (reached_next t) at 1; [|intro; apply IH]; firstorder.
  Qed.

  (** What PATH shows after t iterations: of each canonical path to which the flood has come, the
      first tiles. *)
  Theorem path_correct t x : after t x PATH = true <-> reached t x.
  Proof.
    destruct t as [|t]; [cbn; split; [discriminate | intros (? & ? & ? & _ & _ & _ & ?); lia]|].
    rewrite run_next, <- reached_next by (intro; apply enter_correct); cbn [by_hand];
      rewrite andb_true_iff; apply and_comm.
  Qed.
End Proof.
