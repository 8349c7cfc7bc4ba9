(** The theorem of a network, weights included, on every maze: it does what rules say that do the
    same as those of the statement, a whole number of iterations for each, perhaps with some signals
    split. *)
From MazeNCA Require Import Mazes Refute Network Floats Worlds Joins Facts Characterised Lemmas
  Proven Printed Equivalent.

Notation the_rules := (of_rules its_statement).
Notation the_worlds :=
  (map (fun '(h, _) => world_facts (kinds its_network) its_taps its_rules its_given h) its_worlds).
Notation channel_of := (Statements.Joined.channel_of its_parts its_joins).
Lemma joins_checked : joined_right the_rules its_rules its_joins pace the_worlds = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma channels_checked : forallb (fun '(g, _) => match channel_of g with Some _ => true | None =>
  false end) (answers its_statement) = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma same_kinds : n_kinds its_statement = kinds its_network. Proof. reflexivity. Qed.
Lemma nothing_supposed : its_given = []. Proof. reflexivity. Qed.

Section Joined.
  Context (m : maze).
  Hypothesis is_about : about its_statement m.
  Notation w := (grid m).
  Lemma kinds_known x : kind_of w x < kinds its_network. Proof. rewrite <- same_kinds;
    apply is_about. Qed.
  Lemma pooling_is (P : Prop) : P -> pools w. Proof. intros _;
    exact (grid_pools m (proj1 (proj2 is_about))). Qed.
  Lemma given_holds t y : Forall (fun e => Network.says e (run w its_rules t y)
    (Nat.eqb (kind_of w y)) = true) its_given.
  Proof. rewrite nothing_supposed; constructor. Qed.

  (** The numbers of the network, in float32 with sums in any order, show signals by 0 or two
      halves, [pace] iterations for each of the rules. *)
  Lemma channel_shows round n v x g c : exact_below round -> float_run round w its_network n v ->
    channel_of g = Some c ->
    v x c = Network.on (run w the_rules (n / pace) x g).
  Proof.
    intros Hround Hrun Ec;
      rewrite (MazeNCA.Equivalent.network_exact w kinds_known (pooling_is _) given_holds round n v
      Hround Hrun).
    rewrite <- (done_the_same the_rules its_rules its_joins pace w the_worlds joins_checked
      (pooling_is True I)
      (worlds_hold _ _ _ _ w _ kinds_known (pooling_is _) worlds_closed worlds_start given_holds)).
    unfold Statements.Joined.channel_of in Ec; unfold joined;
      destruct (nth g its_joins []) as [|k [|]]; try discriminate.
    destruct (nth_error its_parts k) as [[c'|]|] eqn:Ek; try discriminate; injection Ec as ->.
    exact (MazeNCA.Equivalent.network_does_the_same w kinds_known (pooling_is _) given_holds n x k _
      Ek).
  Qed.
End Joined.

Theorem network_signals :
  Statements.Joined.network_signals its_statement its_network its_parts its_joins pace.
Proof.
  intros m is_about round t v x g f c Hround Hrun Hf Ec.
  rewrite (channel_shows m is_about round t v x g c Hround Hrun Ec),
    (signals_are m is_about _ g f x Hf); reflexivity.
Qed.
Theorem network_answers :
  Statements.Joined.network_answers its_statement its_network its_parts its_joins pace.
Proof.
  intros m is_about g wanted due Hin; pose proof channels_checked as Hc;
    rewrite forallb_forall in Hc; specialize (Hc _ Hin); cbn beta iota in Hc.
  destruct (channel_of g) as [c|] eqn:Ec; [|discriminate Hc]; exists c; split; [reflexivity|];
    intros round n v x Hround Hrun.
  rewrite (channel_shows m is_about round n v x g c Hround Hrun Ec); split;
    [destruct (run _ _ _ _ _); auto|]; split.
  - destruct (n / pace) as [|t]; [intro E; discriminate E|]; intro E; exists t; split;
      [reflexivity|].
    apply (answers_are m is_about t g wanted due x Hin); destruct (run _ _ _ _ _);
      [reflexivity | discriminate E].
  - intros t -> Hd; rewrite <- (proj2 (answers_are m is_about t g wanted due x Hin) Hd);
      reflexivity.
Qed.
