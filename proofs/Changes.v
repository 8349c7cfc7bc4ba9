(** A network does what an automaton does while the maze changes, in exact arithmetic and in
    float32. *)
From MazeNCA Require Import Statements Refute Network Floats Worlds Healing.
Local Open Scope Z_scope.

(** What tiles hold is the same of all kinds of tile. *)
Definition held_dec (c d : nat * list component) : {c = d} + {c <> d}. Proof.
  repeat decide equality. Defined.
Definition same_of_all (n_kinds : nat) (h : holding) : bool :=
  forallb (fun '(_, cs) => forallb (fun k => if in_dec held_dec (k, cs) h then true else false)
    (seq 0 n_kinds)) h.

Section Changes.
  Context (w : world) (n : network) (parts : list part) (a : automaton) (taps : list tap)
    (ws : list (holding * list nat)).
  Context (kinds : nat -> node w -> kind).
  Notation n_kinds := (Network.kinds n).
  Hypotheses (known_kinds : forall t x, (kinds t x < n_kinds)%nat) (its_highest : pools w).
  Hypotheses (is_closed : closed n_kinds taps a [] ws = true) (starts_in : starts n_kinds ws = true)
    (sums : follows n parts a (map (fun '(h, _) => world_facts n_kinds taps a [] h) ws) = true)
    (any_kind : forallb (fun '(h, _) => same_of_all n_kinds h) ws = true).
  Notation W t := (with_kinds w (kinds t)).
  Lemma supposed_nothing t s : supposed [] (W t) s. Proof. intro; constructor. Qed.
  Lemma other_kinds t u s : in_some_world (W t) ws s -> in_some_world (W u) ws s.
  Proof.
    intros (h & p & Hin & H); exists h, p; split; [exact Hin|]; intro x; specialize (H x);
      apply some_says in H as (e & ((k & cs) & <- & Hk)%in_map_iff & He).
    rewrite forallb_forall in any_kind; specialize (any_kind _ Hin); cbn beta iota in any_kind;
      unfold same_of_all in any_kind; rewrite forallb_forall in any_kind.
    specialize (any_kind _ Hk); cbn beta iota in any_kind; rewrite forallb_forall in any_kind.
    specialize (any_kind (kinds u x) ltac:(apply in_seq; pose proof (known_kinds u x); lia));
      destruct (in_dec held_dec _ h) as [Hu|]; [|discriminate].
    apply some_says; eexists; split; [apply in_map_iff; exists (kinds u x, cs); split;
      [reflexivity | exact Hu]|].
    apply andb_true_iff; split; [apply Nat.eqb_refl|]; apply andb_prop in He as [_ He]; revert He;
      cbv beta iota.
    change (says (every (map in_component cs)) (s x) (Nat.eqb (kinds t x)) = true ->
      says (every (map in_component cs)) (s x) (Nat.eqb (kinds u x)) = true).
    rewrite !every_says; intros Hc e' (c & <- & Hc')%in_map_iff;
      specialize (Hc _ (in_map _ _ _ Hc')); revert Hc.
    unfold in_component; rewrite !some_says; intros (e & (st & <- & Hst)%in_map_iff & He);
      exists (in_state (signals c) st); split; [apply in_map, Hst|].
    revert He; unfold in_state; rewrite !every_says; intros He e Hin'; specialize (He e Hin');
      apply in_map_iff in Hin' as ([g []] & <- & _); exact He.
  Qed.
  Lemma follows_through t : (forall x, agree parts (net_through w kinds n t x)
    (run_through w kinds a t x)) /\ in_some_world (W t) ws (run_through w kinds a t).
  Proof.
    induction t as [|t [IH Hin]].
    - split; [intros x g p _; destruct p;
        reflexivity | exact (first_world n_kinds taps a [] (W O) ws
        (known_kinds O) is_closed starts_in)].
    - split; cbn [net_through run_through].
      + apply (network_step (W t) n parts a _ sums (fun _ => its_highest)); [|exact IH].
        apply world_known; [exact is_closed | apply supposed_nothing | exact Hin].
      + apply (other_kinds t);
          apply (next_world n_kinds taps a [] (W t) ws (fun _ => its_highest) is_closed);
          [apply supposed_nothing .. | exact Hin].
  Qed.
  Theorem floats_through : small n parts = true -> forall round t v, exact_below round ->
    float_through round w kinds n t v ->
    forall x c, v x c = net_through w kinds n t x c.
  Proof.
    intros Hsmall round t v Hr; induction 1 as [v Hv|t v v' found zeros _ IH Hv' Hsums];
      [exact Hv|].
    apply (float_step (W t) n parts Hsmall (fun _ => its_highest) round _ v v' found zeros Hr);
      try assumption.
    destruct t as [|t]; [exact (zero_bounded (W O) n parts (fun _ => its_highest))|].
    exact (step_bounded (W t) n parts Hsmall (fun _ => its_highest) _ _
      (proj1 (follows_through t))).
  Qed.
End Changes.
