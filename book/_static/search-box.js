// Shows the sections that have the words in a search field, while the reader types. subnorm.js loads this when a field
// is used for the first time; this loads the list of all sections (sections.js) with the first letter.
const subnormSections = (() => {
  const { src } = document.currentScript;
  const load = (name) => new Promise((done) => {
    document.head.append(Object.assign(document.createElement("script"), { src: src.replace(/search-box\.js.*/, name), onload: done }));
  });
  let list;
  /** Each section of the book: {page, at, title, text, also}, `at` the title of its page, and `also` the terms it explains. */
  return () => (list ??= (async () => {
    await Promise.all([load("sections.js"), typeof subnormTerms === "undefined" && load("search-terms.js")]);
    return SECTIONS.flatMap(([page, at, rows]) => rows.map(([anchor, title, text]) => ({
      page: `${page}.html${anchor && `#${anchor}`}`, at, title, text, also: (!anchor && subnormTerms.EXPLAINED[page]) || "",
    })));
  })());
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
  const KINDS = [[/^notebooks\/\d\d-/, 3], [/^notebooks\/\d\d[a-z]-/, 2], [/exercises/, -3], [/^book\/api/, -1]];
  const [FITS, SHORT, ALL] = [20, 8, 6]; // points for the words, for a title of them alone, and for having all
  const NEAR = 0.5; // the share of the best that is near

  /** The stems of a section, made once: of its title, the terms it explains, its text and its page. */
  const parts = (section) => (section.parts ??= [section.title, section.also, section.text, section.at].map(subnormTerms.stems));

  /** How well a section has a word: in its title, its terms, its text or the title of its page; in full, or as the beginning
      of a word. Two letters count as a beginning only if nothing else is typed. */
  const WEIGHTS = [1, 0.9, 0.5, 0.4], BEGINS = 0.8;
  const has = (section, word, alone) => Math.max(...parts(section).map((own, k) =>
    WEIGHTS[k] * (own.includes(word) ? 1 : (alone || word.length > 2) && own.some((other) => other.startsWith(word)) ? BEGINS : 0)));

  /** The sections that have the words, or most of them, the best first. A word that few sections have tells more. */
  function found(sections, asked) {
    const { COMMON, stems } = subnormTerms;
    const one = asked.join(" ");
    const fits = sections.map((section) => asked.map((word) => has(section, word, asked.length === 1)));
    const rare = asked.map((_, k) => Math.log(1 + sections.length / (1 + fits.filter((fit) => fit[k]).length)));
    const total = rare.reduce((sum, weight) => sum + weight, 0);
    const scored = sections.map((section, j) => {
      const title = section.parts[0].join(" "), all = fits[j].every(Boolean), page = !section.page.includes("#");
      const telling = section.parts[0].filter((word) => !COMMON.has(word));
      const short = telling.filter((word) => asked.some((other) => word.startsWith(other))).length / (telling.length || 1);
      const share = fits[j].reduce((sum, fit, k) => sum + fit * rare[k], 0) / total;
      const whole = [title, ...section.also.split(/,\s+/).map((term) => stems(term).join(" "))].includes(one) ? 20
        : title.startsWith(one) ? 8 : 0;
      const kind = KINDS.find(([kind]) => kind.test(section.page))?.[1] ?? 0;
      return { ...section, all, share, score: FITS * share + SHORT * short * share + (all ? ALL : 0) + whole + kind + (page ? 3 : 0) };
    });
    const best = Math.max(...scored.map(({ share }) => share));
    return scored.filter(({ all, share }) => all || (share && share >= NEAR * best)).sort((a, b) => b.score - a.score);
  }

  /** The words with each that begins none of the book's replaced by the nearest that does. */
  function spelt(sections, asked) {
    const { stem, stems, respelt } = subnormTerms;
    const all = new Set(sections.flatMap(({ title, text, also }) => words(`${title} ${text} ${also}`)));
    const known = (word) => respelt(word) !== word || [...all].some((other) => other.includes(word) || stem(other).startsWith(stem(word)));
    return asked.map((word) => (/^\p{L}{4,}$/u.test(word) && !subnormTerms.COMMON.has(word) && !known(word) && subnormNearWord(word, all)) || word);
  }

  /** A text with the words marked. */
  function marked(name, text, places) {
    const part = document.createElement(name);
    let end = 0;
    for (const { 0: word, index } of text.matchAll(places)) {
      part.append(text.slice(end, index), Object.assign(document.createElement("mark"), { textContent: word }));
      end = index + word.length;
    }
    part.append(text.slice(end));
    return part;
  }

  function row({ page, at, title, text }, places) {
    const link = Object.assign(document.createElement("a"), { href: root + page });
    link.append(marked("b", title, places));
    if (at !== title) link.append(Object.assign(document.createElement("span"), { textContent: at }));
    if (text) link.append(marked("small", text, places));
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
      const stems = meant.length ? subnormTerms.wanted(meant.join(" ")) : [];
      const hits = meant.length ? found(sections, stems) : [];
      const places = hits.length && subnormTerms.places(stems);
      list.replaceChildren(...hits.slice(0, SHOWN).map((hit) => row(hit, places)));
      const other = meant.join(" ") === asked.join(" ") ? "" : ` for “${meant.join(" ")}”`;
      const full = hits.filter(({ all }) => all).length;
      status.textContent = full || !hits.length
        ? `${full === 1 ? "1 section" : `${full || "No"} sections`}${other}. Enter searches the whole text.`
        : `No section has all these words${other}. The nearest:`;
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
