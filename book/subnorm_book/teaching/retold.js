// Two models tell their stories side by side, a few letters at a time. All texts have their places from the start.
{
  const figure = document.currentScript.parentElement;
  const { tokens, parts, storyteller } = figure.dataset;
  const all = (selector) => [...figure.querySelectorAll(selector)];
  const [trained, ...cuts] = all(".retold-text");
  const [radios, panes, notes] = [all("input[name]"), all(".retold-cuts > *"), all(".retold-notes > *")];
  const stored = new Map([trained, ...cuts].map((pane) => [pane, pane.textContent]));
  const [again, go] = all("button");
  const heard = figure.querySelector("[role=status]");
  const FIRST = 12, STEPS = 60, STEP = 70; // ms; the first words are there at once
  let timer = null, untold = [], story = stored.get.bind(stored), own = 0; // letters of the reader's own, at the beginning

  /** Fill a pane: with few letters to a piece if it is told, and whole if not. The reader's words are bold, and those that
      the other has not are marked. */
  function fill(pane, text, other, told) {
    const [words, others] = [text, other].map((one) => one.split(/(\s+)/)); // and the blanks between them
    const differs = (k) => (k % 2 ? differs(k - 1) && differs(k + 1) : words[k] !== others[k]);
    const pieces = [];
    let place = 0;
    words.forEach((word, k) => {
      const cut = Math.max(0, own - place);
      place += word.length;
      for (const [part, name] of [[word.slice(0, cut), "b"], [word.slice(cut), differs(k) ? "mark" : "span"]]) {
        if (!told && pieces.at(-1)?.localName === name) pieces.at(-1).append(part);
        else for (const letters of (told ? part.match(/\s+|\S{1,3}/g) : part && [part]) || []) {
          pieces.push(document.createElement(name));
          pieces.at(-1).append(letters);
        }
      }
    });
    pane.replaceChildren(...pieces);
    return pieces;
  }

  /** Both stories, whole or about to be told. */
  function show(told) {
    clearInterval(timer);
    timer = null;
    const k = radios.findIndex((radio) => radio.checked);
    for (const list of [panes, notes]) list.forEach((one, j) => one.classList.toggle("chosen", j === k));
    const other = story(trained);
    untold = [trained, cuts[k]].map((pane) => fill(pane, story(pane), other, told));
    again.textContent = told ? "Stop" : "Tell it again";
  }

  function tell() {
    const told = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    show(told);
    if (!told) return;
    let step = FIRST;
    const reached = (pieces) => (pieces.length * step) / STEPS;
    for (const pieces of untold) pieces.slice(reached(pieces)).forEach((piece) => piece.classList.add("untold")); // transparent, and there for a screen reader
    timer = setInterval(() => {
      step += 1;
      for (const pieces of untold) pieces.slice(0, reached(pieces)).forEach((piece) => piece.classList.remove("untold"));
      if (step === STEPS) show(false);
    }, STEP);
  }

  /** A story that was cut off, up to its last whole word: tokens are parts of words (retold.py). */
  function atAWord({ text, ended }) {
    const whole = text.trimEnd(), kept = /[.!?]["'”’]?$/.test(whole) ? whole : whole.replace(/\s*\S+$/, "");
    if (ended) return whole;
    return kept.length < whole.length / 2 ? `${whole}…` : `${kept} …`; // no words at all
  }

  const load = (name) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${document.documentElement.dataset.content_root}_static/${name}`;
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });

  /** From here on the panes keep their height, so that nothing moves, and a longer story scrolls in its pane. */
  function keepHeights() {
    const all = [trained, ...cuts];
    const heights = all.map((pane) => {
      const around = pane.parentElement;
      return around.getBoundingClientRect().bottom - pane.getBoundingClientRect().top - parseFloat(getComputedStyle(around).paddingBottom);
    });
    all.forEach((pane, k) => {
      pane.style.height = `${heights[k]}px`;
      pane.tabIndex = 0; // to scroll it by keyboard
    });
  }

  /** The model, in scripts, because a page that was opened as a file can read nothing else. */
  async function arrived() {
    globalThis.subnormStories ??= [];
    const every = [storyteller, ...Array.from({ length: parts }, (_, k) => `stories/${k}.js`)];
    let done = 0;
    go.textContent = "Loading…";
    const ends = await Promise.allSettled(every.map(async (name) => {
      await load(name);
      go.textContent = `Loading… ${Math.round((100 * ++done) / every.length)} %`;
    }));
    if (ends.some(({ status }) => status === "rejected")) throw new Error("not all arrived");
    return subnormStoryteller(subnormStories);
  }

  again.addEventListener("click", () => (timer ? show(false) : tell()));
  figure.addEventListener("change", ({ target }) => {
    if (!radios.includes(target)) return;
    tell();
    heard.textContent = notes.find((note) => note.matches(".chosen")).textContent;
  });
  let teller;
  figure.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.ariaDisabled) return;
    go.ariaDisabled = "true";
    heard.textContent = "Loading the model.";
    try {
      teller ??= await arrived();
      const words = event.target.elements[0].value.trim();
      const known = new Map();
      story = (pane) => {
        const name = pane === trained ? "as trained" : radios[cuts.indexOf(pane)].value;
        if (!known.has(name)) known.set(name, atAWord(teller(name, words, Number(tokens))));
        return known.get(name);
      };
      own = words.length;
      go.textContent = "Continue";
      keepHeights();
      tell();
      const { letters } = teller("as trained", words, 1);
      heard.textContent = letters ? "Both stories go on from your words." : "The model has read only English stories: some of your letters are new to it.";
      heard.classList.toggle("live-heard", letters);
      trained.scrollIntoView({ block: "nearest" });
    } catch {
      go.textContent = heard.textContent = "It did not arrive: try again";
    }
    go.ariaDisabled = null;
  });
  tell();
}
