// Shows the sections that have the words in a search field, while the reader types. subnorm.js loads this when a field
// is used for the first time; this loads the list of all sections (sections.js) with the first letter.
const subnormSections = (() => {
  const { src } = document.currentScript;
  let list;
  /** Each section of the book: {page, at, title, text}, `at` the title of its page. */
  return () => (list ??= new Promise((done) => {
    const script = document.createElement("script");
    script.src = src.replace(/search-box\.js.*/, "sections.js");
    script.onload = () => done(SECTIONS.flatMap(([page, at, rows]) =>
      rows.map(([anchor, title, text]) => ({ page: `${page}.html${anchor && `#${anchor}`}`, at, title, text }))));
    document.head.append(script);
  }));
})();

/** The nearest of the words to one that is misspelt, by the letters to add, leave out or exchange; undefined if none is near. */
function subnormNearWord(word, all) {
  function distance(one, other) {
    let row = [...other, ""].map((_, k) => k);
    for (const [j, letter] of [...one].entries()) {
      const next = [j + 1];
      for (const [k, its] of [...other].entries()) next.push(Math.min(row[k] + (its !== letter), row[k + 1] + 1, next[k] + 1));
      row = next;
    }
    return row.at(-1);
  }
  const near = [...all].map((other) => [other, distance(word, other)]).sort((a, b) => a[1] - b[1])[0];
  return near[1] <= (word.length < 6 ? 1 : 2) ? near[0] : undefined;
}

{
  const SHOWN = 8;
  const root = document.currentScript.src.replace(/_static\/.*/, "");
  const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
  const plain = (some) => some.map((word) => (word.length > 3 ? word.replace(/s$/, "") : word)).join("");
  const KINDS = [[/^notebooks\/\d\d-/, 3], [/^notebooks\/\d\d[a-z]-/, 2], [/exercises/, -3], [/^book\/api/, -1]];

  /** The sections that have all words, the best first. */
  function found(sections, asked) {
    const one = plain(asked);
    const scored = sections.map((section) => {
      const title = words(section.title), joined = plain(title);
      const all = `${section.title} ${section.text} ${section.at}`.toLowerCase();
      const score = joined === one ? 40 : joined.startsWith(one) ? 30 : joined.includes(one) ? 20
        : asked.every((word) => title.some((other) => other.startsWith(word))) ? 15
          : asked.every((word) => all.includes(word)) ? 5 : 0;
      const kind = KINDS.find(([kind]) => kind.test(section.page))?.[1] ?? 0;
      return { ...section, score: score && score + kind + (section.page.includes("#") ? 0 : 8) };
    });
    return scored.filter(({ score }) => score).sort((a, b) => b.score - a.score);
  }

  /** The words with each that begins none of the book's replaced by the nearest that does. */
  function spelt(sections, asked) {
    const all = new Set(sections.flatMap(({ title, text }) => words(`${title} ${text}`)));
    return asked.map((word) => (/^\p{L}{4,}$/u.test(word) && ![...all].some((other) => other.includes(word)) && subnormNearWord(word, all)) || word);
  }

  /** A text with the words marked. */
  function marked(name, text, asked) {
    const part = document.createElement(name);
    let rest = text;
    while (rest) {
      const places = asked.map((word) => [rest.toLowerCase().indexOf(word), word.length]).filter(([at]) => at >= 0);
      const [at, length] = places.sort((a, b) => a[0] - b[0] || b[1] - a[1])[0] ?? [rest.length, 0];
      part.append(rest.slice(0, at));
      if (length) part.append(Object.assign(document.createElement("mark"), { textContent: rest.slice(at, at + length) }));
      rest = rest.slice(at + length);
    }
    return part;
  }

  function row({ page, at, title, text }, asked) {
    const link = Object.assign(document.createElement("a"), { href: root + page });
    link.append(marked("b", title, asked));
    if (at !== title) link.append(Object.assign(document.createElement("span"), { textContent: at }));
    if (text) link.append(marked("small", text, asked));
    const item = document.createElement("li");
    item.append(link);
    return item;
  }

  for (const field of document.querySelectorAll(".bd-search input")) {
    const box = document.createElement("div");
    box.className = "found-sections";
    box.hidden = true;
    const [status, list] = [document.createElement("p"), document.createElement("ul")];
    status.setAttribute("role", "status");
    box.append(status, list);
    field.closest("form").after(box);

    const show = async () => {
      const typed = field.value;
      const asked = words(typed);
      const sections = asked.length && typed.trim().length > 1 ? await subnormSections() : [];
      if (field.value !== typed) return; // the reader has typed on
      const meant = sections.length ? spelt(sections, asked) : [];
      const hits = meant.length ? found(sections, meant) : [];
      list.replaceChildren(...hits.slice(0, SHOWN).map((hit) => row(hit, meant)));
      const other = meant.join(" ") === asked.join(" ") ? "" : ` for “${meant.join(" ")}”`;
      status.textContent = `${hits.length === 1 ? "1 section" : `${hits.length || "No"} sections`}${other}. Enter searches the whole text.`;
      box.hidden = !meant.length;
    };
    field.addEventListener("input", show);
    if (document.activeElement === field && !new URLSearchParams(location.search).get("q")) show();

    const step = (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") box.hidden = true;
      const stops = [field, ...list.querySelectorAll("a")];
      if (!by || box.hidden) return;
      event.preventDefault();
      stops.at((stops.indexOf(document.activeElement) + by) % stops.length).focus();
    };
    field.addEventListener("keydown", step);
    box.addEventListener("keydown", step);
    list.addEventListener("click", () => field.closest("dialog")?.close()); // the section may be on this page
    document.addEventListener("click", ({ target }) => { if (!box.parentElement.contains(target)) box.hidden = true; });
  }
}
