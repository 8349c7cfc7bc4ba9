(** What the signals of an automaton are after t iterations on every maze, from lemmas about a tile
    and its neighbours. *)
From MazeNCA Require Import Mazes Refute Facts Fixpoints.
Export Statements.Characterised.
Local Open Scope Z_scope.
Lemma or_each_nth see tile es fs k : eval (nth k (or_each es fs) Never) see tile = eval
  (nth k es Never) see tile || eval (nth k fs Never) see tile.
Proof. revert fs k; induction es as [|e es IH]; intros [|f fs] [|k]; cbn; rewrite ?orb_false_r;
  auto. Qed.
(** [at_least] means what it says. *)
Lemma at_least_counts see tile n es : (0 < n)%nat ->
  eval (at_least n es) see tile = (n <=? length (filter (fun e => eval e see tile) es))%nat.
Proof.
  intro Hn; unfold at_least;
    enough (H : forall es found m, (forall k, eval (nth k found Never) see tile = (k <? m)%nat) ->
    forall k,
    eval (nth k (fold_left (fun found e => or_each found (e :: map (fun f => And f e) found)) es
      found) Never) see tile =
      (k <? m + length (filter (fun e => eval e see tile) es))%nat).
  { rewrite (H es [] 0%nat) by (intros []; reflexivity); destruct n; [lia|]; cbn [Nat.sub];
    rewrite Nat.sub_0_r; reflexivity. }
  clear; induction es as [|e es IH]; intros found m H k; cbn [fold_left filter];
    [rewrite Nat.add_0_r; apply H|].
  rewrite (IH _ (m + if eval e see tile then 1 else 0)%nat); [destruct (eval e see tile);
    cbn [length]; f_equal; lia|]; clear k; intro k.
  rewrite or_each_nth, H; destruct k as [|k]; cbn [nth].
  - destruct (eval e see tile), m; reflexivity.
  - assert (E : eval (nth k (map (fun f => And f e) found) Never) see tile = eval
      (nth k found Never) see tile && eval e see tile).
    { destruct (Nat.lt_ge_cases k (length found)); [|rewrite !nth_overflow by (rewrite ?map_length;
      assumption); reflexivity].
      rewrite (nth_indep _ _ (And Never e)) by (rewrite map_length; assumption);
        rewrite (map_nth (fun f => And f e) found Never k); reflexivity. }
    rewrite E, H; clear E; apply eq_true_iff_eq; rewrite orb_true_iff, andb_true_iff, !Nat.ltb_lt;
      destruct (eval e see tile); intuition (lia || discriminate).
Qed.
(** That a number is k, that a place is on the map; and a rule as a fact, by what is seen at each
    tap. *)
Definition number_is (k : Z) (v : var) : fact := Both (Below (Lin (- k) [(1, v)]))
  (Below (Lin k [(-1, v)])).
Definition on_map (q : spot) : fact := Below (Lin 0 [(-1, (KIND, q))]).
Fixpoint fact_of (e : expr) (sees : tap -> nat -> fact) : fact :=
  match e with
  | See g t => sees t g
  | Is k t => number_is (Z.of_nat k) (KIND, offset t)
  | And e f => Both (fact_of e sees) (fact_of f sees)
  | Or e f => Either (fact_of e sees) (fact_of f sees)
  | Not e => No (fact_of e sees)
  | Never => Always false
  end.
Section Relations.
  Context (rs : list relation) (m : maze).
  Notation relation_of := (relation_of rs). Notation in_layer := (in_layer rs).
    Notation layer_names := (layer_names rs).
  Notation on_spot := (on_spot m). Notation number_on := (number_on m).
    Notation number_by := (number_by m).
  Notation causes := (causes rs m). Notation round := (round rs m).
    Notation stages_before := (stages_before rs m).
  Notation stage_of := (stage_of rs m). Notation layer_round := (layer_round rs m).
    Notation positive := (positive rs).
  Notation negates_nothing := (negates_nothing rs).
  (** Rules of a layer that read no stage of it or of later ones. *)
  Fixpoint reads_before (i : nat) (f : fact) : bool :=
    match f with
    | Truth n _ => (0 <=? n) && (layer (relation_of (Z.to_nat n)) <=? i)%nat
    | Below l => forallb (fun '(_, (n, _)) => (n =? 0) || (0 <? n) &&
        (layer (relation_of (Z.to_nat (n - 1))) <? i)%nat) (terms l)
    | Always _ => true
    | Both f g | Either f g => reads_before i f && reads_before i g
    | No f => reads_before i f
    end.
  (** They negate nothing, or are on where they were. *)
  Definition stays (g : nat) (f : fact) : bool :=
    match f with Either (Truth n (0, 0)) _ => n =? Z.of_nat g | _ => false end.
  Definition layered : bool := forallb (fun g => let r := relation_of g in
    reads_before (layer r) (cause r) && (positive (layer r) true (cause r) || stays g (cause r)))
      (seq 0 (length rs)).

  Lemma says_same_inputs truth truth' number number' p f i :
    (forall n q, 0 <= n -> (layer (relation_of (Z.to_nat n)) <= i)%nat -> truth n q = truth' n q) ->
    (forall n q, n = 0 \/ 0 < n /\ (layer (relation_of (Z.to_nat (n - 1))) < i)%nat ->
      number n q = number' n q) ->
    reads_before i f = true -> says truth number p f = says truth' number' p f.
  Proof.
    intros Ht Hn; induction f as [n q|l| |f IHf g IHg|f IHf g IHg|f IHf]; cbn; intro H;
      try apply andb_prop in H as [H1 H2];
      try (rewrite ?IHf, ?IHg by assumption; reflexivity).
    - apply Ht; [apply Z.leb_le, H1 | apply Nat.leb_le, H2].
    - f_equal; unfold amount; f_equal; induction (terms l) as [|[z [n q]] ts IH]; [reflexivity|].
      cbn [forallb] in H; apply andb_prop in H as [H1 H2]; cbn [sum]; rewrite (IH H2), (Hn n);
        [reflexivity|].
      apply orb_prop in H1 as [H1|[H1 H3]%andb_prop]; [left; apply Z.eqb_eq, H1 | right; split;
        [apply Z.ltb_lt, H1 | apply Nat.ltb_lt, H3]].
  Qed.
  Lemma causes_grow i stages s s' x g : layer (relation_of g) = i -> within s s' ->
    positive i true (cause (relation_of g)) = true ->
    causes stages s x g = true -> causes stages s' x g = true.
  Proof.
    intros Hi Hs; unfold causes; rewrite Hi; generalize (cause (relation_of g)) as f; intro f.
    enough (H : forall b, positive i b f = true ->
      let says s := says (fun n => on_spot (fun y => if in_layer i (Z.to_nat n) then s y
        (Z.to_nat n) else 0 <=? stages (Z.to_nat n) y)) (number_by stages) (proj1_sig x) f in
      if b then says s = true -> says s' = true else says s' = true -> says s = true) by exact
        (H true).
    induction f as [n q|l|c|f IHf h IHh|f IHf h IHh|f IHf]; cbn; intros b Hb.
    - unfold on_spot; destruct (cell_at m _) as [y|], (in_layer i (Z.to_nat n)), b;
        try discriminate; auto.
    - destruct b; auto.
    - destruct b; auto.
    - apply andb_prop in Hb as [H1 H2]; specialize (IHf b H1); specialize (IHh b H2); destruct b;
        cbn in *; rewrite !andb_true_iff; tauto.
    - apply andb_prop in Hb as [H1 H2]; specialize (IHf b H1); specialize (IHh b H2); destruct b;
        cbn in *; rewrite !orb_true_iff; tauto.
    - specialize (IHf (negb b) Hb); destruct b; cbn in *;
        rewrite !negb_true_iff, <- !not_true_iff_false; tauto.
  Qed.
  Lemma round_in i stages s x g : round i stages s x g = true <-> in_layer i g = true /\
    exists y, (for_all (relation_of g) = true \/ y = x) /\ causes stages s y g = true.
  Proof.
    unfold round; rewrite andb_true_iff; apply and_iff_compat_l; destruct (for_all (relation_of g)).
    - rewrite existsb_exists; split; [intros (y & _ & H); eauto | intros (y & _ & H); exists y;
        split; [apply cells_all | exact H]].
    - split; [eauto | intros (y & [E|E] & H); [discriminate E | subst y; exact H]].
  Qed.
  Lemma round_named i stages s x g : round i stages s x g = true -> In g (layer_names i).
  Proof.
    rewrite round_in; intros (Hi & y & _ & H); apply filter_In; split; [|exact Hi]; apply in_seq.
    destruct (Nat.lt_ge_cases g (length rs)) as [|Hg]; [lia | unfold causes, relation_of in H;
      rewrite nth_overflow in H by exact Hg; discriminate H].
  Qed.
  Lemma round_same i stages s s' : (forall x g, s x g = s' x g) ->
    forall x g, round i stages s x g = round i stages s' x g.
  Proof.
    intros H x g; unfold round; f_equal;
      assert (E : forall y, causes stages s y g = causes stages s' y g).
    { intro y; unfold causes; induction (cause (relation_of g)); cbn; try congruence.
      unfold on_spot; destruct (cell_at m _); [destruct (in_layer _ _); [apply H|]|]; reflexivity. }
    destruct (for_all _); [induction (cells m) as [|y l IH]; cbn; [|rewrite E, IH];
      reflexivity | apply E].
  Qed.
  Hypothesis is_layered : layered = true.
  Lemma layered_at g : let r := relation_of g in reads_before (layer r) (cause r) = true /\
    (positive (layer r) true (cause r) = true \/ stays g (cause r) = true).
  Proof.
    destruct (Nat.lt_ge_cases g (length rs)) as [Hg|Hg]; [|unfold relation_of;
      rewrite nth_overflow by exact Hg; auto].
    unfold layered in is_layered; rewrite forallb_forall in is_layered; specialize (is_layered g).
    rewrite andb_true_iff, orb_true_iff in is_layered; apply is_layered, in_seq; lia.
  Qed.
  Lemma round_grows i stages t : within (after (round i stages) t) (after (round i stages) (S t)).
  Proof.
    induction t as [|t IH]; intros x g; [discriminate|]; intro H;
      pose proof (proj2 (proj1 (filter_In _ _ _) (round_named i _ _ x g H))) as Hi.
    apply Nat.eqb_eq in Hi; destruct (layered_at g) as [_ [Hp|Hs]]; cbn [after].
    - cbn [after] in H; rewrite round_in in H |- *; destruct H as (Hl & y & Hy & Hc); split;
        [exact Hl|]; exists y; split; [exact Hy|].
      rewrite Hi in Hp; exact (causes_grow i stages _ _ y g Hi IH Hp Hc).
    - rewrite round_in; split; [unfold in_layer; rewrite Hi; apply Nat.eqb_refl|]; exists x; split;
        [auto|].
      unfold causes; destruct (cause (relation_of g)) as [| | | |[n [[] []]| | | | |] f|];
        try discriminate Hs; apply Z.eqb_eq in Hs; subst n.
      cbn [says]; apply orb_true_iff; left; rewrite Nat2Z.id; unfold on_spot, in_layer;
        rewrite Nat.eqb_refl.
      replace (cell_at m (plus (proj1_sig x) (0, 0))) with (Some x); [exact H|].
      symmetry; apply cell_at_some; unfold plus; destruct (proj1_sig x); cbn; f_equal; lia.
  Qed.
  Lemma stage_before i g : (layer (relation_of g) < i)%nat -> stages_before i g = stage_of g.
  Proof.
    induction i as [|i IH]; intro H; [lia|];
      destruct (Nat.eq_dec (layer (relation_of g)) i) as [<-|Hi]; [reflexivity|].
    rewrite <- IH by lia; cbn [stages_before]; unfold in_layer;
      destruct (Nat.eqb_spec (layer (relation_of g)) i); [contradiction | reflexivity].
  Qed.
  Notation i_of g := (layer (relation_of g)).
  Lemma stage_of_is g x : stage_of g x = stage (cells m) (layer_names (i_of g))
    (layer_round (i_of g)) x g.
  Proof. unfold stage_of; cbn [stages_before]; unfold in_layer at 1; rewrite Nat.eqb_refl;
    reflexivity. Qed.
  (** A tile is on, after the rounds of a layer that are in number more than its stage. *)
  Theorem stage_of_spec t x g : after (layer_round (i_of g)) t x g = (0 <=? stage_of g x) &&
    (stage_of g x <? Z.of_nat t).
  Proof. rewrite stage_of_is; apply stage_spec;
    [apply cells_all | apply round_named | apply round_same | apply round_grows]. Qed.
  Lemma stage_of_shown g x : 0 <= stage_of g x -> exists y,
    causes (stages_before (i_of g)) (after (layer_round (i_of g)) (Z.to_nat (stage_of g x))) y g =
      true.
  Proof.
    rewrite stage_of_is; intro H; apply comes_on in H;
      [|apply cells_all | apply round_named | apply round_same | apply round_grows].
    apply round_in in H as (_ & y & _ & H); eauto.
  Qed.
  Lemma stage_of_range g x : 0 <= stage_of g x \/ stage_of g x = -1.
  Proof. rewrite stage_of_is; apply stage_range. Qed.
  Lemma stage_of_same g x y : for_all (relation_of g) = true -> stage_of g x = stage_of g y.
  Proof. intro H; rewrite !stage_of_is; apply stage_same; intro s; unfold layer_round, round;
    rewrite H; reflexivity. Qed.
  Lemma stage_of_few g x : 0 <= stage_of g x ->
    stage_of g x < Z.of_nat (length (layer_names (i_of g))) * Z.of_nat (length (cells m)) /\
    forall h, layer_names (i_of g) = [h] ->
      stage_of g x < Z.of_nat (length (filter (fun y => 0 <=? stage_of h y) (cells m))).
  Proof.
    rewrite stage_of_is; intro H; apply stage_few in H;
      [|apply cells_all | apply round_named | apply round_same | apply round_grows].
    pose proof (count_all (cells m) (layer_names (i_of g)) (layer_round (i_of g))) as Hc; split;
      [unfold cell in *; nia|]; intros h Hh.
    assert (Hi : In h (layer_names (i_of g))) by (rewrite Hh; left; reflexivity);
      apply filter_In in Hi as [_ Hi%Nat.eqb_eq].
    rewrite (count_one _ _ _ h Hh) in H; erewrite (filter_ext _ _); [exact H|]; intro y; cbn beta.
    rewrite stage_of_is, Hi; symmetry; apply fixed_iff, round_grows.
  Qed.
  Lemma layer_name i g : In g (layer_names i) -> i_of g = i.
  Proof. intros [_ E%Nat.eqb_eq]%filter_In; exact E. Qed.
  Lemma stage_of_named g x : 0 <= stage_of g x -> In g (layer_names (i_of g)).
  Proof. rewrite stage_of_is; intro H; apply comes_on in H;
    [exact (round_named _ _ _ x g H) | apply cells_all | apply round_named | apply round_same |
     apply round_grows]. Qed.
  (** If nothing comes on in a round of a layer, nothing does later. *)
  Lemma stage_of_last i r : (forall x g, In g (layer_names i) -> stage_of g x <> Z.of_nat r) ->
    forall x g, In g (layer_names i) -> stage_of g x < Z.of_nat r.
  Proof.
    intros H x g Hg.
    assert (Hs : still (layer_round i) r).
    { intros y h; destruct (in_dec Nat.eq_dec h (layer_names i)) as [Hh|Hh].
      - pose proof (layer_name i h Hh) as Hi; rewrite <- Hi, !stage_of_spec; specialize (H y h Hh);
          f_equal; apply eq_true_iff_eq; rewrite !Z.ltb_lt; lia.
      - transitivity false; [|symmetry]; apply not_true_is_false; intro E; apply Hh;
          [exact (round_named i _ _ y h E)|].
        destruct r as [|r]; [discriminate E | exact (round_named i _ _ y h E)]. }
    apply Z.nle_gt; intro Hr; set (t := S (Z.to_nat (stage_of g x))).
    assert (E : after (layer_round i) t x g = after (layer_round i) r x g) by
      (apply still_for_good; [apply round_same | exact Hs | unfold t; lia]).
    rewrite <- (layer_name i g Hg), !stage_of_spec, (proj2 (Z.leb_le 0 (stage_of g x)) ltac:(lia))
      in E; cbn [andb] in E.
    destruct (Z.ltb_spec (stage_of g x) (Z.of_nat t)), (Z.ltb_spec (stage_of g x) (Z.of_nat r));
      try discriminate E; unfold t in *; lia.
  Qed.
  Theorem stage_of_least x g : negates_nothing (i_of g) = true ->
    0 <= stage_of g x <-> forall s, within (layer_round (i_of g) s) s -> s x g = true.
  Proof.
    intro H; rewrite stage_of_is, <- Z.leb_le, <- fixed_iff; [|apply round_grows];
      apply fixed_is_least;
      [apply cells_all | apply round_named | apply round_same | apply round_grows|].
    intros s s' Hs y h; unfold layer_round; rewrite !round_in; intros (Hi & z & Hz & Hc); split;
      [exact Hi|]; exists z; split; [exact Hz|].
    pose proof Hi as Ei; apply Nat.eqb_eq in Ei; refine (causes_grow (i_of g) _ _ _ z h Ei Hs _ Hc);
      unfold negates_nothing in H; rewrite forallb_forall in H.
    unfold relation_of at 2;
      destruct (nth_in_or_default h rs (Relation 0 false (Always false))) as [Hin|E];
      [|rewrite E; reflexivity].
    specialize (H _ Hin); unfold in_layer, relation_of at 1 in Hi; rewrite Hi in H; exact H.
  Qed.
End Relations.
(** Whether a relation of number h is on at q; its stage, as part of a sum; whether it comes on in a
    round before that of number [bound], or until it. *)
Definition on (h : nat) (q : spot) : fact := Truth (Z.of_nat h) q.
Definition stage_at (h : nat) (q : spot) : Z * var := (1, (Z.of_nat h + 1, q)).
Definition before (bound : lin) (h : nat) (q : spot) : fact :=
  Both (on h q) (Below (Lin (constant (over bound)) (stage_at h q :: terms (over bound)))).
Definition until (bound : lin) (h : nat) (q : spot) : fact :=
  Both (on h q) (Below (Lin (constant (over bound) - 1) (stage_at h q :: terms (over bound)))).
(** A number of the whole map. *)
Definition of_map_at (i : nat) : Z * var := (1, (-4 - Z.of_nat i, (0, 0))).
Lemma truth_later th m t n q : timeless (Truth n q) = true -> truth th m (S t) n q = truth th m t
  (if n <? 0 then n + 1 else n) q.
Proof.
  cbn [timeless]; rewrite orb_true_iff, !Z.leb_le; intro H; unfold truth;
    destruct (Z.ltb_spec n 0) as [Hn|Hn].
  - assert (Hd : (-1 - (n + 1)) / 100 = (-1 - n) / 100 /\
      (-1 - (n + 1)) mod 100 = (-1 - n) mod 100 - 1 /\ n + 1 < 0) by (Z.div_mod_to_equations; lia).
    destruct Hd as (-> & -> & Hd), H as [H|H]; [lia|]; destruct (Z.ltb_spec (n + 1) 0); [|lia].
    replace (S t + 2 - Z.to_nat ((-1 - n) mod 100))%nat with
      (t + 2 - Z.to_nat ((-1 - n) mod 100 - 1))%nat by lia.
    destruct (Z.eqb_spec ((-1 - n) mod 100) 0), (Z.eqb_spec ((-1 - n) mod 100 - 1) 0);
      lia || reflexivity.
  - destruct (Z.ltb_spec n 0); [lia | reflexivity].
Qed.
(** What is known of the ghosts from their definitions. *)
Inductive given := Kinds | Times | Sizes | Range (g : nat) | Few (g : nat) | Alike (i : nat) | Step
  (g : nat) (bound : lin)
  | Rests (i g : nat) | Rounds (i : nat) | Before (n : nat) | Turn (g : nat) (ago : Z)
  | Earlier (g : nat) | Apart (g k n : nat).
Definition rule_before (th : statement) (bound : lin) (g : nat) : fact :=
  let r := relation_of (relations th) in
  mapped (fun n q => if in_layer (relations th) (layer (r g)) (Z.to_nat n) then before bound
    (Z.to_nat n) q else Truth n q) Below (cause (r g)).
Definition was (g : nat) (ago : Z) (q : spot) : fact := Truth (-1 - (100 * Z.of_nat g + ago)) q.
Definition outside_or (f : fact) : fact := Either (No inside_at) f.
(** A tile at which a relation comes on is that of kind k, in the first round, or beside one at
    which it did a round before: then it does not come on at two neighbours at once, if there are
    not two tiles of that kind. *)
Definition off (g : nat) (q : spot) : fact := Below (Lin 1 [stage_at g q]).
Definition equal (z : Z) (u v : var) : fact := Both (Below (Lin z [(1, u); (-1, v)]))
  (Below (Lin (- z) [(-1, u); (1, v)])).
Definition a_round_before (g : nat) (d : dir) : fact := let there := offset (N d) in
  Both (No (off g there)) (equal 1 (snd (stage_at g there)) (snd (stage_at g (0, 0)))).
Definition spreads (g k : nat) : fact :=
  Either (off g (0, 0)) (Either (Both (number_is (Z.of_nat k) (KIND, (0, 0)))
  (number_is 0 (snd (stage_at g (0, 0)))))
  (Either (Either (a_round_before g U) (a_round_before g L)) (Either (a_round_before g D)
    (a_round_before g R)))).
Definition apart (g : nat) (d : dir) : fact := let there := offset (N d) in
  Either (off g (0, 0)) (Either (off g there)
    (No (equal 0 (snd (stage_at g (0, 0))) (snd (stage_at g there))))).
(** What the definition of a game says of a tile in some iteration. *)
Definition turn (th : statement) (g : nat) (ago : Z) : fact := let here : spot := (0, 0) in
  if negb ((0 <? ago) && (ago <? 99)) then Always true else
    let first := Below (Lin (2 - ago) [(1, (TIME, here))]) in same (was g ago here)
      (Both inside_at (Either
      (Both first (fact_of (nth g (begins th) Never) (fun _ _ => Always false)))
      (Both (No first) (fact_of (nth g (follows th) Never)
        (fun tap h => shift (offset tap) (Both (was h (ago + 1) here) inside_at)))))).
(** The layer whose rounds a number of the map counts. *)
Definition rest_at (th : statement) (i : nat) : option nat :=
  if (i <? length (of_map th))%nat then None else nth_error (resting th) (i - length (of_map th)).
Definition given_fact (th : statement) (known : list fact) (u : given) : fact :=
  let here : spot := (0, 0) in
  match u with
  | Kinds => Both (Below (Lin (-1) [(-1, (KIND, here))]))
      (Below (Lin (1 - Z.of_nat (n_kinds th)) [(1, (KIND, here))]))
  | Times => Below (Lin 0 [(-1, (TIME, here))])
  | Sizes => Both (Below (Lin 0 [(-1, (SPREAD, here))])) (Below (Lin 1 [(1, (SPREAD, here));
      (-1, (N_TILES, here))]))
  | Range g =>
      Either (Both (Both (on g here) inside_at) (Below (Lin 0 [(-1, (Z.of_nat g + 1, here))])))
      (Both (No (on g here)) (number_is (-1) (Z.of_nat g + 1, here)))
  | Few g => Either (No (on g here)) (Below match layer_names (relations th)
      (layer (relation_of (relations th) g)) with
      | [O] => Lin 0 [stage_at g here; (-1, (SPREAD, here))]
      | names => Lin 1 [stage_at g here; (- Z.of_nat (length names), (N_TILES, here))] end)
  | Alike i => match nth_error (of_map th) i with
      | Some (h, k) => if match k with None => for_all (relation_of (relations th) h) | Some k =>
          existsb (Nat.eqb k) (once th) end then
          outside_or (Either match k with Some k =>
            No (number_is (Z.of_nat k) (KIND, here)) | None => Always false end
            (Both (Below (Lin 0 [stage_at h here; (-1, snd (of_map_at i))]))
              (Below (Lin 0 [(-1, snd (stage_at h here)); of_map_at i]))))
          else Always true
      | None => Always true end
  | Step g bound => Either (Below (Lin (constant bound + 1) (terms bound))) (outside_or
      (let comes := rule_before th bound g in
        if for_all (relation_of (relations th) g) then Either (No comes) (until bound g here)
          else same comes (until bound g here)))
  | Rests i g => match rest_at th i with Some l => if in_layer (relations th) l g then
        Below (Lin 1 [stage_at g here; (-1, snd (of_map_at i))]) else Always true
      | None => Always true end
  | Rounds i => match rest_at th i with Some l => Both (Below (Lin 0 [(-1, snd (of_map_at i))]))
        (Below (Lin 0 [of_map_at i;
          (- Z.of_nat (length (layer_names (relations th) l)), (N_TILES, here))]))
      | None => Always true end
  | Before n => nth n known (Always true)
  | Turn g ago => turn th g ago
  | Earlier _ => Always true
  | Apart g k n => if (if fact_dec (normal (nth n known (Always true))) (normal (spreads g k))
      then true else false) && existsb (Nat.eqb k) (once th)
      then Both (apart g D) (apart g R) else Always true
  end.

(** * They are true of every maze *)
(** What facts mean, joined by booleans, and sums. *)
Ltac meant := unfold outside_or; repeat match goal with
  | |- context [true_at ?th ?m ?t ?p (Either ?f ?g)] => change (true_at th m t p (Either f g)) with
      (true_at th m t p f || true_at th m t p g)
  | |- context [true_at ?th ?m ?t ?p (Both ?f ?g)] => change (true_at th m t p (Both f g)) with
      (true_at th m t p f && true_at th m t p g)
  | |- context [true_at ?th ?m ?t ?p (No ?f)] => change (true_at th m t p (No f)) with
      (negb (true_at th m t p f))
  | |- context [true_at ?th ?m ?t ?p (Below ?l)] => change (true_at th m t p (Below l)) with
      (amount (number th m t) p l <=? 0) end;
  unfold amount; cbn [constant terms sum stage_at of_map_at fst snd].
Section Given.
  Context (th : statement) (m : maze).
  Notation rs := (relations th).
  Hypotheses (is_layered : layered rs = true) (is_about : about th m).
  Notation w := (grid m).
  Notation number := (number th m). Notation true_at := (true_at th m).
  Notation stage := (stage_of rs m).
  Notation on_spot := (on_spot m).
  Lemma here p : plus p (0, 0) = p.
  Proof. destruct p; unfold plus; cbn; f_equal; lia. Qed.
  Lemma at_tap_spot tap x : at_tap w tap x = cell_at m (plus (proj1_sig x) (offset tap)).
  Proof.
    destruct tap as [|d]; cbn; [rewrite here, cell_at_own; reflexivity|].
    unfold grid_nb; f_equal; destruct x as [[row col] h], d; unfold plus; cbn; f_equal; lia.
  Qed.
  Lemma see_spot (s : state w) x tap g : see w s x tap g = on_spot (fun y =>
    s y g) (plus (proj1_sig x) (offset tap)).
  Proof. unfold see; rewrite at_tap_spot; reflexivity. Qed.
  Lemma number_below t n q r : n < 0 -> number t n q = number t n r.
  Proof. intro H; unfold Characterised.number; destruct (n =? TIME), (n =? N_TILES), (n =? SPREAD),
    (Z.ltb_spec n 0); try reflexivity; lia. Qed.
  Lemma number_from t n q : 0 <= n -> number t n q = number_by m stage n q.
  Proof.
    intro H; unfold Characterised.number; destruct (Z.eqb_spec n TIME), (Z.eqb_spec n N_TILES),
      (Z.eqb_spec n SPREAD), (Z.ltb_spec n 0); try lia; reflexivity.
  Qed.
  Lemma kind_number t p : number t KIND p = number_on m (fun x =>
    Z.of_nat (kind_at m (proj1_sig x))) p.
  Proof. reflexivity. Qed.
  Lemma stage_number t h q : number t (Z.of_nat h + 1) q = number_on m (stage h) q.
  Proof.
    rewrite number_from by lia; unfold number_by; destruct (Z.eqb_spec (Z.of_nat h + 1) KIND);
      [lia|].
    replace (Z.to_nat (Z.of_nat h + 1 - 1)) with h by lia; reflexivity.
  Qed.
  Lemma map_number t i q : number t (-4 - Z.of_nat i) q = number_of_map th m i.
  Proof.
    unfold Characterised.number; destruct (Z.eqb_spec (-4 - Z.of_nat i) TIME),
      (Z.eqb_spec (-4 - Z.of_nat i) N_TILES),
      (Z.eqb_spec (-4 - Z.of_nat i) SPREAD), (Z.ltb_spec (-4 - Z.of_nat i) 0); try lia; f_equal;
        lia.
  Qed.
  Lemma rounds_above i g x : In g (layer_names rs i) -> stage g x < rounds_of th m i.
  Proof.
    intro Hg; unfold rounds_of; assert (H : In (x, g) (list_prod (cells m) (layer_names rs i))) by
      (apply in_prod; [apply cells_all | exact Hg]).
    induction (list_prod _ _) as [|[y h] l IH]; [destruct H|]; cbn [map fold_right];
      destruct H as [[= <- <-]|H]; [|specialize (IH H)]; lia.
  Qed.
  Lemma rounds_nonnegative i : 0 <= rounds_of th m i.
  Proof. unfold rounds_of; induction (map _ _); cbn; lia. Qed.
  Lemma rounds_below i n : (forall x g, In g (layer_names rs i) -> stage g x < n) -> 0 <= n ->
    rounds_of th m i <= n.
  Proof.
    intros H Hn; unfold rounds_of; assert (Hl : forall x g, In (x, g)
      (list_prod (cells m) (layer_names rs i)) -> stage g x < n) by
      (intros x g [_ Hg]%in_prod_iff; exact (H x g Hg)).
    induction (list_prod _ _) as [|[y h] l IH]; cbn [map fold_right]; [exact Hn|].
    pose proof (Hl y h (or_introl eq_refl)); specialize (IH (fun x g Hx => Hl x g (or_intror Hx)));
      lia.
  Qed.
  (** In every round of a layer something comes on at some tile. *)
  Lemma rounds_reached i r : 0 <= r < rounds_of th m i -> exists x g,
    In g (layer_names rs i) /\ stage g x = r.
  Proof.
    intros [H0 Hr]; set (l := list_prod (cells m) (layer_names rs i)).
    destruct (existsb (fun '(x, g) => stage g x =? r) l) eqn:E.
    - apply existsb_exists in E as ([x g] & [_ Hg]%in_prod_iff & E); exists x, g; split;
        [exact Hg | apply Z.eqb_eq, E].
    - exfalso; enough (rounds_of th m i <= r) by lia; apply rounds_below; [|exact H0].
      intros x g Hg; rewrite <- (Z2Nat.id r H0); apply (stage_of_last rs m is_layered i);
        [|exact Hg].
      intros y h Hh Ey; rewrite Z2Nat.id in Ey by exact H0; apply not_true_iff_false in E; apply E,
        existsb_exists; exists (y, h); split; [apply in_prod; [apply cells_all | exact Hh] |
        apply Z.eqb_eq, Ey].
  Qed.
  Lemma rest_number i l : rest_at th i = Some l -> number_of_map th m i = rounds_of th m l.
  Proof.
    unfold rest_at, number_of_map; destruct (Nat.ltb_spec i (length (of_map th))) as [|Hi];
      [discriminate|]; intro E; rewrite (proj2 (nth_error_None _ _) Hi), E; reflexivity.
  Qed.
  Lemma number_is_says t p k n q : true_at t p (number_is k (n, q)) = (number t n (plus p q) =? k).
  Proof.
    unfold number_is; meant; apply eq_true_iff_eq; rewrite andb_true_iff, !Z.leb_le, Z.eqb_eq; lia.
  Qed.
  Lemma kind_is t p x k tap : cell_at m p = Some x ->
    true_at t p (number_is (Z.of_nat k) (KIND, offset tap)) = tile w x tap k.
  Proof.
    intros <-%cell_at_some; rewrite number_is_says, kind_number; unfold tile, number_on;
      rewrite at_tap_spot.
    destruct (cell_at m _) as [y|]; [cbn; destruct (Nat.eqb_spec (kind_at m (proj1_sig y)) k) | ];
      [apply Z.eqb_eq | apply Z.eqb_neq ..]; lia.
  Qed.
  Lemma fact_of_says t p x e sees : cell_at m p = Some x ->
    true_at t p (fact_of e sees) = eval e (fun tap g => true_at t p (sees tap g)) (tile w x).
  Proof.
    intro Hx; induction e; cbn [fact_of eval]; try reflexivity; [apply kind_is, Hx | ..];
      unfold Characterised.true_at in *; cbn [says]; congruence.
  Qed.
  Lemma inside_says t p : true_at t p inside_at = match cell_at m p with Some _ => true | None =>
    false end.
  Proof.
    unfold inside_at; meant; rewrite here, kind_number; unfold number_on; destruct (cell_at m p);
      [apply negb_true_iff, Z.leb_gt; lia | reflexivity].
  Qed.
  Lemma on_says t p h q : true_at t p (on h q) = on_spot (fun x => 0 <=? stage h x) (plus p q).
  Proof.
    unfold Characterised.true_at, on; cbn; unfold truth.
    destruct (Z.ltb_spec (Z.of_nat h) 0); [lia|]; rewrite Nat2Z.id; reflexivity.
  Qed.
  Lemma was_says t p g ago q : 0 <= ago < 100 -> true_at t p (was g ago q) =
    on_spot (fun x => if ago =? 0 then run w (of_rules th) t x g else played w th
      (t + 2 - Z.to_nat ago) x g) (plus p q).
  Proof.
    intro H; unfold Characterised.true_at, was; cbn [says]; unfold truth;
      destruct (Z.ltb_spec (-1 - (100 * Z.of_nat g + ago)) 0); [|lia].
    replace (-1 - (-1 - (100 * Z.of_nat g + ago))) with (ago + Z.of_nat g * 100) by lia.
    rewrite Z_mod_plus_full, Z.div_add, Z.mod_small, Z.div_small, Z.add_0_l, Nat2Z.id by lia;
      reflexivity.
  Qed.
  Lemma before_says t p bound h q b : amount (number t) p bound = Z.of_nat b ->
    true_at t p (before bound h q) = on_spot (fun x =>
      after (layer_round rs m (layer (relation_of rs h))) b x h) (plus p q).
  Proof.
    intro Hb; pose proof (over_amount (number t) p bound) as E; unfold before; meant;
      unfold amount in *; rewrite on_says, stage_number; unfold Characterised.on_spot, number_on;
      destruct (cell_at m (plus p q)) as [x|]; [|reflexivity].
    rewrite (stage_of_spec rs m is_layered); f_equal; apply eq_true_iff_eq;
      rewrite Z.leb_le, Z.ltb_lt; lia.
  Qed.
  Lemma until_before bound h q : until bound h q = before (Lin (constant bound + 1) (terms bound)) h
    q.
  Proof. unfold until, before, over; cbn [constant terms]; f_equal; f_equal; f_equal; lia. Qed.
  Lemma rule_before_says t p x g bound b : amount (number t) p bound = Z.of_nat b ->
    cell_at m p = Some x ->
    let i := layer (relation_of rs g) in
    true_at t p (rule_before th bound g) = causes rs m (stages_before rs m i)
      (after (layer_round rs m i) b) x g.
  Proof.
    intros Hb Ex i; destruct (layered_at rs is_layered g) as [Hr _]; apply cell_at_some in Ex;
      subst p.
    set (truth' := fun n q => if in_layer rs i (Z.to_nat n) then on_spot (fun x =>
      after (layer_round rs m i) b x (Z.to_nat n)) q else truth th m t n q).
    transitivity (says truth' (number t) (proj1_sig x) (cause (relation_of rs g))).
    - unfold rule_before; fold i; revert Hr; generalize (cause (relation_of rs g)) as f; fold i;
        intro f.
      induction f as [n q|l|c|f IHf h IHh|f IHf h IHh|f IHf]; cbn [mapped reads_before]; intro H;
        try apply andb_prop in H as [H1 H2];
        try (unfold Characterised.true_at in *; cbn [says]; rewrite ?IHf, ?IHh by assumption;
          reflexivity).
      unfold truth' at 1; cbn [says]; unfold in_layer;
        destruct (Nat.eqb_spec (layer (relation_of rs (Z.to_nat n))) i) as [E|E]; [|reflexivity].
      rewrite (before_says t _ bound _ q b Hb), E; reflexivity.
    - unfold causes; fold i; apply (says_same_inputs rs _ _ _ _ _ _ i); [| |exact Hr].
      + intros n q Hn Hl; unfold truth'; cbv zeta; unfold in_layer, truth;
          destruct (Nat.eqb_spec (layer (relation_of rs (Z.to_nat n))) i) as [E|E];
          [reflexivity|]; destruct (Z.ltb_spec n 0); [lia|]; rewrite stage_before by lia;
            reflexivity.
      + intros n q [->|[Hn Hl]]; [reflexivity|]; rewrite number_from by lia; unfold number_by;
          rewrite stage_before by exact Hl; reflexivity.
  Qed.
  Lemma off_says t p g q : true_at t p (off g q) = (number_on m (stage g) (plus p q) <? 0).
  Proof. unfold off; meant; rewrite stage_number; apply eq_true_iff_eq; rewrite Z.leb_le, Z.ltb_lt;
    lia. Qed.
  Lemma equal_says t p z u v : true_at t p (equal z u v) =
    (number t (fst u) (plus p (snd u)) + z =? number t (fst v) (plus p (snd v))).
  Proof. unfold equal; meant; destruct u, v; cbn [fst snd]; apply eq_true_iff_eq;
    rewrite andb_true_iff, !Z.leb_le, Z.eqb_eq; lia. Qed.
  Lemma round_before_says t p g d : true_at t p (a_round_before g d) = true ->
    exists y, cell_at m (plus p (offset (N d))) = Some y /\
    0 <= stage g y /\ stage g y + 1 = number_on m (stage g) p.
  Proof.
    unfold a_round_before; meant; rewrite off_says, equal_says; cbn [fst snd stage_at];
      rewrite here, !stage_number, andb_true_iff, negb_true_iff, Z.ltb_ge, Z.eqb_eq.
    unfold number_on at 1 2; destruct (cell_at m (plus p (offset (N d)))) as [y|]; [eauto | lia].
  Qed.
  (** The parity of a stage and of the place where it is. *)
  Definition parity (g : nat) (x : cell m) : bool :=
    Z.odd (stage g x + fst (proj1_sig x) + snd (proj1_sig x)).
  Lemma parity_spreads t g k : (forall q, true_at t q (spreads g k) = true) ->
    forall x, 0 <= stage g x ->
    exists z : cell m, kind_at m (proj1_sig z) = k /\ stage g z = 0 /\ parity g x = parity g z.
  Proof.
    intros H x; remember (Z.to_nat (stage g x)) as n eqn:En; revert x En;
      induction n as [n IH] using (well_founded_induction Nat.lt_wf_0); intros x -> Hx.
    generalize (H (proj1_sig x)); pose proof (cell_at_own m x) as Ex.
    assert (En : number_on m (stage g) (proj1_sig x) = stage g x) by (unfold number_on; rewrite Ex;
      reflexivity).
    unfold spreads; meant; rewrite off_says, !number_is_says, here, kind_number, stage_number, En;
      unfold number_on at 1; rewrite Ex, !orb_true_iff, andb_true_iff, Z.ltb_lt, !Z.eqb_eq.
    clear H; intros [H|[[Hk H0]|H]]; [lia | exists x; repeat split; lia|].
    assert (Hy : exists d y, In d [U; L; D;
      R] /\ cell_at m (plus (proj1_sig x) (offset (N d))) = Some y /\ 0 <= stage g y /\
      stage g y + 1 = stage g x).
    { rewrite <- En; destruct H as [[H|H]|[H|H]]; apply round_before_says in H as (y & Hy); eexists;
      exists y; (split; [|exact Hy]); cbn; auto. }
    destruct Hy as (d & y & Hd & Ey & Hy & Es);
      destruct (IH (Z.to_nat (stage g y)) ltac:(lia) y eq_refl Hy) as (z & Hk & Hz & E); exists z;
      split; [exact Hk|]; split; [exact Hz|].
    rewrite <- E; unfold parity; apply cell_at_some in Ey; rewrite Ey, <- Es; unfold plus;
      cbn [fst snd].
    destruct Hd as [<-|[<-|[<-|[<-|[]]]]]; cbn [offset fst snd];
      rewrite !Z.add_0_r, ?Z.odd_add, ?Z.odd_opp; cbn [Z.odd];
      destruct (Z.odd (stage g y)), (Z.odd (fst _)), (Z.odd (snd _)); reflexivity.
  Qed.
  Lemma apart_true t g k d p : (forall q, true_at t q (spreads g k) = true) -> In k (once th) ->
    d = D \/ d = R -> true_at t p (apart g d) = true.
  Proof.
    intros Hs Hk Hd; unfold apart; cbv zeta; meant; rewrite !off_says, equal_says; cbn [fst snd];
      rewrite here, !stage_number; unfold number_on.
    destruct (cell_at m p) as [x|] eqn:Ex; [|reflexivity];
      destruct (cell_at m (plus p (offset (N d)))) as [y|] eqn:Ey; [|apply orb_true_iff; right;
      reflexivity].
    destruct (Z.ltb_spec (stage g x) 0) as [|Hx]; [reflexivity|];
      destruct (Z.ltb_spec (stage g y) 0) as [|Hy]; [reflexivity|]; cbn [orb];
      apply negb_true_iff, Z.eqb_neq; intro E.
    destruct (parity_spreads t g k Hs x Hx) as (z & Hz & _ & E1), (parity_spreads t g k Hs y Hy) as
      (z' & Hz' & _ & E2).
    rewrite (proj2 (proj2 is_about) k Hk z z' Hz Hz'), <- E2 in E1; apply cell_at_some in Ex, Ey;
      subst p; unfold parity in E1; rewrite Ey, <- E in E1; unfold plus in E1.
    destruct Hd as [->| ->]; cbn [offset fst snd] in E1; rewrite !Z.add_0_r, ?Z.odd_add in E1;
      cbn [Z.odd] in E1; destruct (Z.odd (stage g x)), (Z.odd (fst _)), (Z.odd (snd _));
      discriminate E1.
  Qed.
  Lemma turn_true t p g ago : true_at t p (turn th g ago) = true.
  Proof.
    unfold turn; destruct (_ && _) eqn:E; cbn [negb];
      [rewrite andb_true_iff, !Z.ltb_lt in E | reflexivity]; cbv zeta.
    set (b := nth g (begins th) Never); set (e := nth g (follows th) Never); set (first := Below _);
      set (sees := fun tap h => shift _ _).
    unfold Characterised.true_at; rewrite says_same;
      change (says (truth th m t) (number t) p) with (true_at t p); apply eqb_true_iff.
    meant.
    rewrite was_says, here, inside_says by lia; unfold Characterised.on_spot;
      destruct (cell_at m p) as [x|] eqn:Ex; [cbn [andb] | reflexivity].
    rewrite !(fact_of_says t p x _ _ Ex); destruct (Z.eqb_spec ago 0); [lia|].
    replace (true_at t p first) with (Z.of_nat t + 2 - ago <=? 0)
      by (unfold first, Characterised.true_at; cbn [says]; unfold amount; cbn [constant terms sum];
        f_equal; change (number t TIME _) with (Z.of_nat t); lia).
    destruct (Z.leb_spec (Z.of_nat t + 2 - ago) 0); cbn [andb orb negb].
    + replace (t + 2 - Z.to_nat ago)%nat with 0%nat by lia; cbn [played]; rewrite orb_false_r;
        reflexivity.
    + replace (t + 2 - Z.to_nat ago)%nat with (S (t + 2 - Z.to_nat (ago + 1))) by lia; cbn [played];
        unfold step, rule, is_pooled.
      cbn [existsb pooled rules]; fold e; apply eval_same; [intros tap h | reflexivity];
        unfold sees, Characterised.true_at.
      rewrite shift_says by apply number_below;
        change (see w (played w th (t + 2 - Z.to_nat (ago + 1))) x tap h =
        true_at t (plus p (offset tap)) (was h (ago + 1) (0, 0)) &&
          true_at t (plus p (offset tap)) inside_at).
      apply cell_at_some in Ex; rewrite was_says, inside_says, see_spot, here, Ex by lia;
        unfold Characterised.on_spot.
      destruct (cell_at m _), (Z.eqb_spec (ago + 1) 0);
        [lia | symmetry; apply andb_true_r | lia | reflexivity].
  Qed.
  Theorem given_true known t p u :
    Forall (fun f => forall q, true_at t q f = true) known ->
      true_at t p (given_fact th known u) = true.
  Proof.
    intro Hknown; assert (Hn : forall n q, true_at t q (nth n known (Always true)) = true).
    { intros n q; destruct (nth_in_or_default n known (Always true)) as [H| ->];
      [rewrite Forall_forall in Hknown; exact (Hknown _ H q) | reflexivity]. }
    destruct u as [| | |g|g|i|g bound|i g|i|n|g ago| |g k n]; cbn [given_fact]; cbv zeta;
      [..|reflexivity|].
    - meant; rewrite here, kind_number; unfold number_on; destruct (cell_at m p) as [x|];
        apply andb_true_iff; rewrite !Z.leb_le; [pose proof (proj1 is_about x)|]; lia.
    - meant; change (number t TIME _) with (Z.of_nat t); apply Z.leb_le; lia.
    - meant; change (number t SPREAD _) with (Z.max (Z.of_nat (n_on th m) - 1) 0);
        change (number t N_TILES _) with (Z.of_nat (length (cells m))).
      assert (H : (n_on th m <= length (cells m))%nat) by apply filter_length_le;
        pose proof (proj1 (proj2 is_about)); destruct (cells m); [contradiction|];
        cbn [length] in *.
      apply andb_true_iff; rewrite !Z.leb_le; lia.
    - meant; rewrite number_is_says, inside_says, on_says, here, stage_number;
        unfold Characterised.on_spot, number_on; destruct (cell_at m p) as [x|]; [|reflexivity].
      destruct (stage_of_range rs m g x) as [E|E]; rewrite ?E; [rewrite (proj2 (Z.leb_le _ _) E);
        apply orb_true_iff; left; apply Z.leb_le; lia | reflexivity].
    - meant; rewrite on_says, here; unfold Characterised.on_spot;
      destruct (cell_at m p) as [x|] eqn:Ex;
        [|reflexivity].
      destruct (Z.leb_spec 0 (stage g x)) as [E|E]; [cbn [negb orb] | reflexivity].
      destruct (stage_of_few rs m is_layered g x E) as [Hf Ho]; set (names := layer_names _ _) in *.
      assert (Hs : number_on m (stage g) p = stage g x) by (unfold number_on; rewrite Ex;
        reflexivity); apply Z.leb_le.
      destruct names as [|[|] []]; try specialize (Ho 0%nat eq_refl); try fold (n_on th m) in Ho;
        cbn [constant terms sum stage_at]; rewrite here, stage_number, Hs;
        change (number t N_TILES _) with (Z.of_nat (length (cells m)));
          change (number t SPREAD _) with (Z.max (Z.of_nat (n_on th m) - 1) 0); lia.
    - destruct (nth_error (of_map th) i) as [[h k]|] eqn:Ei; [|reflexivity].
      destruct (match k with None => _ | _ => _ end) eqn:Hu; [|reflexivity].
      meant; rewrite inside_says; destruct (cell_at m p) as [x|] eqn:Ex;
        [cbn [negb orb] | reflexivity]; apply orb_true_iff.
      match goal with |- ?b = true \/ _ => assert (Hk : b = negb (of_kind m k x)) end.
      { destruct k as [k|]; [|reflexivity]; meant; exact (f_equal negb (kind_is t p x k C Ex)). }
      rewrite Hk; destruct (of_kind m k x) eqn:Ek; [right | left; reflexivity];
        rewrite !here, !stage_number, !map_number.
      assert (E : number_of_map th m i = stage h x).
      { unfold number_of_map; rewrite Ei; destruct (find (of_kind m k) (cells m)) as [y|] eqn:Ef.
        - apply find_some in Ef as [_ Ef]; destruct k as [k|];
            [|apply (stage_of_same rs m h y x), Hu].
          apply existsb_exists in Hu as (k' & Hin & <-%Nat.eqb_eq);
            rewrite (proj2 (proj2 is_about) k Hin y x) by (apply Nat.eqb_eq; assumption);
            reflexivity.
        - rewrite (find_none _ _ Ef x (cells_all m x)) in Ek; discriminate. }
      unfold number_on; rewrite Ex, E; apply andb_true_iff; rewrite !Z.leb_le; lia.
    - rewrite until_before; meant; fold (amount (number t) p bound); rewrite inside_says.
      destruct (Z.leb_spec (constant bound + 1 + Facts.sum (number t) p (terms bound)) 0) as [|Hb];
        [reflexivity|]; cbn [orb].
      destruct (cell_at m p) as [x|] eqn:Ex; [cbn [negb orb] | reflexivity].
      assert (Eb : amount (number t) p bound = Z.of_nat (Z.to_nat (amount (number t) p bound))) by
        (unfold amount; lia).
      pose proof (rule_before_says t p x g bound _ Eb Ex) as E; cbv zeta in E;
        set (b := Z.to_nat _) in *.
      assert (Hu : true_at t p (before (Lin (constant bound + 1) (terms bound)) g (0, 0)) = after
        (layer_round rs m (layer (relation_of rs g))) (S b) x g).
      { rewrite (before_says t p _ g (0, 0) (S b)) by (unfold amount in *; cbn [constant terms];
        lia).
        rewrite here; unfold Characterised.on_spot; rewrite Ex; reflexivity. }
      destruct (for_all (relation_of rs g)) eqn:Epool; [meant; rewrite E, Hu;
        destruct (causes _ _ _ _ _ _) eqn:Ee; [|reflexivity]; apply round_in; split;
        [apply Nat.eqb_refl | eauto]|].
      unfold Characterised.true_at at 1; rewrite says_same; apply eqb_true_iff;
        change (says (truth th m t) (number t) p) with (true_at t p).
      rewrite E, Hu; cbn [after]; unfold layer_round at 2, round, in_layer;
        rewrite Nat.eqb_refl, Epool; reflexivity.
    - destruct (rest_at th i) as [l|] eqn:Ei; [|reflexivity];
        destruct (in_layer rs l g) eqn:Hl; [apply Nat.eqb_eq in Hl | reflexivity].
      meant; rewrite here, stage_number, map_number, (rest_number i l Ei); apply Z.leb_le;
        pose proof (rounds_nonnegative l); unfold number_on; destruct (cell_at m p) as [x|]; [|lia].
      destruct (stage_of_range rs m g x) as [E|E]; [|lia].
      pose proof (stage_of_named rs m is_layered g x E) as Hg; rewrite Hl in Hg;
        pose proof (rounds_above l g x Hg); lia.
    - destruct (rest_at th i) as [l|] eqn:Ei; [meant | reflexivity].
      rewrite !here, !map_number, (rest_number i l Ei);
        change (number t N_TILES _) with (Z.of_nat (length (cells m))).
      apply andb_true_iff; rewrite !Z.leb_le; pose proof (rounds_nonnegative l); split; [lia|].
      enough (rounds_of th m l <= Z.of_nat (length (layer_names rs l)) *
        Z.of_nat (length (cells m))) by lia.
      apply rounds_below; [|lia]; intros x g Hg; pose proof (layer_name rs l g Hg) as Hl; subst l.
      destruct (stage_of_range rs m g x) as [E|E]; [exact (proj1 (stage_of_few rs m is_layered g x
        E)) | rewrite E; lia].
    - apply Hn.
    - exact (turn_true t p g ago).
    - destruct (fact_dec _ _) as [E|]; [|reflexivity]; destruct (existsb _ _) eqn:Hk;
        [|reflexivity].
      apply existsb_exists in Hk as (k' & Hk & <-%Nat.eqb_eq); cbn [andb]; meant.
      rewrite !(apart_true t g k) by (auto; intro q; unfold Characterised.true_at;
        rewrite <- normal_says, <- E, normal_says; apply Hn); reflexivity.
  Qed.
End Given.
Lemma said_in (s : list (option fact)) g f : nth g s None = Some f -> In (g, Some f) (numbered s).
Proof.
  intro H; apply numbered_in; rewrite <- H; apply nth_error_nth'.
  destruct (Nat.lt_ge_cases g (length s)) as [|Hg];
    [assumption | rewrite nth_overflow in H by exact Hg; discriminate].
Qed.

(** * Lemmas, each with what leads the checker to it, and the induction *)
(** It may go along the stages of a relation: then the lemma is known of tiles that come on earlier.
    *)
Record proof := Proof { uses : list (given * spot); why : refutation }.
Definition earlier (g : nat) (d : spot) (goal : fact) : fact :=
  Either (Below (Lin 1 [stage_at g d]))
  (Either (Below (Lin 0 [stage_at g (0, 0); (-1, snd (stage_at g d))])) (shift d goal)).
Definition used (th : statement) (known : list fact) (goal : fact) (used : given * spot) : fact :=
  match used with (Earlier g, d) => earlier g d goal | (u, d) =>
    shift d (given_fact th known u) end.
Definition along (pf : proof) : nat := fold_right (fun '(u, _) g => match u with Earlier h =>
  h | _ => g end) O (uses pf).
Definition proves (th : statement) (known : list fact) (goal : fact) (pf : proof) : bool :=
  forallb (fun '(u, _) => match u with Earlier g => Nat.eqb g (along pf) | _ => true end)
    (uses pf) &&
  impossible (why pf) (No goal :: map (used th known goal) (uses pf)).
(** The lemmas that are proven, each from those before. *)
Fixpoint proven (th : statement) (known : list fact) (lemmas : list (fact * proof)) : list fact :=
  match lemmas with
  | [] => known
  | (f, pf) :: rest => if proves th known f pf then proven th (known ++ [f]) rest else known
  end.
Definition said_at (th : statement) (tap : tap) (g : nat) : fact :=
  match nth g (said th) None with Some f => shift (offset tap) f | None => was g 0 (offset tap) end.
Definition shown (th : statement) (g : nat) : fact := fact_of (rule (of_rules th) g) (said_at th).
(** A relation comes on in a round; and in a round of a layer, the same at all tiles, a tile at
    which something comes on shows a fact. *)
Definition comes_in (v : lin) (h : nat) : fact :=
  Both (Below (Lin (constant (over v) - 1) (stage_at h (0, 0) :: terms (over v))))
    (Below (Lin (constant v) ((-1, snd (stage_at h (0, 0))) :: terms v))).
Definition changes_shown (th : statement) (i : nat) (v : lin) (f : fact) : fact :=
  match rest_at th i with
  | Some l => if forallb (fun '(_, (n, _)) => n <? 0) (terms v) then
      Both (Both (Below (Lin (constant (over v) - 1) (terms (over v))))
        (Below (Lin (constant v + 1) ((-1, snd (of_map_at i)) :: terms v))))
      (Either (No (fold_right (fun h g => Either (comes_in v h) g) (Always false)
        (layer_names (relations th) l))) f) else Always false
  | None => Always false
  end.
(** Of each signal: it is off at first and beyond the edge, and the rule gives what is said of it an
    iteration later; of a pooled one, that it says nothing else, and that the tile that shows why a
    relation comes on shows that it does, or a tile at which something comes on, or any tile. *)
Definition claims_of (th : statement) (g : nat) (f : fact) : list fact :=
  [Either (No (Below (Lin 0 [(1, (TIME, (0, 0)))]))) (No f); Either inside_at (No f)] ++
  if is_pooled (of_rules th) g then
    [outside_or (Either (No (shown th g)) (later f));
     outside_or (Either (No (later f)) (match find (fun '(k, _) => Nat.eqb k g) (witnesses th) with
       | Some (_, i) => if (i <? length (of_map th))%nat then
           Both (Below (Lin 0 [(-1, snd (of_map_at i))]))
           (Either (No (rule_before th (Lin 0 [of_map_at i]) (fst (nth i (of_map th) (O, None)))))
             (shown th g)) else Always false
       | None => match find (fun '(k, _) => Nat.eqb k g) (changes th) with
         | Some (_, (i, v)) => changes_shown th i v (shown th g)
         | None => shown th g end end))]
  else [outside_or (same (shown th g) (later f))].
Definition claims (th : statement) : list fact :=
  flat_map (fun '(g, s) => match s with None => [] | Some f => claims_of th g f end)
    (numbered (said th)) ++
  flat_map (fun '(g, (wanted, due)) =>
      [outside_or (Either (No (shown th g)) wanted);
       outside_or (Either (No (Below (Lin (constant due - 1) ((-1, (TIME, (0, 0))) :: terms due))))
         (same (shown th g) wanted))])
    (answers th).
(** Whether a fact is the same at all tiles. *)
Fixpoint uniform (f : fact) : bool :=
  match f with
  | Truth _ _ => false
  | Below l => forallb (fun '(_, (n, _)) => n <? 0) (terms l) || if fact_dec (No f) inside_at
      then true else false
  | Always _ => true
  | Both f g | Either f g => uniform f && uniform g
  | No f => uniform f
  end.
Definition checked (th : statement) (lemmas : list (fact * proof)) (proofs : list proof) : bool :=
  let known := proven th [] lemmas in
  (length proofs =? length (claims th))%nat && forallb (fun '(f, pf) => proves th known f pf)
    (combine (claims th) proofs) &&
  forallb (fun '(g, s) => match s with
    | Some f => timeless f && (negb (is_pooled (of_rules th) g) || uniform (normal f))
    | None => true end) (numbered (said th)) &&
  forallb (fun '(g, _) => negb (is_pooled (of_rules th) g)) (answers th) &&
  layered (relations th).
Section Theorems.
  Context (th : statement) (lemmas : list (fact * proof)) (proofs : list proof).
  Hypothesis is_checked : checked th lemmas proofs = true.
  Context (m : maze).
  Hypothesis is_about : about th m.
  Notation w := (grid m). Notation true_at := (true_at th m).
  Notation pooling := (grid_pools m (proj1 (proj2 is_about))).
  Lemma parts_checked : (length proofs = length (claims th) /\
    forall f pf, In (f, pf) (combine (claims th) proofs) ->
    proves th (proven th [] lemmas) f pf = true) /\
    (forall g f, nth g (said th) None = Some f -> timeless f = true /\
      (is_pooled (of_rules th) g = true -> uniform (normal f) = true)) /\
    (forall g a, In (g, a) (answers th) -> is_pooled (of_rules th) g = false) /\
    layered (relations th) = true.
  Proof.
    unfold checked in is_checked; rewrite !andb_true_iff, !forallb_forall, Nat.eqb_eq in is_checked.
    destruct is_checked as [[[[Hl Hp] Hs] Ha] Hg]; repeat split; try assumption.
    - intros f pf Hin; exact (Hp (f, pf) Hin).
    - specialize (Hs (g, Some f) (said_in _ _ _ H)); cbn in Hs; apply andb_prop in Hs; tauto.
    - specialize (Hs (g, Some f) (said_in _ _ _ H)); cbn in Hs; apply andb_prop in Hs as [_ Hs];
        intro E; rewrite E in Hs; exact Hs.
    - intros g a Hin; apply negb_true_iff, (Ha (g, a) Hin).
  Qed.
  Lemma proves_true known f pf t p : Forall (fun f => forall q, true_at t q f = true) known ->
    proves th known f pf = true -> true_at t p f = true.
  Proof.
    intros Hknown H; destruct parts_checked as (_ & _ & _ & Hg); unfold proves in H;
      apply andb_prop in H as [Hall H]; set (g := along pf) in *.
    rewrite forallb_forall in Hall;
      remember (Z.to_nat (number th m t (Z.of_nat g + 1) p)) as n eqn:En; revert p En.
    induction n as [n IH] using (well_founded_induction Nat.lt_wf_0); intros p ->;
      destruct (true_at t p f) eqn:E; [reflexivity | exfalso].
    apply (impossible_sound (truth th m t) (number th m t) p _ _ H); constructor;
      [change (negb (true_at t p f) = true); rewrite E; reflexivity|].
    apply Forall_map, Forall_forall; intros [u d] Hin; specialize (Hall _ Hin);
      assert (Hs : forall u, true_at t p (shift d (given_fact th known u)) = true).
    { intro v; unfold Characterised.true_at; rewrite shift_says by (apply number_below);
      apply given_true; assumption. }
    destruct u as [| | | | | | | | | | |h|]; try (apply Hs); apply Nat.eqb_eq in Hall; subst h;
      cbn [used].
    change (true_at t p (earlier g d f) = true); unfold earlier; meant; rewrite here;
      set (a := number th m t _ p) in *; set (b := number th m t _ (plus p d)).
    destruct (Z.leb_spec (1 + (1 * b + 0)) 0) as [|H1]; [reflexivity|];
      destruct (Z.leb_spec (0 + (1 * a + (-1 * b + 0))) 0) as [|H2]; [reflexivity|].
    unfold Characterised.true_at; rewrite shift_says by (apply number_below);
      refine (IH _ _ (plus p d) eq_refl); fold b; lia.
  Qed.
  Lemma proven_true t known lemmas' : Forall (fun f => forall q, true_at t q f = true) known ->
    Forall (fun f => forall q, true_at t q f = true) (proven th known lemmas').
  Proof.
    revert known; induction lemmas' as [|[f pf] rest IH]; intros known H; [exact H|]; cbn;
      destruct (proves th known f pf) eqn:E; [|exact H].
    apply IH, Forall_app; split; [exact H | repeat constructor]; intro q;
      exact (proves_true known f pf t q H E).
  Qed.
  Lemma claims_true t p f : In f (claims th) -> true_at t p f = true.
  Proof.
    intro Hin; destruct parts_checked as ([Hlen H] & _);
      apply (In_nth _ _ (Always true)) in Hin as (n & Hn & <-).
    apply (proves_true (proven th [] lemmas) _
      (nth n proofs (Proof [] (Refutation [] [] [] [] [])))); [apply proven_true; constructor|].
    apply H; rewrite <- combine_nth by (symmetry; exact Hlen); apply nth_In; rewrite combine_length;
      lia.
  Qed.
  (** What claims say of a tile. *)
  Lemma implied t p x f g : cell_at m p = Some x ->
    true_at t p (outside_or (Either (No f) g)) = true -> true_at t p f = true ->
    true_at t p g = true.
  Proof. intro Hx; meant; rewrite inside_says, Hx; intros H Hf; rewrite Hf in H; exact H. Qed.
  Lemma alike t p x f g : cell_at m p = Some x -> true_at t p (outside_or (same f g)) = true ->
    true_at t p f = true_at t p g.
  Proof. intro Hx; unfold same; meant; rewrite inside_says, Hx;
    destruct (true_at t p f), (true_at t p g); cbn; congruence. Qed.
  Lemma uniform_says t (x y : cell m) f : uniform f = true -> true_at t (proj1_sig x) f = true_at t
    (proj1_sig y) f.
  Proof.
    induction f as [n q|l|b|f IHf g IHg|f IHf g IHg|f IHf]; cbn [uniform]; intro H;
      [discriminate H | | reflexivity | ..];
      try (apply andb_prop in H as [Hf Hg]; unfold Characterised.true_at in *; cbn [says];
        rewrite (IHf Hf), (IHg Hg); reflexivity).
    - apply orb_prop in H as [H|H].
      + unfold Characterised.true_at; cbn [says]; f_equal; unfold amount; f_equal;
          induction (terms l) as [|[z [n q]] ts IH]; [reflexivity|].
        cbn [forallb] in H; apply andb_prop in H as [Hn H]; apply Z.ltb_lt in Hn; cbn [sum].
        rewrite (IH H), (number_below th m t n _ (plus (proj1_sig y) q) Hn); reflexivity.
      + destruct (fact_dec _ _) as [E|]; [|discriminate H];
          pose proof (inside_says th m t (proj1_sig x)) as Ha;
          pose proof (inside_says th m t (proj1_sig y)) as Hb.
        rewrite <- E, cell_at_own in Ha, Hb; apply negb_true_iff in Ha, Hb;
          unfold Characterised.true_at; cbn [says]; rewrite Ha, Hb; reflexivity.
    - unfold Characterised.true_at in *; cbn [says]; rewrite (IHf H); reflexivity.
  Qed.
  Lemma amount_everywhere t (v : lin) p q : forallb (fun '(_, (n, _)) => n <? 0) (terms v) = true ->
    amount (number th m t) p v = amount (number th m t) q v.
  Proof.
    unfold amount; intro H; f_equal; induction (terms v) as [|[z [n r]] ts IH]; [reflexivity|].
    cbn [forallb] in H; apply andb_prop in H as [Hn H]; apply Z.ltb_lt in Hn; cbn [sum];
      rewrite (IH H), (number_below th m t n _ (plus q r) Hn); reflexivity.
  Qed.
  Lemma changes_reached t i v f (x : cell m) :
    (forall y : cell m, true_at t (proj1_sig y) (changes_shown th i v f) = true) ->
    exists y : cell m, true_at t (proj1_sig y) f = true.
  Proof.
    intro H; destruct parts_checked as (_ & _ & _ & Hg); unfold changes_shown in H;
      destruct (rest_at th i) as [l|] eqn:Ei; [|discriminate (H x)];
      destruct (forallb _ _) eqn:Hv; [|discriminate (H x)].
    set (r := amount (number th m t) (proj1_sig x) v).
    assert (Hr : 0 <= r < rounds_of th m l).
    { generalize (H x); meant; pose proof (over_amount (number th m t) (proj1_sig x) v) as Ho;
        unfold amount in Ho; rewrite map_number, (rest_number th m i l Ei), !andb_true_iff,
        !Z.leb_le; unfold r, amount; lia. }
    destruct (rounds_reached th m Hg l r Hr) as (y & h & Hh & Ey); exists y; generalize (H y);
      clear H.
    assert (Hc : true_at t (proj1_sig y) (fold_right (fun h g => Either (comes_in v h) g)
      (Always false) (layer_names (relations th) l)) = true).
    { assert (Hone : true_at t (proj1_sig y) (comes_in v h) = true).
      { unfold comes_in; meant; pose proof (over_amount (number th m t) (proj1_sig y) v) as Ho;
          pose proof (amount_everywhere t v (proj1_sig y) (proj1_sig x) Hv) as Ev; fold r in Ev;
          unfold amount in Ho, Ev; rewrite here, stage_number; unfold number_on;
          rewrite cell_at_own, andb_true_iff, !Z.leb_le; lia. }
      induction (layer_names _ _) as [|k ks IHk]; [destruct Hh|]; cbn [fold_right]; meant;
        apply orb_true_iff; destruct Hh as [->|Hh]; [left; exact Hone | right; exact (IHk Hh)]. }
    meant; rewrite Hc; cbn [negb orb]; intro E; apply andb_prop in E as [_ E]; exact E.
  Qed.
  Lemma said_held t x tap h : (forall g f q, nth g (said th) None = Some f -> on_spot m (fun y =>
    run w (of_rules th) t y g) q = true_at t q f) ->
    true_at t (proj1_sig x) (said_at th tap h) = see w (run w (of_rules th) t) x tap h.
  Proof.
    intro IH; rewrite see_spot; unfold said_at; destruct (nth h (said th) None) as [f|] eqn:E.
    - unfold Characterised.true_at; rewrite shift_says by (apply number_below); symmetry;
        exact (IH h f _ E).
    - rewrite was_says by lia; reflexivity.
  Qed.
  Lemma shown_rule t x g : (forall g f q, nth g (said th) None = Some f -> on_spot m (fun y =>
    run w (of_rules th) t y g) q = true_at t q f) ->
    true_at t (proj1_sig x) (shown th g) = eval (rule (of_rules th) g)
      (see w (run w (of_rules th) t) x) (tile w x).
  Proof.
    intro IH; unfold shown; rewrite (fact_of_says th m t _ x) by apply cell_at_own; apply eval_same;
      [|reflexivity]; intros tap h; apply said_held, IH.
  Qed.
  Lemma claim_of g f c : nth g (said th) None = Some f -> In c (claims_of th g f) ->
    In c (claims th).
  Proof. intros Hg Hc; apply in_or_app; left; apply in_flat_map; exists (g, Some f); split;
    [apply said_in, Hg | exact Hc]. Qed.
  (** After t iterations every signal is what is said of it. *)
  Theorem said_everywhere t g f q : nth g (said th) None = Some f ->
    on_spot m (fun y => run w (of_rules th) t y g) q = true_at t q f.
  Proof.
    revert g f q; induction t as [|t IH]; intros g f q Hg.
    - generalize (claims_true 0 q _ (claim_of g f _ Hg (or_introl eq_refl))); meant;
        change (number th m 0 TIME _) with 0; cbn [Z.add Z.mul Z.leb Z.compare].
      destruct (true_at 0 q f); [discriminate|]; unfold on_spot; destruct (cell_at m q);
        reflexivity.
    - unfold on_spot; destruct (cell_at m q) as [x|] eqn:Ex.
      + destruct parts_checked as (_ & Hsaid & _ & Hgrow); destruct (Hsaid g f Hg) as [Ht Hu].
        assert (Hlater : forall y : cell m, true_at t (proj1_sig y) (later f) = true_at (S t)
          (proj1_sig y) f).
        { intro y; apply later_says; [exact Ht | |].
          - exact (truth_later th m t).
          - intros n r; unfold number; destruct (Z.eqb_spec n 0) as [->|]; [reflexivity|];
              destruct (Z.eqb_spec n (-1)); [lia | reflexivity]. }
        assert (Hsame : is_pooled (of_rules th) g = true -> forall y z : cell m,
          true_at t (proj1_sig y) (later f) = true_at t (proj1_sig z) (later f)).
        { intros Hp y z; rewrite !Hlater; unfold Characterised.true_at;
          rewrite <- !(normal_says _ _ _ f); exact (uniform_says (S t) y z _ (Hu Hp)). }
        pose proof (fun (y : cell m) c => claims_true t (proj1_sig y) c) as Hc;
          pose proof (fun c => claim_of g f c Hg) as Hin; unfold claims_of in Hin.
        apply cell_at_some in Ex; subst q; cbn [run]; unfold step;
          destruct (is_pooled (of_rules th) g) eqn:Epool; cbn [app] in Hin.
        * specialize (Hsame eq_refl); apply eq_true_iff_eq;
            rewrite (anywhere_iff w _ pooling), <- Hlater; split.
          -- intros (y & Hy); rewrite (Hsame x y); rewrite <- (shown_rule t y g IH) in Hy;
               exact (implied t _ y _ _ (cell_at_own m y)
               (Hc y _ (Hin _ (or_intror (or_intror (or_introl eq_refl))))) Hy).
          -- intro Hx; pose proof (fun y => implied t _ y _ _ (cell_at_own m y)
               (Hc y _ (Hin _ (or_intror (or_intror (or_intror (or_introl eq_refl))))))) as H.
             assert (Hall : forall y : cell m, true_at t (proj1_sig y) (later f) = true) by
               (intro y; rewrite (Hsame y x); exact Hx).
             destruct (find _ (witnesses th)) as [[k i]|];
               [destruct (i <? length (of_map th))%nat eqn:Hi; [apply Nat.ltb_lt in Hi |
               discriminate (H x Hx)]|destruct (find _ (changes th)) as [[k [i v]]|]; [|exists x;
               rewrite <- (shown_rule t x g IH); exact (H x Hx)];
               destruct (changes_reached t i v (shown th g) x (fun y => H y (Hall y))) as (y & Hy);
               exists y; rewrite <- (shown_rule t y g IH); exact Hy].
             set (h := fst (nth i (of_map th) (O, None))) in *; set (z := number_of_map th m i).
             assert (Hboth : forall y : cell m, 0 <= z /\
               (true_at t (proj1_sig y) (rule_before th (Lin 0 [of_map_at i]) h) = true ->
               true_at t (proj1_sig y) (shown th g) = true)).
             { intro y; generalize (H y ltac:(rewrite (Hsame y x); exact Hx)); meant;
               rewrite map_number, andb_true_iff, Z.leb_le; fold z.
               intros [Hz Hr]; split; [lia | intro E; rewrite E in Hr; exact Hr]. }
             destruct (Hboth x) as [Hz _];
               assert (Hy : exists y : cell m, causes (relations th) m
               (stages_before (relations th) m (layer (relation_of (relations th) h)))
               (after (layer_round (relations th) m (layer (relation_of (relations th) h)))
                 (Z.to_nat z)) y h = true).
             { unfold z, number_of_map in *; unfold h;
               destruct (nth_error (of_map th) i) as [[h' k']|] eqn:Ei;
                 [|apply nth_error_None in Ei; lia];
               rewrite (nth_error_nth _ _ _ Ei); cbn [fst].
               destruct (find _ (cells m)) as [x0|]; [|lia];
                 exact (stage_of_shown (relations th) m Hgrow h' x0 Hz). }
             destruct Hy as (y & Hy); exists y; rewrite <- (shown_rule t y g IH); apply Hboth.
             rewrite (rule_before_says th m Hgrow t _ y h _ (Z.to_nat z));
               [exact Hy | | apply cell_at_own].
             unfold amount; cbn [constant terms sum of_map_at]; rewrite map_number; fold z; lia.
        * rewrite <- (shown_rule t x g IH), <- Hlater;
            exact (alike t _ x _ _ (cell_at_own m x)
            (Hc x _ (Hin _ (or_intror (or_intror (or_introl eq_refl)))))).
      + generalize (claims_true (S t) q _ (claim_of g f _ Hg (or_intror (or_introl eq_refl))));
          meant; rewrite inside_says, Ex.
        destruct (true_at (S t) q f); [discriminate | reflexivity].
  Qed.
  Theorem characterised t g f x : nth g (said th) None = Some f ->
    run w (of_rules th) t x g = true_at t (proj1_sig x) f.
  Proof.
    intro Hg; rewrite <- (said_everywhere t g f (proj1_sig x) Hg); unfold on_spot;
      rewrite cell_at_own; reflexivity.
  Qed.
  (** An answer shows nothing else, and all of it from the iteration on that is stated. *)
  Theorem answered t g wanted due x : In (g, (wanted, due)) (answers th) ->
    (run w (of_rules th) (S t) x g = true -> true_at t (proj1_sig x) wanted = true) /\
    (amount (number th m t) (proj1_sig x) due <= Z.of_nat (S t) ->
      run w (of_rules th) (S t) x g = true_at t (proj1_sig x) wanted).
  Proof.
    intro Hin; set (p := proj1_sig x); pose proof (cell_at_own m x) as Hx; fold p in Hx.
    assert (Hs : run w (of_rules th) (S t) x g = true_at t p (shown th g)).
    { unfold p; rewrite shown_rule by (intros; apply said_everywhere; assumption); cbn [run];
      unfold step.
      destruct parts_checked as (_ & _ & Ha & _); rewrite (Ha g _ Hin); reflexivity. }
    assert (Hc : forall c, In c [outside_or (Either (No (shown th g)) wanted);
       outside_or (Either (No (Below (Lin (constant due - 1) ((-1, (TIME, (0, 0))) :: terms due))))
         (same (shown th g) wanted))] -> true_at t p c = true)
      by (intros c Hc; apply claims_true, in_or_app; right; apply in_flat_map;
        exists (g, (wanted, due)); split; [exact Hin | exact Hc]).
    rewrite Hs; split; [exact (implied t p x _ _ Hx (Hc _ (or_introl eq_refl)))|]; intro Hd.
    pose proof (implied t p x _ _ Hx (Hc _ (or_intror (or_introl eq_refl)))) as H.
    assert (Hdue : true_at t p (Below (Lin (constant due - 1) ((-1, (TIME, (0, 0))) :: terms due)))
      = true).
    { meant; unfold amount in Hd; change (number th m t TIME _) with (Z.of_nat t); apply Z.leb_le;
      lia. }
    specialize (H Hdue); unfold Characterised.true_at in H; rewrite says_same in H;
      apply eqb_prop, H.
  Qed.
End Theorems.
