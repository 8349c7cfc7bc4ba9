(** What the signals of an automaton are after t iterations on every maze, from lemmas about a tile and its neighbours. *)
From Coq Require Import Lia.
Require Import Mazes Refute Facts Fixpoints.
Local Open Scope Z_scope.
Notation N_TILES := (-2) (only parsing). Notation SPREAD := (-3) (only parsing).
(** An automaton, what is said of it, and the ghosts in which that is said: least fixed points, and what follows of these. *)
Record statement := Statement {
  of_rules : automaton;
  relations : automaton;
  n_kinds : nat;
  said : list (option fact);
  answers : list (nat * (fact * lin)) }.
(** A rule as a fact, by what is seen at each tap. *)
Definition number_is (k : Z) (v : var) : fact := Both (Below (Lin (- k) [(1, v)])) (Below (Lin k [(-1, v)])).
Fixpoint fact_of (e : expr) (sees : tap -> nat -> fact) : fact :=
  match e with
  | See g t => sees t g
  | Is k t => number_is (Z.of_nat k) (KIND, offset t)
  | And e f => Both (fact_of e sees) (fact_of f sees)
  | Or e f => Either (fact_of e sees) (fact_of f sees)
  | Not e => No (fact_of e sees)
  | Never => Always false
  end.
(** Whether a relation of number h is on at q in a round before that of number [bound]. *)
Definition on (h : nat) (q : spot) : fact := Truth (Z.of_nat h) q.
Definition stage_at (h : nat) (q : spot) : Z * var := (1, (Z.of_nat h + 1, q)).
Definition before (bound : lin) (h : nat) (q : spot) : fact :=
  Both (on h q) (Below (Lin (constant (over bound)) (stage_at h q :: terms (over bound)))).
Definition until (bound : lin) (h : nat) (q : spot) : fact :=
  Both (on h q) (Below (Lin (constant (over bound) - 1) (stage_at h q :: terms (over bound)))).
Section Ghosts.
  Context (th : statement) (m : maze) (t : nat).
  Notation fix_rules := (relations th).
  Definition on_spot (f : cell m -> bool) (p : spot) : bool := match cell_at m p with Some x => f x | None => false end.
  Definition number_on (f : cell m -> Z) (p : spot) : Z := match cell_at m p with Some x => f x | None => -1 end.
  Definition n_on : nat := length (filter (fun x => fixed (grid m) fix_rules (cells m) x 0) (cells m)).
  Definition number (n : Z) (p : spot) : Z :=
    if n =? KIND then number_on (fun x => Z.of_nat (kind_at m (proj1_sig x))) p
    else if n =? TIME then Z.of_nat t
    else if n =? N_TILES then Z.of_nat (length (cells m))
    else if n =? SPREAD then Z.max (Z.of_nat n_on - 1) 0
    else if n <? 0 then 0
    else number_on (fun x => stage (grid m) fix_rules (cells m) x (Z.to_nat (n - 1))) p.
  (** Below 0 are the signals that tiles hold, then come the relations. *)
  Definition truth (n : Z) (p : spot) : bool :=
    if n <? 0 then on_spot (fun x => run (grid m) (of_rules th) t x (Z.to_nat (-1 - n))) p
    else on_spot (fun x => fixed (grid m) fix_rules (cells m) x (Z.to_nat n)) p.
  Definition true_at (p : spot) (f : fact) : bool := says truth number p f.
End Ghosts.
(** What is known of the ghosts from their definitions. *)
Inductive given := Kinds | Times | Sizes | Range (g : nat) | Few (g : nat) | Step (g : nat) (bound : lin) | Before (n : nat).
Definition given_fact (th : statement) (known : list fact) (u : given) : fact :=
  let R := Z.of_nat (length (rules (relations th))) in let here : spot := (0, 0) in
  match u with
  | Kinds => Both (Below (Lin (-1) [(-1, (KIND, here))])) (Below (Lin (1 - Z.of_nat (n_kinds th)) [(1, (KIND, here))]))
  | Times => Below (Lin 0 [(-1, (TIME, here))])
  | Sizes => Both (Below (Lin 0 [(-1, (SPREAD, here))])) (Below (Lin 1 [(1, (SPREAD, here)); (-1, (N_TILES, here))]))
  | Range g => Either (Both (Both (on g here) inside_at) (Below (Lin 0 [(-1, (Z.of_nat g + 1, here))])))
      (Both (No (on g here)) (number_is (-1) (Z.of_nat g + 1, here)))
  | Few g => Either (No (on g here)) (Below (if R =? 1 then Lin 0 [stage_at g here; (-1, (SPREAD, here))]
      else Lin 1 [stage_at g here; (- R, (N_TILES, here))]))
  | Step g bound => Either (Below (Lin (constant bound + 1) (terms bound))) (Either (No inside_at)
      (same (fact_of (rule (relations th) g) (fun tap h => before bound h (offset tap))) (until bound g here)))
  | Before n => nth n known (Always true)
  end.

(** * They are true of every maze *)
Section Given.
  Context (th : statement) (m : maze).
  Hypotheses (unpooled : pooled (relations th) = None) (grows : growing (relations th) = true)
    (known_kinds : forall x : cell m, (kind_at m (proj1_sig x) < n_kinds th)%nat) (some : cells m <> []).
  Notation w := (grid m).
  Notation R := (Z.of_nat (length (rules (relations th)))).
  Notation number := (number th m). Notation true_at := (true_at th m).
  Notation fixed := (fixed w (relations th) (cells m)). Notation stage := (stage w (relations th) (cells m)).
  Notation on_spot := (on_spot m).
  Lemma at_tap_spot tap x : at_tap w tap x = cell_at m (plus (proj1_sig x) (offset tap)).
  Proof.
    destruct tap as [|d]; cbn.
    - symmetry; apply cell_at_some; unfold plus; destruct (proj1_sig x); cbn; f_equal; lia.
    - unfold grid_nb; f_equal; destruct x as [[row col] h], d; unfold plus; cbn; f_equal; lia.
  Qed.
  Lemma see_spot (s : state w) x tap g : see w s x tap g = on_spot (fun y => s y g) (plus (proj1_sig x) (offset tap)).
  Proof. unfold see; rewrite at_tap_spot; reflexivity. Qed.
  Lemma number_of_map t n q r : n < 0 -> number t n q = number t n r.
  Proof.
    intro H; unfold Described.number; destruct (Z.eqb_spec n KIND); [lia|]; destruct (n =? TIME), (n =? N_TILES), (n =? SPREAD); try reflexivity.
    destruct (Z.ltb_spec n 0); [reflexivity | lia].
  Qed.
  Lemma number_is_says t p k n : true_at t p (number_is k (n, (0, 0))) = (number t n p =? k).
  Proof.
    unfold Described.true_at, number_is, inside_at; cbn [says number_is inside_at]; unfold amount; cbn [constant terms sum]; replace (plus p (0, 0)) with p by (destruct p; unfold plus; cbn; f_equal; lia).
    generalize (number t n p); intro z; destruct (Z.eqb_spec z k); apply eq_true_iff_eq; rewrite andb_true_iff, !Z.leb_le; split; try discriminate; lia.
  Qed.
  Lemma kind_is t p x k tap : cell_at m p = Some x -> true_at t p (number_is (Z.of_nat k) (KIND, offset tap)) = tile w x tap k.
  Proof.
    intro Hx; apply cell_at_some in Hx; unfold tile; rewrite at_tap_spot, Hx.
    unfold Described.true_at, number_is, inside_at; cbn [says number_is inside_at]; unfold amount; cbn [constant terms sum]; unfold Described.number; cbn [Z.eqb Pos.eqb]; unfold number_on.
    destruct (cell_at m (plus p (offset tap))) as [y|]; cbv beta iota.
    - change (kind_of w y) with (kind_at m (proj1_sig y)); destruct (Nat.eqb_spec (kind_at m (proj1_sig y)) k); apply eq_true_iff_eq; rewrite andb_true_iff, !Z.leb_le; split; try discriminate; lia.
    - apply not_true_is_false; rewrite andb_true_iff, !Z.leb_le; lia.
  Qed.
  Lemma fact_of_says t p x e sees : cell_at m p = Some x ->
    true_at t p (fact_of e sees) = eval e (fun tap g => true_at t p (sees tap g)) (tile w x).
  Proof.
    intro Hx; induction e; cbn [fact_of eval]; try reflexivity; [apply kind_is, Hx | ..]; unfold Described.true_at in *; cbn [says]; congruence.
  Qed.
  Lemma inside_says t p : true_at t p inside_at = match cell_at m p with Some _ => true | None => false end.
  Proof.
    unfold Described.true_at, number_is, inside_at; cbn [says number_is inside_at]; unfold amount; cbn [constant terms sum]; replace (plus p (0, 0)) with p by (destruct p; unfold plus; cbn; f_equal; lia).
    unfold Described.number, number_on; cbn [Z.eqb Pos.eqb]; destruct (cell_at m p); [apply negb_true_iff, Z.leb_gt; lia | reflexivity].
  Qed.
  Lemma on_says t p h q : (h < length (rules (relations th)))%nat -> true_at t p (on h q) = on_spot (fun x => fixed x h) (plus p q).
  Proof.
    intro H; unfold Described.true_at, on; cbn; unfold truth.
    destruct (Z.ltb_spec (Z.of_nat h) 0); [lia|]; rewrite Nat2Z.id; reflexivity.
  Qed.
  Lemma stage_number t h q : number t (Z.of_nat h + 1) q = number_on m (fun x => stage x h) q.
  Proof.
    unfold Described.number; destruct (Z.eqb_spec (Z.of_nat h + 1) KIND), (Z.eqb_spec (Z.of_nat h + 1) TIME),
      (Z.eqb_spec (Z.of_nat h + 1) N_TILES), (Z.eqb_spec (Z.of_nat h + 1) SPREAD), (Z.ltb_spec (Z.of_nat h + 1) 0); try lia.
    replace (Z.to_nat (Z.of_nat h + 1 - 1)) with h by lia; reflexivity.
  Qed.
  Lemma before_says t p bound h q b : (h < length (rules (relations th)))%nat -> amount (number t) p bound = Z.of_nat b ->
    true_at t p (before bound h q) = on_spot (fun x => run w (relations th) b x h) (plus p q).
  Proof.
    intros H Hb; change (true_at t p (on h q) && (amount (number t) p (Lin (constant (over bound)) (stage_at h q :: terms (over bound))) <=? 0) =
      on_spot (fun x => run w (relations th) b x h) (plus p q)).
    rewrite on_says by exact H; pose proof (over_amount (number t) p bound) as E; unfold amount in *; cbn [constant terms sum stage_at] in *.
    rewrite stage_number; unfold Described.on_spot, number_on; destruct (cell_at m (plus p q)) as [x|]; [|reflexivity].
    rewrite (stage_spec w _ _ unpooled grows (cells_all m)); f_equal. apply eq_true_iff_eq; rewrite Z.leb_le, Z.ltb_lt; lia.
  Qed.
  Lemma until_before bound h q : until bound h q = before (Lin (constant bound + 1) (terms bound)) h q.
  Proof. unfold until, before, over; cbn [constant terms]; f_equal; f_equal; f_equal; lia. Qed.
  (** A rule that is asked for signals that there are not sees them off. *)
  Definition within (e : expr) : bool := (fix go e := match e with See g _ => (g <? length (rules (relations th)))%nat
    | And e f | Or e f => go e && go f | Not e => go e | _ => true end) e.
  Theorem given_true known t p u :
    (match u with Range g | Few g => (g <? length (rules (relations th)))%nat
      | Step g _ => (g <? length (rules (relations th)))%nat && within (rule (relations th) g)
      | _ => true end) = true ->
    Forall (fun f => forall q, true_at t q f = true) known -> true_at t p (given_fact th known u) = true.
  Proof.
    intros Hu Hknown; assert (Hp : plus p (0, 0) = p) by (destruct p; unfold plus; cbn; f_equal; lia).
    destruct u as [| | |g|g|g bound|n]; cbn [given_fact].
    - unfold Described.true_at, number_is, inside_at; cbn [says number_is inside_at]; unfold amount; cbn [constant terms sum]; rewrite Hp; unfold Described.number, number_on; cbn [Z.eqb Pos.eqb].
      destruct (cell_at m p) as [x|]; cbv beta iota; apply andb_true_iff; rewrite !Z.leb_le; [specialize (known_kinds x)|]; lia.
    - unfold Described.true_at, number_is, inside_at; cbn [says number_is inside_at]; unfold amount; cbn [constant terms sum]; unfold Described.number; cbn [Z.eqb Pos.eqb]; apply Z.leb_le; lia.
    - unfold Described.true_at, number_is, inside_at; cbn [says number_is inside_at]; unfold amount; cbn [constant terms sum]; unfold Described.number; cbn [Z.eqb Pos.eqb].
      assert (Hn : (n_on th m <= length (cells m))%nat) by apply filter_length_le.
      assert (Hs : (0 < length (cells m))%nat) by (destruct (cells m); [contradiction | cbn; lia]).
      apply andb_true_iff; rewrite !Z.leb_le; lia.
    - apply Nat.ltb_lt in Hu.
      change (true_at t p (on g (0, 0)) && true_at t p inside_at && (amount (number t) p (Lin 0 [(-1, (Z.of_nat g + 1, (0, 0)))]) <=? 0) ||
        (negb (true_at t p (on g (0, 0))) && true_at t p (number_is (-1) (Z.of_nat g + 1, (0, 0)))) = true).
      rewrite number_is_says, inside_says, on_says by exact Hu; unfold amount; cbn [constant terms sum]; rewrite Hp, stage_number.
      unfold Described.on_spot, number_on; destruct (cell_at m p) as [x|]; [|reflexivity].
      destruct (fixed x g) eqn:E; cbn [andb orb negb].
      + pose proof (stage_least w _ _ unpooled grows (cells_all m) x g E); rewrite orb_false_r; apply Z.leb_le; lia.
      + unfold Fixpoints.stage; rewrite E; reflexivity.
    - apply Nat.ltb_lt in Hu.
      match goal with |- true_at t p (Either (No ?f) ?g) = true => change (negb (true_at t p f) || true_at t p g = true) end.
      rewrite on_says, Hp by exact Hu; unfold Described.on_spot; destruct (cell_at m p) as [x|] eqn:Ex; [|reflexivity].
      destruct (fixed x g) eqn:E; [cbn [negb orb] | reflexivity].
      pose proof (stage_few w _ _ unpooled grows (cells_all m) x g E) as Hf; pose proof (count_all w (relations th) (cells m)).
      destruct (Z.eqb_spec R 1) as [H1|H1]; unfold Described.true_at; cbn [says]; unfold amount; cbn [constant terms sum stage_at];
        rewrite Hp, stage_number; unfold number_on; rewrite Ex; unfold Described.number; cbn [Z.eqb Pos.eqb]; cbv beta iota; apply Z.leb_le;
        change (@length (node w)) with (@length (cell m)) in *; [|lia].
      rewrite count_one in Hf by lia; change (stage x g < Z.of_nat (n_on th m)) in Hf; lia.
    - apply andb_prop in Hu as [Hg Hw]; apply Nat.ltb_lt in Hg; rewrite until_before.
      match goal with |- true_at t p (Either ?b (Either (No ?i) (same ?f ?g))) = true =>
        change (true_at t p b || (negb (true_at t p i) || true_at t p (same f g)) = true) end.
      destruct (true_at t p (Below _)) eqn:Eb; [reflexivity | cbn [orb]]; rewrite inside_says.
      destruct (cell_at m p) as [x|] eqn:Ex; [cbn [negb orb] | reflexivity]; unfold Described.true_at at 1; rewrite says_same; apply eqb_true_iff.
      change (true_at t p (fact_of (rule (relations th) g) (fun tap h => before bound h (offset tap))) =
        true_at t p (before (Lin (constant bound + 1) (terms bound)) g (0, 0))).
      assert (Hb : amount (number t) p bound = Z.of_nat (Z.to_nat (amount (number t) p bound))).
      { unfold Described.true_at in Eb; cbn [says] in Eb; unfold amount in *; cbn [constant terms] in Eb; apply Z.leb_gt in Eb; lia. }
      rewrite (before_says t p _ g (0, 0) (S (Z.to_nat (amount (number t) p bound)))); [|exact Hg | unfold amount in *; cbn [constant terms]; lia].
      rewrite Hp, (fact_of_says t p x _ _ Ex); unfold Described.on_spot; rewrite Ex, (after_next w _ unpooled); clear -Hw Hb Ex unpooled grows.
      induction (rule (relations th) g) as [h tap| |e IHe f IHf|e IHe f IHf|e IHe|]; cbn in Hw; cbn [eval]; try reflexivity.
      + rewrite (before_says t p bound h _ _ (proj1 (Nat.ltb_lt _ _) Hw) Hb), see_spot; apply cell_at_some in Ex; rewrite Ex; reflexivity.
      + apply andb_prop in Hw as [? ?]; rewrite IHe, IHf by assumption; reflexivity.
      + apply andb_prop in Hw as [? ?]; rewrite IHe, IHf by assumption; reflexivity.
      + rewrite IHe by assumption; reflexivity.
    - destruct (Nat.lt_ge_cases n (length known)) as [H|H]; [|rewrite nth_overflow by exact H; reflexivity].
      rewrite Forall_forall in Hknown; apply Hknown, nth_In, H.
  Qed.
End Given.

(** * Lemmas, each with what leads the checker to it, and the induction *)
Record proof := Proof { uses : list (given * spot); why : refutation }.
Definition fitting (th : statement) (u : given) : bool :=
  let n := length (rules (relations th)) in
  match u with
  | Range g | Few g => (g <? n)%nat
  | Step g _ => (g <? n)%nat && within th (rule (relations th) g)
  | _ => true
  end.
Definition proves (th : statement) (known : list fact) (goal : fact) (pf : proof) : bool :=
  forallb (fun '(u, _) => fitting th u) (uses pf) &&
  impossible (why pf) (No goal :: map (fun '(u, d) => shift d (given_fact th known u)) (uses pf)).
(** The lemmas that are proven, each from those before. *)
Fixpoint proven (th : statement) (known : list fact) (lemmas : list (fact * proof)) : list fact :=
  match lemmas with
  | [] => known
  | (f, pf) :: rest => if proves th known f pf then proven th (known ++ [f]) rest else known
  end.
Definition said_at (th : statement) (tap : tap) (g : nat) : fact :=
  match nth g (said th) None with Some f => shift (offset tap) f | None => Truth (-1 - Z.of_nat g) (offset tap) end.
Definition outside_or (f : fact) : fact := Either (No inside_at) f.
(** Of each signal: it is off at first and beyond the edge, and the rule gives what is said of it an iteration later. *)
Definition claims (th : statement) : list fact :=
  flat_map (fun '(g, s) => match s with None => [] | Some f =>
      [Either (No (Below (Lin 0 [(1, (TIME, (0, 0)))]))) (No f); Either inside_at (No f);
       outside_or (same (fact_of (rule (of_rules th) g) (said_at th)) (later f))] end)
    (combine (seq 0 (length (said th))) (said th)) ++
  flat_map (fun '(g, (wanted, due)) => let shown := fact_of (rule (of_rules th) g) (said_at th) in
      [outside_or (Either (No shown) wanted);
       outside_or (Either (No (Below (Lin (constant due - 1) ((-1, (TIME, (0, 0))) :: terms due)))) (same shown wanted))])
    (answers th).
Definition all_timeless (th : statement) : bool := forallb (fun s => match s with Some f => timeless f | None => true end) (said th).
Definition checked (th : statement) (lemmas : list (fact * proof)) (proofs : list proof) : bool :=
  let known := proven th [] lemmas in
  (length proofs =? length (claims th))%nat && forallb (fun '(f, pf) => proves th known f pf) (combine (claims th) proofs) &&
  all_timeless th && growing (relations th) &&
  match pooled (of_rules th), pooled (relations th) with None, None => true | _, _ => false end.
Section Theorems.
  Context (th : statement) (lemmas : list (fact * proof)) (proofs : list proof).
  Hypothesis is_checked : checked th lemmas proofs = true.
  Context (m : maze).
  Hypotheses (known_kinds : forall x : cell m, (kind_at m (proj1_sig x) < n_kinds th)%nat) (some : cells m <> []).
  Notation w := (grid m). Notation true_at := (true_at th m).
  Lemma is_unpooled : pooled (of_rules th) = None /\ pooled (relations th) = None /\ growing (relations th) = true.
  Proof.
    unfold checked in is_checked; rewrite !andb_true_iff in is_checked; destruct is_checked as [[_ ?] H].
    destruct (pooled (of_rules th)), (pooled (relations th)); try discriminate; auto.
  Qed.
  Lemma proves_true known f pf t p : Forall (fun f => forall q, true_at t q f = true) known ->
    proves th known f pf = true -> true_at t p f = true.
  Proof.
    intros Hknown H; unfold proves in H; rewrite andb_true_iff, forallb_forall in H; destruct H as [Hu H].
    destruct is_unpooled as (_ & Hp & Hg); destruct (true_at t p f) eqn:E; [reflexivity|exfalso].
    apply (impossible_sound (truth th m t) (number th m t) p _ _ H); constructor; [cbn [says]; change (negb (true_at t p f) = true); rewrite E; reflexivity|].
    apply Forall_map, Forall_forall; intros [u d] Hin; rewrite shift_says by (apply number_of_map); apply given_true; auto; exact (Hu (u, d) Hin).
  Qed.
  Lemma proven_true t known lemmas' : Forall (fun f => forall q, true_at t q f = true) known ->
    Forall (fun f => forall q, true_at t q f = true) (proven th known lemmas').
  Proof.
    revert known; induction lemmas' as [|[f pf] rest IH]; intros known H; [exact H|]; cbn; destruct (proves th known f pf) eqn:E; [|exact H].
    apply IH, Forall_app; split; [exact H | repeat constructor]; intro q; exact (proves_true known f pf t q H E).
  Qed.
  Lemma claims_true t p f : In f (claims th) -> true_at t p f = true.
  Proof.
    intro Hin; pose proof is_checked as Hall; unfold checked in Hall; rewrite !andb_true_iff, forallb_forall in Hall.
    destruct Hall as [[[[Hlen H] _] _] _]; apply Nat.eqb_eq in Hlen; apply (In_nth _ _ (Always true)) in Hin as (n & Hn & <-).
    specialize (H (nth n (claims th) (Always true), nth n proofs (Proof [] (Refutation [] [] [] [] [])))); eapply proves_true; [apply proven_true; constructor|].
    apply H; rewrite <- combine_nth by (symmetry; exact Hlen); apply nth_In; rewrite combine_length; lia.
  Qed.
  Lemma said_held t x tap h : (forall g f q, nth g (said th) None = Some f -> on_spot m (fun y => run w (of_rules th) t y g) q = true_at t q f) ->
    true_at t (proj1_sig x) (said_at th tap h) = see w (run w (of_rules th) t) x tap h.
  Proof.
    intro IH; rewrite see_spot; unfold said_at; destruct (nth h (said th) None) as [f|] eqn:E.
    - unfold Described.true_at; rewrite shift_says by (apply number_of_map); symmetry; exact (IH h f _ E).
    - unfold Described.true_at; cbn [says]; unfold truth; destruct (Z.ltb_spec (-1 - Z.of_nat h) 0); [|lia].
      replace (Z.to_nat (-1 - (-1 - Z.of_nat h))) with h by lia; reflexivity.
  Qed.
  Lemma shown_rule t x g : (forall g f q, nth g (said th) None = Some f -> on_spot m (fun y => run w (of_rules th) t y g) q = true_at t q f) ->
    true_at t (proj1_sig x) (fact_of (rule (of_rules th) g) (said_at th)) = run w (of_rules th) (S t) x g.
  Proof.
    intro IH; rewrite (fact_of_says th m t _ x) by (apply cell_at_some; reflexivity).
    destruct is_unpooled as (Hp & _); rewrite (after_next w _ Hp); apply eval_same; [|reflexivity].
    intros tap h; apply said_held, IH.
  Qed.
  (** After t iterations every signal is what is said of it. *)
  Theorem said_everywhere t g f q : nth g (said th) None = Some f -> on_spot m (fun y => run w (of_rules th) t y g) q = true_at t q f.
  Proof.
    assert (Hin : forall g f, nth g (said th) None = Some f -> In (g, Some f) (combine (seq 0 (length (said th))) (said th))).
    { intros h e He; assert (Hh : (h < length (said th))%nat) by (destruct (Nat.lt_ge_cases h (length (said th))) as [|Hge]; [assumption | rewrite nth_overflow in He by exact Hge; discriminate]).
      replace (h, Some e) with (nth h (combine (seq 0 (length (said th))) (said th)) (0%nat, None)).
      - apply nth_In; rewrite combine_length, seq_length, Nat.min_id; exact Hh.
      - rewrite combine_nth by (apply seq_length); rewrite seq_nth, He by exact Hh; reflexivity. }
    assert (Hc : forall g f, nth g (said th) None = Some f -> forall c, In c
      [Either (No (Below (Lin 0 [(1, (TIME, (0, 0)))]))) (No f); Either inside_at (No f);
       outside_or (same (fact_of (rule (of_rules th) g) (said_at th)) (later f))] -> In c (claims th)).
    { intros h e He c Hc; apply in_or_app; left; apply in_flat_map; exists (h, Some e); split; [apply Hin, He | exact Hc]. }
    revert g f q; induction t as [|t IH]; intros g f q Hg.
    - pose proof (claims_true 0 q _ (Hc g f Hg _ (or_introl eq_refl))) as H. assert (E : true_at 0 q f = false).
      { change (negb (true_at 0 q (Below (Lin 0 [(1, (TIME, (0, 0)))]))) || negb (true_at 0 q f) = true) in H.
        destruct (true_at 0 q f); [|reflexivity]; rewrite orb_false_r in H; discriminate H. }
      rewrite E; unfold on_spot; destruct (cell_at m q); reflexivity.
    - unfold on_spot; destruct (cell_at m q) as [x|] eqn:Ex.
      + pose proof (claims_true t q _ (Hc g f Hg _ (or_intror (or_intror (or_introl eq_refl))))) as H.
        change (negb (true_at t q inside_at) || true_at t q (same (fact_of (rule (of_rules th) g) (said_at th)) (later f)) = true) in H.
        rewrite inside_says, Ex in H; cbn [negb orb] in H; unfold Described.true_at in H; rewrite says_same in H; apply eqb_prop in H.
        apply cell_at_some in Ex; subst q; change (run w (of_rules th) (S t) x g = true_at (S t) (proj1_sig x) f).
        rewrite <- (shown_rule t x g IH); unfold Described.true_at; etransitivity; [exact H|]; apply later_says.
        * pose proof is_checked as Hall; unfold checked in Hall; rewrite !andb_true_iff in Hall; destruct Hall as [[[_ Ht] _] _].
          unfold all_timeless in Ht; rewrite forallb_forall in Ht; apply (Ht (Some f)); eapply in_combine_r, Hin, Hg.
        * intros n r Hn; unfold truth; destruct (Z.ltb_spec n 0); [lia | reflexivity].
        * intros n r; unfold number; destruct (Z.eqb_spec n 0) as [->|]; [reflexivity|]; destruct (Z.eqb_spec n (-1)); [lia | reflexivity].
      + pose proof (claims_true (S t) q _ (Hc g f Hg _ (or_intror (or_introl eq_refl)))) as H.
        change (true_at (S t) q inside_at || negb (true_at (S t) q f) = true) in H; rewrite inside_says, Ex in H.
        destruct (true_at (S t) q f); [discriminate H | reflexivity].
  Qed.
  Theorem described t g f x : nth g (said th) None = Some f -> run w (of_rules th) t x g = true_at t (proj1_sig x) f.
  Proof.
    intro Hg; rewrite <- (said_everywhere t g f (proj1_sig x) Hg); unfold on_spot.
    replace (cell_at m (proj1_sig x)) with (Some x) by (symmetry; apply cell_at_some; reflexivity); reflexivity.
  Qed.
  (** An answer shows nothing else, and all of it from the iteration on that is stated. *)
  Theorem answered t g wanted due x : In (g, (wanted, due)) (answers th) ->
    (run w (of_rules th) (S t) x g = true -> true_at t (proj1_sig x) wanted = true) /\
    (amount (number th m t) (proj1_sig x) due <= Z.of_nat (S t) -> run w (of_rules th) (S t) x g = true_at t (proj1_sig x) wanted).
  Proof.
    intro Hin; set (p := proj1_sig x); assert (Hx : cell_at m p = Some x) by (apply cell_at_some; reflexivity).
    assert (Hs : true_at t p (fact_of (rule (of_rules th) g) (said_at th)) = run w (of_rules th) (S t) x g)
      by (apply shown_rule; intros; apply said_everywhere; assumption).
    assert (Hc : forall c, In c (let shown := fact_of (rule (of_rules th) g) (said_at th) in [outside_or (Either (No shown) wanted);
       outside_or (Either (No (Below (Lin (constant due - 1) ((-1, (TIME, (0, 0))) :: terms due)))) (same shown wanted))]) -> true_at t p c = true)
      by (intros c Hc; apply claims_true, in_or_app; right; apply in_flat_map; exists (g, (wanted, due)); split; [exact Hin | exact Hc]).
    pose proof (Hc _ (or_introl eq_refl)) as H1; pose proof (Hc _ (or_intror (or_introl eq_refl))) as H2; cbv zeta in H2.
    change (negb (true_at t p inside_at) || (negb (true_at t p (fact_of (rule (of_rules th) g) (said_at th))) || true_at t p wanted) = true) in H1.
    change (negb (true_at t p inside_at) || (negb (true_at t p (Below (Lin (constant due - 1) ((-1, (TIME, (0, 0))) :: terms due)))) ||
      true_at t p (same (fact_of (rule (of_rules th) g) (said_at th)) wanted)) = true) in H2.
    rewrite inside_says, Hx in H1, H2; cbn [negb orb] in H1, H2; rewrite Hs in H1; split.
    - intro Hr; rewrite Hr in H1; exact H1.
    - intro Hd; unfold Described.true_at in H2 at 2; rewrite says_same in H2; change (says (truth th m t) (number th m t) p) with (true_at t p) in H2.
      rewrite Hs in H2; destruct (true_at t p (Below _)) eqn:E; [apply eqb_prop; exact H2|exfalso].
      unfold Described.true_at in E; cbn [says] in E; unfold amount in E, Hd; cbn [constant terms sum] in E; apply Z.leb_gt in E.
      change (number th m t TIME (plus p (0, 0))) with (Z.of_nat t) in E; lia.
  Qed.
End Theorems.
