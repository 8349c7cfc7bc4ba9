(** What the tiles of a map can hold, as the search of worlds found it, checked again: it never
    leaves the worlds. *)
From MazeNCA Require Import Statements Refute Network.

(** A group of signals of a tile, and its states: the values of its signals. *)
Record component := Component { signals : list nat; states : list (list bool) }.
(** What tiles of a kind hold: any combination of the components' states. No tile is of a kind that
    is missing. *)
Definition holding : Type := list (nat * list component).

Definition every (es : list expr) : expr := fold_right And (Not Never) es.
Definition some (es : list expr) : expr := fold_right Or Never es.
Definition in_state (gs : list nat) (state : list bool) : expr :=
  every (map (fun '(g, b) => if b : bool then See g C else Not (See g C)) (combine gs state)).
Definition in_component (c : component) : expr := some (map (in_state (signals c)) (states c)).
(** A tile is of a kind and holds what tiles of this kind do. *)
Definition in_world (h : holding) : expr :=
  some (map (fun '(k, cs) => And (Is k C) (every (map in_component cs))) h).
Lemma every_says es s k : says (every es) s k = true <-> forall e, In e es -> says e s k = true.
Proof. rewrite <- (forallb_forall (fun e => says e s k)); unfold says; induction es; cbn;
  rewrite ?andb_true_iff, ?IHes; reflexivity. Qed.
Lemma some_says es s k : says (some es) s k = true <-> exists e, In e es /\ says e s k = true.
Proof. rewrite <- (existsb_exists (fun e => says e s k)); unfold says; induction es; cbn;
  rewrite ?orb_true_iff, ?IHes; reflexivity. Qed.

Definition listed (g : nat) (l : list nat) : bool := existsb (Nat.eqb g) l.
(** Which pooled signals may go on: none, and so on. *)
Definition choices (pooled : list nat) : list (list nat) := fold_right (fun g cs =>
  cs ++ map (cons g) cs) [[]] pooled.
Lemma chosen f l : In (filter f l) (choices l).
Proof. induction l as [|g l IH]; cbn; [|rewrite in_app_iff; destruct (f g)]; auto using in_map. Qed.

Section Checks.
  (** [given]: what is supposed of every tile at every iteration; nothing, if the rules alone show
      all. *)
  Context (n_kinds : nat) (taps : list tap) (a : automaton) (given : list expr).
  Definition no_tile : expr :=
    every (map (fun k => Not (Is k C)) (seq 0 n_kinds) ++ map (fun g => Not (See g C))
      (seq 0 (length (rules a)))).
  Definition world_facts (h : holding) : list form :=
    form_of (in_world h) (fun _ => seen C) (fun _ => is C) :: facts_at n_kinds taps
      (Or (in_world h) no_tile :: given).
  (** What is said of a tile, an iteration later, if these pooled signals go on. *)
  Definition later (on : list nat) (e : expr) : form :=
    form_of e (fun _ g => if is_pooled a g then Const (listed g on) else form_of (rule a g) seen is)
      (fun _ => is C).
  (** If no tile switches the other ones on, this one does not. *)
  Definition unpooled_here (on : list nat) : list form :=
    map (fun g => neg (form_of (rule a g) seen is)) (filter (fun g => negb (listed g on))
      (pooled a)).
  (** Tiles that are in a world are in the next. *)
  Definition leads_to (on : list nat) (h next : holding) : bool :=
    let facts := unpooled_here on ++ map (later on) given ++ world_facts h in
    forallb (fun '(k, _) => match find (fun '(l, _) => Nat.eqb l k) next with
      | Some (_, cs) =>
          forallb (fun c => contradicts (conj (is C k) (neg (later on (in_component c)))) facts) cs
      | None => contradicts (is C k) facts
      end) h.
  (** In a world no tile switches on one of these, or else more than these. *)
  Definition cannot (on : list nat) (h : holding) : bool :=
    existsb (fun g => forallb (fun '(k, _) => contradicts
      (conj (is C k) (form_of (rule a g) seen is)) (unpooled_here on ++ world_facts h)) h) on.
  (** All worlds, each with the number of that which follows each choice. *)
  Definition closed (ws : list (holding * list nat)) : bool :=
    forallb (fun '(h, nexts) => forallb (fun '(i, on) =>
      if cannot on h then true else
        match nth_error ws (nth i nexts (length ws)) with Some (next, _) =>
          leads_to on h next | None => false end)
      (numbered (choices (pooled a)))) ws && forallb (fun e => says e off off) given.
  (** At first all signals are off, whatever the kind of a tile. *)
  Definition starts (ws : list (holding * list nat)) : bool :=
    match ws with (h, _) :: _ => forallb (fun k => says (in_world h) off (Nat.eqb k))
      (seq 0 n_kinds) | [] => false end.

  Context (w : world) (ws : list (holding * list nat)).
  Hypotheses (known_kinds : forall x, kind_of w x < n_kinds) (pooling_is : pooled a <> [] ->
    pools w).
  Hypotheses (is_closed : closed ws = true) (starts_in : starts ws = true).
  Notation said s x e := (says e (s x) (Nat.eqb (kind_of w x)) = true).
  Definition supposed (s : state w) : Prop := forall y, Forall (fun e => said s y e) given.

  Lemma world_facts_hold s h : supposed s -> (forall x, said s x (in_world h)) ->
    forall x, all (patch w s x) (world_facts h).
  Proof.
    intros Hs H x; constructor; [rewrite form_of_holds; exact (H x)|]; apply facts_hold.
    - intro y; constructor; [apply orb_true_iff; left; apply H | apply Hs].
    - apply andb_true_iff; split; [|exact (proj2 (andb_prop _ _ is_closed))]; apply orb_true_iff;
        right; apply every_says.
      intros e [(k & <- & _)%in_map_iff|(k & <- & _)%in_map_iff]%in_app_or; reflexivity.
  Qed.

  Notation goes_on s g := (anywhere w (fun y => eval (rule a g) (see w s y) (tile w y))).
  Lemma later_says on s x e : (forall g, is_pooled a g = true -> listed g on = goes_on s g) ->
    holds (patch w s x) (later on e) = says e (step w a s x) (Nat.eqb (kind_of w x)).
  Proof.
    intro Hon; unfold later; rewrite form_of_holds; apply eval_same; [intros _ g | reflexivity].
    unfold step; destruct (is_pooled a g) eqn:E; [apply (Hon g E) | apply rule_holds].
  Qed.

  Lemma unpooled_hold on s x : (forall g, In g (pooled a) -> listed g on = goes_on s g) ->
    all (patch w s x) (unpooled_here on).
  Proof.
    intro Hon; apply Forall_map, Forall_forall; intros g (Hg & Hoff)%filter_In;
      apply negb_true_iff in Hoff; rewrite neg_holds; unfold patch; rewrite rule_holds.
    apply negb_true_iff, not_true_is_false; intro Hx; rewrite (Hon g Hg) in Hoff;
      enough (goes_on s g = true) by congruence.
    apply anywhere_iff; [apply pooling_is; intro E; rewrite E in Hg; destruct Hg | eauto].
  Qed.
  Lemma leads_to_in on s h next : supposed s -> supposed (step w a s) ->
    leads_to on h next = true ->
    (forall g, is_pooled a g = true -> listed g on = goes_on s g) ->
      (forall x, said s x (in_world h)) -> forall x, said (step w a s) x (in_world next).
  Proof.
    intros Hs Hs' H Hon Hin x; unfold leads_to in H; rewrite forallb_forall in H;
      set (facts := unpooled_here on ++ _) in H.
    pose proof (proj1 (some_says _ _ _) (Hin x)) as (e & ((k & cs) & <- & Hk)%in_map_iff & He);
      specialize (H _ Hk); cbn beta iota in H.
    apply andb_prop in He as [He _]; change (holds (patch w s x) (is C k) = true) in He.
    assert (Hall : all (patch w s x) facts).
    { apply Forall_app; split; [|apply Forall_app; split; [|apply world_facts_hold; assumption]].
      - apply unpooled_hold; intros g Hg; apply Hon, existsb_exists; exists g; split;
          [exact Hg | apply Nat.eqb_refl].
      - apply Forall_map, Forall_forall; intros e' He'; rewrite later_says by exact Hon;
          exact (proj1 (Forall_forall _ _) (Hs' x) e' He'). }
    destruct (find _ next) as [[l cs']|] eqn:E; [|rewrite (contradicts_sound _ _ _ H Hall) in He;
      discriminate].
    apply find_some in E as [Hl ->%Nat.eqb_eq]; apply some_says; eexists; split;
      [apply in_map_iff; exists (k, cs'); auto|].
    apply andb_true_iff; split; [exact He|]; apply every_says; intros e (c & <- & Hc)%in_map_iff.
    rewrite forallb_forall in H; pose proof (contradicts_sound _ _ _ (H c Hc) Hall) as Hn.
    rewrite conj_holds, He, neg_holds, later_says in Hn by exact Hon; apply negb_false_iff, Hn.
  Qed.

  Lemma cannot_be s h : supposed s -> (forall x, said s x (in_world h)) ->
    cannot (filter (fun g => goes_on s g) (pooled a)) h = false.
  Proof.
    intros Hs Hin; set (on := filter _ _); apply not_true_is_false; intro H.
    apply existsb_exists in H as (g & (Hg & Hon)%filter_In & H); rewrite forallb_forall in H.
    apply anywhere_iff in Hon as (y & Hy); [|apply pooling_is; intro E; rewrite E in Hg;
      destruct Hg].
    pose proof (proj1 (some_says _ _ _) (Hin y)) as (e & ((k & cs) & <- & Hk)%in_map_iff & He);
      specialize (H _ Hk); cbn beta iota in H; apply andb_prop in He as [He _];
      change (holds (patch w s y) (is C k) = true) in He.
    assert (Hall : all (patch w s y) (unpooled_here on ++ world_facts h)).
    { apply Forall_app; split; [apply unpooled_hold | apply world_facts_hold; assumption].
      intros g' Hg'; unfold listed, on; apply eq_true_iff_eq; rewrite existsb_exists; split;
        [intros (g'' & (_ & Hgo)%filter_In & ->%Nat.eqb_eq); exact Hgo | intro Hgo; exists g';
        split; [apply filter_In; auto | apply Nat.eqb_refl]]. }
    pose proof (contradicts_sound _ _ _ H Hall) as Hn; rewrite conj_holds, He in Hn;
      cbn [andb] in Hn; unfold patch in Hn; rewrite rule_holds in Hn; congruence.
  Qed.
  Definition in_some_world (s : state w) : Prop := exists h p, In (h, p) ws /\
    forall x, said s x (in_world h).
  Lemma first_world : in_some_world (fun _ => off).
  Proof.
    unfold in_some_world, starts in *; destruct ws as [|[h p] rest]; [discriminate|]; exists h, p;
      split; [left; reflexivity|].
    intro x; rewrite forallb_forall in starts_in; apply starts_in, in_seq;
      pose proof (known_kinds x); lia.
  Qed.
  Lemma next_world s : supposed s -> supposed (step w a s) -> in_some_world s ->
    in_some_world (step w a s).
  Proof.
    intros Hs Hs' (h & nexts & Hin & H).
    pose proof is_closed as Hc; unfold closed in Hc; apply andb_prop in Hc as [Hc _];
      rewrite forallb_forall in Hc; specialize (Hc _ Hin).
    pose proof (chosen (fun g => goes_on s g) (pooled a)) as Hchoice;
      pose proof (cannot_be s h Hs H) as Hcan; set (on := filter _ _) in Hchoice, Hcan.
    apply In_nth_error in Hchoice as (i & Hi); apply (numbered_all _ _ _ _ Hc) in Hi;
      rewrite Hcan in Hi.
    destruct (nth_error ws (nth i nexts (length ws))) as [[next p]|] eqn:E; [|discriminate];
      exists next, p; split; [eapply nth_error_In; eauto|].
    refine (leads_to_in on s h next Hs Hs' Hi _ H); intros g Hg;
      apply existsb_exists in Hg as (g' & Hg & <-%Nat.eqb_eq).
    apply eq_true_iff_eq; unfold listed; rewrite existsb_exists; split.
    + intros (g' & (_ & Hon)%filter_In & ->%Nat.eqb_eq); exact Hon.
    + intro Hon; exists g; split; [apply filter_In; auto | apply Nat.eqb_refl].
  Qed.
  Lemma world_known s : supposed s -> in_some_world s ->
    known w (map (fun '(h, _) => world_facts h) ws) s.
  Proof.
    intros Hs (h & p & Hin & H); exists (world_facts h); split; [|apply world_facts_hold;
      assumption].
    apply in_map_iff; exists (h, p); auto.
  Qed.

  (** At any time the facts of one of the worlds hold around every tile: what [network_follows]
      needs. *)
  Theorem worlds_hold : (forall t, supposed (run w a t)) ->
    forall t, known w (map (fun '(h, _) => world_facts h) ws) (run w a t).
  Proof. intros Hs t; apply world_known; [apply Hs|]; induction t as [|t IH];
    [exact first_world | exact (next_world _ (Hs t) (Hs (S t)) IH)]. Qed.
End Checks.
