(** When an automaton does what another does, a whole number of iterations for each, perhaps with some signals split. *)
Require Import World Refute Network.

(** A signal is on where an odd number of its parts is, each of which is on only where the one before it is. *)
Fixpoint odd_of (es : list expr) : expr :=
  match es with [] => Never | [e] => e | e :: f :: rest => Or (And e (Not f)) (odd_of rest) end.
Fixpoint odd (bs : list bool) : bool := match bs with [] => false | [b] => b | b :: c :: rest => b && negb c || odd rest end.
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

Section Joins.
  (** The automaton whose iterations count, and the other, whose signals are the parts of its signals. *)
  Context (whole a : automaton) (joins : list (list nat)) (pace : nat).
  Definition parts_at (t : tap) (g : nat) : expr := odd_of (map (fun k => See k t) (nth g joins [])).
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
      | See k C => if is_pooled a k then None else unrolled n (rule a k)
      | See _ _ => None
      | And e f => both And e f
      | Or e f => both Or e f
      | Not e => option_map Not (go e)
      | Is _ _ | Never => Some e
      end
    end.
  Definition after_parts (n g : nat) : option expr := unrolled n (odd_of (map (rule a) (nth g joins []))).
  Definition expr_dec (e f : expr) : {e = f} + {e <> f}. Proof. repeat decide equality. Defined.
  (** A rule of the statement says what its parts are [pace] iterations later; what is pooled is in both. *)
  Definition does_same (g : nat) (facts : list form) : bool :=
    match after_parts (pace - 1) g with
    | Some f => let e := translated (rule whole g) in if expr_dec e f then true else
        let e := form_of e seen is in let f := form_of f seen is in
        let differ := neg (disj (conj e f) (conj (neg e) (neg f))) in contradicts differ facts
    | None => false
    end &&
    match nth g joins [] with
    | [k] => Bool.eqb (is_pooled whole g) (is_pooled a k) && (negb (is_pooled whole g) || Nat.eqb pace 1)
    | ks => negb (is_pooled whole g) && forallb (fun k => negb (is_pooled a k)) ks
    end.
  (** Before that no part is on. *)
  Definition still_off (g : nat) : bool :=
    forallb (fun n => match after_parts n g with Some f => refute enough (form_of f (fun _ _ => Const false) is) [] | None => false end)
      (seq 0 (pace - 1)).
  Definition joined_right (worlds : list (list form)) : bool :=
    let signals := seq 0 (length joins) in
    (0 <? pace) && (length (rules whole) <=? length joins) && forallb still_off signals &&
    forallb (fun facts => forallb (fun g => does_same g facts) signals) worlds.

  Context (w : world) (worlds : list (list form)) (checked : joined_right worlds = true) (pooling_is : pools w).
  Notation after := (run w a).
  (** At any time, what holds around every tile is what one of the worlds says. *)
  Hypothesis known : forall t, exists facts, In facts worlds /\ forall x, all (patch w (after t) x) facts.
  Definition joined (n : nat) : state w := fun x g => odd (map (after n x) (nth g joins [])).
  Lemma checks : 0 < pace /\ length (rules whole) <= length joins /\ (forall g, g < length joins -> still_off g = true) /\
    forall g facts, g < length joins -> In facts worlds -> does_same g facts = true.
  Proof.
    pose proof checked as H; unfold joined_right in H; cbv zeta in H; rewrite !andb_true_iff, Nat.ltb_lt, Nat.leb_le, !forallb_forall in H.
    destruct H as [[[Hp Hl] Hs] Hd]; do 2 (split; [assumption|]); split; [intros g Hg; apply Hs, in_seq; lia|].
    intros g facts Hg Hin; specialize (Hd _ Hin); rewrite forallb_forall in Hd; apply Hd, in_seq; lia.
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
    - destruct (is_pooled a k) eqn:E; [discriminate|]; rewrite (IH _ _ H).
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
  Lemma parts_later n x g : (forall k, In k (nth g joins []) -> is_pooled a k = false) ->
    joined (S n) x g = eval (odd_of (map (rule a) (nth g joins []))) (see w (after n) x) (tile w x).
  Proof.
    intro H; unfold joined; rewrite odd_of_eval, map_map; apply (f_equal odd), map_ext_in; intros k Hk.
    cbn [run]; unfold step; rewrite (H k Hk); reflexivity.
  Qed.
  Lemma same_rule n x g : g < length joins ->
    eval (odd_of (map (rule a) (nth g joins []))) (see w (after (pace - 1 + n)) x) (tile w x) =
    eval (rule whole g) (see w (joined n) x) (tile w x).
  Proof.
    intro Hg; destruct checks as (_ & _ & _ & Hd), (known n) as (facts & Hin & Hfacts).
    specialize (Hd g facts Hg Hin); unfold does_same in Hd; apply andb_prop in Hd as [Hd _]; rewrite <- translated_eval.
    unfold after_parts in Hd; destruct (unrolled _ _) as [f|] eqn:E; [|discriminate]; rewrite <- (unrolled_eval _ _ _ _ _ E).
    destruct (expr_dec _ f) as [->|_]; [reflexivity|]; cbv zeta in Hd; set (differ := neg _) in Hd.
    rewrite <- !rule_holds; change (around (see w (after n) x) (tile w x)) with (patch w (after n) x).
    pose proof (contradicts_sound _ _ _ Hd (Hfacts x)) as Ed; unfold differ in Ed; rewrite neg_holds, disj_holds, !conj_holds, !neg_holds in Ed.
    destruct (Refute.holds _ (form_of f seen is)), (Refute.holds _ (form_of (translated _) seen is)); discriminate Ed || reflexivity.
  Qed.
  (** After n iterations parts are what the statement's rules say after n / pace. *)
  Theorem does_the_same q r x g : r < pace -> joined (q * pace + r) x g = run w whole q x g.
  Proof.
    intro Hr; destruct checks as (Hp & Hlen & Hoff & Hd), (known 0) as (facts & Hin & _).
    assert (Hnone : forall n y k, length joins <= k -> joined n y k = false) by (intros n y k Hk; unfold joined; rewrite nth_overflow by exact Hk; reflexivity).
    assert (Hfree : forall k, k < length joins -> is_pooled whole k = false -> forall l, In l (nth k joins []) -> is_pooled a l = false).
    { intros k Hk Hf l Hl; specialize (Hd k facts Hk Hin); unfold does_same in Hd; apply andb_prop in Hd as [_ Hd]; rewrite Hf in Hd.
      destruct (nth k joins []) as [|l' [|l'' rest]]; [destruct Hl | |].
      - destruct Hl as [->|[]]; destruct (is_pooled a l); [discriminate Hd | reflexivity].
      - cbn [negb andb] in Hd; rewrite forallb_forall in Hd; apply negb_true_iff, (Hd l Hl). }
    revert x g; induction q as [|q IH]; intros x g; destruct (Nat.lt_ge_cases g (length joins)) as [Hg|Hg].
    - cbn [run Nat.mul Nat.add]; destruct r as [|r]; [unfold joined; cbn [run]; apply odd_off|].
      destruct (is_pooled whole g) eqn:Epool.
      + specialize (Hd g facts Hg Hin); unfold does_same in Hd; apply andb_prop in Hd as [_ Hd]; rewrite Epool in Hd.
        destruct (nth g joins []) as [|k [|]]; [discriminate Hd | | discriminate Hd]; apply andb_prop in Hd as [_ Hd]; apply Nat.eqb_eq in Hd; lia.
      + rewrite parts_later by (apply Hfree; assumption); specialize (Hoff g Hg); unfold still_off in Hoff; rewrite forallb_forall in Hoff.
        specialize (Hoff r ltac:(apply in_seq; lia)); unfold after_parts in Hoff; destruct (unrolled r _) as [f|] eqn:E; [|discriminate].
        rewrite <- (Nat.add_0_r r), <- (unrolled_eval _ _ _ 0 x E); apply not_true_is_false; intro Hf; apply (refute_sound (patch w (after 0) x) _ _ _ Hoff).
        constructor; [|constructor]; rewrite form_of_holds, <- Hf; apply eval_same; [|reflexivity].
        intros t k; cbn; unfold see; destruct (at_tap w t x); reflexivity.
    - rewrite (Hnone _ x g Hg); reflexivity.
    - assert (Hsame : forall y, eval (rule whole g) (see w (run w whole q) y) (tile w y) =
        eval (odd_of (map (rule a) (nth g joins []))) (see w (after (pace - 1 + (q * pace + r))) y) (tile w y)).
      { intro y; rewrite (same_rule _ _ _ Hg); apply eval_same; [|reflexivity]; intros t k; unfold see; destruct (at_tap w t y); [symmetry; apply IH | reflexivity]. }
      replace (S q * pace + r) with (S (pace - 1 + (q * pace + r))) by lia; cbn [run]; unfold step at 1; destruct (is_pooled whole g) eqn:Epool.
      + specialize (Hd g facts Hg Hin); unfold does_same in Hd; apply andb_prop in Hd as [_ Hd]; rewrite Epool in Hd; unfold joined.
        destruct (nth g joins []) as [|k [|]]; [discriminate Hd | | discriminate Hd]; apply andb_prop in Hd as [Hk _]; apply eqb_prop in Hk.
        cbn [map odd run]; unfold step; rewrite <- Hk; apply eq_true_iff_eq; rewrite !(anywhere_iff w _ pooling_is).
        split; intros (y & Hy); exists y; [rewrite Hsame | rewrite Hsame in Hy]; exact Hy.
      + rewrite parts_later, Hsame by (apply Hfree; assumption); reflexivity.
    - rewrite (Hnone _ x g Hg); symmetry; cbn [run]; unfold step.
      assert (Hr0 : rule whole g = Never) by (unfold rule; apply nth_overflow; lia); rewrite Hr0; destruct (is_pooled whole g); [|reflexivity].
      apply not_true_is_false; rewrite (anywhere_iff w _ pooling_is); intros (y & Hy); discriminate Hy.
  Qed.
  Theorem done_the_same n x g : joined n x g = run w whole (n / pace) x g.
  Proof.
    destruct checks as (Hp & _); rewrite <- (does_the_same (n / pace) (n mod pace)) by (apply Nat.mod_upper_bound; lia).
    rewrite Nat.mul_comm, <- Nat.div_mod by lia; reflexivity.
  Qed.
End Joins.
