// The live figures: subnorm_lab/live.py writes their data, this script draws them, in the book and in JupyterLab.
// The same renderer draws the stored picture, the page in the book's build, and every change in the browser.
// A chart shows rows of the table that the package computed. Only the two norms are computed here, for bars and clouds.
// In JupyterLab every output includes this script; the first copy is used.
globalThis.subnormLive ??= (() => {
  "use strict";

  // --- the two norms of one token, as in subnorm.numpy ---

  const mean = (x) => x.reduce((sum, v) => sum + v, 0) / x.length;
  const meanSquare = (x) => mean(x.map((v) => v * v));

  /** The steps of LayerNorm ("layer") or RMSNorm ("rms") on x. */
  function steps(norm, x, gamma, beta, eps) {
    const shift = norm === "layer" ? mean(x) : 0;
    const centred = x.map((v) => v - shift);
    const rstd = 1 / Math.sqrt(meanSquare(centred) + eps);
    const xhat = centred.map((v) => v * rstd);
    const y = xhat.map((v) => gamma * v + (norm === "layer" ? beta : 0));
    return { mean: shift, centred, rstd, xhat, y };
  }

  // --- text and numbers ---

  const escape = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const superscript = (n) => String(n).replace(/./g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
  const minus = (text) => text.replace(/-/g, "−");
  const unbroken = (text) => text.replace(/(\d) %/g, "$1\u00a0%"); // no line ends before a percent sign

  /** A readable number: three digits, with a power of ten below 0.001 and from 10 000 on, as in live.py. */
  function short(v) {
    if (v === 0 || (Math.abs(v) >= 1e-3 && Math.abs(v) < 1e4)) return minus(String(Number(v.toPrecision(3))));
    const [digits, power] = v.toExponential(1).split("e");
    return `${minus(digits).replace(/\.0$/, "")} × 10${superscript(Number(power))}`;
  }

  /** A number below a bar: two decimals at most. */
  const brief = (v) => minus(String(Number(v.toFixed(Math.abs(v) < 10 ? 2 : 1))));

  // --- scales and ticks ---

  /** Round steps between low and high, at most `most` of them. */
  function linearTicks(low, high, most) {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((k) => k * power >= rough * (1 - 1e-9));
    const first = Math.ceil(low / step - 1e-9);
    const last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, k) => {
      const at = Number(((first + k) * step).toPrecision(12));
      return { at, label: minus(String(at)) };
    });
  }

  function logTicks(low, high, most) {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const last = Math.floor(Math.log10(high) + 1e-9);
    if (last - first < 1) return linearTicks(low, high, most);
    const step = Math.ceil((last - first + 1) / most);
    const powers = Array.from({ length: last - first + 1 }, (_, k) => first + k).filter((p) => p % step === 0);
    const plain = (p) => (p >= -2 && p <= 3 ? String(10 ** p) : `10${superscript(p)}`);
    return powers.map((p) => ({ at: 10 ** p, label: plain(p) }));
  }

  const FAR = 1e5; // px; an infinite value is drawn so far away
  const SEEN = 1.5; // px beyond the limit that can be seen

  /** From data to pixels, at most to the limits; `free` also beyond them, and `edges` are the limits in pixels. */
  function scale({ limits: [low, high], log, ticks }, start, end, most) {
    const f = log ? Math.log : (v) => v;
    const place = (v) => start + ((f(v) - f(low)) / (f(high) - f(low))) * (end - start);
    const to = (v) => place(Math.min(Math.max(v, low), high));
    to.free = (v) => {
      const at = Math.min(Math.max(place(v), -FAR), FAR);
      return Math.abs(at - to(v)) < SEEN ? to(v) : at;
    };
    to.edges = [Math.min(start, end), Math.max(start, end)];
    to.ticks = ticks
      ? ticks.map(([at, label]) => ({ at, label }))
      : log ? logTicks(low, high, most) : linearTicks(low, high, most);
    return to;
  }

  // --- shapes; colours are CSS variables, so that they follow the dark mode ---

  const fixed = (v) => Number(v.toFixed(1));
  const text = (x, y, words, anchor = "start", more = "") =>
    `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}"${more}>${escape(words)}</text>`;
  const rule = (x1, y1, x2, y2, name) =>
    `<line class="${name}" x1="${fixed(x1)}" y1="${fixed(y1)}" x2="${fixed(x2)}" y2="${fixed(y2)}"/>`;
  const width = (words) => 7.7 * String(words).length; // rough upper bound at 13 px
  const colour = (name) => `var(--live-${name})`;

  const THIN = 'stroke="currentColor" stroke-width="1.5"';
  const SIDE = { right: 14, top: 46, bottom: 42 };
  const ROW = 20; // a line of the legend

  /** Where a hand can take hold. Only seen where the script runs. */
  const grip = (x, y) => `<circle class="grip" cx="${fixed(x)}" cy="${fixed(y)}" r="6"/>`;

  /** Legend: pairs of sample and label, wrapped into rows. */
  function legend(entries, x, y, right) {
    let [at, row] = [x, 0];
    const drawn = entries.map(({ sample, label }) => {
      const wide = 40 + width(label);
      if (at > x && at + wide - 18 > right) [at, row] = [x, row + 1];
      const here = `<g transform="translate(${fixed(at)},${fixed(y + row * ROW)})">${sample}${text(28, 4, label)}</g>`;
      at += wide;
      return here;
    });
    return { svg: drawn.join(""), rows: entries.length ? row + 1 : 0 };
  }

  const stroke = ({ colour: name, dash }) =>
    `fill="none" stroke="${colour(name)}" stroke-width="2.2"${dash ? ` stroke-dasharray="${dash}"` : ""}`;

  /** A line in px, with a point more wherever it crosses the top or the bottom of its frame. */
  const crossed = (points, edges) => points.flatMap(([x, y], k) => {
    const [x0, y0] = points[k - 1] ?? [x, y];
    const over = edges.filter((edge) => (y0 - edge) * (y - edge) < 0).sort((a, b) => (a - b) * (y - y0));
    return [...over.map((edge) => [x0 + ((edge - y0) / (y - y0)) * (x - x0), edge]), [x, y]];
  });

  /** The parts of a line that are in the frame, and the points where it leaves the frame or comes back. */
  function within(points, edges) {
    const line = crossed(points, edges);
    const inside = (at) => at !== undefined && at[1] >= edges[0] && at[1] <= edges[1];
    const parts = [];
    line.forEach((at, k) => {
      if (!inside(at)) return;
      if (inside(line[k - 1])) parts.at(-1).push(at);
      else parts.push([at]);
    });
    return { parts, exits: line.filter((at, k) => inside(at) && [k - 1, k + 1].some((n) => line[n] && !inside(line[n]))) };
  }

  /** Where a curve leaves its frame: an arrow head, and at the first one the value that the curve reaches. */
  function exit([x, y], first, values, paint, px, py) {
    const up = y === py.edges[0];
    const words = `to ${short((up ? Math.max : Math.min)(...values))}`;
    const left = x + 9 + (11 / 13) * width(words) > px.edges[1] + SIDE.right;
    return `<path fill="${paint}" d="M${fixed(x - 5)} ${fixed(up ? y : y - 10)}h10l-5 ${up ? -10 : 10}z"/>` +
      (first ? text(x + (left ? -9 : 9), y - (up ? 1 : 4), words, left ? "end" : "start", ' class="small"') : "");
  }

  /** One curve: a line with its band, or points. A missing value interrupts it; beyond its frame it is cut off and marked. */
  function curve(look, { x, y, low, high }, px, py) {
    const seen = (k) => y[k] !== null && y[k] !== undefined;
    const runs = [];
    y.forEach((v, k) => {
      if (!seen(k)) return;
      if (k > 0 && seen(k - 1)) runs.at(-1).push(k);
      else runs.push([k]);
    });
    const [top, bottom] = py.edges;
    const paint = colour(look.colour);
    const places = (ks, values) => ks.map((k) => [px(x[k]), py.free(values[k])]);
    const written = (points) => points.map(([a, b]) => `${fixed(a)},${fixed(Math.min(Math.max(b, top), bottom))}`).join(" ");
    const band = (ks) => `<polygon fill="${paint}" fill-opacity=".18" points="${written(crossed(places(ks, high), py.edges))} ${
      written(crossed(places([...ks].reverse(), low), py.edges))}"/>`;
    const dots = (ks) => places(ks, y).filter(([, b]) => b >= top && b <= bottom).map(([a, b]) =>
      `<circle cx="${fixed(a)}" cy="${fixed(b)}" r="4" fill="${paint}"/>`).join("");
    const line = (ks) => {
      const { parts, exits } = within(places(ks, y), py.edges);
      return parts.map((part) => `<polyline ${stroke(look)} points="${written(part)}"/>`).join("") +
        exits.map((at, k) => exit(at, k === 0, ks.map((n) => y[n]), paint, px, py)).join("");
    };
    const grips = look.name === "guess" ? x.map((at, k) => grip(px(at), py(y[k]))).join("") : "";
    const drawn = runs.map((ks) => (low ? band(ks) : "") + (look.marks ? dots(ks) : "") +
      (look.marks === "only" ? "" : line(ks))).join("") + grips;
    return ["guess", "truth"].includes(look.name) ? `<g class="${look.name}">${drawn}</g>` : drawn;
  }

  /** The legend of a panel of curves at x, y. */
  function curveLegend(panel, data, { x, y, w }) {
    const entries = panel.curves.filter(({ name }) => data[name]).map((look) => ({
      label: look.label,
      sample: look.marks === "only" ? `<circle cx="12" cy="0" r="4" fill="${colour(look.colour)}"/>`
        : `<line x1="0" x2="24" y1="0" y2="0" ${stroke(look)}/>`,
    }));
    return legend(entries, x, y + 34, x + w);
  }

  /** A value as the axis names it. */
  const named = ({ ticks }, v) => ticks?.find(([at]) => at === v)?.[1] ?? short(v);

  /** The points of a curve in px, each with its value in words. */
  function spots(panel, look, { x, y, low, high }, px, py) {
    const unit = panel.y.label.match(/\((.*)\)$/)?.[1] ?? "";
    return x.flatMap((at, k) => (y[k] ?? null) === null ? [] : {
      x: px(at), y: py(y[k]),
      get words() {
        return `${look.label}, ${panel.x.label} ${named(panel.x, at)}: ${named(panel.y, y[k])} ${unit}`.trimEnd() +
          (low ? ` (${short(low[k])} to ${short(high[k])})` : "");
      },
    });
  }

  /** Both axes with wider limits, so that a unit is as long on one as on the other. */
  function alike({ x, y }, wide, high) {
    const unit = Math.min(wide / (x.limits[1] - x.limits[0]), high / (y.limits[1] - y.limits[0]));
    return [[x, wide], [y, high]].map(([axis, room]) => {
      const middle = (axis.limits[0] + axis.limits[1]) / 2;
      return { ...axis, limits: [-1, 1].map((side) => middle + (side * room) / unit / 2) };
    });
  }

  /** A panel of curves; leaves room for `rows` rows of legend `key`, so that neighbouring panels line up. Adds its points to `seen`. */
  function linesPanel(panel, data, { x, y, w, h, below }, key, rows, seen) {
    const top = y + SIDE.top + Math.max(key.rows, rows) * ROW - 8;
    const bottom = y + h - (below ? SIDE.bottom - ROW : SIDE.bottom);
    const up = (axis) => scale(axis, bottom, top, Math.min(6, Math.floor((bottom - top) / 18)));
    const left = x + 10 + Math.max(...up(panel.y).ticks.map(({ label }) => width(label)));
    const box = { left, right: x + w - SIDE.right, top, bottom };
    const [ax, ay] = panel.equal ? alike(panel, box.right - left, bottom - top) : [panel.x, panel.y];
    const [px, py] = [scale(ax, left, box.right, w < 340 ? 5 : 8), up(ay)];
    const grid = py.ticks.map(({ at, label }) => rule(box.left, py(at), box.right, py(at), "grid") +
      text(box.left - 6, py(at) + 4, label, "end"));
    const marks = px.ticks.map(({ at, label }) => rule(px(at), box.bottom, px(at), box.bottom + 4, "axis") +
      text(px(at), box.bottom + 18, label, "middle"));
    const curves = panel.curves.filter(({ name }) => data[name]).map((look) => {
      seen?.push(...spots(panel, look, data[look.name], px, py));
      return curve(look, data[look.name], px, py);
    });
    return [
      text(x, y + 14, panel.y.label, "start", ' class="title"'), key.svg, ...grid, ...marks,
      rule(box.left, box.bottom, box.right, box.bottom, "axis"), ...curves,
      below ? "" : text((box.left + box.right) / 2, y + h - 6, panel.x.label, "middle"),
      panel.drawn ? `<rect class="drag" data-box="${JSON.stringify(Object.values(box).map(fixed))}" x="${fixed(box.left)}" ` +
        `y="${fixed(top)}" width="${fixed(box.right - box.left)}" height="${fixed(bottom - top)}"/>` : "",
    ].join("");
  }

  /** Adjacent cells on the colour of 0; all cells of one shade form one path, which keeps a large picture small. */
  function mosaic(lines, paint, { left, top, cw, ch }) {
    const paths = new Map();
    const px = (c) => Math.round(left + c * cw);
    const py = (r) => Math.round(top + r * ch);
    lines.forEach((line, r) => {
      for (const shade of [() => 'class="zero"', paint]) {
        const shades = line.map((v) => (v === null ? null : shade(v)));
        for (let c = 0, end; c < line.length; c = end) {
          for (end = c + 1; shades[end] === shades[c]; end += 1);
          const box = `M${px(c)} ${py(r)}h${px(end) - px(c)}v${py(r + 1) - py(r)}h${px(c) - px(end)}z`;
          if (shades[c] !== null) paths.set(shades[c], (paths.get(shades[c]) ?? "") + box);
        }
      }
    });
    const drawn = [...paths].map(([shade, d]) => `<path ${shade} d="${d}"/>`);
    return `<g shape-rendering="crispEdges">${drawn.join("")}</g>`;
  }

  /** How a heat map paints a value: the stronger the colour, the larger the value. Two colours for two signs. */
  function shade({ limits: [low, high], colours, digits }) {
    const most = digits === null ? 1 : 0.5; // a number in the cell must stay readable
    const strength = (v) => (colours.length === 2 ? Math.abs(v) / high : (v - low) / (high - low));
    return (v) => `fill="${colour(colours.length === 2 && v < 0 ? colours[1] : colours[0])}" ` +
      `fill-opacity="${(most * Math.min(Math.max(strength(v), 0), 1)).toFixed(2)}"`;
  }

  const KEY = 40; // px of a bar of colours, with its numbers and the space below

  /** The bar of colours of a heat map, above its first panel: all values, and some of them by name. */
  function colourBar(panel, w) {
    const [low, high] = panel.colours.length === 2 ? [-panel.limits[1], panel.limits[1]] : panel.limits;
    const [left, steps] = [32, 40]; // half of the widest number at 13 px is left of the bar
    const cw = (Math.min(w, 360) - 2 * left) / steps;
    const values = Array.from({ length: steps }, (_, k) => low + ((k + 0.5) / steps) * (high - low));
    const at = (v) => left + ((v - low) / (high - low)) * steps * cw;
    return mosaic([values], shade(panel), { left, top: 0, cw, ch: 12 }) +
      panel.bar.map(([v, label]) => rule(at(v), 12, at(v), 15, "axis") + text(at(v), 27, label, "middle", ' class="small"')).join("");
  }

  /** A heat map. */
  function heatPanel(panel, data, { x, y, w, h, below }) {
    const { rows, columns, digits, title } = panel;
    const [name, more] = w < 150 ? title.split(": ") : [title];
    const left = x + (rows.some(Boolean) ? Math.max(...rows.map(width)) + 10 : 0);
    const [top, bottom] = [y + (more ? 42 : 26), y + h - (below ? SIDE.bottom - ROW : SIDE.bottom)];
    const [cw, ch] = [(x + w - left) / columns.length, (bottom - top) / rows.length];
    const paint = shade(panel);
    const numbered = (v, r, c) => v === null ? "" :
      `<rect x="${fixed(left + c * cw)}" y="${fixed(top + r * ch)}" width="${fixed(cw - 1)}" height="${fixed(ch - 1)}" ` +
      `${paint(v)}/>` +
      text(left + (c + 0.5) * cw, top + (r + 0.5) * ch + 4, minus(v.toFixed(digits)), "middle");
    // if some labels are empty on purpose, draw all the others
    const every = columns.includes("") ? 1 : Math.ceil(Math.max(...columns.map((c) => width(c) + 8)) / cw);
    return [
      text(x, y + 14, name, "start", ' class="title"'), more ? text(x, y + 30, more, "start", ' class="small"') : "",
      ...(digits === null ? [mosaic(data.cells, paint, { left, top, cw, ch }),
        `<rect class="grid" fill="none" x="${fixed(left)}" y="${top}" width="${fixed(x + w - left)}" height="${fixed(bottom - top)}"/>`]
        : data.cells.map((line, r) => line.map((v, c) => numbered(v, r, c)).join(""))),
      ...rows.map((label, r) => label && text(left - 6, top + (r + 0.5) * ch + 4, label, "end")),
      ...columns.map((label, c) => (c % every || !label ? ""
        : text(Math.min(Math.max(left + (c + 0.5) * cw, 4), x + w - width(label) / 2), bottom + 16, label, "middle"))),
      below ? "" : text((left + x + w) / 2, y + h - 6, panel.x.label, "middle"),
    ].join("");
  }

  /** Words, each above a bar, so that no bar ends within a word. The room for labels is the same in all frames. */
  function barsPanel({ title, full, letters }, data, { x, y, w }, key, rows, seen) {
    const left = x + (letters ? 7.7 * letters + 6 : 0);
    const reach = Math.max(x + w - 40 - left, 0); // the value is to the right
    return text(x, y + 14, title, "start", ' class="title"') + data.map(([label, word, value, marked], k) => {
      const top = y + 30 + 24 * k;
      const box = (wide, look) => `<rect x="${fixed(left)}" y="${top + 14}" width="${fixed(wide)}" height="6" ${look}/>`;
      const whole = box(reach, `fill="${colour("line")}" fill-opacity=".7"`) + (label && text(left - 6, top + 11, label, "end"));
      if (!word && !value) return whole;
      seen.push({ x: left + (value / full) * reach, y: top + 17, words: `${label} ${word}: ${short(value)}`.trimStart() });
      return whole + box((value / full) * reach, `fill="${colour(marked ? "green" : "blue")}"`) +
        text(left, top + 11, marked ? `${word} ✓` : word) + text(x + w, top + 11, value.toFixed(full > 10 ? 1 : 2), "end", ' class="number"');
    }).join("");
  }

  /** Words in a grid; the row or column that the sentence is about has a frame. */
  function gridPanel({ title, rows, columns, cells, corner, by }, at, { x, y, w }, key, room, seen) {
    const left = x + 10 + Math.max(...[...rows, corner].map(width));
    const [top, cw, ch] = [y + 46, (x + w - 1 - left) / columns.length, 26];
    const small = columns.some((label) => width(label) > cw - 4) || cells.flat().some(([word]) => width(word) > cw - 4);
    const more = small ? ' class="small"' : "";
    const box = (across, down, wide, high, gap, look) => `<rect x="${fixed(left + across * cw)}" y="${fixed(top + down * ch)}" ` +
      `width="${fixed(wide * cw - gap)}" height="${fixed(high * ch - gap)}" ${look}/>`;
    const frame = `fill="none" ${THIN} transform="translate(-2,-2)"`;
    return [
      text(x, y + 14, title, "start", ' class="title"'), text(left - 10, y + 36, corner, "end"),
      ...columns.map((label, c) => text(left + (c + 0.5) * cw, y + 36, label, "middle", more)),
      ...rows.map((label, r) => text(left - 10, top + r * ch + 17, label, "end")),
      ...cells.flatMap((line, r) => line.map(([word, paint], c) => {
        seen.push({ x: left + (c + 0.5) * cw, y: top + (r + 0.5) * ch, words: `${rows[r]}, ${corner} ${columns[c]}: ${word}` });
        return box(c, r, 1, 1, 2, `fill="${colour(paint ?? "line")}" fill-opacity="${paint ? 0.45 : 0.4}"`) +
          text(left + (c + 0.5) * cw - 1, top + r * ch + 16, word, "middle", more);
      })),
      by === "row" ? box(0, at, columns.length, 1, 0, frame) : box(at, 0, 1, rows.length, 0, frame),
    ].join("");
  }

  /** Upright bars over hollow ones for the right values. */
  const columnsPanel = ({ title, limits }, data, place, key, room, seen) => {
    seen.push(...data.bars.map((v, k) => ({ x: place.x + ((k + 0.5) * place.w) / data.bars.length, y: place.y + place.h / 2,
      words: `${title}, feature ${k + 1}: ${brief(v)}, right is ${brief(data.ghost[k])}` })));
    return bars({ title, limits, right: true, ...data }, place);
  };

  /** One sublayer from x to the next sum. Its norm is a handle, and every place where it can go is drawn, but not on paper. */
  function blockPanel({ title, control, places }, here, { x, y, w, h, paper }) {
    const wide = Math.min(w, 300);
    const [stem, branch] = [0.27, 0.71].map((part) => x + (w - wide) / 2 + part * wide);
    const [next, after, plus, out, middle, into, fork, end] =
      [0, 0.19, 0.36, 0.48, 0.63, 0.78, 0.89, 1].map((part) => y + 52 + part * (h - 68));
    const centres = { post: [stem, after], after_branch: [branch, out], pre: [branch, into], none: [branch, end] };
    const [bw, bh] = [82, paper ? 20 : 26];
    const box = ([cx, cy], look) => `<rect x="${fixed(cx - bw / 2)}" y="${fixed(cy - bh / 2)}" width="${bw}" height="${bh}" rx="4" ${look}/>`;
    const way = (points, look) => `<polyline fill="none" ${look} points="${points.map((at) => at.map(fixed)).join(" ")}"/>`;
    const tip = (cx, cy, dx, dy) => way([[cx - 5 * dx - 4 * dy, cy - 5 * dy - 4 * dx], [cx, cy],
      [cx - 5 * dx + 4 * dy, cy - 5 * dy + 4 * dx]], THIN);
    const sum = (cy) => `<circle cx="${fixed(stem)}" cy="${fixed(cy)}" r="10" fill="${colour("ground")}" stroke="currentColor"/>` +
      rule(stem - 5, cy, stem + 5, cy, "axis") + rule(stem, cy - 5, stem, cy + 5, "axis");
    const data = `class="drag{}" data-sets="${control}" data-places="${JSON.stringify(places.map((name) => centres[name].map(fixed)))}"`;
    const free = here !== "post";
    const dots = paper ? [] : [0, 1].flatMap((c) => [-1, 0, 1].map((r) =>
      `<circle cx="${fixed(centres[here][0] - bw / 2 + 9 + 5 * c)}" cy="${fixed(centres[here][1] + 5 * r)}" r="1.3" fill="currentColor"/>`));
    return [
      text(x, y + 14, title, "start", ' class="title"'),
      text(x, y + 32, free ? "x reaches the next sum as it is" : "x has to pass the norm", "start", ' class="small"'),
      free ? way([[stem, end - 14], [stem, next]], `stroke="${colour("green")}" stroke-width="12" stroke-opacity=".25"`) : "",
      way([[stem, end - 14], [stem, free ? next : after]], `stroke="${colour("green")}" stroke-width="3"`),
      free ? "" : way([[stem, after], [stem, next]], THIN), tip(stem, next + 10, 0, -1), tip(stem, plus + 10, 0, -1),
      way([[stem, fork], [branch, fork], [branch, plus], [stem, plus]], THIN), tip(stem + 10, plus, -1, 0),
      sum(plus), sum(next), text(stem + 18, next + 4, "next sum"), text(stem, end + 4, "x", "middle", ' class="title"'),
      box([branch, middle], `fill="${colour("ground")}"`),
      box([branch, middle], `fill="${colour("blue")}" fill-opacity=".3" stroke="${colour("blue")}" stroke-width="1.5"`),
      text(branch, middle + 4, "F", "middle"),
      ...places.filter((name) => name !== here && !paper).map((name) => box(centres[name],
        `${data.replace("{}", "")} stroke="${colour("orange")}" stroke-dasharray="4 4" stroke-opacity=".8"`)),
      places.includes("none") && here !== "none" && !paper ? text(branch, end + 4, "no norm", "middle", ' class="small"') : "",
      paper && here === "none" ? "" : `<g ${data.replace("{}", " handle")} data-x="${fixed(centres[here][0])}" data-y="${fixed(centres[here][1])}">` +
        box(centres[here], `fill="${colour("ground")}"`) +
        box(centres[here], `fill="${colour("orange")}" fill-opacity=".4" stroke="${colour("orange")}" stroke-width="2"`) +
        dots.join("") + text(centres[here][0] + (paper ? 0 : 6), centres[here][1] + 4, "norm", "middle") + "</g>",
    ].join("");
  }

  // --- the kinds of figure: each has the numbers of a state, its sentence, and the picture of such numbers. One that
  // can be dragged says which controls a pointer at a place moves, {name: value}; `begun` is where the drag began, and
  // in which state. ---

  /** `part` of the way between two pictures' data. A number glides, on an axis with `log` by its powers; all else jumps. */
  function between(from, to, part, log = false) {
    if (typeof from === "number" && typeof to === "number") {
      return log ? from * (to / from) ** part : from + part * (to - from);
    }
    if (!from || !to || typeof to !== "object" || from.length !== to.length) return to;
    const each = (key) => between(from[key], to[key], part, log[key] ?? log);
    return Array.isArray(to) ? to.map((_, k) => each(k)) : Object.fromEntries(Object.keys(to).map((key) => [key, each(key)]));
  }

  const PANELS = { lines: linesPanel, heat: heatPanel, bars: barsPanel, block: blockPanel, grid: gridPanel, columns: columnsPanel };

  const PHONE = 1, LOW = 2, PAPER = 3; // how `tight` a picture is: panels are stacked, lower, and as paper has them
  const PLOT = 120; // px of a plot's height on paper: 22 mm

  /** A panel's height where `n` are stacked: on a phone all have to fit above the controls. */
  const HEIGHTS = {
    lines: (panel, n, tight) => [Math.max(185, 420 / n), Math.max(143, 378 / n), 165][tight - PHONE],
    heat: ({ rows }, n, tight) => Math.min(26 + 24 * rows.length + SIDE.bottom, (tight === PHONE ? 480 : 315) / n),
    bars: ({ height }, n, tight) => (tight === LOW ? height - 6 : height),
    grid: ({ height }) => height,
    columns: (panel, n, tight) => [120, 108, 85][tight - PHONE],
    block: (panel, n, tight) => [250, n > 1 ? 312 : 255, 190][tight - PHONE], // with `n` panels beside it
  };

  const chart = {
    height: (spec, tight, w = 0) => chart.places(spec, w, tight).reduce((most, { y, h }) => Math.max(most, y + h), 0),

    /** The box of each panel. `below` it a panel may have the same horizontal axis, which is then labelled only there. */
    places({ panels, side }, w, tight) {
      const gap = 18;
      const key = panels[0].bar ? KEY : 0;
      const beside = tight === LOW && panels[0].kind === "block"; // a column of its own, and the others in the next
      const plain = panels[0].bar && !panels[0].rows[0]; // maps without names of rows fit side by side
      const across = tight === PAPER || (tight && !plain) ? Math.ceil(side / 3) : side;
      const [columns, rest] = beside ? [2, panels.length - 1] : [across, panels.length / across];
      const rowOf = (k) => (beside ? Math.max(k - 1, 0) : Math.floor(k / across));
      const below = (k) => tight > 0 && across === 1 && k + 1 < panels.length && panels[k].x !== undefined && panels[k + 1].x?.label === panels[k].x.label;
      const block = HEIGHTS.block(panels[0], rest, LOW);
      const wide = (w - gap * (columns - 1)) / columns;
      // room for the longest legend, and a plot of 22 mm
      const names = (panel) => panel.curves?.map(({ label }) => label).join();
      const onPaper = (k) => SIDE.top + PLOT + SIDE.bottom - 8 + ROW * (k > 0 && names(panels[k]) === names(panels[k - 1]) ? 0
        : curveLegend(panels[k], Object.fromEntries(panels[k].curves.map(({ name }) => [name, true])), { x: 0, y: 0, w: wide }).rows);
      const tall = (panel, k) => {
        if (!tight) return panel.height;
        const part = beside ? (block + ROW * (rest - 1)) / rest : Math.min(panel.height, HEIGHTS[panel.kind](panel, rest, tight));
        return (tight === PAPER && panel.curves ? onPaper(k) : part) - (below(k) ? ROW : 0);
      };
      const heights = panels.map((_, r) => Math.max(0, ...panels.filter((_, k) => (!tight || rowOf(k) === r) && !(beside && k === 0)).map((panel) => tall(panel, panels.indexOf(panel)))));
      return panels.map((_, k) => ({
        x: (beside ? Math.min(k, 1) : k % across) * (wide + gap),
        y: heights.slice(0, rowOf(k)).reduce((sum, h) => sum + h, key),
        w: wide,
        h: beside && k === 0 ? block : heights[rowOf(k)],
        below: below(k),
        paper: tight === PAPER,
      }));
    },

    /** The row of the table for a state of the controls. */
    frame(spec, state) {
      const k = spec.controls.reduce((at, control) => at * control.values.length + state[control.name], 0);
      return spec.frames[k];
    },

    /** The first state and those that the text `sets`; without any, the ends of a choice or slider and a value between. */
    told(spec, sets) {
      const first = start(spec);
      const { name, values, start: at } = spec.controls.find(({ kind }) => kind === "choice") ?? spec.controls[0];
      const end = values.length - 1;
      const among = [0, at % end ? at : Math.round(end / 2), end].map((k) => ({ [name]: k }));
      const distinct = (changes) => [...new Map(changes.map((change) => ({ ...first, ...change }))
        .map((state) => [JSON.stringify(state), state])).values()];
      const named = distinct([{}, ...sets]).slice(0, 3);
      const order = (one, other) => spec.controls.reduce((by, { name }) => by || one[name] - other[name], 0);
      return (named.length > 1 ? named : distinct(among)).sort(order);
    },

    numbers: (spec, state) => chart.frame(spec, state).panels,
    say: (spec, state) => chart.frame(spec, state).say,
    between: (spec, from, to, part) => spec.panels.map(({ curves, x, y }, k) => {
      if (!curves) return between(from[k], to[k], part);
      const log = { x: x.log, y: y.log, low: y.log, high: y.log };
      return Object.fromEntries(Object.keys(to[k]).map((name) => [name, between(from[k][name], to[k][name], part, log)]));
    }),

    draw(spec, state, panels, w, tight, seen) {
      const places = chart.places(spec, w, tight);
      const names = ({ curves }, data) => curves?.filter(({ name }) => data[name]).map(({ label }) => label).join();
      // of stacked panels with the same curves the first has the legend
      const repeats = (k) => tight > 0 && k > 0 && names(spec.panels[k], panels[k]) === names(spec.panels[k - 1], panels[k - 1]);
      const keys = spec.panels.map((panel, k) =>
        panel.curves && (repeats(k) ? { svg: "", rows: 0 } : curveLegend(panel, panels[k], places[k])));
      const rows = tight || spec.side === 1 ? 0 : Math.max(...keys.map((key) => key?.rows ?? 0));
      const drawn = spec.panels.map((panel, k) => PANELS[panel.kind](panel, panels[k], places[k], keys[k], rows, seen));
      return (spec.panels[0].bar ? colourBar(spec.panels[0], w) : "") + drawn.join("");
    },

    /** What is dragged in a panel goes to the nearest of its places, one for each value of its control. */
    drag(spec, state, { sets, places }, { x, y }) {
      const far = JSON.parse(places).map(([px, py]) => Math.hypot(px - x, py - y));
      return { [sets]: far.indexOf(Math.min(...far)) };
    },
  };

  const REACH = 14; // limit of a feature's bar and of its slider
  const ROOM = [-8, REACH]; // the values at the bottom and at the top; an output is four times as tall, as its title says
  const NAMES = { layer: "LayerNorm", rms: "RMSNorm" };
  const UNMOVED = 5e-4; // less cannot be seen
  const HANDLE = 16; // px more for the token, whose bars have handles

  const norms = {
    /** The token has a place of its own; then each norm has a row. */
    row: ({ rows }, tight) => (rows.length === 1 ? (tight ? 150 : 220) : tight ? 96 : 135),
    height: (spec, tight) => norms.row(spec, tight) * (spec.rows.length + (tight ? 1 : 0)) + HANDLE,
    told: (spec, [set]) => [{ ...start(spec), shift: 0, scale: 1 }, { ...start(spec), ...set }],

    numbers(spec, state) {
      const drawn = spec.x.map((_, k) => state[`x${k + 1}`]);
      const x = drawn.map((v) => state.scale * (v + state.shift));
      const eps = 10 ** state.eps;
      const each = (token) =>
        Object.fromEntries(spec.rows.map((norm) => [norm, steps(norm, token, state.gamma, state.beta, eps)]));
      return { x, drawn, rows: each(x), ghosts: each(drawn) };
    },

    draw(spec, state, { x, drawn, rows, ghosts }, w, tight) {
      const row = norms.row(spec, tight);
      const wide = w / (tight ? 2 : 3);
      const h = row + HANDLE;
      const token = { x: 0, y: tight ? 0 : (norms.height(spec) - h) / 2, w: (tight ? w : wide) - 12, h };
      return bars({ title: "token x", bars: x, ghost: drawn, limits: ROOM, drag: true }, token) + spec.rows.map((norm, r) => {
        const [now, ghost] = [rows[norm], ghosts[norm]];
        const place = { y: (r + (tight ? 1 : 0)) * row + (tight ? HANDLE : 0), w: wide - 12, h: row };
        const first = tight ? 0 : wide;
        return bars({ norm, title: norm === "layer" ? "LayerNorm: x − mean" : "RMSNorm: x", bars: now.centred, ghost: ghost.centred, limits: ROOM }, { x: first, ...place }) +
          bars({ norm, title: "output, drawn ×4", bars: now.y, ghost: ghost.y, limits: ROOM.map((v) => v / 4) }, { x: first + wide, ...place });
      }).join("");
    },

    say: (spec, { shift, scale }, { rows, ghosts }) => spec.rows.map((norm) =>
      norms.sentence(norm, rows[norm], shift === 0 && scale === 1 ? null : ghosts[norm])).join(" "),

    drag(spec, state, area, { y }, begun) {
      const [start, step, zero, reach] = ["x", "step", "zero", "reach"].map((name) => Number(area[name]));
      const feature = `x${Math.min(Math.max(Math.floor((begun.at.x - start) / step), 0), spec.x.length - 1) + 1}`;
      return { [feature]: (((zero - y) / reach) * REACH) / state.scale - state.shift };
    },

    sentence(norm, { mean, rstd, y }, ghost) {
      const moved = ghost && Math.max(...y.map((v, k) => Math.abs(v - ghost.y[k]))); // at most
      const statistic = norm === "layer" ? `mean ${short(mean)} and spread ${short(1 / rstd)}` : `size ${short(1 / rstd)}`;
      const answer = !ghost ? "" : moved < UNMOVED ? "; shift and scale do not change its output" : `; its output changes by up to ${short(moved)}`;
      return `${NAMES[norm]} finds ${statistic}${answer}.`;
    },
  };

  /** A smaller font for a number below a bar if it would touch its neighbour. */
  const inside = (label, step) => {
    const size = 11 * Math.min(1, (step - 4) / (7 * label.length)); // at 11 px no digit is wider than 7 px
    return size < 11 ? ` style="font-size:${fixed(size)}px"` : "";
  };

  /** One bar for each feature, its value at the axis; a hollow bar for its value before shift and scale, or the right one. */
  function bars({ norm, title, bars: values, ghost, limits, drag, right }, { x, y, w, h }) {
    const [low, high] = limits;
    const [top, bottom] = [y + 24, y + h - (low < 0 && !drag ? 4 : 20)];
    const clear = drag ? 18 : 16; // from the end of a bar, or its handle, to its value
    const at = scale({ limits }, bottom, top, 4);
    const step = w / values.length;
    const zero = at(0);
    /** Where a value is written: across the axis from its bar, or past the end of the bar if the hollow bar is there. */
    const beside = (v, other) => v < 0 ? (other > 0 ? Math.min(at(v) + clear, drag ? bottom + clear : bottom) : zero - 8)
      : other < 0 ? Math.max(at(v) + 8 - clear, top + 12) : zero + 16;
    const block = (v, k, more) => `<rect x="${fixed(x + k * step + 3)}" y="${fixed(Math.min(at(v), zero))}" ` +
      `width="${fixed(Math.max(step - 6, 1))}" height="${fixed(Math.max(Math.abs(at(v) - zero), 1))}" ${more}/>`;
    /** A zigzag across a bar that is longer than its place. */
    const cut = (left, height) => `<path class="cut" d="M${fixed(left)} ${fixed(height)}l${[-6, 6, -6, 6].map((up) => `${fixed(step / 4)} ${up}`)}"/>`;
    return [
      text(x, y + 14, title, "start", ' class="title"'),
      ...values.map((v, k) => block(v, k, `class="bar ${norm ?? ""}"` +
        (right && Math.abs(v - ghost[k]) < UNMOVED ? ` style="fill:${colour("green")}"` : ""))),
      ...ghost.map((v, k) => block(v, k, 'class="ghost"')),
      ...values.map((v, k) => (v < low || v > high ? cut(x + k * step, v < low ? bottom - 8 : top + 14) : "")),
      ...(drag ? values.map((v, k) => grip(x + (k + 0.5) * step, at(v))) : []),
      rule(x, zero, x + w, zero, "axis"),
      ...values.map((v, k) => text(x + (k + 0.5) * step, beside(v, ghost[k]), brief(v), "middle",
        ` class="small"${inside(brief(v), step)}`)),
      drag ? `<rect class="drag" data-x="${fixed(x)}" data-step="${fixed(step)}" data-zero="${fixed(zero)}" ` +
        `data-reach="${fixed(zero - at(high))}" x="${fixed(x)}" y="${fixed(top)}" width="${fixed(w)}" ` +
        `height="${fixed(bottom - top)}"/>` : "",
    ].join("");
  }

  /** A place on an axis: 2 layers, block 16, 0.1 (standard deviation). */
  const placed = (at, label) => {
    if (/^(\w+s|million .*)$/.test(label)) return `${at} ${label}`;
    return /^\w+$/.test(label) ? `${label} ${at}` : `${at} (${label})`;
  };

  /** A curve that the reader draws: straight between knots. The style sheet hides the measured one until then. */
  const sketch = {
    height: (spec, tight) => (tight === PAPER ? 240 : spec.panel.height),
    told: (spec) => ["blank", "skipped"].map((compared) => ({ ...start(spec), compared })),

    numbers(spec, state) {
      if (state.compared === "blank") return {};
      const bends = spec.controls.map(({ name, log }) => (log ? 10 ** state[name] : state[name]));
      return { ...(state.compared !== "skipped" && { guess: { x: spec.knots, y: bends } }), truth: spec.truth };
    },

    say(spec, state, { guess, truth }) {
      const say = {
        [undefined]: "Drag the dashed line to where you expect the curve.",
        blank: "Draw the curve that you expect.",
        skipped: "This is the measured curve.",
      };
      if (state.compared in say) return say[state.compared];
      const [px, py] = [scale(spec.panel.x, 0, 1, 2), scale(spec.panel.y, 0, 1, 2)];
      const apart = guess.x.map((at, k) => {
        const next = Math.max(truth.x.findIndex((v) => v >= at), 1);
        const [a, b] = [next - 1, next];
        const part = (px(at) - px(truth.x[a])) / (px(truth.x[b]) - px(truth.x[a]));
        const measured = truth.y[a] + part * (truth.y[b] - truth.y[a]);
        return { at, drew: guess.y[k], measured, by: Math.abs(py(guess.y[k]) - py(measured)) };
      });
      const { at, drew, measured } = apart.sort((one, other) => other.by - one.by)[0];
      return `You are furthest off at ${placed(short(at), spec.panel.x.label)}: you drew ${short(drew)}; it is ${short(measured)}.`;
    },

    draw(spec, state, data, w, tight) {
      const panel = { ...spec.panel, drawn: true };
      const place = { x: 0, y: 0, w, h: sketch.height(spec, tight) };
      return linesPanel(panel, data, place, tight === PAPER ? { svg: "", rows: 0 } : curveLegend(panel, data, place), 0);
    },

    drag(spec, state, { box }, { x, y }) {
      const [left, right, top, bottom] = JSON.parse(box);
      const px = scale(spec.panel.x, left, right, 5);
      const near = spec.knots.map((at) => Math.abs(px(at) - x));
      const control = spec.controls[near.indexOf(Math.min(...near))];
      const [low, high] = control.range;
      return { [control.name]: low + ((bottom - y) / (bottom - top)) * (high - low) };
    },
  };

  const ROOT3 = Math.sqrt(3);
  const COLOURS = ["blue", "green", "pink", "black"]; // of the tokens; the line (1, 1, 1) is orange

  /** Tokens of three features, each a point. A token loses its mean along (1, 1, 1), and then grows along its ray. */
  const cloud = {
    height: (spec, tight) => (tight === PAPER ? 300 : 380),
    told: (spec) => [[0, 0], [100, 0], [100, 100]].map(([project, rescale]) => ({ ...start(spec), project, rescale })),
    idle: ({ norm }) => (norm === 1 ? ["project"] : []), // RMSNorm has no projection

    numbers({ x }, { project, rescale, norm }) {
      const part = norm === 0 ? project / 100 : 0;
      return x.map((token) => {
        const { centred } = steps("layer", token, 1, 0, 0);
        const flat = token.map((v, k) => v + part * (centred[k] - v));
        const { xhat } = steps("rms", flat, 1, 0, 0);
        return flat.map((v, k) => v + (rescale / 100) * (xhat[k] - v));
      });
    },

    /** From features to px round (cx, cy): (1, 1, 1) is upright, then turned and tilted; depth is towards the reader. */
    view({ turn, tilt }, { cx, cy, size }) {
      const [round, over] = [turn, tilt].map((degrees) => (degrees * Math.PI) / 180);
      return ([x1, x2, x3]) => {
        const [a, b, up] = [(x2 - x1) / Math.SQRT2, (2 * x3 - x1 - x2) / Math.sqrt(6), (x1 + x2 + x3) / ROOT3];
        const across = a * Math.cos(round) - b * Math.sin(round);
        const back = a * Math.sin(round) + b * Math.cos(round);
        return {
          x: cx + size * across,
          y: cy - size * (up * Math.cos(over) + back * Math.sin(over)),
          depth: up * Math.sin(over) - back * Math.cos(over),
        };
      };
    },

    draw(spec, state, points, w, tight) {
      const layer = state.norm === 0;
      const [top, h] = [2 * ROW, cloud.height(spec, tight)];
      const reach = 1.05 * Math.max(ROOT3, ...spec.x.map((token) => Math.hypot(...token)));
      const place = { cx: w / 2, cy: (top + h) / 2, size: Math.min(w, h - top) / 2 / reach };
      const at = cloud.view(state, place);
      const line = (from, to, look) => `<line ${look} x1="${fixed(from.x)}" y1="${fixed(from.y)}" x2="${fixed(to.x)}" y2="${fixed(to.y)}"/>`;
      const round = (radius, flat, look) => `<ellipse cx="${fixed(place.cx)}" cy="${fixed(place.cy)}" ` +
        `rx="${fixed(radius * place.size)}" ry="${fixed(radius * place.size * flat)}" ${look}/>`;
      const flat = Math.abs(Math.sin((state.tilt * Math.PI) / 180)); // a circle round (1, 1, 1) seen from here
      const [ones, disc, ring] = [`stroke="${colour("orange")}" stroke-width="2" stroke-opacity=".7"`,
        `fill="${colour("line")}" fill-opacity=".5"`, `fill="none" stroke="${colour("grey")}"`];
      const key = legend([
        { label: "the line (1, 1, 1)", sample: `<line x2="24" ${ones}/>` },
        ...(layer ? [{ label: "plane x₁ + x₂ + x₃ = 0", sample: `<ellipse cx="12" rx="12" ry="6" ${disc}/>` }] : []),
        { label: "length √3", sample: `<circle cx="12" r="6" ${ring}/>` },
      ], 0, 12, w);
      const seen = points.map((point, k) => ({ from: at(spec.x[k]), to: at(point), paint: colour(COLOURS[k % COLOURS.length]) }))
        .sort((one, other) => one.to.depth - other.to.depth);
      return [
        key.svg, layer ? round(0.85 * reach, flat, disc) : "", round(ROOT3, 1, `${ring} stroke-opacity=".5"`),
        round(ROOT3, flat, `${ring} stroke-dasharray="3 3"`),
        ...[[1, 0, 0], [0, 1, 0], [0, 0, 1]].map((axis, k) => {
          const end = at(axis.map((v) => 0.75 * reach * v));
          return line(at([0, 0, 0]), end, 'class="grid"') + text(end.x, end.y + 4, "x" + "₁₂₃"[k], "middle", ' class="small"');
        }),
        line(at([-1, -1, -1].map((v) => (v * reach) / ROOT3)), at([1, 1, 1].map((v) => (v * reach) / ROOT3)), ones),
        ...seen.map(({ from, to, paint }) => line(from, to, `stroke="${paint}" stroke-opacity=".35"`)),
        ...seen.map(({ to, paint }) => `<circle class="token" cx="${fixed(to.x)}" cy="${fixed(to.y)}" ` +
          `r="${fixed(4 + (1.5 * to.depth) / reach)}" fill="${paint}" fill-opacity="${(0.75 + (0.2 * to.depth) / reach).toFixed(2)}"/>`),
        tight === PAPER ? "" : text(w, h - 8, "↻ drag to turn", "end", ' class="grip small"'),
        `<rect class="drag turn" y="${top}" width="${w}" height="${h - top}"/>`,
      ].join("");
    },

    say({ x }, { project, rescale, norm }) {
      const layer = norm === 0;
      const flat = layer && project === 100;
      if (rescale === 100) {
        if (flat) return "Every token now lies on one circle: LayerNorm keeps d − 2 = 1 of its 3 numbers.";
        return "Every token now lies on one sphere: " + (layer ? "rescaling alone has fixed its length, but its mean is still there."
          : "RMSNorm keeps d − 1 = 2 of its 3 numbers. It never subtracts the mean.");
      }
      if (rescale > 0) return `Every token glides along its own ray towards the length √3: ${rescale} % of the way.`;
      if (flat) return "Every token now lies in one plane: its mean is 0, and 2 of its 3 numbers are left.";
      if (layer && project > 0) return `${project} % of each token's mean is subtracted: the cloud flattens along (1, 1, 1).`;
      return `${x.length} tokens of d = 3 features fill the space: each has its own mean, its own length and its own direction.` +
        (layer ? "" : " RMSNorm has no projection; it only rescales.");
    },

    /** Two px of the pointer turn the cloud by one degree. */
    drag(spec, state, area, { x, y }, { at, state: first }) {
      const turn = first.turn + (x - at.x) / 2;
      return { turn: ((((turn + 180) % 360) + 360) % 360) - 180, tilt: first.tilt + (y - at.y) / 2 };
    },
  };

  /** What a kind does unless it says otherwise. `idle` names the sliders without effect in a state. */
  const ANY = { idle: () => [], between: (spec, from, to, part) => between(from, to, part) };
  const KINDS = {
    chart: { ...ANY, ...chart }, norms: { ...ANY, ...norms }, sketch: { ...ANY, ...sketch }, cloud: { ...ANY, ...cloud },
  };
  const NARROW = 600; // px; below this panels are stacked. live.css uses the same width for the height
  const STILL = 608; // px, the width of the book's text column
  const BEAT = 700; // ms between two steps of Play
  const NEAR = 30; // px from a point at which a pointer sees its value
  const GLIDE = 200; // ms from one state to the next

  /** How tight a picture is with this room. */
  const tightness = (spec, w, h) => (w >= NARROW ? 0 : h >= KINDS[spec.kind].height(spec, PHONE) ? PHONE : LOW);

  /** The picture of a figure in a state, `w` pixels wide; `part` of the way to it if it comes `from` other numbers. */
  function picture(spec, state = start(spec), w = STILL, tight = 0, from = undefined, part = 1) {
    const kind = KINDS[spec.kind];
    const numbers = kind.numbers(spec, state);
    const say = unbroken(kind.say(spec, state, numbers));
    const shown = part === 1 ? numbers : kind.between(spec, from, numbers, part);
    const points = []; // a chart's, each with its value in words
    const svg = `<svg viewBox="0 0 ${w} ${kind.height(spec, tight, w)}" role="img" aria-label="${escape(seen(spec, state, say))}">` +
      `${kind.draw(spec, state, shown, w, tight, points)}</svg>`;
    return { svg, say, numbers, shown, points };
  }

  /** The alt text: the given one for the first state; for any other, the title and the sentence. */
  const seen = (spec, state, say) => spec.controls.every(({ name, start }) => state[name] === start) ? spec.alt
    : `${spec.title}. ${say}`;

  /** The first state of every control. */
  const start = (spec) => Object.fromEntries(spec.controls.map(({ name, start }) => [name, start]));

  // --- the page ---

  /** The lowest and highest position of a control, and the step between. */
  const range = (control) => control.range ?? [0, control.values.length - 1, 1];

  const label = (control, value) => {
    if (control.values) return unbroken(control.values[value]);
    if (!control.log) return short(value);
    return Number.isInteger(value) ? `10${superscript(value)}` : short(10 ** value);
  };

  const SHEET = 920; // px across a sheet of paper, where letters of 13 px are of 7 points
  const GUTTER = 20;

  /** For paper: three states side by side, or two if a title is long, each below the values that differ. */
  function states(spec, sets) {
    const room = (n) => (SHEET - GUTTER * (n - 1)) / n;
    const long = spec.panels?.some(({ title, y }) => width(title ?? y.label) > room(3));
    const all = KINDS[spec.kind].told(spec, sets);
    const told = long ? [all[0], all.at(-1)] : all;
    const moved = spec.controls.filter(({ name }) => told.some((state) => state[name] !== told[0][name]));
    return told.map((state) => {
      const { svg, say } = picture(spec, state, room(told.length), PAPER);
      const values = moved.map((control) => `${control.label}: ${label(control, state[control.name])}`);
      return `<div><p class="live-values">${escape(values.join(", "))}</p><div class="live-picture">${svg}</div><p>${escape(say)}</p></div>`;
    }).join("");
  }

  function controlMarkup(control, id) {
    const name = `${id}-${control.name}`;
    if (control.kind === "choice") {
      const options = control.values.map((words, k) => `<label><input type="radio" name="${name}" ` +
        `value="${k}"${k === control.start ? " checked" : ""}> ${escape(words)}</label>`);
      return `<fieldset data-control="${control.name}"><legend>${escape(control.label)}</legend>${options.join("")}</fieldset>`;
    }
    const [low, high, step] = range(control);
    const stops = control.values?.map((_, k) => `<option value="${k}">`).join("");
    return `<label data-control="${control.name}"><span>${escape(control.label)}</span> <input type="range"${stops ? ` list="${name}"` : ""} min="${low}" ` +
      `max="${high}" step="${step}" value="${control.start}" aria-valuetext="${escape(label(control, control.start))}"> ` +
      `<output>${escape(label(control, control.start))}</output>${stops ? `<datalist id="${name}">${stops}</datalist>` : ""}</label>`;
  }

  /** Whether a picture has points whose values can be read. */
  const readable = ({ panels = [] }) => panels.some(({ kind }) => ["lines", "bars", "grid", "columns"].includes(kind));

  /** The figure's contents except its data. Python stores them, so the page is complete without a script. */
  function markup(spec) {
    const { svg, say } = picture(spec);
    const kind = KINDS[spec.kind];
    const controls = (more) => spec.controls.filter((control) => Boolean(control.more) === more)
      .map((control) => controlMarkup(control, spec.name)).join("");
    // the caption is first, so that a page of which only a part has arrived does not jump
    return `<figcaption>${escape(spec.title)}</figcaption><div class="live-picture" style="${["wide", "narrow", "low"].map((name, tight) => `--${name}:${kind.height(spec, tight)}px`).join(";")}">${svg}</div>` +
      `<div class="live-bar"><div class="live-controls" role="group" aria-label="${escape(spec.title)}: controls">${controls(false)}` +
      (spec.more ? `<details><summary>${escape(spec.more)}</summary><div>${controls(true)}</div></details>` : "") +
      `<div class="live-buttons">${spec.controls.some(({ play }) => play) ? '<button type="button" class="live-play">Play</button>' : ""}` +
      '<button type="button" class="live-reset">Reset</button>' +
      `${readable(spec) ? '<button type="button" class="live-read">Values: ← →</button>' : ""}</div></div>` +
      `<p class="live-say">${escape(say)}</p></div><p class="live-heard" role="status"></p>`;
  }

  /** Draw a handle where the hand holds it, or `part` of the way from where it was to its place. */
  function settle(handle, hand, was, part) {
    const place = { x: Number(handle.dataset.x), y: Number(handle.dataset.y) };
    const at = hand ?? between(was, place, part);
    handle.style.transform = `translate(${at.x - place.x}px, ${at.y - place.y}px)`;
    return at;
  }

  const GRASP = 30; // px from a handle at which a finger takes it

  /** What begins to move: a pointer takes hold anywhere in an area with handles, a finger only near one of them. */
  function grasped({ target, clientX, clientY, pointerType }) {
    const area = target.closest(".drag");
    const handles = area && pointerType === "touch" ? [...area.ownerSVGElement.querySelectorAll("circle.grip")] : [];
    const near = (handle) => {
      const { left, top, width } = handle.getBoundingClientRect();
      return Math.hypot(left + width / 2 - clientX, top + width / 2 - clientY) < GRASP;
    };
    return handles.length && !handles.some(near) ? null : area;
  }

  const roomOf = ({ clientWidth, clientHeight }) => ({ w: Math.round(clientWidth), h: Math.round(clientHeight) });

  /** A figure on the page. What a reader does sets its `state`; then the controls are placed, and the picture is drawn. */
  class Figure {
    /** Draw when the reader comes near, and again at every change of size. */
    constructor(element) {
      this.element = element;
      this.spec = JSON.parse(element.querySelector("script").textContent);
      this.kind = KINDS[this.spec.kind];
      for (const part of ["picture", "controls", "say", "heard"]) this[part] = element.querySelector(`.live-${part}`);
      this.state = start(this.spec);
      this.compared = undefined; // a sketch with the measured curve: the guess, or "skipped"
      this.shown = undefined; // the numbers in the picture, perhaps on their way to those of the state
      this.points = []; // in the picture, each with its value in words
      this.handle = undefined; // where the handle is drawn
      this.size = {}; // of the picture, in px
      this.frame = undefined; // the request for the next picture of the way
      this.followControls();
      this.followPointer();
      this.followText();
      this.enablePlay(element.querySelector(".live-play"));
      this.enableRead(element.querySelector(".live-read"));
      this.place(); // a reload may restore old positions
      // A ResizeObserver that starts at once could miss the size of a part of the page that is not laid out yet.
      const near = new IntersectionObserver((entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        near.disconnect();
        new ResizeObserver(() => {
          const now = roomOf(this.picture);
          if (now.w !== this.size.w || now.h !== this.size.h) this.draw(false);
        }).observe(this.picture);
      }, { rootMargin: "50%" });
      near.observe(element);
    }

    /** Stop playing, and show the state with these changes. */
    set(changes) {
      this.pause();
      this.state = { ...this.state, ...changes };
      this.place();
      this.draw();
    }

    /**
     * Show the state: at once, or gliding from what is shown. A `hand` holds the handle.
     * While the figure plays, glide to the `next` state until the next beat; the words stay those of the last one.
     */
    draw(glides = true, hand = undefined, next = undefined) {
      cancelAnimationFrame(this.frame);
      const begun = performance.now();
      const { shown: from, handle: left } = this;
      const drawn = this.spec.kind === "sketch"; // a line follows the hand that draws it
      const jump = !glides || drawn || !from || matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (jump && next) return;
      const paint = (now) => {
        const part = jump ? 1 : Math.min(Math.max(now - begun, 0) / (next ? BEAT : GLIDE), 1);
        const seen = this.paint(from, part, next);
        this.element.classList.toggle("live-glides", Boolean(next)); // no number is ahead of the words
        const handle = this.picture.querySelector(".handle");
        if (handle) this.handle = settle(handle, hand, left, part);
        if (now === begun && !next) {
          this.say.textContent = seen.say;
          this.element.dataset.state = JSON.stringify({ state: this.state, numbers: seen.numbers });
          this.element.classList.add("live-on");
        }
        if (part < 1) this.frame = requestAnimationFrame(paint);
      };
      paint(begun);
    }

    /** Draw the picture that is `part` of the way `from` other numbers to the state. */
    paint(from, part, state = this.state) {
      this.size = roomOf(this.picture);
      const { w, h } = { ...this.size, w: this.size.w || STILL };
      const seen = picture(this.spec, { ...state, compared: this.compared }, w, tightness(this.spec, w, h), from, part);
      this.picture.innerHTML = seen.svg;
      // A finger that drags must not scroll the page. In Chromium `touch-action` has no effect on a shape in a picture.
      const keep = (event) => { if (this.held?.matches(":not(.turn)")) event.preventDefault(); };
      this.picture.firstChild.addEventListener("touchstart", keep, { passive: false });
      [this.shown, this.points] = [seen.shown, seen.points];
      return seen;
    }

    /** Set the controls to the state, for example after a drag. */
    place() {
      const idle = this.kind.idle(this.state);
      for (const control of this.spec.controls) {
        const box = this.controls.querySelector(`[data-control="${control.name}"]`);
        if (control.kind === "choice") box.querySelectorAll("input")[this.state[control.name]].checked = true;
        else {
          const [input, output] = [box.querySelector("input"), box.querySelector("output")];
          input.value = this.state[control.name];
          input.disabled = idle.includes(control.name);
          output.textContent = label(control, this.state[control.name]);
          input.setAttribute("aria-valuetext", output.textContent);
        }
      }
      this.namePlay();
    }

    /** Let a screen reader announce the sentence. */
    tell() {
      this.heard.textContent = this.say.textContent;
    }

    followControls() {
      this.controls.addEventListener("input", ({ target }) =>
        this.set({ [target.closest("[data-control]").dataset.control]: Number(target.value) }));
      // a screen reader announces the sentence on release, not at every step
      this.controls.addEventListener("change", () => this.tell());
      // bring the picture into view when the focus arrives by keyboard
      this.controls.addEventListener("focusin", ({ target, relatedTarget }) => {
        if (!this.controls.contains(relatedTarget) && target.matches(":focus-visible")) this.element.scrollIntoView({ block: "nearest" });
      });
      this.controls.querySelector(".live-reset").addEventListener("click", () => {
        this.set(start(this.spec));
        this.tell();
      });
      this.element.addEventListener("keydown", (event) => event.stopPropagation()); // else JupyterLab takes the arrow keys
      // Notebook 7 takes them before any listener, except from what says so
      this.element.addEventListener("focusin", ({ target }) => (target.dataset.lmSuppressShortcuts = "true"));
    }

    /** A pointer drags what can be dragged, and sees the value of the nearest point. */
    followPointer() {
      const look = ({ clientX, clientY, target }) => {
        const { left, top } = this.picture.getBoundingClientRect();
        const far = this.points.map(({ x, y }) => Math.hypot(x + left - clientX, y + top - clientY));
        const nearest = this.points.find((_, k) => far[k] < NEAR && far[k] === Math.min(...far));
        this.mark(target.closest(".drag") ? undefined : nearest);
      };
      this.picture.addEventListener("pointermove", look);
      this.picture.addEventListener("pointerdown", (event) => {
        look(event);
        this.held = grasped(event);
        if (this.held) this.drag(this.held, event);
      });
      this.picture.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && this.mark());
    }

    /** Write a point's value beside it; without a point, none. */
    mark(point = undefined) {
      this.picture.querySelector(".live-value")?.remove();
      if (!point) return;
      const side = point.x > this.picture.clientWidth / 2 ? " left" : "";
      this.picture.insertAdjacentHTML("beforeend", `<div class="live-value${side}" ` +
        `style="left:${fixed(point.x)}px;top:${fixed(point.y)}px"><span>${escape(point.words)}</span></div>`);
    }

    /** Let the controls of an area follow the pointer until it is released; sliders do the same for the keyboard. */
    drag(area, event) {
      this.pause();
      const at = ({ clientX, clientY }) => new DOMPoint(clientX, clientY)
        .matrixTransform(this.picture.querySelector("svg").getScreenCTM().inverse());
      const begun = { at: at(event), state: { ...this.state } };
      const follow = (e) => {
        const here = at(e);
        const moved = this.kind.drag(this.spec, this.state, area.dataset, here, begun);
        for (const control of this.spec.controls.filter(({ name }) => name in moved)) {
          const [low, high, grain] = range(control);
          const near = low + Math.round((moved[control.name] - low) / grain) * grain;
          this.state[control.name] = Math.min(Math.max(near, low), high);
        }
        this.place();
        this.draw(false, area.matches(".handle") ? {
          x: Number(area.dataset.x) + here.x - begun.at.x, y: Number(area.dataset.y) + here.y - begun.at.y,
        } : undefined);
      };
      const end = () => {
        this.picture.removeEventListener("pointermove", follow);
        this.draw(); // a handle glides to its place
        this.tell();
      };
      this.picture.setPointerCapture(event.pointerId);
      event.preventDefault();
      follow(event);
      this.picture.addEventListener("pointermove", follow);
      this.picture.addEventListener("pointerup", end, { once: true });
      this.picture.addEventListener("pointercancel", end, { once: true });
    }

    followText() {
      // a phrase in the text sets some controls, and announces the result
      this.element.addEventListener("set", ({ detail }) => {
        this.set(detail);
        this.tell();
        this.picture.scrollIntoView({ block: "nearest" });
      });
      // A Predict box asks to compare a sketch with the measured curve: with an earlier guess, or with none (skipped);
      // null takes the answer back.
      this.element.addEventListener("compare", ({ detail }) => {
        this.compared = detail ?? undefined;
        this.element.classList.toggle("compared", detail !== null);
        if (detail?.startsWith("{")) this.state = { ...this.state, ...JSON.parse(detail) };
        this.place();
        this.draw(false);
      });
    }

    /** Add to the figure, or take back, what paper shows in its place. */
    print(printing) {
      const shown = this.element.querySelector(".live-states");
      if (Boolean(shown) === printing) return; // two events tell of it, and subnorm.js has moved a curve by the second
      if (shown) return shown.remove();
      const sets = [...document.querySelectorAll(`a.live-set[href="#${this.element.id}"]`)].map(({ dataset }) => JSON.parse(dataset.to));
      this.element.insertAdjacentHTML("beforeend", `<div class="live-states">${states(this.spec, sets)}</div>`);
    }

    /** The button that moves a slider step by step to its end. */
    enablePlay(button) {
      this.playButton = button;
      this.playing = this.spec.controls.find(({ play }) => play); // the slider
      this.timer = undefined; // of the next step, while the figure plays
      button?.addEventListener("click", () => {
        if (this.timer === undefined) return this.play();
        this.set({});
        this.tell();
      });
    }

    get atEnd() {
      return this.state[this.playing.name] === this.playing.values.length - 1;
    }

    namePlay() {
      if (!this.playing) return;
      this.playButton.textContent = this.timer !== undefined ? "Pause" : this.atEnd ? "Play again" : "Play";
    }

    /** Play on; from where the figure began or ended, from the first step. */
    play() {
      const { name, start } = this.playing;
      if (this.atEnd || (start > 0 && this.state[name] === start)) this.state[name] = 0;
      this.step();
    }

    /** Show this step, and glide to the next until the next beat; the end is announced. */
    step() {
      const { name } = this.playing;
      const next = { ...this.state, [name]: this.state[name] + 1 };
      this.timer = this.atEnd ? undefined : setTimeout(() => {
        this.state = next;
        this.step();
      }, BEAT);
      this.place();
      this.draw(false);
      if (this.atEnd) this.tell();
      else this.draw(true, undefined, next);
    }

    pause() {
      clearTimeout(this.timer);
      this.timer = undefined;
    }

    /** The button that goes from value to value; it is seen when it has the focus. */
    enableRead(button) {
      this.readPoint = -1; // which was read last
      button?.addEventListener("click", () => this.read(1));
      button?.addEventListener("keydown", ({ key }) => /^Arrow(Left|Right)$/.test(key) && this.read(key === "ArrowRight" ? 1 : -1));
      button?.addEventListener("blur", () => this.mark());
    }

    /** Mark and announce the next value, or the one before (-1). */
    read(by) {
      const { points } = this;
      this.readPoint = (Math.max(this.readPoint, by === 1 ? -1 : 0) + by + points.length) % points.length;
      this.mark(points[this.readPoint]);
      this.heard.textContent = points[this.readPoint].words;
    }
  }

  /** A phrase that names a state becomes a button that sets its figure; a link, because a button cannot wrap. */
  function enable(phrase) {
    const { figure, to } = phrase.dataset;
    const link = document.createElement("a");
    Object.assign(link, { className: "live-set", href: `#${figure}`, role: "button", innerHTML: phrase.innerHTML });
    const set = (event) => {
      event.preventDefault();
      document.getElementById(figure).dispatchEvent(new CustomEvent("set", { detail: JSON.parse(to) }));
    };
    link.dataset.to = to;
    link.addEventListener("click", set);
    link.addEventListener("keydown", (event) => event.key === " " && set(event));
    phrase.replaceWith(link);
  }

  const mounted = new WeakMap(); // in JupyterLab every output mounts all figures again
  const mountAll = () => document.querySelectorAll("figure[data-live]").forEach((figure) => {
    if (!mounted.has(figure)) mounted.set(figure, new Figure(figure));
    document.querySelectorAll(`span.live-set[data-figure="${figure.id}"]`).forEach(enable);
    mounted.get(figure).print(matchMedia("print").matches); // a page can be opened to be printed
  });

  const print = (printing) => {
    for (const figure of document.querySelectorAll("figure[data-live]")) mounted.get(figure)?.print(printing);
  };
  if (typeof document !== "undefined") {
    // before subnorm.js moves what paper has elsewhere, and before Chromium counts the sheets
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    matchMedia("print").addEventListener("change", ({ matches }) => print(matches));
  }

  return { steps, markup, picture, mountAll };
})();
if (typeof document !== "undefined") subnormLive.mountAll();
