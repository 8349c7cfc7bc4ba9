"use strict";
// A network on a random maze that may be large: in a worker, where it holds up no page, however slow the processor is.

globalThis.MazePlay.part(() => {
  const { levels, answers, Automaton, theorem } = globalThis.MazePlay;
  const SECONDS = 5; // that all iterations take, if the processor is fast enough
  const SLICE = 12; // milliseconds of work between messages
  const TILES = 512; // computed between looks at the clock

  /** Return a tint for boards: some share of 1 where a number is above 0. Walls have the largest value, which sets the scale. */
  const tint = ({ level }, share, value) => (tile) => (level.tiles[tile] === levels.WALL ? 1 : share * Math.max(0, value(tile)));

  /** Return the tint of a maze where it is wet; what a network learned from answers has no such signal, so it is tinted by the channel that
   * its file highlights. */
  function flood(automaton) {
    const { channels } = automaton.policy, [low, high] = ["flood_low", "flood_high"].map((name) => channels.indexOf(name)), shown = automaton.highlight();
    if (high >= 0) return tint(automaton, 0.6, (tile) => automaton.value(low, tile) - automaton.value(high, tile));
    if (automaton.booleans) return tint(automaton, 0.6, (tile) => automaton.value(shown, tile));
    return (tile) => automaton.value(shown, tile);
  }

  class Runner {
    /** `reply` gets what there is to see, {run, playing, level, length, limit, iteration, path, correct, tints, changedAt, isSlow}, again once it
     * has been shown; or {error}. */
    constructor(reply) {
      this.reply = reply;
      this.awake = true;
    }

    /** Take a message with any of these: `begin` {run, policy, size, seed}, `playing`, `awake` (false while nobody looks), `shown`. */
    take({ begin, playing, awake, shown }) {
      try {
        if (begin) this.begin(begin);
        if (playing && this.automaton.iteration >= this.limit) this.automaton.restart();
        Object.assign(this, { playing: playing ?? this.playing, awake: awake ?? this.awake, isFree: shown ?? this.isFree, last: performance.now() });
        this.later();
      } catch (error) {
        this.reply({ error: error.message });
      }
    }

    begin({ run, policy, size, seed }) {
      const level = levels.generate("random", size, seed);
      this.run = run;
      this.known = theorem.ghosts(level);
      this.answer = answers.solve(level, policy);
      this.automaton = new Automaton(policy, level, 0);
      this.limit = policy.exact ? this.known.bound : 3 * this.known.length + 60;
      this.due = 0; // iterations
      this.isFree = true;
      this.told = "";
    }

    later() {
      if (!this.timer) this.timer = setTimeout(() => this.turn());
    }

    turn() {
      const now = performance.now(), { automaton, limit } = this;
      this.timer = 0;
      this.due = Math.min(this.due + ((now - this.last) / 1000 / SECONDS) * limit, 1 + limit / 50);
      this.last = now;
      while (this.playing && this.awake && this.due >= 1 && performance.now() < now + SLICE) {
        if (automaton.work(TILES) < 0) continue;
        this.due--;
        this.playing = automaton.iteration < limit;
      }
      if (this.isFree) this.show();
      if (this.playing && this.awake) this.later();
    }

    show() {
      const { run, known: { length }, automaton, limit } = this, { level, iteration, changedAt } = automaton, path = automaton.path();
      const correct = answers.isCorrect(level, automaton.policy, this.answer, [path]);
      if (correct && iteration > 2 * length + 40) this.playing = false;
      const news = `${iteration} ${this.playing}`;
      if (news === this.told) return;
      this.told = news;
      this.isFree = false;
      const tints = Float32Array.from(level.tiles.keys(), flood(automaton));
      this.reply({ run, playing: this.playing, level, length, limit, iteration, path, correct, tints, changedAt, isSlow: automaton.isSlow });
    }
  }

  Object.assign(globalThis.MazePlay, { Runner, tint, flood });
});
