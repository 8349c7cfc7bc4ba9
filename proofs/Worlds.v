(** What the tiles of a map can hold, as the search of worlds found it, checked again: it never leaves the worlds. *)
From Coq Require Import Lia.
Require Import World Refute Network.

(** A group of signals of a tile, and its states: the values of its signals. *)
Record component := Component { signals : list nat; states : list (list bool) }.
(** What tiles of a kind hold: any combination of the components' states. No tile is of a kind that is missing. *)
Definition holding : Type := list (nat * list component).

Definition conjunction (fs : list form) : form := fold_right conj (Const true) fs.
Definition disjunction (fs : list form) : form := fold_right disj (Const false) fs.
Definition literal (b : bool) (f : form) : form := if b then f else neg f.
Definition in_state (value : nat -> form) (gs : list nat) (state : list bool) : form :=
  conjunction (map (fun '(g, b) => literal b (value g)) (combine gs state)).
Definition in_component (value : nat -> form) (c : component) : form :=
  disjunction (map (in_state value (signals c)) (states c)).
Definition in_kind (value : nat -> form) (cs : list component) : form := conjunction (map (in_component value) cs).
(** A tile is of a kind and holds what tiles of this kind do; or, at another tap than C, there is none. *)
Definition in_world (n_kinds n_signals : nat) (w : holding) (t : tap) : form :=
  let inside := disjunction (map (fun '(k, cs) => conj (is t k) (in_kind (seen t) cs)) w) in
  match t with
  | C => inside
  | N _ => disj inside (conj (conjunction (map (fun k => neg (is t k)) (seq 0 n_kinds)))
      (conjunction (map (fun g => neg (seen t g)) (seq 0 n_signals))))
  end.
(** [given]: what is supposed of every tile at every iteration; nothing, if the rules alone show all. *)
Definition world_facts (n_kinds : nat) (taps : list tap) (a : automaton) (given : list expr) (w : holding) : list form :=
  map (in_world n_kinds (length (rules a)) w) taps ++ facts_at n_kinds taps given.

Definition listed (g : nat) (l : list nat) : bool := existsb (Nat.eqb g) l.
(** The value of a signal an iteration later, if these pooled ones go on. *)
Definition later (a : automaton) (on : list nat) (g : nat) : form :=
  if is_pooled a g then Const (listed g on) else form_of (rule a g) seen is.
(** If no tile switches the other ones on, this one does not. *)
Definition unpooled_here (a : automaton) (on : list nat) : list form :=
  map (fun g => neg (form_of (rule a g) seen is)) (filter (fun g => negb (listed g on)) (pooled a)).
Definition find_kind (k : nat) (w : holding) : option (list component) :=
  option_map snd (find (fun '(l, _) => Nat.eqb l k) w).
(** Tiles that are in a world are in the next. *)
Definition leads_to (n_kinds : nat) (taps : list tap) (a : automaton) (given : list expr) (on : list nat) (w next : holding) : bool :=
  let facts := map (fun e => form_of e (fun _ => later a on) (fun _ => is C)) given ++ world_facts n_kinds taps a given w in
  forallb (fun '(k, _) =>
    let facts := unpooled_here a on ++ facts in
    match find_kind k next with
    | Some cs => forallb (fun c => contradicts (conj (is C k) (neg (in_component (later a on) c))) facts) cs
    | None => contradicts (is C k) facts
    end) w.
(** Which pooled signals may go on: none, and so on. *)
Definition choices (pooled : list nat) : list (list nat) := fold_right (fun g cs => cs ++ map (cons g) cs) [[]] pooled.
(** All worlds, each with the number of that which follows each choice. *)
Definition closed (n_kinds : nat) (taps : list tap) (a : automaton) (given : list expr) (ws : list (holding * list nat)) : bool :=
  forallb (fun '(w, nexts) => forallb (fun '(i, on) =>
    match nth_error ws (nth i nexts (length ws)) with Some (next, _) => leads_to n_kinds taps a given on w next | None => false end)
    (numbered (choices (pooled a)))) ws && forallb (fun e => says e off off) given.
(** At first all signals are off, whatever the kind of a tile. *)
Definition starts (n_kinds : nat) (ws : list (holding * list nat)) : bool :=
  match ws with
  | (w, _) :: _ => forallb (fun k => match find_kind k w with
      | Some cs => match in_kind (fun _ => Const false) cs with Const true => true | _ => false end
      | None => false
      end) (seq 0 n_kinds)
  | [] => false
  end.

Lemma conjunction_holds {A} v (f : A -> form) l : holds v (conjunction (map f l)) = forallb (fun x => holds v (f x)) l.
Proof. induction l as [|x l IH]; cbn; [reflexivity | rewrite conj_holds, <- IH; reflexivity]. Qed.
Lemma disjunction_holds {A} v (f : A -> form) l : holds v (disjunction (map f l)) = existsb (fun x => holds v (f x)) l.
Proof. induction l as [|x l IH]; cbn; [reflexivity | rewrite disj_holds, <- IH; reflexivity]. Qed.
(** A tile with these signals is in one of the component's states. *)
Definition fits (value : nat -> bool) (c : component) : Prop :=
  exists st, In st (states c) /\ forall g b, In (g, b) (combine (signals c) st) -> value g = b.
Lemma fits_same f f' c : (forall g, f g = f' g) -> fits f c -> fits f' c.
Proof. intros H (st & Hst & Hs); exists st; split; [exact Hst | intros; rewrite <- H; auto]. Qed.
Lemma component_holds v value c : holds v (in_component value c) = true <-> fits (fun g => holds v (value g)) c.
Proof.
  unfold in_component, in_state; rewrite disjunction_holds, existsb_exists; split; intros (st & Hst & H); exists st; (split; [exact Hst|]).
  - rewrite conjunction_holds, forallb_forall in H; intros g b Hin; specialize (H (g, b) Hin); destruct b; cbn in H; [exact H|].
    rewrite neg_holds in H; apply negb_true_iff, H.
  - rewrite conjunction_holds; apply forallb_forall; intros [g []] Hin; cbn; rewrite ?neg_holds, (H _ _ Hin); reflexivity.
Qed.
Lemma kind_holds v value cs : holds v (in_kind value cs) = true <-> Forall (fits (fun g => holds v (value g))) cs.
Proof. unfold in_kind; rewrite conjunction_holds, forallb_forall, Forall_forall; split; intros H c Hc; apply component_holds, H, Hc. Qed.
Lemma find_kind_in k w cs : find_kind k w = Some cs -> In (k, cs) w.
Proof.
  unfold find_kind; destruct (find _ w) as [[l cs']|] eqn:E; [|discriminate]; intros [= <-].
  apply find_some in E as [H E]; apply Nat.eqb_eq in E as ->; exact H.
Qed.

Lemma chosen f l : In (filter f l) (choices l).
Proof.
  induction l as [|g l IH]; cbn; [auto|]; apply in_or_app; destruct (f g); [right; apply in_map, IH | left; exact IH].
Qed.

Section Proof.
  Context (w : world) (n_kinds : nat) (taps : list tap) (a : automaton) (given : list expr) (ws : list (holding * list nat)).
  Hypotheses (known_kinds : forall x, kind_of w x < n_kinds) (pooling_is : pooled a <> [] -> pools w).
  Hypotheses (is_closed : closed n_kinds taps a given ws = true) (starts_in : starts n_kinds ws = true).
  Notation after := (run w a).
  Hypothesis supposed : forall t y, Forall (fun e => says e (after t y) (Nat.eqb (kind_of w y)) = true) given.

  Definition tile_in (s : state w) (x : node w) (h : holding) : Prop :=
    exists cs, In (kind_of w x, cs) h /\ Forall (fits (s x)) cs.

  Lemma seen_here s x t y g : at_tap w t x = Some y -> holds (patch w s x) (seen t g) = s y g.
  Proof. intro E; unfold patch, seen; cbn [holds]; rewrite around_seen; unfold see; rewrite E; reflexivity. Qed.
  Lemma is_here s x t y k : at_tap w t x = Some y -> holds (patch w s x) (is t k) = Nat.eqb (kind_of w y) k.
  Proof. intro E; unfold patch, is; cbn [holds]; rewrite around_is; unfold tile; rewrite E; reflexivity. Qed.

  Lemma inside_world s x t y h : at_tap w t x = Some y -> tile_in s y h ->
    holds (patch w s x) (disjunction (map (fun '(k, cs) => conj (is t k) (in_kind (seen t) cs)) h)) = true.
  Proof.
    intros E (cs & Hin & H); rewrite disjunction_holds; apply existsb_exists; exists (kind_of w y, cs); split; [exact Hin|].
    rewrite conj_holds, (is_here s x t y _ E), Nat.eqb_refl; apply kind_holds, (Forall_impl _ (P := fits (s y))); [|exact H].
    intro c; apply fits_same; intro g; symmetry; apply seen_here, E.
  Qed.
  Lemma world_facts_hold u h : (forall x, tile_in (after u) x h) -> forall x, all (patch w (after u) x) (world_facts n_kinds taps a given h).
  Proof.
    intros H x; apply Forall_app; split; [|apply facts_hold; [apply supposed | apply (proj2 (andb_prop _ _ is_closed))]].
    apply Forall_forall; intros f (t & <- & _)%in_map_iff.
    destruct t as [|d]; cbn [in_world]; [apply (inside_world (after u) x C x); [reflexivity | apply H]|].
    rewrite disj_holds; apply orb_true_iff; destruct (at_tap w (N d) x) as [y|] eqn:E; [left; apply (inside_world (after u) x (N d) y); auto | right].
    rewrite conj_holds, !conjunction_holds; apply andb_true_iff; split; apply forallb_forall; intros k _; rewrite neg_holds, negb_true_iff; unfold patch, is, seen; cbn [holds].
    - rewrite around_is; unfold tile; rewrite E; reflexivity.
    - rewrite around_seen; unfold see; rewrite E; reflexivity.
  Qed.

  Notation goes_on t g := (anywhere w (fun y => eval (rule a g) (see w (after t) y) (tile w y))).
  Lemma later_is on t x g : (forall h, is_pooled a h = true -> listed h on = goes_on t h) ->
    holds (patch w (after t) x) (later a on g) = after (S t) x g.
  Proof.
    intro Hon; cbn [run]; unfold later, step; destruct (is_pooled a g) eqn:E; [apply (Hon g E) | apply rule_holds].
  Qed.

  Lemma leads_to_in on t h next : leads_to n_kinds taps a given on h next = true ->
    (forall g, is_pooled a g = true -> listed g on = goes_on t g) ->
    (forall x, tile_in (after t) x h) -> forall x, tile_in (after (S t)) x next.
  Proof.
    intros H Hb Hin x; unfold leads_to in H; rewrite forallb_forall in H; destruct (Hin x) as (cs & Hcs & _); specialize (H _ Hcs); cbn beta iota in H.
    assert (Hall : all (patch w (after t) x) (is C (kind_of w x) :: unpooled_here a on ++ map (fun e => form_of e (fun _ => later a on) (fun _ => is C)) given ++ world_facts n_kinds taps a given h)).
    { assert (Hgiven : all (patch w (after t) x) (map (fun e => form_of e (fun _ => later a on) (fun _ => is C)) given)).
      { apply Forall_map, (Forall_impl _ (P := fun e => says e (after (S t) x) (Nat.eqb (kind_of w x)) = true)); [|apply supposed].
        intros e He; unfold patch; rewrite form_of_holds, <- He; apply eval_same; intros _ g;
          [apply later_is, Hb | apply (is_here (after t) x C x g eq_refl)]. }
      constructor; [rewrite (is_here (after t) x C x _ eq_refl); apply Nat.eqb_refl|]; apply Forall_app; split.
      2: { apply Forall_app; split; [exact Hgiven | apply world_facts_hold, Hin]. }
      apply Forall_map, Forall_forall; intros g (Hg & Hoff)%filter_In; apply negb_true_iff in Hoff.
      unfold patch; rewrite neg_holds, rule_holds, Hb in * by (apply existsb_exists; exists g; split; [exact Hg | apply Nat.eqb_refl]).
      apply negb_true_iff, not_true_is_false; intro Hx; enough (goes_on t g = true) by congruence.
      apply (anywhere_iff _ _ (pooling_is ltac:(intro E; rewrite E in Hg; destruct Hg))); eauto. }
    destruct (find_kind (kind_of w x) next) as [cs'|] eqn:E; [|exfalso; exact (contradicts_sound _ _ _ H (Forall_inv Hall) (Forall_inv_tail Hall))].
    exists cs'; split; [apply find_kind_in, E|]; apply Forall_forall; intros c Hc; rewrite forallb_forall in H; specialize (H c Hc).
    apply (fits_same (fun g => holds (patch w (after t) x) (later a on g))); [intro g; apply later_is, Hb|]; apply component_holds.
    destruct (holds (patch w (after t) x) (in_component (later a on) c)) eqn:Ec; [reflexivity | exfalso].
    apply (contradicts_sound (patch w (after t) x) _ _ H); [rewrite conj_holds, neg_holds, Ec, andb_true_r; exact (Forall_inv Hall) | exact (Forall_inv_tail Hall)].
  Qed.

  Lemma in_some_world t : exists h p, In (h, p) ws /\ forall x, tile_in (after t) x h.
  Proof.
    induction t as [|t (h & nexts & Hin & H)].
    - pose proof starts_in as Hs; unfold starts in Hs; destruct ws as [|[h p] rest]; [discriminate|]; exists h, p; split; [left; reflexivity|].
      intro x; rewrite forallb_forall in Hs; specialize (Hs (kind_of w x) ltac:(apply in_seq; pose proof (known_kinds x); lia)).
      destruct (find_kind (kind_of w x) h) as [cs|] eqn:E; [|discriminate]; exists cs; split; [apply find_kind_in, E|].
      apply (kind_holds (fun _ => false) (fun _ => Const false)); destruct (in_kind _ cs) as [|[]| | | |]; discriminate || reflexivity.
    - pose proof is_closed as Hc; unfold closed in Hc; apply andb_prop in Hc as [Hc _]; rewrite forallb_forall in Hc; specialize (Hc _ Hin); cbn beta iota in Hc.
      pose proof (chosen (fun g => goes_on t g) (pooled a)) as Hchoice; set (on := filter _ _) in Hchoice.
      apply In_nth_error in Hchoice as (i & Hi); rewrite forallb_forall in Hc; specialize (Hc (i, on) (numbered_in _ _ _ Hi)); cbn beta iota in Hc.
      destruct (nth_error ws (nth i nexts (length ws))) as [[next p]|] eqn:E; [|discriminate]; exists next, p; split; [eapply nth_error_In; eauto|].
      refine (leads_to_in on t h next Hc _ H); intros g Hg; apply existsb_exists in Hg as (g' & Hg & <-%Nat.eqb_eq).
      apply eq_true_iff_eq; unfold listed; rewrite existsb_exists; split.
      + intros (g' & (_ & Hon)%filter_In & ->%Nat.eqb_eq); exact Hon.
      + intro Hon; exists g; split; [apply filter_In; auto | apply Nat.eqb_refl].
  Qed.

  (** At any time the facts of one of the worlds hold around every tile: what [network_follows] needs. *)
  Theorem worlds_hold t : exists facts, In facts (map (fun '(h, _) => world_facts n_kinds taps a given h) ws) /\
    forall x, all (patch w (after t) x) facts.
  Proof.
    destruct (in_some_world t) as (h & p & Hin & H); exists (world_facts n_kinds taps a given h); split.
    - apply in_map_iff; exists (h, p); split; [reflexivity | exact Hin].
    - apply world_facts_hold, H.
  Qed.
End Proof.
