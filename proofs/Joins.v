(** When an automaton does what another does, a whole number of iterations for each, perhaps with
    some signals split. *)
From MazeNCA Require Import Statements Refute Network.

(** A signal is on where an odd number of its parts is, each of which is on only where the one
    before it is. *)
Fixpoint odd_of (es : list expr) : expr :=
  match es with [] => Never | [e] => e | e :: f :: rest => Or (And e (Not f)) (odd_of rest) end.
Fixpoint odd (bs : list bool) : bool := match bs with [] => false | [b] => b | b :: c :: rest =>
  b && negb c || odd rest end.
Lemma odd_of_eval es see tile : eval (odd_of es) see tile = odd (map (fun e => eval e see tile) es).
Proof. revert es; fix IH 1; intros [|e [|f es]]; cbn; [| |rewrite IH]; reflexivity. Qed.
Lemma odd_off ks : odd (map (fun _ : nat => false) ks) = false.
Proof. revert ks; fix IH 1; intros [|k [|l ks]]; cbn; [| |rewrite IH]; reflexivity. Qed.

Section Joins.
  (** The automaton whose iterations count, and the other, whose signals are the parts of its
      signals. *)
  Context (whole a : automaton) (joins : list (list nat)) (pace : nat).
  Definition parts_at (t : tap) (g : nat) : expr :=
    odd_of (map (fun k => See k t) (nth g joins [])).
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
  Definition after_parts (n g : nat) : option expr :=
    unrolled n (odd_of (map (rule a) (nth g joins []))).
  Definition expr_dec (e f : expr) : {e = f} + {e <> f}. Proof. repeat decide equality. Defined.
  (** A rule of the statement says what its parts are [pace] iterations later. *)
  Definition does_same (g : nat) (facts : list form) : bool :=
    match after_parts (pace - 1) g with
    | Some f => let e := translated (rule whole g) in if expr_dec e f then true else
        let e := form_of e seen is in let f := form_of f seen is in contradicts
          (neg (disj (conj e f) (conj (neg e) (neg f)))) facts
    | None => false
    end.
  (** What is pooled is in both. *)
  Definition pooled_right (g : nat) : bool :=
    match is_pooled whole g, nth g joins [] with
    | true, [k] => is_pooled a k && Nat.eqb pace 1
    | true, _ => false
    | false, ks => forallb (fun k => negb (is_pooled a k)) ks
    end.
  (** Before that no part is on. *)
  Definition still_off (g : nat) : bool :=
    forallb (fun n => match after_parts n g with Some f =>
      refute enough (form_of f (fun _ _ => Const false) is) [] | None => false end)
      (seq 0 (pace - 1)).
  Definition joined_right (worlds : list (list form)) : bool :=
    let signals := seq 0 (length joins) in
    (0 <? pace) && (length (rules whole) <=? length joins) && forallb still_off signals &&
      forallb pooled_right signals &&
    forallb (fun facts => forallb (fun g => does_same g facts) signals) worlds.

  Context (w : world) (worlds : list (list form)) (checked : joined_right worlds = true)
    (pooling_is : pools w).
  Notation after := (run w a).
  (** At any time, what holds around every tile is what one of the worlds says. *)
  Hypothesis known : forall t, exists facts, In facts worlds /\
    forall x, all (patch w (after t) x) facts.
  Definition joined (n : nat) : state w := fun x g => odd (map (after n x) (nth g joins [])).
  Lemma checks : 0 < pace /\ length (rules whole) <= length joins /\ forall g, g < length joins ->
    still_off g = true /\ pooled_right g = true /\ forall facts, In facts worlds ->
      does_same g facts = true.
  Proof.
    pose proof checked as H; unfold joined_right in H; cbv zeta in H;
      rewrite !andb_true_iff, Nat.ltb_lt, Nat.leb_le, !forallb_forall in H.
    destruct H as [[[[Hp Hl] Hs] Hr] Hd]; do 2 (split; [assumption|]); intros g Hg;
      assert (Hi : In g (seq 0 (length joins))) by (apply in_seq; lia).
    do 2 (split; [auto|]); intros facts Hin; specialize (Hd _ Hin); rewrite forallb_forall in Hd;
      auto.
  Qed.
  Lemma parts_seen n x t g tl : eval (parts_at t g) (see w (after n) x) tl = see w (joined n) x t g.
  Proof.
    unfold parts_at, joined, see; rewrite odd_of_eval, map_map; cbn [eval].
    destruct (at_tap w t x); [reflexivity | apply odd_off].
  Qed.
  Lemma translated_eval n x e : eval (translated e) (see w (after n) x) (tile w x) = eval e
    (see w (joined n) x) (tile w x).
  Proof. induction e; cbn [translated eval]; try reflexivity; [apply parts_seen | congruence ..].
    Qed.
  Lemma unrolled_eval n e f t x : unrolled n e = Some f ->
    eval f (see w (after t) x) (tile w x) = eval e (see w (after (n + t)) x) (tile w x).
  Proof.
    revert e f; induction n as [|n IH]; cbn [unrolled]; [intros e f [= ->]; reflexivity|].
    induction e as [k [|d]|k tap|e IHe f IHf|e IHe f IHf|e IHe|]; intros f' H; try discriminate;
      try (injection H as <-; reflexivity);
      try (cbv zeta in H; destruct (_ e) as [e'|]; [|discriminate]; destruct (_ f) as [g'|];
        [|discriminate]);
      try (injection H as <-; cbn [eval]; rewrite (IHe _ eq_refl), (IHf _ eq_refl); reflexivity).
    - destruct (is_pooled a k) eqn:E; [discriminate|]; rewrite (IH _ _ H).
      change (eval (See k C) (see w (after (S n + t)) x) (tile w x)) with (after (S (n + t)) x k).
      cbn [run]; unfold step; rewrite E; reflexivity.
    - destruct (_ e) as [e'|]; [|discriminate]; injection H as <-; cbn [eval];
        rewrite (IHe _ eq_refl); reflexivity.
  Qed.
  Notation parts_say n g x := (eval (odd_of (map (rule a) (nth g joins []))) (see w (after n) x)
    (tile w x)).
  Lemma joined_next n x g : g < length joins ->
    joined (S n) x g = if is_pooled whole g then anywhere w (fun y => parts_say n g y)
      else parts_say n g x.
  Proof.
    intro Hg; destruct checks as (_ & _ & H); destruct (H g Hg) as (_ & Hr & _);
      unfold pooled_right in Hr; unfold joined.
    destruct (is_pooled whole g); [destruct (nth g joins []) as [|k [|]]; try discriminate;
      apply andb_prop in Hr as [Hr _]|].
    - cbn [map odd run odd_of]; unfold step; rewrite Hr; reflexivity.
    - rewrite odd_of_eval, map_map; apply (f_equal odd), map_ext_in; intros k Hk;
        rewrite forallb_forall in Hr.
      cbn [run]; unfold step; rewrite (proj1 (negb_true_iff _) (Hr k Hk)); reflexivity.
  Qed.
  Lemma same_rule n x g : g < length joins ->
    parts_say (pace - 1 + n) g x = eval (rule whole g) (see w (joined n) x) (tile w x).
  Proof.
    intro Hg; destruct checks as (_ & _ & H), (known n) as (facts & Hin & Hfacts),
      (H g Hg) as (_ & _ & Hd); specialize (Hd facts Hin).
    rewrite <- translated_eval; unfold does_same, after_parts in Hd;
      destruct (unrolled _ _) as [f|] eqn:E; [|discriminate];
      rewrite <- (unrolled_eval _ _ _ _ _ E).
    destruct (expr_dec _ f) as [->|_]; [reflexivity|];
      apply contradicts_sound with (2 := Hfacts x) in Hd.
    rewrite neg_holds, disj_holds, !conj_holds, !neg_holds in Hd; unfold patch in Hd;
      rewrite !rule_holds in Hd.
    destruct (eval f _ _), (eval (translated _) _ _); discriminate Hd || reflexivity.
  Qed.
  (** After n iterations parts are what the statement's rules say after n / pace. *)
  Theorem does_the_same q r x g : r < pace -> joined (q * pace + r) x g = run w whole q x g.
  Proof.
    intro Hr; destruct checks as (Hp & Hlen & Hall);
      assert (Hnone : forall q n x g, length joins <= g -> joined n x g = run w whole q x g).
    { intros [|t] n y h Hh; unfold joined; rewrite nth_overflow by exact Hh; [reflexivity|];
      symmetry; cbn [run]; unfold step, rule.
      rewrite nth_overflow by lia; destruct (is_pooled whole h); [|reflexivity].
      apply not_true_is_false; rewrite (anywhere_iff w _ pooling_is); intros (z & Hz);
        discriminate Hz. }
    revert x g; induction q as [|q IH]; intros x g;
      (destruct (Nat.lt_ge_cases g (length joins)) as [Hg|Hg]; [|apply Hnone, Hg]);
      destruct (Hall g Hg) as (Hoff & Hpool & _).
    - cbn [run Nat.mul Nat.add]; destruct r as [|r]; [apply odd_off|];
        rewrite (joined_next _ _ _ Hg); unfold pooled_right in Hpool.
      destruct (is_pooled whole g); [destruct (nth g joins []) as [|k [|]]; try discriminate;
        apply andb_prop in Hpool as [_ Hpool%Nat.eqb_eq]; lia|].
      unfold still_off in Hoff; rewrite forallb_forall in Hoff;
        specialize (Hoff r ltac:(apply in_seq; lia)).
      unfold after_parts in Hoff; destruct (unrolled r _) as [f|] eqn:E; [|discriminate].
      rewrite <- (Nat.add_0_r r), <- (unrolled_eval _ _ _ 0 x E); apply not_true_is_false; intro Hf;
        apply (refute_sound (patch w (after 0) x) _ _ _ Hoff).
      constructor; [|constructor]; rewrite form_of_holds, <- Hf; apply eval_same; [|reflexivity].
      intros t k; cbn; unfold see; destruct (at_tap w t x); reflexivity.
    - assert (Hsame : forall y, parts_say (pace - 1 + (q * pace + r)) g y = eval (rule whole g)
        (see w (run w whole q) y) (tile w y)).
      { intro y; rewrite (same_rule _ _ _ Hg); apply eval_same; [|reflexivity]; intros t k;
        unfold see; destruct (at_tap w t y); auto. }
      replace (S q * pace + r) with (S (pace - 1 + (q * pace + r))) by lia;
        rewrite (joined_next _ _ _ Hg); cbn [run]; unfold step.
      destruct (is_pooled whole g); [apply eq_true_iff_eq;
        rewrite !(anywhere_iff w _ pooling_is)|apply Hsame].
      split; intros (y & Hy); exists y; congruence.
  Qed.
  Theorem done_the_same n x g : joined n x g = run w whole (n / pace) x g.
  Proof.
    destruct checks as (Hp & _);
      rewrite <- (does_the_same (n / pace) (n mod pace)) by (apply Nat.mod_upper_bound; lia).
    rewrite Nat.mul_comm, <- Nat.div_mod by lia; reflexivity.
  Qed.
End Joins.
