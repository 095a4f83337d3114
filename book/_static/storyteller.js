// The trained model of subnorm_lab.stories in the reader's browser, and the same with one part cut, as in
// subnorm_lab/experiments/retold.py. retold.js loads it when a reader gives a story its first words: it is a seventh of
// Python in a page, which does not start in a page that was opened as a file.
globalThis.subnormStoryteller = (() => {
  "use strict";

  const WIDTH = 64, HEADS = 8, BOS = 1, FIRST_BYTE = 3, EPS = 1e-5;
  const CUT = 4; // the attention of the third block of five
  // The numbers of each array, in the order of the file; of five blocks where their names are in BLOCK.
  const SIZES = {
    embedding: 512 * 64, attentionGain: 64, q: 64 * 64, k: 32 * 64, v: 32 * 64, o: 64 * 64,
    forwardGain: 64, gate: 172 * 64, down: 64 * 172, up: 172 * 64, finalGain: 64,
  };
  const BLOCKS = 5;

  // --- arithmetic, in float64 ---

  const add = (x, y) => x.map((v, j) => v + y[j]);
  const mean = (x) => x.reduce((sum, v) => sum + v, 0) / x.length;

  /** A matrix (outputs, inputs) times x. */
  function times(w, x) {
    const y = new Float64Array(w.length / x.length);
    for (let i = 0, at = 0; i < y.length; i++) for (let j = 0; j < x.length; j++) y[i] += w[at++] * x[j];
    return y;
  }

  function rmsNorm(x, gain) {
    const rstd = 1 / Math.sqrt(mean(x.map((v) => v * v)) + EPS);
    return x.map((v, j) => gain[j] * v * rstd);
  }

  function layerNorm(x, gain) {
    const shift = mean(x);
    return rmsNorm(x.map((v) => v - shift), gain);
  }

  // --- the sublayers, for one token ---

  /** Turn each pair of neighbours in every head by an angle that grows with the position. */
  function rotate(x, position) {
    const width = WIDTH / HEADS;
    for (let j = 0; j < x.length; j += 2) {
      const angle = position * 10000 ** (-(j % width) / width), [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      [x[j], x[j + 1]] = [x[j] * cos - x[j + 1] * sin, x[j + 1] * cos + x[j] * sin];
    }
    return x;
  }

  function attention(h, w, past) {
    const width = WIDTH / HEADS, y = new Float64Array(WIDTH);
    const q = rotate(times(w.q, h), past.length);
    past.push({ key: rotate(times(w.k, h), past.length), value: times(w.v, h) });
    for (let head = 0; head < HEADS; head++) {
      const from = head * width, shared = (head >> 1) * width; // two heads read the same keys and values
      const part = (x, start) => x.subarray(start, start + width);
      const scores = past.map(({ key }) => times(part(key, shared), part(q, from))[0] / Math.sqrt(width));
      const top = Math.max(...scores), weights = scores.map((score) => Math.exp(score - top));
      const sum = weights.reduce((a, b) => a + b);
      past.forEach(({ value }, t) => { for (let j = 0; j < width; j++) y[from + j] += (weights[t] / sum) * value[shared + j]; });
    }
    return times(w.o, y);
  }

  function swiglu(h, w) {
    const up = times(w.up, h);
    return times(w.down, times(w.gate, h).map((v, j) => (v / (1 + Math.exp(-v))) * up[j]));
  }

  // --- where the norms are, and what is cut; sublayers count from 0 to 9, and norm 10 is the final one ---

  const whole = { norm: rmsNorm, place: (x, branch, norm) => add(x, branch(norm(x))) };
  const cuts = {
    "as trained": () => whole,
    "without one skip": (k) => (k === CUT ? { ...whole, place: (x, branch, norm) => branch(norm(x)) } : whole),
    "without one branch": (k) => (k === CUT ? { ...whole, place: (x) => x } : whole),
    LayerNorm: () => ({ ...whole, norm: layerNorm }),
    "no norms": () => ({ ...whole, norm: (x) => x }),
    "no final division": (k) => (k === 10 ? { norm: (x, gain) => x.map((v, j) => gain[j] * v) } : whole),
    "Post-LN": () => ({ ...whole, place: (x, branch, norm) => norm(add(x, branch(x))) }),
  };

  /** The scores of the next token; `past` has the keys and values of the earlier ones, for each block. */
  function next(model, cut, token, past) {
    let x = Float64Array.from(model.embedding.subarray(token * WIDTH, (token + 1) * WIDTH));
    model.sublayers.forEach(({ run, gain, weights }, k) => {
      const { norm, place } = cut(k);
      x = place(x, (h) => run(h, weights, (past[k] ??= [])), (h) => norm(h, gain));
    });
    return times(model.embedding, cut(10).norm(x, model.finalGain));
  }

  // --- text and tokens ---

  /** BOS, then the characters of the text, of which two neighbours merge until no two can: the best first. */
  function encode({ pieces, scores, number }, text) {
    let tokens = [...(text && ` ${text}`)].flatMap((character) => {
      const bytes = [...new TextEncoder().encode(character)];
      return number.get(String(bytes)) ?? bytes.map((byte) => FIRST_BYTE + byte);
    });
    for (;;) {
      const pairs = tokens.slice(1).map((token, k) => number.get(String([...pieces[tokens[k]], ...pieces[token]])));
      const best = pairs.reduce((a, b) => (a === undefined || scores[b] > scores[a] ? b : a), undefined);
      if (best === undefined) return [BOS, ...tokens];
      tokens.splice(pairs.indexOf(best), 2, best);
    }
  }

  const decode = ({ pieces }, tokens) =>
    new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(tokens.flatMap((token) => pieces[token]))).replace(/^ /, "");

  // --- the model, from the bytes of its two files ---

  function read(bytes) {
    let at = 0;
    const take = (count) => {
      at += count;
      return new Float32Array(bytes.buffer, 4 * (at - count), count);
    };
    const arrays = Object.entries(SIZES).map(([name, size]) => {
      const blocks = name === "embedding" || name === "finalGain" ? 1 : BLOCKS;
      return [name, Array.from({ length: blocks }, () => take(size))];
    });
    const w = Object.fromEntries(arrays);
    const sublayers = Array.from({ length: 2 * BLOCKS }, (_, k) => {
      const [run, gain, names] = k % 2 ? [swiglu, w.forwardGain, ["gate", "up", "down"]] : [attention, w.attentionGain, [..."qkvo"]];
      return { run, gain: gain[k >> 1], weights: Object.fromEntries(names.map((name) => [name, w[name][k >> 1]])) };
    });
    return { embedding: w.embedding[0], finalGain: w.finalGain[0], sublayers, ...tokenizer(bytes, 4 * at) };
  }

  function tokenizer(bytes, start) {
    const view = new DataView(bytes.buffer), pieces = [], scores = [];
    for (let at = start + 4; at < bytes.length; ) { // after the length of the longest piece
      const end = at + 8 + view.getInt32(at + 4, true);
      scores.push(view.getFloat32(at, true));
      pieces.push([...bytes.subarray(at + 8, end)]);
      at = end;
    }
    for (let token = 0; token < FIRST_BYTE; token++) pieces[token] = []; // unknown, begin, end
    for (let byte = 0; byte < 256; byte++) pieces[FIRST_BYTE + byte] = [byte]; // spelled <0x00> in the file
    return { pieces, scores, number: new Map(pieces.map((piece, token) => [String(piece), token])) };
  }

  /** A function of a cut and the first words: the story from there, at most `count` tokens longer, with the likeliest each time;
      whether it has `ended`, and whether the model knows all `letters`, or reads some as bytes. */
  return (parts) => {
    const model = read(Uint8Array.from(atob(parts.join("")), (letter) => letter.charCodeAt(0)));
    return (cut, words, count) => {
      const tokens = encode(model, words), past = [], letters = tokens.every((token) => token === BOS || token >= FIRST_BYTE + 256);
      let ended = false;
      for (let t = 0, end = tokens.length + count; t < end - 1 && !ended; t++) {
        const scores = next(model, cuts[cut], tokens[t], past);
        if (t < tokens.length - 1) continue;
        const token = scores.indexOf(Math.max(...scores));
        ended = token === BOS;
        tokens.push(token); // BOS is no text
      }
      return { text: decode(model, tokens), ended, letters };
    };
  };
})();
