"use strict";
// The first script of a page: where its others leave what they share. Parts are those that touch nothing of the page, so that a worker can run them too.

globalThis.MazePlay = {
  loaded: {},
  parts: [],

  addPolicy(policy) {
    this.loaded[policy.name] = policy;
  },

  part(run) {
    this.parts.push(run);
    run();
  },

  /** Return a worker that runs all parts and then `run`. It is made from their text: a page that is opened from a disk has no files for workers. */
  worker(run) {
    const source = this.parts.concat(run).map((each) => `(${each})();\n`);
    return new Worker(URL.createObjectURL(new Blob(['"use strict";\nglobalThis.MazePlay = {};\n', ...source], { type: "text/javascript" })));
  },
};
