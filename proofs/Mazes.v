(** Grids have finitely many tiles. *)
From MazeNCA Require Export Statements.
Export Statements.Mazes.
Local Open Scope Z_scope.

Lemma cell_at_own m x : cell_at m (proj1_sig x) = Some x.
Proof. apply cell_at_some; reflexivity. Qed.
Lemma cells_all m x : In x (cells m).
Proof.
  unfold cells; apply in_flat_map; exists (proj1_sig x); split.
  - destruct x as [[row col] h]; cbn; unfold inside in h; cbn in h; rewrite !andb_true_iff in h.
    apply in_prod; apply in_map_iff; [exists (Z.to_nat row) | exists (Z.to_nat col)];
      rewrite in_seq; lia.
  - rewrite cell_at_own; left; reflexivity.
Qed.
Lemma grid_pools m : cells m <> [] -> pools (grid m).
Proof.
  intros Hm f; cbn; unfold grid_highest; pose proof (cells_all m) as H;
    destruct (cells m) as [|x rest]; [contradiction|]; cbn [map].
  set (top := fold_right Z.max (f x) (map f rest)).
  enough (In top (map f (x :: rest)) /\ forall z, In z (map f (x :: rest)) ->
    z <= top) as [(y & Hy & _)%in_map_iff Hle]
    by (split; [eauto | intro z; apply Hle, in_map, H]).
  clear H Hm; subst top; induction rest as [|y rest [IH Hle]]; cbn [map fold_right] in *;
    [split; [left; reflexivity | intros z [<-|[]]; lia]|].
  split; [destruct (Z.max_spec (f y) (fold_right Z.max (f x) (map f rest))) as [[_ ->]|[_ ->]];
    cbn in *; tauto|].
  intros z [E|[E|E]]; [specialize (Hle z (or_introl E)) | | specialize (Hle z (or_intror E))]; lia.
Qed.
