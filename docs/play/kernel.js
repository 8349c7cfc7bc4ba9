"use strict";
// The convolution of dense networks in WebAssembly, four channels at a time: the same sums as `convolve` in
// automaton.js, twenty times as fast or more. It is written here byte by byte, since a page that is opened from a disk may load
// scripts, but no .wasm files.

globalThis.MazePlay.part(() => {
  const I32 = 0x7f, F32 = 0x7d, V128 = 0x7b, NOTHING = 0x40;
  const LANES = 4, VECTOR = 16; // numbers and bytes in a vector

  /** Return an integer in the variable-length code of WebAssembly (LEB128), signed: good for small unsigned ones too. */
  function integer(value) {
    const bytes = [];
    for (;;) {
      const byte = value & 0x7f;
      value >>= 7;
      if ((value === 0 && !(byte & 0x40)) || (value === -1 && byte & 0x40)) return [...bytes, byte];
      bytes.push(byte | 0x80);
    }
  }

  /** Return an unsigned integer in the same code. */
  function unsigned(value) {
    return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
  }

  const vector = (parts) => [...unsigned(parts.length), ...parts.flat()];
  const section = (id, content) => [id, ...unsigned(content.length), ...content];
  const float = (value) => [...new Uint8Array(Float32Array.of(value).buffer)];

  // Instructions, by the names that WebAssembly has for them.
  const get = (local) => [0x20, ...unsigned(local)];
  const set = (local) => [0x21, ...unsigned(local)];
  const tee = (local) => [0x22, ...unsigned(local)];
  const constant = (value) => [0x41, ...integer(value)];
  const floatConstant = (value) => [0x43, ...float(value)];
  const loadInteger = (offset) => [0x28, 2, ...unsigned(offset)];
  const loadFloat = [0x2a, 2, 0];
  const notEqual = [0x47], floatsDiffer = [0x5c], plus = [0x6a], end = [0x0b];
  const loop = [0x03, NOTHING], ifTrue = [0x04, NOTHING], again = [0x0d, 0];
  const simd = (code, ...rest) => [0xfd, ...unsigned(code), ...rest];
  const loadVector = (offset) => simd(0, 4, ...unsigned(offset));
  const storeVector = (offset) => simd(11, 4, ...unsigned(offset));
  const splat = simd(19), addVectors = simd(228), multiplyVectors = simd(230), least = simd(232), most = simd(233);

  /** Return the function that fills the next states of the listed tiles, as a module.
   *
   * `at` has the addresses of: tiles, a list of pairs of addresses, where a tile's cell is and where its next state goes;
   * places, the distances in bytes from a cell to the numbers that it reads; weights, a row for each place; bias.
   */
  function moduleBytes({ nPlaces, nVectors, stateLimit, at, pages }) {
    const [last, tile, cell, place, weights, out, value, wide, sums] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
    const each = (code) => Array.from({ length: nVectors }, (_, k) => code(sums + k, VECTOR * k)).flat();
    const body = [
      ...constant(at.tiles), ...set(tile),
      ...loop,
      ...get(tile), ...loadInteger(0), ...set(cell),
      ...get(tile), ...loadInteger(4), ...set(out),
      ...each((sum, offset) => [...constant(at.bias), ...loadVector(offset), ...set(sum)]),
      ...constant(at.places), ...set(place), ...constant(at.weights), ...set(weights),
      ...loop,
      ...get(cell), ...get(place), ...loadInteger(0), ...plus, ...loadFloat, ...tee(value),
      ...floatConstant(0), ...floatsDiffer, ...ifTrue, // most are 0, after a ReLU
      ...get(value), ...splat, ...set(wide),
      ...each((sum, offset) => [
        ...get(sum), ...get(wide), ...get(weights), ...loadVector(offset), ...multiplyVectors, ...addVectors, ...set(sum)]),
      ...end,
      ...get(weights), ...constant(VECTOR * nVectors), ...plus, ...set(weights),
      ...get(place), ...constant(4), ...plus, ...tee(place), ...constant(at.places + 4 * nPlaces), ...notEqual, ...again,
      ...end,
      ...each((sum, offset) => [
        ...get(out), ...get(sum), ...floatConstant(0), ...splat, ...most, ...floatConstant(stateLimit), ...splat, ...least,
        ...storeVector(offset)]),
      ...get(tile), ...constant(8), ...plus, ...tee(tile), ...get(last), ...notEqual, ...again,
      ...end,
      ...end,
    ];
    const locals = vector([[5, I32], [1, F32], [nVectors + 1, V128]]);
    return Uint8Array.from([
      0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,
      ...section(1, vector([[0x60, ...vector([[I32]]), ...vector([])]])),
      ...section(2, vector([[1, 0x70, 1, 0x6d, 0x02, 0x00, ...unsigned(pages)]])), // import p.m, the memory
      ...section(3, vector([[0]])),
      ...section(7, vector([[1, 0x66, 0x00, 0x00]])), // export f
      ...section(10, vector([[...unsigned(locals.length + body.length), ...locals, ...body]])),
    ]);
  }

  /** Return arrays in one memory, and `run(active, from, to)`, which fills `next` for those of the active tiles, ReLU and limit too.
   *
   * Null where the browser has no vectors in WebAssembly. `weights` has `C` numbers for each of `places`.
   */
  function compileKernel({ cellOf, size, nCells, C, places, weights, bias, stateLimit }) {
    if (typeof WebAssembly === "undefined") return null;
    const nVectors = Math.ceil(C / LANES), row = LANES * nVectors;
    const at = {};
    let bytes = 0;
    const parts = {
      bias: row, weights: row * places.length, next: row * cellOf.length, places: places.length, tiles: 2 * cellOf.length,
      cells: nCells * size,
    };
    for (const [name, length] of Object.entries(parts)) {
      at[name] = bytes;
      bytes += VECTOR * Math.ceil((4 * length) / VECTOR);
    }
    const pages = Math.ceil(bytes / 65536), code = moduleBytes({ nPlaces: places.length, nVectors, stateLimit, at, pages });
    if (!WebAssembly.validate(code)) return null;
    const memory = new WebAssembly.Memory({ initial: pages });
    const run = new WebAssembly.Instance(new WebAssembly.Module(code), { p: { m: memory } }).exports.f;
    const floats = (name) => new Float32Array(memory.buffer, at[name], parts[name]);
    const integers = (name) => new Int32Array(memory.buffer, at[name], parts[name]);
    floats("bias").set(bias);
    places.forEach((_, p) => floats("weights").set(weights.subarray(p * C, (p + 1) * C), p * row));
    integers("places").set(places.map((place) => 4 * place));
    const tiles = integers("tiles");
    return {
      cells: floats("cells"),
      next: floats("next"),
      row,
      run(active, from, to) {
        if (from === to) return;
        for (let i = from; i < to; i++) {
          tiles[2 * (i - from)] = at.cells + 4 * cellOf[active[i]] * size;
          tiles[2 * (i - from) + 1] = at.next + 4 * active[i] * row;
        }
        run(at.tiles + 8 * (to - from));
      },
    };
  }

  globalThis.MazePlay.compileKernel = compileKernel;
});
