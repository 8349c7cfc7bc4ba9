(** Why float32 rounds nothing: all numbers are halves, and all terms of a sum together are small.
    *)
From Coq Require Import Permutation.
From MazeNCA Require Import Statements Refute Network.
Export Statements.Floats.
Local Open Scope Z_scope.

Definition sum (l : list Z) : Z := fold_right Z.add 0 l.
Definition size (l : list Z) : Z := sum (map Z.abs l).
Lemma sum_app a b : sum (a ++ b) = sum a + sum b.
Proof. unfold sum; induction a as [|z a IH]; cbn [app fold_right]; lia. Qed.
Lemma sum_permuted a b : Permutation a b -> sum a = sum b.
Proof. unfold sum; induction 1; cbn [fold_right]; lia. Qed.
Lemma sum_size l : Z.abs (sum l) <= size l.
Proof. unfold size, sum; induction l as [|z l IH]; cbn [map fold_right]; lia. Qed.
Lemma size_in z l : In z l -> Z.abs z <= size l.
Proof.
  induction l as [|y l IH]; [intros [] | intros [->|H];
    [pose proof (sum_size l) | specialize (IH H)]]; unfold size, sum in *; cbn [map fold_right];
    lia.
Qed.
Lemma adds_exact round l s : exact_below round -> adds round l s -> size l <= 2 ^ 24 -> s = sum l.
Proof.
  intros Hr; induction 1 as [|z|a b l x y Hp Ha IHa Hb IHb]; intro Hs; [reflexivity | unfold sum;
    cbn [fold_right]; lia|].
  assert (Hab : size l = size a + size b) by (unfold size;
    rewrite (sum_permuted _ _ (Permutation_map Z.abs Hp)), map_app; apply sum_app).
  pose proof (sum_size a); pose proof (sum_size b).
  rewrite IHa, IHb, (sum_permuted _ _ Hp), sum_app by lia; apply Hr; lia.
Qed.

(** * Bounds *)

Definition ceiling (n : network) (parts : list part) (c : nat) : Z :=
  match sum_of n parts c with Some (b, ts) => Z.max 0 (b + most_of ts) | None => 0 end.
Definition most (n : network) (parts : list part) (c : nat) : Z :=
  if is_largest n c then largest (map (ceiling n parts) (seq 0 (channels n)))
    else ceiling n parts c.
Definition total_size (n : network) (parts : list part) (c : nat) : Z :=
  Z.abs (nth c (biases n) 0) +
  sum (map (fun '(W z i _) => Z.abs z * (if (i <? kinds n)%nat then 2 else most n parts
    (i - kinds n))) (weights_of n c)).
Definition small (n : network) (parts : list part) : bool :=
  (length (weights n) <=? channels n)%nat &&
  forallb (fun c => match sum_of n parts c with Some _ => total_size n parts c <=? 2 ^ 24 | None =>
    false end) (seq 0 (channels n)).

Section Proof.
  Context (w : world) (n : network) (parts : list part).
  Hypotheses (checked : small n parts = true) (pooling_is : pooling n <> 0%nat -> pools w).
  Notation agrees v s := (forall x, agree parts (v x) (s x)).

  Lemma small_at c : sum_of n parts c <> None /\ total_size n parts c <= 2 ^ 24.
  Proof.
    pose proof checked as H; unfold small in H; apply andb_prop in H as [Hl H];
      rewrite forallb_forall in H.
    destruct (Nat.lt_ge_cases c (channels n)) as [Hc|Hc].
    - specialize (H c ltac:(apply in_seq; lia)); destruct (sum_of n parts c); [|discriminate];
        split; [discriminate | apply Z.leb_le, H].
    - apply Nat.leb_le in Hl; unfold total_size, sum_of, weights_of;
        rewrite !nth_overflow by (unfold channels in *; lia); split; cbn; discriminate || lia.
  Qed.

  Lemma sum_ceiling v s x c : agrees v s -> Z.max 0 (net_sum w n v x c) <= ceiling n parts c.
  Proof.
    intro Ha; destruct (small_at c) as [H _]; unfold ceiling;
      destruct (sum_of n parts c) as [[b ts]|] eqn:E; [|contradiction].
    rewrite (sum_of_is w n parts _ _ Ha x c _ E); pose proof (total_range (patch w s x) ts);
      unfold amount; cbn [fst snd]; lia.
  Qed.
  Lemma ceiling_positive c : 0 <= ceiling n parts c.
  Proof. unfold ceiling; destruct (sum_of n parts c) as [[]|]; lia. Qed.
  Lemma largest_least f g l : (forall c : nat, 0 <= f c <= g c) -> 0 <= largest (map f l) <= largest
    (map g l).
  Proof. intro H; unfold largest; induction l as [|c l IH]; cbn [map fold_right]; [lia|];
    specialize (H c); lia. Qed.

  Lemma maxima_pool c : is_maximum n c = true -> pools w.
  Proof. unfold is_maximum; rewrite andb_true_iff, Nat.leb_le, Nat.ltb_lt; intro H;
    apply pooling_is; lia. Qed.
  Definition bounded (v : net_state w) : Prop := forall x c, 0 <= v x c <= most n parts c.
  Lemma zero_bounded : bounded (fun _ _ => 0).
  Proof.
    intros x c; unfold most; destruct (is_largest n c); [|pose proof (ceiling_positive c); lia].
    pose proof (largest_least (fun _ => 0) (ceiling n parts) (seq 0 (channels n)) ltac:(intro d;
      pose proof (ceiling_positive d); lia)); lia.
  Qed.
  Theorem step_bounded v s : agrees v s -> bounded (net_step w n (net_sum w n v)).
  Proof.
    intros Ha x c; unfold net_step, most; destruct (is_maximum n c) eqn:E.
    - assert (is_largest n c = false) as -> by (unfold is_maximum, is_largest in *;
        rewrite andb_true_iff, Nat.ltb_lt in E; apply not_true_is_false;
        rewrite andb_true_iff, Nat.eqb_eq; lia).
      destruct (maxima_pool c E (fun y => Z.max 0 (net_sum w n v y c))) as [[y ->] _];
        pose proof (sum_ceiling v s y c Ha); lia.
    - destruct (is_largest n c); [apply largest_least; intro d | ];
        [pose proof (sum_ceiling v s x d Ha) | pose proof (sum_ceiling v s x c Ha)]; lia.
  Qed.
  Lemma value_bounded v x i p : bounded v -> 0 <= value w n v x i p <= if (i <? kinds n)%nat then 2
    else most n parts (i - kinds n).
  Proof.
    intro Hb; unfold value; destruct (at_tap w p x) as [y|].
    - destruct (i <? kinds n)%nat; [unfold on; destruct (Nat.eqb _ _); lia | apply Hb].
    - destruct (i <? kinds n)%nat; [lia|]; pose proof (Hb x (i - kinds n)%nat); lia.
  Qed.

  Notation exact v x c zeros :=
    (nth c (biases n) 0 :: map (fun '(W z i p) => z * value w n v x i p)
      (weights_of n c) ++ repeat 0 zeros).
  Lemma exact_sum v x c zeros : sum (exact v x c zeros) = net_sum w n v x c.
  Proof.
    unfold net_sum, sum; cbn [fold_right]; f_equal; induction (weights_of n c) as [|[z i p] ws IH];
      cbn [map app fold_right dot];
      [induction zeros; cbn [repeat fold_right]; lia | rewrite IH; reflexivity].
  Qed.
  (** The sizes of all terms of a sum together. *)
  Lemma exact_small v x c zeros : bounded v -> size (exact v x c zeros) <= 2 ^ 24.
  Proof.
    intro Hb; destruct (small_at c) as [_ H]; apply Z.le_trans with (2 := H);
      unfold size, total_size, sum; cbn [map fold_right]; apply Z.add_le_mono_l.
    clear H; induction (weights_of n c) as [|[z i p] ws IH]; cbn [map app fold_right].
    - induction zeros; cbn [repeat map fold_right]; lia.
    - pose proof (value_bounded v x i p Hb); rewrite Z.abs_mul; nia.
  Qed.

  (** However sums are ordered and rounded, the network's numbers are those of exact arithmetic. *)
  Lemma float_step round u v v' sums zeros : exact_below round -> bounded u ->
    (forall x c, v x c = u x c) ->
    (forall x c, adds round (terms round w n v x c zeros) (sums x c)) ->
      (forall x c, v' x c = net_step w n sums x c) ->
    forall x c, v' x c = net_step w n (net_sum w n u) x c.
  Proof.
    intros Hr Hb IH Hsums Hv'; assert (Hs : forall x c, sums x c = net_sum w n u x c).
    { intros x c; rewrite <- (exact_sum u x c zeros);
      pose proof (exact_small u x c zeros Hb) as Hsmall; apply (adds_exact round);
      [exact Hr | | exact Hsmall].
      replace (exact u x c zeros) with (terms round w n v x c zeros); [apply Hsums|]; unfold terms;
        do 2 f_equal; apply map_ext_in; intros [z i p] Hin.
      replace (value w n v x i p) with (value w n u x i p) by (unfold value;
        destruct (at_tap w p x); [rewrite IH|]; reflexivity).
      apply Hr, Z.le_trans with (2 := Hsmall), size_in; right; apply in_or_app; left;
        apply in_map_iff; exists (W z i p); auto. }
    intros x c; rewrite Hv'; unfold net_step.
    destruct (is_maximum n c) eqn:E; [|destruct (is_largest n c); [|rewrite Hs; reflexivity]].
    - apply (highest_same w _ _ (maxima_pool c E)); intro y; rewrite Hs; reflexivity.
    - f_equal; apply map_ext; intro d; rewrite Hs; reflexivity.
  Qed.
  Theorem floats_exact (s : nat -> state w) round t v : (forall t, agrees (net_run w n t) (s t)) ->
    exact_below round ->
    float_run round w n t v -> forall x c, v x c = net_run w n t x c.
  Proof.
    intros Ha Hr; induction 1 as [v Hv|t v v' sums zeros _ IH Hsums Hv']; [exact Hv|];
      apply (float_step round _ v v' sums zeros Hr); try assumption.
    destruct t; [apply zero_bounded | exact (step_bounded _ _ (Ha t))].
  Qed.
End Proof.
