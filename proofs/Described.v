(** What the signals of an automaton are after t iterations on every maze, from lemmas about a tile and its neighbours. *)
From Coq Require Import Lia.
Require Import Mazes Refute Facts Fixpoints.
Local Open Scope Z_scope.
Notation N_TILES := (-2) (only parsing). Notation SPREAD := (-3) (only parsing).
(** An automaton, what is said of it, and the ghosts in which that is said: least fixed points, and what follows of these. Of
    a pooled signal, the relation that a tile shows why to come on also shows why the signal does. *)
Record statement := Statement {
  of_rules : automaton;
  relations : automaton;
  n_kinds : nat;
  said : list (option fact);
  answers : list (nat * (fact * lin));
  witnesses : list (nat * nat) }.
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
(** The stage of a relation that is the same everywhere. *)
Definition stage_of_map (h : nat) : lin := Lin 0 [(1, (-4 - Z.of_nat h, (0, 0)))].
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
    else if n <? 0 then match cells m with x :: _ => stage (grid m) fix_rules (cells m) x (Z.to_nat (-4 - n)) | [] => -1 end
    else number_on (fun x => stage (grid m) fix_rules (cells m) x (Z.to_nat (n - 1))) p.
  (** Below 0 are the signals that tiles hold, then come the relations. *)
  Definition truth (n : Z) (p : spot) : bool :=
    if n <? 0 then on_spot (fun x => run (grid m) (of_rules th) t x (Z.to_nat (-1 - n))) p
    else on_spot (fun x => fixed (grid m) fix_rules (cells m) x (Z.to_nat n)) p.
  Definition true_at (p : spot) (f : fact) : bool := says truth number p f.
End Ghosts.
(** What is known of the ghosts from their definitions. *)
Inductive given := Kinds | Times | Sizes | Range (g : nat) | Few (g : nat) | Alike (g : nat) | Step (g : nat) (bound : lin)
  | Before (n : nat).
Definition rule_before (th : statement) (bound : lin) (g : nat) : fact :=
  fact_of (rule (relations th) g) (fun tap h => before bound h (offset tap)).
Definition outside_or (f : fact) : fact := Either (No inside_at) f.
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
  | Alike g => if negb (is_pooled (relations th) g) then Always true else outside_or (Both (Below (Lin 0 [stage_at g here; (-1, (-4 - Z.of_nat g, here))]))
      (Below (Lin 0 [(-1, (Z.of_nat g + 1, here)); (1, (-4 - Z.of_nat g, here))])))
  | Step g bound => Either (Below (Lin (constant bound + 1) (terms bound))) (outside_or
      (let comes := rule_before th bound g in
        if is_pooled (relations th) g then Either (No comes) (until bound g here) else same comes (until bound g here)))
  | Before n => nth n known (Always true)
  end.

(** * They are true of every maze *)
Lemma head_some {A} (l : list A) (f : A -> Z) : l <> [] -> exists y, match l with x :: _ => f x | [] => -1 end = f y.
Proof. destruct l as [|y l]; [contradiction | eauto]. Qed.
Section Given.
  Context (th : statement) (m : maze).
  Hypotheses (grows : growing (relations th) = true)
    (known_kinds : forall x : cell m, (kind_at m (proj1_sig x) < n_kinds th)%nat) (some : cells m <> []).
  Notation w := (grid m).
  Notation pooling := (grid_pools m some).
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
  Lemma number_is_says t p k n q : true_at t p (number_is k (n, q)) = (number t n (plus p q) =? k).
  Proof.
    unfold Described.true_at, number_is; cbn [says]; unfold amount; cbn [constant terms sum]; generalize (number t n (plus p q)); intro z.
    destruct (Z.eqb_spec z k); apply eq_true_iff_eq; rewrite andb_true_iff, !Z.leb_le; split; try discriminate; lia.
  Qed.
  Lemma kind_is t p x k tap : cell_at m p = Some x -> true_at t p (number_is (Z.of_nat k) (KIND, offset tap)) = tile w x tap k.
  Proof.
    intros <-%cell_at_some; rewrite number_is_says; unfold tile, Described.number, number_on; rewrite at_tap_spot; cbn [Z.eqb].
    destruct (cell_at m _) as [y|]; [cbn; destruct (Nat.eqb_spec (kind_at m (proj1_sig y)) k) | ]; [apply Z.eqb_eq | apply Z.eqb_neq ..]; lia.
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
  Lemma on_says t p h q : true_at t p (on h q) = on_spot (fun x => fixed x h) (plus p q).
  Proof.
    unfold Described.true_at, on; cbn; unfold truth.
    destruct (Z.ltb_spec (Z.of_nat h) 0); [lia|]; rewrite Nat2Z.id; reflexivity.
  Qed.
  Lemma stage_number t h q : number t (Z.of_nat h + 1) q = number_on m (fun x => stage x h) q.
  Proof.
    unfold Described.number; destruct (Z.eqb_spec (Z.of_nat h + 1) KIND), (Z.eqb_spec (Z.of_nat h + 1) TIME),
      (Z.eqb_spec (Z.of_nat h + 1) N_TILES), (Z.eqb_spec (Z.of_nat h + 1) SPREAD), (Z.ltb_spec (Z.of_nat h + 1) 0); try lia.
    replace (Z.to_nat (Z.of_nat h + 1 - 1)) with h by lia; reflexivity.
  Qed.
  Lemma before_says t p bound h q b : amount (number t) p bound = Z.of_nat b ->
    true_at t p (before bound h q) = on_spot (fun x => run w (relations th) b x h) (plus p q).
  Proof.
    intro Hb; change (true_at t p (on h q) && (amount (number t) p (Lin (constant (over bound)) (stage_at h q :: terms (over bound))) <=? 0) =
      on_spot (fun x => run w (relations th) b x h) (plus p q)).
    rewrite on_says; pose proof (over_amount (number t) p bound) as E; unfold amount in *; cbn [constant terms sum stage_at] in *.
    rewrite stage_number; unfold Described.on_spot, number_on; destruct (cell_at m (plus p q)) as [x|]; [|reflexivity].
    rewrite (stage_spec w _ _ pooling grows (cells_all m)); f_equal. apply eq_true_iff_eq; rewrite Z.leb_le, Z.ltb_lt; lia.
  Qed.
  Lemma until_before bound h q : until bound h q = before (Lin (constant bound + 1) (terms bound)) h q.
  Proof. unfold until, before, over; cbn [constant terms]; f_equal; f_equal; f_equal; lia. Qed.
  Lemma rule_before_says t p x g bound b : amount (number t) p bound = Z.of_nat b -> cell_at m p = Some x ->
    true_at t p (rule_before th bound g) = eval (rule (relations th) g) (see w (run w (relations th) b) x) (tile w x).
  Proof.
    intros Hb Ex; unfold rule_before; rewrite (fact_of_says t p x _ _ Ex); apply eval_same; [intros tap h | reflexivity].
    rewrite (before_says t p bound h _ _ Hb), see_spot; apply cell_at_some in Ex; rewrite Ex; reflexivity.
  Qed.
  Lemma map_stage t p h : exists x, number t (-4 - Z.of_nat h) p = stage x h.
  Proof.
    destruct (head_some (cells m) (fun y => stage y h) some) as (y & E); exists y; rewrite <- E; unfold Described.number.
    destruct (Z.eqb_spec (-4 - Z.of_nat h) KIND), (Z.eqb_spec (-4 - Z.of_nat h) TIME), (Z.eqb_spec (-4 - Z.of_nat h) N_TILES),
      (Z.eqb_spec (-4 - Z.of_nat h) SPREAD), (Z.ltb_spec (-4 - Z.of_nat h) 0); try lia.
    replace (Z.to_nat (-4 - (-4 - Z.of_nat h))) with h by lia; reflexivity.
  Qed.
  Theorem given_true known t p u :
    Forall (fun f => forall q, true_at t q f = true) known -> true_at t p (given_fact th known u) = true.
  Proof.
    intro Hknown; assert (Hp : plus p (0, 0) = p) by (destruct p; unfold plus; cbn; f_equal; lia).
    destruct u as [| | |g|g|g|g bound|n]; cbn [given_fact].
    - unfold Described.true_at, number_is, inside_at; cbn [says number_is inside_at]; unfold amount; cbn [constant terms sum]; rewrite Hp; unfold Described.number, number_on; cbn [Z.eqb Pos.eqb].
      destruct (cell_at m p) as [x|]; cbv beta iota; apply andb_true_iff; rewrite !Z.leb_le; [specialize (known_kinds x)|]; lia.
    - unfold Described.true_at, number_is, inside_at; cbn [says number_is inside_at]; unfold amount; cbn [constant terms sum]; unfold Described.number; cbn [Z.eqb Pos.eqb]; apply Z.leb_le; lia.
    - unfold Described.true_at, number_is, inside_at; cbn [says number_is inside_at]; unfold amount; cbn [constant terms sum]; unfold Described.number; cbn [Z.eqb Pos.eqb].
      assert (Hn : (n_on th m <= length (cells m))%nat) by apply filter_length_le.
      assert (Hs : (0 < length (cells m))%nat) by (destruct (cells m); [contradiction | cbn; lia]).
      apply andb_true_iff; rewrite !Z.leb_le; lia.
    - change (true_at t p (on g (0, 0)) && true_at t p inside_at && (amount (number t) p (Lin 0 [(-1, (Z.of_nat g + 1, (0, 0)))]) <=? 0) ||
        (negb (true_at t p (on g (0, 0))) && true_at t p (number_is (-1) (Z.of_nat g + 1, (0, 0)))) = true).
      rewrite number_is_says, inside_says, on_says; unfold amount; cbn [constant terms sum]; rewrite Hp, stage_number.
      unfold Described.on_spot, number_on; destruct (cell_at m p) as [x|]; [|reflexivity].
      destruct (fixed x g) eqn:E; cbn [andb orb negb].
      + pose proof (stage_least w _ _ pooling grows (cells_all m) x g E); rewrite orb_false_r; apply Z.leb_le; lia.
      + unfold Fixpoints.stage; rewrite E; reflexivity.
    - match goal with |- true_at t p (Either (No ?f) ?g) = true => change (negb (true_at t p f) || true_at t p g = true) end.
      rewrite on_says, Hp; unfold Described.on_spot; destruct (cell_at m p) as [x|] eqn:Ex; [|reflexivity].
      destruct (fixed x g) eqn:E; [cbn [negb orb] | reflexivity].
      pose proof (stage_few w _ _ pooling grows (cells_all m) x g E) as Hf; pose proof (count_all w (relations th) (cells m)).
      destruct (Z.eqb_spec R 1) as [H1|H1]; unfold Described.true_at; cbn [says]; unfold amount; cbn [constant terms sum stage_at];
        rewrite Hp, stage_number; unfold number_on; rewrite Ex; unfold Described.number; cbn [Z.eqb Pos.eqb]; cbv beta iota; apply Z.leb_le;
        change (@length (node w)) with (@length (cell m)) in *; [|lia].
      rewrite count_one in Hf by lia; change (stage x g < Z.of_nat (n_on th m)) in Hf; lia.
    - destruct (is_pooled (relations th) g) eqn:Hu; [cbn [negb] | reflexivity].
      match goal with |- true_at t p (outside_or ?f) = true => change (negb (true_at t p inside_at) || true_at t p f = true) end.
      rewrite inside_says; destruct (cell_at m p) as [x|] eqn:Ex; [cbn [negb orb] | reflexivity].
      unfold Described.true_at; cbn [says]; unfold amount; cbn [constant terms sum stage_at]; destruct (map_stage t p g) as (y & E).
      rewrite !Hp, !stage_number, !E, (stage_same w _ (cells m) y x g Hu).
      unfold number_on; rewrite Ex; apply andb_true_iff; rewrite !Z.leb_le; lia.
    - rewrite until_before.
      match goal with |- true_at t p (Either ?b (outside_or ?f)) = true =>
        change (true_at t p b || (negb (true_at t p inside_at) || true_at t p f) = true) end.
      destruct (true_at t p (Below _)) eqn:Eb; [reflexivity | cbn [orb]]; rewrite inside_says.
      destruct (cell_at m p) as [x|] eqn:Ex; [cbn [negb orb] | reflexivity]; cbv zeta.
      assert (Hb : amount (number t) p bound = Z.of_nat (Z.to_nat (amount (number t) p bound))).
      { unfold Described.true_at in Eb; cbn [says] in Eb; unfold amount in *; cbn [constant terms] in Eb; apply Z.leb_gt in Eb; lia. }
      pose proof (rule_before_says t p x g bound _ Hb Ex) as E; set (b := Z.to_nat _) in *.
      assert (Hu : true_at t p (before (Lin (constant bound + 1) (terms bound)) g (0, 0)) = run w (relations th) (S b) x g).
      { rewrite (before_says t p _ g (0, 0) (S b)) by (unfold amount in *; cbn [constant terms]; lia).
        rewrite Hp; unfold Described.on_spot; rewrite Ex; reflexivity. }
      destruct (is_pooled (relations th) g) eqn:Epool.
      + match goal with |- true_at t p (Either (No ?f) ?g) = true => change (negb (true_at t p f) || true_at t p g = true) end.
        rewrite E, Hu; destruct (eval _ _ _) eqn:Ee; [|reflexivity]; apply (step_iff w _ pooling); exists x; split; [auto | exact Ee].
      + unfold Described.true_at at 1; rewrite says_same; apply eqb_true_iff; change (says (truth th m t) (number t) p) with (true_at t p).
        rewrite E, Hu; cbn [run]; unfold step; rewrite Epool; reflexivity.
    - destruct (Nat.lt_ge_cases n (length known)) as [H|H]; [|rewrite nth_overflow by exact H; reflexivity].
      rewrite Forall_forall in Hknown; apply Hknown, nth_In, H.
  Qed.
End Given.

Lemma said_in (s : list (option fact)) g f : nth g s None = Some f -> In (g, Some f) (numbered s).
Proof.
  intro H; apply numbered_in; rewrite <- H; apply nth_error_nth'.
  destruct (Nat.lt_ge_cases g (length s)) as [|Hg]; [assumption | rewrite nth_overflow in H by exact Hg; discriminate].
Qed.

(** * Lemmas, each with what leads the checker to it, and the induction *)
Record proof := Proof { uses : list (given * spot); why : refutation }.
Definition proves (th : statement) (known : list fact) (goal : fact) (pf : proof) : bool :=
  impossible (why pf) (No goal :: map (fun '(u, d) => shift d (given_fact th known u)) (uses pf)).
(** The lemmas that are proven, each from those before. *)
Fixpoint proven (th : statement) (known : list fact) (lemmas : list (fact * proof)) : list fact :=
  match lemmas with
  | [] => known
  | (f, pf) :: rest => if proves th known f pf then proven th (known ++ [f]) rest else known
  end.
Definition said_at (th : statement) (tap : tap) (g : nat) : fact :=
  match nth g (said th) None with Some f => shift (offset tap) f | None => Truth (-1 - Z.of_nat g) (offset tap) end.
Definition shown (th : statement) (g : nat) : fact := fact_of (rule (of_rules th) g) (said_at th).
(** Of each signal: it is off at first and beyond the edge, and the rule gives what is said of it an iteration later; of a
    pooled one, that it says nothing else, and that the tile that shows why a relation comes on shows that it does. *)
Definition claims_of (th : statement) (g : nat) (f : fact) : list fact :=
  [Either (No (Below (Lin 0 [(1, (TIME, (0, 0)))]))) (No f); Either inside_at (No f)] ++
  if is_pooled (of_rules th) g then
    [outside_or (Either (No (shown th g)) (later f));
     outside_or (Either (No (later f)) (match find (fun '(k, _) => Nat.eqb k g) (witnesses th) with
       | Some (_, h) => Both (Below (Lin 0 [(-1, (-4 - Z.of_nat h, (0, 0)))]))
           (Either (No (rule_before th (stage_of_map h) h)) (shown th g))
       | None => Always false end))]
  else [outside_or (same (shown th g) (later f))].
Definition claims (th : statement) : list fact :=
  flat_map (fun '(g, s) => match s with None => [] | Some f => claims_of th g f end) (numbered (said th)) ++
  flat_map (fun '(g, (wanted, due)) =>
      [outside_or (Either (No (shown th g)) wanted);
       outside_or (Either (No (Below (Lin (constant due - 1) ((-1, (TIME, (0, 0))) :: terms due)))) (same (shown th g) wanted))])
    (answers th).
(** Whether a fact is the same at all tiles. *)
Fixpoint uniform (f : fact) : bool :=
  match f with
  | Truth _ _ => false
  | Below l => forallb (fun '(_, (n, _)) => n <? 0) (terms l) || if fact_dec (No f) inside_at then true else false
  | Always _ => true
  | Both f g | Either f g => uniform f && uniform g
  | No f => uniform f
  end.
Definition checked (th : statement) (lemmas : list (fact * proof)) (proofs : list proof) : bool :=
  let known := proven th [] lemmas in
  (length proofs =? length (claims th))%nat && forallb (fun '(f, pf) => proves th known f pf) (combine (claims th) proofs) &&
  forallb (fun '(g, s) => match s with
    | Some f => timeless f && (negb (is_pooled (of_rules th) g) || uniform (normal f))
    | None => true end) (numbered (said th)) &&
  forallb (fun '(g, _) => negb (is_pooled (of_rules th) g)) (answers th) &&
  growing (relations th).
Section Theorems.
  Context (th : statement) (lemmas : list (fact * proof)) (proofs : list proof).
  Hypothesis is_checked : checked th lemmas proofs = true.
  Context (m : maze).
  Hypotheses (known_kinds : forall x : cell m, (kind_at m (proj1_sig x) < n_kinds th)%nat) (some : cells m <> []).
  Notation w := (grid m). Notation true_at := (true_at th m).
  Notation pooling := (grid_pools m some).
  Lemma parts_checked : (length proofs = length (claims th) /\ forall f pf, In (f, pf) (combine (claims th) proofs) -> proves th (proven th [] lemmas) f pf = true) /\
    (forall g f, nth g (said th) None = Some f -> timeless f = true /\ (is_pooled (of_rules th) g = true -> uniform (normal f) = true)) /\
    (forall g a, In (g, a) (answers th) -> is_pooled (of_rules th) g = false) /\
    growing (relations th) = true.
  Proof.
    unfold checked in is_checked; rewrite !andb_true_iff, !forallb_forall, Nat.eqb_eq in is_checked.
    destruct is_checked as [[[[Hl Hp] Hs] Ha] Hg]; repeat split; try assumption.
    - intros f pf Hin; exact (Hp (f, pf) Hin).
    - specialize (Hs (g, Some f) (said_in _ _ _ H)); cbn in Hs; apply andb_prop in Hs; tauto.
    - specialize (Hs (g, Some f) (said_in _ _ _ H)); cbn in Hs; apply andb_prop in Hs as [_ Hs]; intro E; rewrite E in Hs; exact Hs.
    - intros g a Hin; apply negb_true_iff, (Ha (g, a) Hin).
  Qed.
  Lemma proves_true known f pf t p : Forall (fun f => forall q, true_at t q f = true) known ->
    proves th known f pf = true -> true_at t p f = true.
  Proof.
    intros Hknown H; destruct parts_checked as (_ & _ & _ & Hg); destruct (true_at t p f) eqn:E; [reflexivity|exfalso].
    apply (impossible_sound (truth th m t) (number th m t) p _ _ H); constructor; [cbn [says]; change (negb (true_at t p f) = true); rewrite E; reflexivity|].
    apply Forall_map, Forall_forall; intros [u d] Hin; rewrite shift_says by (apply number_of_map); apply given_true; auto.
  Qed.
  Lemma proven_true t known lemmas' : Forall (fun f => forall q, true_at t q f = true) known ->
    Forall (fun f => forall q, true_at t q f = true) (proven th known lemmas').
  Proof.
    revert known; induction lemmas' as [|[f pf] rest IH]; intros known H; [exact H|]; cbn; destruct (proves th known f pf) eqn:E; [|exact H].
    apply IH, Forall_app; split; [exact H | repeat constructor]; intro q; exact (proves_true known f pf t q H E).
  Qed.
  Lemma claims_true t p f : In f (claims th) -> true_at t p f = true.
  Proof.
    intro Hin; destruct parts_checked as ([Hlen H] & _); apply (In_nth _ _ (Always true)) in Hin as (n & Hn & <-).
    apply (proves_true (proven th [] lemmas) _ (nth n proofs (Proof [] (Refutation [] [] [] [] [])))); [apply proven_true; constructor|].
    apply H; rewrite <- combine_nth by (symmetry; exact Hlen); apply nth_In; rewrite combine_length; lia.
  Qed.
  (** What claims say of a tile. *)
  Lemma implied t p x f g : cell_at m p = Some x -> true_at t p (outside_or (Either (No f) g)) = true -> true_at t p f = true -> true_at t p g = true.
  Proof.
    intros Hx H Hf; change (negb (true_at t p inside_at) || (negb (true_at t p f) || true_at t p g) = true) in H.
    rewrite inside_says, Hx, Hf in H; exact H.
  Qed.
  Lemma alike t p x f g : cell_at m p = Some x -> true_at t p (outside_or (same f g)) = true -> true_at t p f = true_at t p g.
  Proof.
    intros Hx H; change (negb (true_at t p inside_at) || true_at t p (same f g) = true) in H; rewrite inside_says, Hx in H.
    unfold Described.true_at in H; rewrite says_same in H; apply eqb_prop, H.
  Qed.
  Lemma uniform_says t (x y : cell m) f : uniform f = true -> true_at t (proj1_sig x) f = true_at t (proj1_sig y) f.
  Proof.
    assert (Hx : forall z : cell m, cell_at m (proj1_sig z) = Some z) by (intro; apply cell_at_some; reflexivity).
    induction f as [n q|l|b|f IHf g IHg|f IHf g IHg|f IHf]; cbn [uniform]; intro H; [discriminate H | | reflexivity | ..];
      try (apply andb_prop in H as [Hf Hg]; unfold Described.true_at in *; cbn [says]; rewrite (IHf Hf), (IHg Hg); reflexivity).
    - apply orb_prop in H as [H|H].
      + unfold Described.true_at; cbn [says]; f_equal; unfold amount; f_equal; induction (terms l) as [|[z [n q]] ts IH]; [reflexivity|].
        cbn [forallb] in H; apply andb_prop in H as [Hn H]; apply Z.ltb_lt in Hn; cbn [sum].
        rewrite (IH H), (number_of_map th m t n _ (plus (proj1_sig y) q) Hn); reflexivity.
      + destruct (fact_dec _ _) as [E|]; [|discriminate H]; pose proof (inside_says th m t (proj1_sig x)) as Ha; pose proof (inside_says th m t (proj1_sig y)) as Hb.
        rewrite <- E, Hx in Ha, Hb; apply negb_true_iff in Ha, Hb; unfold Described.true_at; cbn [says]; rewrite Ha, Hb; reflexivity.
    - unfold Described.true_at in *; cbn [says]; rewrite (IHf H); reflexivity.
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
    true_at t (proj1_sig x) (shown th g) = eval (rule (of_rules th) g) (see w (run w (of_rules th) t) x) (tile w x).
  Proof.
    intro IH; unfold shown; rewrite (fact_of_says th m t _ x) by (apply cell_at_some; reflexivity).
    apply eval_same; [|reflexivity]; intros tap h; apply said_held, IH.
  Qed.
  Lemma claim_of g f c : nth g (said th) None = Some f -> In c (claims_of th g f) -> In c (claims th).
  Proof. intros Hg Hc; apply in_or_app; left; apply in_flat_map; exists (g, Some f); split; [apply said_in, Hg | exact Hc]. Qed.
  (** After t iterations every signal is what is said of it. *)
  Theorem said_everywhere t g f q : nth g (said th) None = Some f -> on_spot m (fun y => run w (of_rules th) t y g) q = true_at t q f.
  Proof.
    revert g f q; induction t as [|t IH]; intros g f q Hg.
    - pose proof (claims_true 0 q _ (claim_of g f _ Hg (or_introl eq_refl))) as H. assert (E : true_at 0 q f = false).
      { change (negb (true_at 0 q (Below (Lin 0 [(1, (TIME, (0, 0)))]))) || negb (true_at 0 q f) = true) in H.
        destruct (true_at 0 q f); [|reflexivity]; rewrite orb_false_r in H; discriminate H. }
      rewrite E; unfold on_spot; destruct (cell_at m q); reflexivity.
    - unfold on_spot; destruct (cell_at m q) as [x|] eqn:Ex.
      + destruct parts_checked as (_ & Hsaid & _ & Hgrow); destruct (Hsaid g f Hg) as [Ht Hu].
        assert (Hlater : forall y : cell m, true_at t (proj1_sig y) (later f) = true_at (S t) (proj1_sig y) f).
        { intro y; apply later_says; [exact Ht | |].
          - intros n r Hn; unfold truth; destruct (Z.ltb_spec n 0); [lia | reflexivity].
          - intros n r; unfold number; destruct (Z.eqb_spec n 0) as [->|]; [reflexivity|]; destruct (Z.eqb_spec n (-1)); [lia | reflexivity]. }
        assert (Hsame : is_pooled (of_rules th) g = true -> forall y z : cell m, true_at t (proj1_sig y) (later f) = true_at t (proj1_sig z) (later f)).
        { intros Hp y z; rewrite !Hlater; unfold Described.true_at; rewrite <- !(normal_says _ _ _ f); exact (uniform_says (S t) y z _ (Hu Hp)). }
        assert (Hsome : forall z : cell m, cell_at m (proj1_sig z) = Some z) by (intro; apply cell_at_some; reflexivity).
        pose proof (fun (y : cell m) c => claims_true t (proj1_sig y) c) as Hc; pose proof (fun c => claim_of g f c Hg) as Hin; unfold claims_of in Hin.
        apply cell_at_some in Ex; subst q; cbn [run]; unfold step; destruct (is_pooled (of_rules th) g) eqn:Epool; cbn [app] in Hin.
        * specialize (Hsame eq_refl); apply eq_true_iff_eq; rewrite (anywhere_iff w _ pooling), <- Hlater; split.
          -- intros (y & Hy); rewrite (Hsame x y); rewrite <- (shown_rule t y g IH) in Hy; exact (implied t _ y _ _ (Hsome y) (Hc y _ (Hin _ (or_intror (or_intror (or_introl eq_refl))))) Hy).
          -- intro Hx; pose proof (fun y => implied t _ y _ _ (Hsome y) (Hc y _ (Hin _ (or_intror (or_intror (or_intror (or_introl eq_refl))))))) as H.
             destruct (find _ (witnesses th)) as [[k h]|]; [|discriminate (H x Hx)]; set (z := number th m t (-4 - Z.of_nat h) (0, 0)).
             assert (Hmap : forall q, number th m t (-4 - Z.of_nat h) q = z) by (intro q; apply number_of_map; lia).
             assert (Hboth : forall y : cell m, 0 <= z /\ (true_at t (proj1_sig y) (rule_before th (stage_of_map h) h) = true -> true_at t (proj1_sig y) (shown th g) = true)).
             { intro y; specialize (H y ltac:(rewrite (Hsame y x); exact Hx)).
               change ((amount (number th m t) (proj1_sig y) (Lin 0 [(-1, (-4 - Z.of_nat h, (0, 0)))]) <=? 0) &&
                 (negb (true_at t (proj1_sig y) (rule_before th (stage_of_map h) h)) || true_at t (proj1_sig y) (shown th g)) = true) in H.
               unfold amount in H; cbn [constant terms sum] in H; rewrite Hmap, andb_true_iff, Z.leb_le in H; destruct H as [Hz H]; split; [lia|].
               intro Hr; rewrite Hr in H; exact H. }
             destruct (map_stage th m some t (0, 0) h) as (x0 & Ez); fold z in Ez; destruct (Hboth x) as [Hz _].
             assert (Hfix : fixed w (relations th) (cells m) x0 h = true)
               by (unfold Fixpoints.stage in Ez; destruct (fixed w _ _ x0 h); [reflexivity | lia]).
             destruct (shown_somewhere w _ _ pooling Hgrow (cells_all m) x0 h Hfix) as (y & _ & Hy); exists y; rewrite <- (shown_rule t y g IH).
             apply Hboth; rewrite (rule_before_says th m Hgrow some t _ y h _ (Z.to_nat z)); [rewrite Ez; exact Hy | | apply Hsome].
             unfold amount; cbn [constant terms sum stage_of_map]; rewrite Hmap; lia.
        * rewrite <- (shown_rule t x g IH), <- Hlater; exact (alike t _ x _ _ (Hsome x) (Hc x _ (Hin _ (or_intror (or_intror (or_introl eq_refl)))))).
      + pose proof (claims_true (S t) q _ (claim_of g f _ Hg (or_intror (or_introl eq_refl)))) as H.
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
    assert (Hs : run w (of_rules th) (S t) x g = true_at t p (shown th g)).
    { unfold p; rewrite shown_rule by (intros; apply said_everywhere; assumption); cbn [run]; unfold step.
      destruct parts_checked as (_ & _ & Ha & _); rewrite (Ha g _ Hin); reflexivity. }
    assert (Hc : forall c, In c [outside_or (Either (No (shown th g)) wanted);
       outside_or (Either (No (Below (Lin (constant due - 1) ((-1, (TIME, (0, 0))) :: terms due)))) (same (shown th g) wanted))] -> true_at t p c = true)
      by (intros c Hc; apply claims_true, in_or_app; right; apply in_flat_map; exists (g, (wanted, due)); split; [exact Hin | exact Hc]).
    rewrite Hs; split; [exact (implied t p x _ _ Hx (Hc _ (or_introl eq_refl)))|]; intro Hd.
    pose proof (implied t p x _ _ Hx (Hc _ (or_intror (or_introl eq_refl)))) as H.
    assert (Hdue : true_at t p (Below (Lin (constant due - 1) ((-1, (TIME, (0, 0))) :: terms due))) = true).
    { unfold Described.true_at; cbn [says]; unfold amount in *; cbn [constant terms sum].
      change (number th m t TIME (plus p (0, 0))) with (Z.of_nat t); apply Z.leb_le; lia. }
    specialize (H Hdue); unfold Described.true_at in H; rewrite says_same in H; apply eqb_prop, H.
  Qed.
End Theorems.
