"use strict";
// What both pages have: messages, the speed, a picture of each channel, and a maze to draw on by pointer and keys.

(() => {
  const { levels, strokes, drawThumbnail } = globalThis.MazePlay;
  const find = (id) => document.getElementById(id);

  /** Show a message above the maze; an empty one hides it. */
  function say(text) {
    find("message").hidden = !text;
    find("message").querySelector("span").textContent = text;
  }

  /** Run a function, and show its error on the page. */
  function guarded(work) {
    return (...given) => {
      try {
        return work(...given);
      } catch (error) {
        say(error.message[0].toUpperCase() + error.message.slice(1) + ".");
        return undefined;
      }
    };
  }

  const rate = () => Math.round(2 ** Number(find("speed").value));
  const showRate = () => (find("rate").textContent = `${rate()}/s`);

  function setPlaying(state, playing) {
    state.playing = playing;
    find("play").textContent = playing ? "❚❚" : "▶";
  }

  /** Call a function before every picture of the browser. */
  function loop(frame) {
    requestAnimationFrame(function next(now) {
      frame(now);
      requestAnimationFrame(next);
    });
  }

  function fit({ automaton }, picture) {
    if (!automaton) return;
    const box = find("frame").getBoundingClientRect(), narrow = matchMedia("(max-width: 860px)").matches;
    picture.fit(automaton.level, { width: box.width, height: narrow ? box.width : box.height });
  }

  /** Make a button for each channel, by its name, which tints the maze by it and then calls a function. */
  function makeThumbnails(state, names, chosen = () => {}) {
    const choose = (channel) => {
      state.channel = channel;
      [...find("thumbnails").children].forEach((button, i) => button.setAttribute("aria-pressed", i === channel));
      find("tinted").textContent = `· tinted by ${names[channel]}`;
      chosen();
    };
    find("thumbnails").replaceChildren(...names.map((name, channel) => {
      const button = document.createElement("button");
      button.append(document.createElement("canvas"), name, document.createElement("small"));
      button.title = `Tint the maze by ${name}`;
      button.onclick = () => choose(channel);
      return button;
    }));
    choose(state.channel);
  }

  function drawThumbnails({ automaton }, picture) {
    const view = find("thumbnails").getBoundingClientRect();
    [...find("thumbnails").children].forEach((button, channel) => {
      const box = button.getBoundingClientRect();
      if (box.bottom < view.top || box.top > view.bottom) return;
      button.querySelector("small").textContent = drawThumbnail(button.firstChild, automaton, channel, picture.colours);
    });
  }

  /** Let strokes and keys draw on a picture with the tool of a state, by `edit` and `join`. `held(tile)` says in words what a tile holds, and
   * `touched` is called before a key does something. */
  function listen(state, picture, { edit, join, held, touched = () => {} }) {
    const { canvas } = picture, cursorAt = ([row, col]) => (state.cursor = [row, col, state.tool === "damage" ? strokes.DAMAGE_RADIUS : 0]);
    let stroke = null, last = null;
    canvas.addEventListener("pointerdown", guarded((event) => {
      if (!state.automaton || event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      last = picture.tileAt(event, state.automaton.level);
      stroke = strokes.strokeFrom(state.automaton, last, state.tool, edit, join);
      stroke(last, last);
      cursorAt(last);
    }));
    canvas.addEventListener("pointermove", guarded((event) => {
      if (!state.automaton || state.demo) return;
      const at = picture.tileAt(event, state.automaton.level);
      if (stroke && (at[0] !== last[0] || at[1] !== last[1])) stroke(last, at);
      if (stroke) last = at;
      cursorAt(at);
      canvas.title = `row ${at[0]}, column ${at[1]}: ${held(at[0] * state.automaton.level.width + at[1])}`;
    }));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (stroke = null));
    canvas.addEventListener("pointerleave", () => state.demo || (state.cursor = null));
    canvas.addEventListener("keydown", guarded((event) => {
      const at = state.automaton && strokes.press(state.automaton, state.cursor, event, state.tool, edit, join);
      if (!at) return;
      const { level, policy } = state.automaton;
      touched();
      cursorAt(at);
      find("said").textContent = `Row ${at[0]}, column ${at[1]}: ${levels.kindsOf(policy)[level.tiles[at[0] * level.width + at[1]]].name}`;
    }));
  }

  globalThis.MazePlay.stage = { find, say, guarded, rate, showRate, setPlaying, loop, fit, makeThumbnails, drawThumbnails, listen };
})();
