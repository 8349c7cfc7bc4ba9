(** Networks with whole weights, in exact arithmetic, and why one does what an automaton does. *)
From Coq Require Import Lia.
Require Import World Refute.
Local Open Scope Z_scope.

(** * A network. Its biases and its numbers count halves: 1 is two halves. *)

(** A weight, of an input at a tap. The inputs are the kinds of tile, then the channels. *)
Inductive weight := W (size : Z) (input : nat) (t : tap).
Record network := Network {
  kinds : nat;
  biases : list Z;
  (** The weights of each channel; those that are not listed are 0. *)
  weights : list (list weight);
  (** How many channels before the last become their maxima over all tiles. If any does, the last becomes that over all
      channels. *)
  pooling : nat }.
Definition channels (n : network) : nat := length (biases n).
Definition is_maximum (n : network) (c : nat) : bool := (channels n <=? S c + pooling n)%nat && (S c <? channels n)%nat.
Definition is_largest (n : network) (c : nat) : bool := (0 <? pooling n)%nat && (S c =? channels n)%nat.

Section Network.
  Context (w : world) (n : network).
  Definition net_state := node w -> nat -> Z.
  (** What a tile adds to the sums of its neighbours: 1 for its kind, and its channels; beyond the edge 0. *)
  Definition value (v : net_state) (x : node w) (input : nat) (t : tap) : Z :=
    match at_tap w t x with
    | None => 0
    | Some y => if (input <? kinds n)%nat then if Nat.eqb (kind_of w y) input then 2 else 0 else v y (input - kinds n)%nat
    end.
  Fixpoint dot (ws : list weight) (v : nat -> tap -> Z) : Z :=
    match ws with [] => 0 | W z input t :: rest => z * v input t + dot rest v end.
  Definition weights_of (c : nat) : list weight := nth c (weights n) [].
  Definition net_sum (v : net_state) (x : node w) (c : nat) : Z := nth c (biases n) 0 + dot (weights_of c) (value v x).
  Definition largest (numbers : list Z) : Z := fold_right Z.max 0 numbers.
  (** The state that follows from the sums of all tiles: no number below 0, and the maxima. *)
  Definition net_step (sums : node w -> nat -> Z) : net_state := fun x c =>
    let next y c := Z.max 0 (sums y c) in
    if is_maximum n c then highest w (fun y => next y c)
    else if is_largest n c then largest (map (next x) (seq 0 (channels n)))
    else next x c.
  Fixpoint net_run (t : nat) : net_state := match t with O => fun _ _ => 0 | S t => net_step (net_sum (net_run t)) end.
End Network.

(** * What its channels mean: a signal is one channel, 1 or 0, or the difference of two *)

Inductive part := Single (c : nat) | Pair (low high : nat).
Definition on (b : bool) : Z := if b then 2 else 0.
Definition shows (p : part) (v : nat -> Z) (b : bool) : Prop :=
  match p with Single c => v c = on b | Pair low high => v low - v high = on b end.
(** The channels show the signals: the first part the first signal, and so on. *)
Definition agree (parts : list part) (v : nat -> Z) (s : nat -> bool) : Prop :=
  forall g p, nth_error parts g = Some p -> shows p v (s g).

(** * Its sums in terms of what tiles hold *)

(** Which signal begins with a channel. *)
Fixpoint owner (parts : list part) (c g : nat) : option (nat * option nat) :=
  match parts with
  | [] => None
  | Single d :: rest => if (c =? d)%nat then Some (g, None) else owner rest c (S g)
  | Pair low high :: rest => if (c =? low)%nat then Some (g, Some high) else owner rest c (S g)
  end.
Definition tap_eqb (s t : tap) : bool := (number_of s =? number_of t)%nat.
(** The weights as terms of atoms; a pair is read by two weights that follow each other. *)
Fixpoint terms_of (n : network) (parts : list part) (ws : list weight) : option (list (Z * positive)) :=
  match ws with
  | [] => Some []
  | W z i t :: rest =>
      if (i <? kinds n)%nat then option_map (cons (2 * z, is_atom t i)) (terms_of n parts rest)
      else match owner parts (i - kinds n) 0 with
      | None => None
      | Some (g, None) => option_map (cons (2 * z, seen_atom t g)) (terms_of n parts rest)
      | Some (g, Some high) => match rest with
          | W z' i' t' :: rest =>
              if (z' =? - z) && (i' =? kinds n + high)%nat && tap_eqb t t'
              then option_map (cons (2 * z, seen_atom t g)) (terms_of n parts rest) else None
          | [] => None
          end
      end
  end.

Definition over terms := map (fun '(z, p) => (- z, p)) terms : list (Z * positive).
(** The number that a sum is at least, and at most. *)
Definition at_least (k bias : Z) terms := least (k - bias) terms.
Definition at_most (k bias : Z) terms := least (bias - k) (over terms).
(** What the sums of a signal's channels must satisfy, if its rule says that it goes on, and if not. *)
Definition demand (n : network) (parts : list part) (p : part) (next : form) : option form :=
  let sum c := option_map (fun ts => (nth c (biases n) 0, ts)) (terms_of n parts (weights_of n c)) in
  match p with
  | Single c => match sum c with
      | Some (b, ts) => Some (disj (conj next (conj (at_least 2 b ts) (at_most 2 b ts))) (conj (neg next) (at_most 0 b ts)))
      | None => None
      end
  | Pair low high => match sum low, sum high with
      | Some (b, ts), Some (b', ts') => Some (disj
          (conj next (conj (at_least 0 b' ts') (conj (at_least 2 (b - b') (ts ++ over ts')) (at_most 2 (b - b') (ts ++ over ts')))))
          (conj (neg next) (conj (at_most 0 b ts) (at_most 0 b' ts'))))
      | _, _ => None
      end
  end.
(** A tile is of one kind at most. *)
Definition one_kind (n : nat) (t : tap) : list form :=
  flat_map (fun k => map (fun l => neg (conj (is t k) (is t l))) (seq 0 k)) (seq 0 n).
(** The maxima are of the channels of pooled signals, and of one that no signal has. *)
Definition pools_right (n : network) (parts : list part) (a : automaton) : bool :=
  forallb (fun '(g, p) => match p with
    | Single c => Bool.eqb (is_maximum n c) (is_pooled a g) && negb (is_largest n c)
    | Pair low high => negb (is_pooled a g || is_maximum n low || is_maximum n high || is_largest n low || is_largest n high)
    end) (numbered parts).
(** [facts]: what holds around every tile. [fuel] is more than the number of atoms of a check. *)
Definition follows_in (n : network) (parts : list part) (a : automaton) (facts : list form) : bool :=
  forallb (fun '(g, p) => match demand n parts p (form_of (rule a g) seen is) with
    | Some f => contradicts (neg f) facts
    | None => false
    end) (numbered parts).
Definition follows (n : network) (parts : list part) (a : automaton) (worlds : list (list form)) : bool :=
  pools_right n parts a && forallb (follows_in n parts a) worlds.

Section Proof.
  Context (w : world) (n : network) (parts : list part) (a : automaton) (worlds : list (list form)).
  Hypothesis (checked : follows n parts a worlds = true) (pooling_is : pooled a <> [] -> pools w).
  Definition patch (s : state w) (x : node w) := around (see w s x) (tile w x).
  (** At any time, what holds around every tile is what one of the worlds says. *)
  Hypothesis known : forall t, exists facts, In facts worlds /\ forall x, all (patch (run w a t) x) facts.

  Lemma owner_part ps c g h r : owner ps c g = Some (h, r) -> (g <= h)%nat /\
    nth_error ps (h - g) = Some match r with None => Single c | Some high => Pair c high end.
  Proof.
    revert g; induction ps as [|p ps IH]; cbn; intros g H; [discriminate|].
    assert (Hs : owner ps c (S g) = Some (h, r) -> (g <= h)%nat /\ nth_error (p :: ps) (h - g) = Some match r with None => Single c | Some high => Pair c high end).
    { intro E; apply IH in E as [Hle E]; split; [lia|]; replace (h - g)%nat with (S (h - S g)) by lia; exact E. }
    destruct p as [d|low high].
    - destruct (Nat.eqb_spec c d) as [->|]; [injection H as <- <-; split; [lia|]; rewrite Nat.sub_diag; reflexivity | auto].
    - destruct (Nat.eqb_spec c low) as [->|]; [injection H as <- <-; split; [lia|]; rewrite Nat.sub_diag; reflexivity | auto].
  Qed.

  Section Step.
    Context (v : net_state w) (s : state w) (agrees : forall x, agree parts (v x) (s x)).

    Lemma kind_value x t k : (k < kinds n)%nat -> value w n v x k t = on (tile w x t k).
    Proof.
      intro H; unfold value, tile; destruct (at_tap w t x); [|reflexivity].
      apply Nat.ltb_lt in H; rewrite H; destruct (Nat.eqb _ _); reflexivity.
    Qed.
    Lemma part_value x t g p : nth_error parts g = Some p ->
      shows p (fun c => value w n v x (kinds n + c) t) (see w s x t g).
    Proof.
      intro H; unfold value, see; destruct (at_tap w t x) as [y|]; [|destruct p; reflexivity].
      specialize (agrees y g p H).
      assert (E : forall c, (kinds n + c <? kinds n)%nat = false) by (intro; apply Nat.ltb_ge; lia).
      destruct p; cbn in *; rewrite !E, !(Nat.add_comm (kinds n)), !Nat.add_sub; exact agrees.
    Qed.
    Lemma on_double (b : bool) (z : Z) : (if b then 2 * z else 0) = z * on b.
    Proof. destruct b; cbn [on]; lia. Qed.
    Lemma some_eq {A} (x y : A) : Some x = Some y -> x = y. Proof. congruence. Qed.
    Lemma option_map_some {A B} (f : A -> B) o r : option_map f o = Some r -> exists y, o = Some y /\ r = f y.
    Proof. destruct o as [y|]; [intros [= <-]; eauto | discriminate]. Qed.

    Lemma terms_of_dot x ws : forall ts, terms_of n parts ws = Some ts -> dot ws (value w n v x) = total (patch s x) ts.
    Proof.
      assert (Hlen : forall k ws ts, (length ws <= k)%nat -> terms_of n parts ws = Some ts -> dot ws (value w n v x) = total (patch s x) ts).
      2: intros ts; apply (Hlen (length ws)); lia.
      clear ws; induction k as [|k IH]; intros [|[z i t] rest] ts Hle H; cbn [length] in Hle; try lia;
        try (injection H as <-; reflexivity).
      cbn [terms_of] in H; cbn [dot]; destruct (Nat.ltb_spec i (kinds n)) as [Hi|Hi].
      - apply option_map_some in H as (ts' & E & ->); cbn [total].
        unfold patch at 1; rewrite around_is, on_double, kind_value, (IH rest ts') by (assumption || lia); reflexivity.
      - destruct (owner parts (i - kinds n) 0) as [[g [high|]]|] eqn:Ho; [| |discriminate].
        + apply owner_part in Ho as [_ Ho]; rewrite Nat.sub_0_r in Ho.
          destruct rest as [|[z' i' t'] rest]; [discriminate|].
          destruct (_ && _ && _) eqn:Ec; [|discriminate]; rewrite !andb_true_iff in Ec; destruct Ec as [[Ez Ei] Et].
          apply Z.eqb_eq in Ez as ->; apply Nat.eqb_eq in Ei as ->.
          assert (t' = t) as -> by (unfold tap_eqb in Et; destruct t as [|[]], t' as [|[]]; cbn in Et; congruence).
          apply option_map_some in H as (ts' & E & ->); cbn [total dot].
          cbn [length] in Hle; unfold patch at 1; rewrite around_seen, on_double, (IH rest ts') by (assumption || lia).
          pose proof (part_value x t g _ Ho) as Hv; cbn in Hv; replace (kinds n + (i - kinds n))%nat with i in Hv by lia.
          rewrite <- Hv; lia.
        + apply owner_part in Ho as [_ Ho]; rewrite Nat.sub_0_r in Ho.
          apply option_map_some in H as (ts' & E & ->); cbn [total].
          unfold patch at 1; rewrite around_seen, on_double, (IH rest ts') by (assumption || lia).
          pose proof (part_value x t g _ Ho) as Hv; cbn in Hv; replace (kinds n + (i - kinds n))%nat with i in Hv by lia.
          rewrite <- Hv; reflexivity.
    Qed.

    Lemma over_total u ts : total u (over ts) = - total u ts.
    Proof. unfold over; induction ts as [|[z p] ts IH]; cbn; [reflexivity | rewrite IH; destruct (u p); lia]. Qed.
    Lemma app_total u ts ts' : total u (ts ++ ts') = total u ts + total u ts'.
    Proof. induction ts as [|[z p] ts IH]; cbn; [reflexivity | rewrite IH; destruct (u p); lia]. Qed.

    Lemma demand_shows x p next f : demand n parts p next = Some f -> holds (patch s x) f = true ->
      shows p (fun c => Z.max 0 (net_sum w n v x c)) (holds (patch s x) next).
    Proof.
      unfold demand, net_sum, at_least, at_most; destruct p as [c|low high]; cbn [shows].
      - destruct (terms_of n parts (weights_of n c)) as [ts|] eqn:E; [|discriminate]; intros <-%some_eq.
        rewrite disj_holds, !conj_holds, neg_holds, !least_holds, over_total, (terms_of_dot x _ ts E).
        destruct (holds (patch s x) next); cbn [on negb andb orb]; rewrite ?orb_false_r, ?andb_true_iff, !Z.leb_le; lia.
      - destruct (terms_of n parts (weights_of n low)) as [ts|] eqn:E; [|discriminate].
        destruct (terms_of n parts (weights_of n high)) as [ts'|] eqn:E'; [|discriminate]; intros <-%some_eq.
        rewrite disj_holds, !conj_holds, neg_holds, !least_holds, !over_total, !app_total, !over_total.
        rewrite (terms_of_dot x _ ts E), (terms_of_dot x _ ts' E').
        destruct (holds (patch s x) next); cbn [on negb andb orb]; rewrite ?orb_false_r, ?andb_true_iff, !Z.leb_le; lia.
    Qed.
  End Step.

  Lemma follows_part facts g p x t v : In facts worlds -> (forall x, all (patch (run w a t) x) facts) ->
    (forall x, agree parts (v x) (run w a t x)) -> nth_error parts g = Some p ->
    shows p (fun c => Z.max 0 (net_sum w n v x c)) (eval (rule a g) (see w (run w a t) x) (tile w x)).
  Proof.
    intros Hin Hfacts Hagree Hp; pose proof checked as H; unfold follows in H; apply andb_prop in H as [_ H].
    rewrite forallb_forall in H; specialize (H facts Hin); unfold follows_in in H; rewrite forallb_forall in H.
    specialize (H (g, p) (numbered_in _ _ _ Hp)); cbn beta iota in H.
    destruct (demand n parts p (form_of (rule a g) seen is)) as [f|] eqn:E; [|discriminate].
    rewrite <- rule_holds; eapply demand_shows; eauto; destruct (holds (patch (run w a t) x) f) eqn:Ef; [reflexivity|].
    exfalso; apply (contradicts_sound (patch (run w a t) x) _ _ H); [rewrite neg_holds, Ef; reflexivity | apply Hfacts].
  Qed.

  Lemma highest_same f g : pools w -> (forall x, f x = g x) -> highest w f = highest w g.
  Proof.
    intros Hp H; destruct (Hp f) as [[x Hx] Hf], (Hp g) as [[y Hy] Hg].
    pose proof (Hf y); pose proof (Hg x); rewrite H in *; lia.
  Qed.
  Lemma highest_on (f : node w -> bool) : pools w -> highest w (fun x => on (f x)) = on (anywhere w f).
  Proof.
    intro Hp; unfold anywhere; destruct (Hp (fun x => on (f x))) as [[x Hx] Hf], (Hp (fun x => if f x then 1 else 0)) as [[y Hy] Hg].
    rewrite Hx, Hy; pose proof (Hf y); pose proof (Hg x); rewrite Hx, Hy in *; destruct (f x), (f y); cbn in *; lia.
  Qed.

  (** The network does what the automaton does, on this world, at every iteration. *)
  Theorem network_follows t x : agree parts (net_run w n t x) (run w a t x).
  Proof.
    revert x; induction t as [|t IH]; intros x g p Hp; [destruct p; reflexivity|].
    destruct (known t) as (facts & Hin & Hfacts); pose proof (fun y => follows_part facts g p y t _ Hin Hfacts IH Hp) as H.
    pose proof checked as Hc; unfold follows, pools_right in Hc; apply andb_prop in Hc as [Hc _]; rewrite forallb_forall in Hc.
    specialize (Hc (g, p) (numbered_in _ _ _ Hp)); cbn beta iota in Hc.
    cbn [net_run run]; unfold net_step, step; destruct p as [c|low high]; cbn [shows] in *.
    - rewrite andb_true_iff, eqb_true_iff, negb_true_iff in Hc; destruct Hc as [-> ->]; destruct (is_pooled a g) eqn:Eg; [|apply H].
      assert (Hw : pools w) by (apply pooling_is; intro E; unfold is_pooled in Eg; rewrite E in Eg; discriminate).
      rewrite <- (highest_on _ Hw); apply (highest_same _ _ Hw); exact H.
    - rewrite negb_true_iff, !orb_false_iff in Hc; destruct Hc as [[[[-> ->] ->] ->] ->]; apply H.
  Qed.
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
(** What an expression says of a tile that holds some signals and is of a kind. *)
Definition says (e : expr) (s : nat -> bool) (k : nat -> bool) : bool := eval e (fun _ => s) (fun _ => k).
Definition off : nat -> bool := fun _ => false.

Section Facts.
  Context (w : world) (s : state w).
  Lemma moved_to_eval t e fsee ftile : eval (moved_to t e) fsee ftile = says e (fsee t) (ftile t).
  Proof. unfold says; induction e; cbn; congruence. Qed.
  Lemma one_kind_holds n t x : all (patch w s x) (one_kind n t).
  Proof.
    apply Forall_forall; intros f (k & Hk & (l & <- & Hl)%in_map_iff)%in_flat_map.
    rewrite neg_holds, conj_holds; unfold is, patch; cbn [holds]; rewrite !around_is; unfold tile.
    destruct (at_tap w t x) as [y|]; [|reflexivity]; apply in_seq in Hl.
    destruct (Nat.eqb_spec (kind_of w y) k) as [->|]; [|reflexivity]; destruct (Nat.eqb_spec k l); [lia | reflexivity].
  Qed.
  Lemma facts_hold n taps es :
    (forall y, Forall (fun e => says e (s y) (Nat.eqb (kind_of w y)) = true) es) -> forallb (fun e => says e off off) es = true ->
    forall x, all (patch w s x) (facts_at n taps es).
  Proof.
    intros Hin Hoff x; apply Forall_forall; intros f (t & _ & [Hf|(e & <- & He)%in_map_iff]%in_app_or)%in_flat_map.
    - exact (proj1 (Forall_forall _ _) (one_kind_holds n t x) f Hf).
    - unfold patch; rewrite rule_holds, moved_to_eval; unfold see, tile; destruct (at_tap w t x) as [y|].
      + exact (proj1 (Forall_forall _ _) (Hin y) e He).
      + rewrite forallb_forall in Hoff; exact (Hoff e He).
  Qed.
End Facts.
