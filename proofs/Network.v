(** Networks with whole weights, in exact arithmetic, and why one does what an automaton does. *)
From MazeNCA Require Import Statements Refute.
Export Statements.Network.
Local Open Scope Z_scope.

(** * Its sums in terms of what tiles hold *)

Definition weight_dec (u v : weight) : {u = v} + {u <> v}. Proof. repeat decide equality. Defined.
Section Demands.
  Context (n : network) (parts : list part).
  (** The atom that an input means, and the weight that has to follow one of this size: a pair is
      read by two. *)
  Definition meant (size : Z) (input : nat) (t : tap) : option (atom * list weight) :=
    if (input <? kinds n)%nat then Some (OfKind t input, [])
    else match find (fun '(_, p) => match p with Single c | Pair c _ =>
      (c =? input - kinds n)%nat end) (numbered parts) with
    | Some (g, Single _) => Some (Seen t g, [])
    | Some (g, Pair _ high) => Some (Seen t g, [W (- size) (high + kinds n) t])
    | None => None
    end.
  (** Weights as terms of atoms, after those that are due. *)
  Fixpoint terms_of (due ws : list weight) : option terms :=
    match ws, due with
    | [], [] => Some []
    | u :: ws, v :: due => if weight_dec u v then terms_of due ws else None
    | W z i t :: ws, [] => match meant z i t with Some (a, due) => option_map (cons (z * 2, a))
        (terms_of due ws) | None => None end
    | [], _ :: _ => None
    end.
  Definition sum_of (c : nat) : option (Z * terms) := option_map (pair (nth c (biases n) 0))
    (terms_of [] (weights_of n c)).
  Definition minus (s s' : Z * terms) : Z * terms := (fst s - fst s', snd s ++ map (fun '(z, a) =>
    (- z, a)) (snd s')).
  Definition no_less (k : Z) (s : Z * terms) : form := least (k - fst s) (snd s).
  Definition no_more (k : Z) (s : Z * terms) : form := no_less (- k) (minus (0, []) s).
  Definition equals (k : Z) (s : Z * terms) : form := conj (no_less k s) (no_more k s).
  (** What the sums of a signal's channels must satisfy, if its rule says that it goes on, and if
      not. *)
  Definition demand (p : part) (next : form) : form :=
    match p with
    | Single c => match sum_of c with
        | Some s => disj (conj next (equals 2 s)) (conj (neg next) (no_more 0 s))
        | None => Const false
        end
    | Pair low high => match sum_of low, sum_of high with
        | Some s, Some s' => disj (conj next (conj (no_less 0 s') (equals 2 (minus s s'))))
            (conj (neg next) (conj (no_more 0 s) (no_more 0 s')))
        | _, _ => Const false
        end
    end.
End Demands.
(** A tile is of one kind at most. *)
Definition one_kind (n : nat) (t : tap) : list form :=
  flat_map (fun k => map (fun l => neg (conj (is t k) (is t l))) (seq 0 k)) (seq 0 n).
(** The maxima are of the channels of pooled signals, and of one that no signal has. *)
Definition pools_right (n : network) (parts : list part) (a : automaton) : bool :=
  forallb (fun '(g, p) => match p with
    | Single c => Bool.eqb (is_maximum n c) (is_pooled a g) && negb (is_largest n c)
    | Pair low high => negb (is_pooled a g || is_maximum n low || is_maximum n high ||
        is_largest n low || is_largest n high)
    end) (numbered parts).
(** [facts]: what holds around every tile. *)
Definition follows_in (n : network) (parts : list part) (a : automaton)
  (facts : list form) : bool :=
  forallb (fun '(g, p) => contradicts (neg (demand n parts p (form_of (rule a g) seen is))) facts)
    (numbered parts).
Definition follows (n : network) (parts : list part) (a : automaton) (worlds : list (list form)) :
  bool :=
  pools_right n parts a && forallb (follows_in n parts a) worlds.

Section Proof.
  Context (w : world) (n : network) (parts : list part) (a : automaton) (worlds : list (list form)).
  Hypothesis (checked : follows n parts a worlds = true) (pooling_is : pooled a <> [] -> pools w).
  Definition patch (s : state w) (x : node w) := around (see w s x) (tile w x).

  Section Step.
    Context (v : net_state w) (s : state w) (agrees : forall x, agree parts (v x) (s x))
      (x : node w).
    Notation value := (value w n v x). Notation total := (total (patch s x)).
      Notation holds := (holds (patch s x)).

    Lemma meant_is z i t e due : meant n parts z i t = Some (e, due) ->
      z * value i t + dot due value = z * on (patch s x e).
    Proof.
      unfold meant, Network.value; destruct (i <? kinds n)%nat eqn:Ei.
      - intros [= <- <-]; cbn [patch around dot]; unfold tile; destruct (at_tap w t x); cbn; lia.
      - destruct (find _ _) as [[g p]|] eqn:E; [|discriminate];
          apply find_some in E as [Hp%numbered_in E].
        assert (Hh : forall h, (h + kinds n <? kinds n)%nat = false) by (intro; apply Nat.ltb_ge;
          lia).
        destruct p as [c|c h]; intros [= <- <-]; apply Nat.eqb_eq in E as <-;
          cbn [patch around dot]; unfold see;
          destruct (at_tap w t x) as [y|]; try (specialize (agrees y g _ Hp); cbn in agrees;
            rewrite <- agrees); rewrite ?Hh, ?Nat.add_sub; cbn; ring.
    Qed.
    Lemma terms_of_dot ws : forall due ts, terms_of n parts due ws = Some ts ->
      dot ws value = total ts + dot due value.
    Proof.
      induction ws as [|[z i t] ws IH]; intros [|u due] ts H; cbn [terms_of] in H; try discriminate.
      - injection H as <-; reflexivity.
      - destruct (meant n parts z i t) as [[e due]|] eqn:E; [|discriminate]; apply meant_is in E.
        destruct (terms_of n parts due ws) as [ts'|] eqn:Et; [|discriminate]; injection H as <-;
          apply IH in Et.
        unfold Refute.total in *; cbn [dot fold_right]; destruct (patch s x e); cbn [on] in E; lia.
      - destruct (weight_dec _ u) as [<-|]; [|discriminate]; apply IH in H; cbn; lia.
    Qed.
    Definition amount (s : Z * terms) : Z := fst s + total (snd s).
    Lemma sum_of_is c sum : sum_of n parts c = Some sum -> net_sum w n v x c = amount sum.
    Proof.
      unfold sum_of, net_sum; destruct (terms_of _ _ _ _) as [ts|] eqn:E; [|discriminate];
        intros [= <-].
      rewrite (terms_of_dot _ _ _ E); unfold amount; cbn [fst snd dot]; lia.
    Qed.
    Lemma minus_amount s1 s2 : amount (minus s1 s2) = amount s1 - amount s2.
    Proof.
      destruct s1 as [b ts], s2 as [b' ts']; unfold amount, minus, Refute.total; cbn [fst snd];
        rewrite fold_right_app.
      induction ts as [|[z a'] ts IH]; cbn; [|lia].
      induction ts' as [|[z a'] ts' IH]; cbn; [|destruct (patch s x a')]; lia.
    Qed.
    Lemma no_less_holds k s1 : holds (no_less k s1) = (k <=? amount s1).
    Proof. unfold no_less, amount; rewrite least_holds; apply eq_true_iff_eq; rewrite !Z.leb_le;
      lia. Qed.
    Lemma no_more_holds k s1 : holds (no_more k s1) = (amount s1 <=? k).
    Proof. unfold no_more; rewrite no_less_holds, minus_amount; apply eq_true_iff_eq;
      rewrite !Z.leb_le; cbn; lia. Qed.

    Lemma demand_shows p next : holds (demand n parts p next) = true ->
      shows p (fun c => Z.max 0 (net_sum w n v x c)) (holds next).
    Proof.
      unfold demand, equals; destruct p as [c|c h]; cbn [shows];
        destruct (sum_of n parts c) as [s1|] eqn:E1; try discriminate;
        [|destruct (sum_of n parts h) as [s2|] eqn:E2; [apply sum_of_is in E2 as ->|discriminate]];
          apply sum_of_is in E1 as ->;
        rewrite disj_holds, !conj_holds, neg_holds, ?no_more_holds, !no_less_holds, ?minus_amount;
        destruct (holds next); cbn [on negb andb orb];
          rewrite ?orb_false_r, ?andb_true_iff, !Z.leb_le; lia.
    Qed.
  End Step.

  Lemma follows_part facts g p x s v : In facts worlds -> (forall x, all (patch s x) facts) ->
    (forall x, agree parts (v x) (s x)) -> nth_error parts g = Some p ->
    shows p (fun c => Z.max 0 (net_sum w n v x c)) (eval (rule a g) (see w s x) (tile w x)).
  Proof.
    intros Hin Hfacts Hagree Hp; pose proof checked as H; unfold follows in H;
      apply andb_prop in H as [_ H].
    rewrite forallb_forall in H; apply H in Hin; apply (numbered_all _ _ _ _ Hin) in Hp;
      rewrite <- rule_holds.
    apply (demand_shows v _ Hagree), negb_false_iff; rewrite <- neg_holds;
      exact (contradicts_sound _ _ _ Hp (Hfacts x)).
  Qed.

  Lemma highest_same f g : pools w -> (forall x, f x = g x) -> highest w f = highest w g.
  Proof.
    intros Hp H; destruct (Hp f) as [[x Hx] Hf], (Hp g) as [[y Hy] Hg].
    pose proof (Hf y); pose proof (Hg x); rewrite H in *; lia.
  Qed.
  Lemma highest_on (f : node w -> bool) : pools w -> highest w (fun x => on (f x)) = on
    (anywhere w f).
  Proof.
    intro Hp; unfold anywhere; destruct (Hp (fun x => on (f x))) as [[x Hx] Hf],
      (Hp (fun x => if f x then 1 else 0)) as [[y Hy] Hg].
    rewrite Hx, Hy; pose proof (Hf y); pose proof (Hg x); rewrite Hx, Hy in *;
      destruct (f x), (f y); cbn in *; lia.
  Qed.

  (** What holds around every tile is what one of the worlds says. *)
  Definition known (s : state w) : Prop := exists facts, In facts worlds /\
    forall x, all (patch s x) facts.
  Lemma network_step v s : known s -> (forall x, agree parts (v x) (s x)) ->
    forall x, agree parts (net_step w n (net_sum w n v) x) (step w a s x).
  Proof.
    intros (facts & Hin & Hfacts) Hv x g p Hp;
      pose proof (fun y => follows_part facts g p y s _ Hin Hfacts Hv Hp) as H.
    pose proof checked as Hc; unfold follows, pools_right in Hc; apply andb_prop in Hc as [Hc _];
      apply (numbered_all _ _ _ _ Hc) in Hp as Hg.
    unfold net_step, step; destruct p as [c|low high]; cbn [shows] in *.
    - rewrite andb_true_iff, eqb_true_iff, negb_true_iff in Hg; destruct Hg as [-> ->];
        destruct (is_pooled a g) eqn:Eg; [|apply H].
      assert (Hw : pools w) by (apply pooling_is; intro E; unfold is_pooled in Eg; rewrite E in Eg;
        discriminate).
      rewrite <- (highest_on _ Hw); apply (highest_same _ _ Hw); exact H.
    - rewrite negb_true_iff, !orb_false_iff in Hg; destruct Hg as [[[[-> ->] ->] ->] ->]; apply H.
  Qed.
  (** The network does what the automaton does, on this world, at every iteration. *)
  Theorem network_follows t x : (forall t, known (run w a t)) -> agree parts (net_run w n t x)
    (run w a t x).
  Proof. intro H; revert x; induction t as [|t IH]; [intros x g p _; destruct p;
    reflexivity | exact (network_step _ _ (H t) IH)]. Qed.
End Proof.

(** * Facts about every tile that follow from facts about one *)

Fixpoint moved_to (t : tap) (e : expr) : expr :=
  match e with
  | See g _ => See g t
  | Is k _ => Is k t
  | And a b => And (moved_to t a) (moved_to t b)
  | Or a b => Or (moved_to t a) (moved_to t b)
  | Not a => Not (moved_to t a)
  | Never => Never
  end.
(** The facts, of a task with so many kinds of tile, at each tap. *)
Definition facts_at (n : nat) (taps : list tap) (invariants : list expr) : list form :=
  flat_map (fun t => one_kind n t ++ map (fun e => form_of (moved_to t e) seen is) invariants) taps.
Definition off : nat -> bool := fun _ => false.

Section Facts.
  Context (w : world) (s : state w).
  Lemma moved_to_eval t e fsee ftile : eval (moved_to t e) fsee ftile = says e (fsee t) (ftile t).
  Proof. unfold says; induction e; cbn; congruence. Qed.
  Lemma one_kind_holds n t x : all (patch w s x) (one_kind n t).
  Proof.
    apply Forall_forall; intros f (k & Hk & (l & <- & Hl)%in_map_iff)%in_flat_map.
    rewrite neg_holds, conj_holds; cbn; unfold tile; destruct (at_tap w t x) as [y|];
      [|reflexivity]; apply in_seq in Hl.
    destruct (Nat.eqb_spec (kind_of w y) k) as [->|]; [|reflexivity]; destruct (Nat.eqb_spec k l);
      [lia | reflexivity].
  Qed.
  Lemma facts_hold n taps es :
    (forall y, Forall (fun e => says e (s y) (Nat.eqb (kind_of w y)) = true) es) ->
      forallb (fun e => says e off off) es = true ->
    forall x, all (patch w s x) (facts_at n taps es).
  Proof.
    intros Hin Hoff x; apply Forall_forall;
      intros f (t & _ & [Hf|(e & <- & He)%in_map_iff]%in_app_or)%in_flat_map.
    - exact (proj1 (Forall_forall _ _) (one_kind_holds n t x) f Hf).
    - unfold patch; rewrite rule_holds, moved_to_eval; unfold see, tile;
        destruct (at_tap w t x) as [y|].
      + exact (proj1 (Forall_forall _ _) (Hin y) e He).
      + rewrite forallb_forall in Hoff; exact (Hoff e He).
  Qed.
End Facts.
