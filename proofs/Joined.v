(** The theorem of a network, weights included, on every maze: it does what rules say that do the same as those of the
    statement, a whole number of iterations for each, perhaps with some signals split. *)
From Coq Require Import Lia.
Require Import Mazes Refute Network Floats Worlds Facts Described Lemmas Proven Printed Followed.

(** A signal is on where an odd number of its parts is, each of which is on only where the one before it is. *)
Fixpoint odd_of (es : list expr) : expr :=
  match es with [] => Never | [e] => e | e :: f :: rest => Or (And e (Not f)) (odd_of rest) end.
Fixpoint odd (bs : list bool) : bool := match bs with [] => false | [b] => b | b :: c :: rest => b && negb c || odd rest end.
Definition parts_at (t : tap) (g : nat) : expr := odd_of (map (fun k => See k t) (nth g its_joins [])).
(** A rule of the statement, read in terms of parts. *)
Fixpoint translated (e : expr) : expr :=
  match e with
  | See g t => parts_at t g
  | And e f => And (translated e) (translated f)
  | Or e f => Or (translated e) (translated f)
  | Not e => Not (translated e)
  | _ => e
  end.
(** What is true after n iterations, in terms of what was before them. *)
Fixpoint unrolled (n : nat) : expr -> option expr :=
  match n with
  | O => Some
  | S n => fix go e := let both (join : expr -> expr -> expr) e f :=
      match go e, go f with Some e, Some f => Some (join e f) | _, _ => None end in
    match e with
    | See k C => if is_pooled its_rules k then None else unrolled n (rule its_rules k)
    | See _ _ => None
    | And e f => both And e f
    | Or e f => both Or e f
    | Not e => option_map Not (go e)
    | Is _ _ | Never => Some e
    end
  end.
Definition the_rules : automaton := of_rules its_statement.
Definition after_parts (n g : nat) : option expr := unrolled n (odd_of (map (rule its_rules) (nth g its_joins []))).
Definition expr_dec (e f : expr) : {e = f} + {e <> f}. Proof. repeat decide equality. Defined.
(** A rule of the statement says what its parts are [pace] iterations later; what is pooled is in both. *)
Definition does_same (g : nat) (facts : list form) : bool :=
  match after_parts (pace - 1) g with
  | Some f => let e := translated (rule the_rules g) in if expr_dec e f then true else
      let e := form_of e seen is in let f := form_of f seen is in
      let differ := neg (disj (conj e f) (conj (neg e) (neg f))) in contradicts differ facts
  | None => false
  end &&
  match nth g its_joins [] with
  | [k] => Bool.eqb (is_pooled the_rules g) (is_pooled its_rules k) && (negb (is_pooled the_rules g) || Nat.eqb pace 1)
  | ks => negb (is_pooled the_rules g) && forallb (fun k => negb (is_pooled its_rules k)) ks
  end.
(** Before that no part is on. *)
Definition still_off (g : nat) : bool :=
  forallb (fun n => match after_parts n g with Some f => refute enough [form_of f (fun _ _ => Const false) is] | None => false end)
    (seq 0 (pace - 1)).
Definition channel_of (g : nat) : option nat :=
  match nth g its_joins [] with [k] => match nth_error its_parts k with Some (Single c) => Some c | _ => None end | _ => None end.
Definition joined_right : bool :=
  let signals := seq 0 (length its_joins) in
  (0 <? pace) && (length (rules the_rules) <=? length its_joins) && (n_kinds its_statement =? kinds its_network) &&
  forallb still_off signals &&
  forallb (fun '(h, _) => forallb (fun g => does_same g (world_facts (kinds its_network) its_taps its_rules its_given h)) signals) its_worlds &&
  forallb (fun '(g, _) => (g <? length its_joins) && match channel_of g with Some _ => true | None => false end) (answers its_statement).
Lemma joins_checked : joined_right = true. Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma nothing_supposed : its_given = []. Proof. reflexivity. Qed.

Lemma odd_of_eval es see tile : eval (odd_of es) see tile = odd (map (fun e => eval e see tile) es).
Proof.
  enough (H : forall n es, length es <= n -> eval (odd_of es) see tile = odd (map (fun e => eval e see tile) es)) by (apply (H (length es)); lia).
  clear es; induction n as [|n IH]; intros [|e [|f rest]] Hn; cbn in *; try reflexivity; try lia.
  rewrite IH by lia; reflexivity.
Qed.
Lemma odd_off ks : odd (map (fun _ : nat => false) ks) = false.
Proof.
  enough (H : forall n ks, length ks <= n -> odd (map (fun _ : nat => false) ks) = false) by (apply (H (length ks)); lia).
  clear ks; induction n as [|n IH]; intros [|e [|f rest]] Hn; cbn in *; try reflexivity; try lia; apply IH; lia.
Qed.

Section Joined.
  Context (m : maze).
  Hypotheses (known_kinds : forall x : cell m, kind_at m (proj1_sig x) < n_kinds its_statement) (some : cells m <> []).
  Notation w := (grid m). Notation after := (run w its_rules).
  Definition joined (n : nat) : state w := fun x g => odd (map (after n x) (nth g its_joins [])).
  Lemma checks : 0 < pace /\ length (rules the_rules) <= length its_joins /\ n_kinds its_statement = kinds its_network /\
    (forall g, g < length its_joins -> still_off g = true) /\
    (forall g h p, g < length its_joins -> In (h, p) its_worlds ->
      does_same g (world_facts (kinds its_network) its_taps its_rules its_given h) = true) /\
    (forall g a, In (g, a) (answers its_statement) -> g < length its_joins /\ exists c, channel_of g = Some c).
  Proof.
    pose proof joins_checked as H; unfold joined_right in H; cbv zeta in H.
    rewrite !andb_true_iff, Nat.ltb_lt, Nat.leb_le, Nat.eqb_eq, !forallb_forall in H.
    destruct H as [[[[[Hp Hl] Hk] Hs] Hd] Ha]; do 3 (split; [assumption|]); split; [|split].
    - intros g Hg; apply Hs, in_seq; lia.
    - intros g h p Hg Hin; specialize (Hd _ Hin); cbn beta iota in Hd; rewrite forallb_forall in Hd; apply Hd, in_seq; lia.
    - intros g a Hin; specialize (Ha _ Hin); cbn beta iota in Ha; apply andb_prop in Ha as [Hg Hc]; split; [apply Nat.ltb_lt, Hg|].
      destruct (channel_of g) as [c|]; [eauto | discriminate Hc].
  Qed.
  Lemma kinds_known x : kind_of w x < kinds its_network.
  Proof. destruct checks as (_ & _ & <- & _); apply known_kinds. Qed.
  Lemma facts_known n : exists facts, In facts (map (fun '(h, _) => world_facts (kinds its_network) its_taps its_rules its_given h) its_worlds) /\
    forall x, all (patch w (after n) x) facts.
  Proof.
    apply worlds_hold; [apply kinds_known | intros _; exact (grid_pools m some) | exact worlds_closed | exact worlds_start|].
    rewrite nothing_supposed; intros; constructor.
  Qed.
  Lemma parts_seen n x t g tl : eval (parts_at t g) (see w (after n) x) tl = see w (joined n) x t g.
  Proof.
    unfold parts_at, joined, see; rewrite odd_of_eval, map_map; cbn [eval].
    destruct (at_tap w t x); [reflexivity | apply odd_off].
  Qed.
  Lemma translated_eval n x e : eval (translated e) (see w (after n) x) (tile w x) = eval e (see w (joined n) x) (tile w x).
  Proof. induction e; cbn [translated eval]; try reflexivity; [apply parts_seen | congruence ..]. Qed.
  Lemma unrolled_eval n e f t x : unrolled n e = Some f -> eval f (see w (after t) x) (tile w x) = eval e (see w (after (n + t)) x) (tile w x).
  Proof.
    revert e f; induction n as [|n IH]; cbn [unrolled]; [intros e f [= ->]; reflexivity|].
    induction e as [k [|d]|k tap|e IHe f IHf|e IHe f IHf|e IHe|]; intros f' H.
    - destruct (is_pooled its_rules k) eqn:E; [discriminate|]; rewrite (IH _ _ H).
      change (eval (See k C) (see w (after (S n + t)) x) (tile w x)) with (after (S (n + t)) x k).
      cbn [run]; unfold step; rewrite E; reflexivity.
    - discriminate.
    - injection H as <-; reflexivity.
    - cbv zeta in H; destruct (_ e) as [e'|]; [|discriminate]; destruct (_ f) as [g'|]; [|discriminate]; injection H as <-.
      cbn [eval]; rewrite (IHe _ eq_refl), (IHf _ eq_refl); reflexivity.
    - cbv zeta in H; destruct (_ e) as [e'|]; [|discriminate]; destruct (_ f) as [g'|]; [|discriminate]; injection H as <-.
      cbn [eval]; rewrite (IHe _ eq_refl), (IHf _ eq_refl); reflexivity.
    - destruct (_ e) as [e'|]; [|discriminate]; injection H as <-; cbn [eval]; rewrite (IHe _ eq_refl); reflexivity.
    - injection H as <-; reflexivity.
  Qed.
  Lemma parts_later n x g : (forall k, In k (nth g its_joins []) -> is_pooled its_rules k = false) ->
    joined (S n) x g = eval (odd_of (map (rule its_rules) (nth g its_joins []))) (see w (after n) x) (tile w x).
  Proof.
    intro H; unfold joined; rewrite odd_of_eval, map_map; apply (f_equal odd), map_ext_in; intros k Hk.
    cbn [run]; unfold step; rewrite (H k Hk); reflexivity.
  Qed.
  Lemma same_rule n x g : g < length its_joins ->
    eval (odd_of (map (rule its_rules) (nth g its_joins []))) (see w (after (pace - 1 + n)) x) (tile w x) =
    eval (rule the_rules g) (see w (joined n) x) (tile w x).
  Proof.
    intro Hg; destruct checks as (_ & _ & _ & _ & Hd & _), (facts_known n) as (facts & Hin & Hfacts); apply in_map_iff in Hin as ([h p] & <- & Hin).
    specialize (Hd g h p Hg Hin); unfold does_same in Hd; apply andb_prop in Hd as [Hd _]; rewrite <- translated_eval.
    unfold after_parts in Hd; destruct (unrolled _ _) as [f|] eqn:E; [|discriminate]; rewrite <- (unrolled_eval _ _ _ _ _ E).
    destruct (expr_dec _ f) as [->|_]; [reflexivity|]; cbv zeta in Hd; set (differ := neg _) in Hd.
    rewrite <- !rule_holds; change (around (see w (after n) x) (tile w x)) with (patch w (after n) x).
    destruct (Refute.holds (patch w (after n) x) differ) eqn:Ed.
    - exfalso; exact (contradicts_sound _ _ _ Hd Ed (Hfacts x)).
    - unfold differ in Ed; rewrite neg_holds, disj_holds, !conj_holds, !neg_holds in Ed.
      destruct (Refute.holds _ (form_of f seen is)), (Refute.holds _ (form_of (translated _) seen is)); discriminate Ed || reflexivity.
  Qed.
  (** After n iterations parts are what the statement's rules say after n / pace. *)
  Theorem does_the_same q r x g : r < pace -> joined (q * pace + r) x g = run w the_rules q x g.
  Proof.
    intro Hr; destruct checks as (Hp & Hlen & _ & Hoff & Hd & _), (facts_known 0) as (facts & Hin & _); apply in_map_iff in Hin as ([h p] & _ & Hin).
    assert (Hnone : forall n y k, length its_joins <= k -> joined n y k = false) by (intros n y k Hk; unfold joined; rewrite nth_overflow by exact Hk; reflexivity).
    assert (Hfree : forall k, k < length its_joins -> is_pooled the_rules k = false -> forall l, In l (nth k its_joins []) -> is_pooled its_rules l = false).
    { intros k Hk Hf l Hl; specialize (Hd k h p Hk Hin); unfold does_same in Hd; apply andb_prop in Hd as [_ Hd]; rewrite Hf in Hd.
      destruct (nth k its_joins []) as [|l' [|l'' rest]]; [destruct Hl | |].
      - destruct Hl as [->|[]]; destruct (is_pooled its_rules l); [discriminate Hd | reflexivity].
      - cbn [negb andb] in Hd; rewrite forallb_forall in Hd; apply negb_true_iff, (Hd l Hl). }
    revert x g; induction q as [|q IH]; intros x g; destruct (Nat.lt_ge_cases g (length its_joins)) as [Hg|Hg].
    - cbn [run Nat.mul Nat.add]; destruct r as [|r]; [unfold joined; cbn [run]; apply odd_off|].
      destruct (is_pooled the_rules g) eqn:Epool.
      + specialize (Hd g h p Hg Hin); unfold does_same in Hd; apply andb_prop in Hd as [_ Hd]; rewrite Epool in Hd.
        destruct (nth g its_joins []) as [|k [|]]; [discriminate Hd | | discriminate Hd]; apply andb_prop in Hd as [_ Hd]; apply Nat.eqb_eq in Hd; lia.
      + rewrite parts_later by (apply Hfree; assumption); specialize (Hoff g Hg); unfold still_off in Hoff; rewrite forallb_forall in Hoff.
        specialize (Hoff r ltac:(apply in_seq; lia)); unfold after_parts in Hoff; destruct (unrolled r _) as [f|] eqn:E; [|discriminate].
        rewrite <- (Nat.add_0_r r), <- (unrolled_eval _ _ _ 0 x E); apply not_true_is_false; intro Hf; apply (refute_sound (patch w (after 0) x) _ _ Hoff).
        constructor; [|constructor]; unfold patch; rewrite form_of_holds, <- Hf; apply eval_same; [|intros t k; apply around_is].
        intros t k; cbn; unfold see; destruct (at_tap w t x); reflexivity.
    - rewrite (Hnone _ x g Hg); reflexivity.
    - assert (Hsame : forall y, eval (rule the_rules g) (see w (run w the_rules q) y) (tile w y) =
        eval (odd_of (map (rule its_rules) (nth g its_joins []))) (see w (after (pace - 1 + (q * pace + r))) y) (tile w y)).
      { intro y; rewrite (same_rule _ _ _ Hg); apply eval_same; [|reflexivity]; intros t k; unfold see; destruct (at_tap w t y); [symmetry; apply IH | reflexivity]. }
      replace (S q * pace + r) with (S (pace - 1 + (q * pace + r))) by lia; cbn [run]; unfold step at 1; destruct (is_pooled the_rules g) eqn:Epool.
      + specialize (Hd g h p Hg Hin); unfold does_same in Hd; apply andb_prop in Hd as [_ Hd]; rewrite Epool in Hd; unfold joined.
        destruct (nth g its_joins []) as [|k [|]]; [discriminate Hd | | discriminate Hd]; apply andb_prop in Hd as [Hk _]; apply eqb_prop in Hk.
        cbn [map odd run]; unfold step; rewrite <- Hk; apply eq_true_iff_eq; rewrite !(anywhere_iff w _ (grid_pools m some)).
        split; intros (y & Hy); exists y; [rewrite Hsame | rewrite Hsame in Hy]; exact Hy.
      + rewrite parts_later, Hsame by (apply Hfree; assumption); reflexivity.
    - rewrite (Hnone _ x g Hg); symmetry; cbn [run]; unfold step.
      assert (Hr0 : rule the_rules g = Never) by (unfold rule; apply nth_overflow; lia); rewrite Hr0; destruct (is_pooled the_rules g); [|reflexivity].
      apply not_true_is_false; rewrite (anywhere_iff w _ (grid_pools m some)); intros (y & Hy); discriminate Hy.
  Qed.

  (** The numbers of the network that show an answer, in float32 with sums in any order: 0 or two halves. They show nothing
      else than what is wanted, and all of it once so many iterations are over as the statement has, [pace] times. *)
  Theorem network_answers g wanted due : In (g, (wanted, due)) (answers its_statement) -> exists c, channel_of g = Some c /\
    forall round n v x, exact_below round -> float_run round w its_network n v ->
    (v x c = 0 \/ v x c = 2)%Z /\
    (v x c = 2%Z -> exists t, n / pace = S t /\ true_at its_statement m t (proj1_sig x) wanted = true) /\
    forall t, n / pace = S t -> (amount (number its_statement m t) (proj1_sig x) due <= Z.of_nat (S t))%Z ->
      v x c = if true_at its_statement m t (proj1_sig x) wanted then 2%Z else 0%Z.
  Proof.
    intro Hin; destruct checks as (Hp & _ & _ & _ & _ & Ha), (Ha g _ Hin) as (Hg & c & Hc); exists c; split; [exact Hc|].
    intros round n v x Hround Hrun; assert (Hpools : forall P : Prop, P -> pools w) by (intros; exact (grid_pools m some)).
    assert (Hgiven : forall t y, Forall (fun e => Network.says e (after t y) (Nat.eqb (kind_of w y)) = true) its_given) by (rewrite nothing_supposed; intros; constructor).
    assert (Hv : v x c = Network.on (run w the_rules (n / pace) x g)).
    { rewrite (Followed.network_exact w kinds_known (Hpools _) Hgiven round n v Hround Hrun).
      rewrite <- (does_the_same (n / pace) (n mod pace)) by (apply Nat.mod_upper_bound; lia).
      replace (n / pace * pace + n mod pace) with n by (rewrite Nat.mul_comm; apply Nat.div_mod; lia).
      unfold channel_of in Hc; unfold joined; destruct (nth g its_joins []) as [|k [|]]; try discriminate.
      destruct (nth_error its_parts k) as [[c'|]|] eqn:Ek; try discriminate; injection Hc as ->.
      exact (Followed.network_does_the_same w kinds_known (Hpools _) Hgiven n x k _ Ek). }
    rewrite Hv; split; [destruct (run _ _ _ _ _); auto|]; split.
    - destruct (n / pace) as [|t]; [intro E; discriminate E|]; intro E; exists t; split; [reflexivity|].
      apply (answers_are m known_kinds some t g wanted due x Hin); fold the_rules; destruct (run _ _ _ _ _); [reflexivity | discriminate E].
    - intros t -> Hd; rewrite <- (proj2 (answers_are m known_kinds some t g wanted due x Hin) Hd); reflexivity.
  Qed.
End Joined.
Print Assumptions network_answers.
