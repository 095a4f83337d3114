// Shows the sections that have the words in a search field, while the reader types. subnorm.js loads this when a field
// is used for the first time; this loads the list of all sections (sections.js) and their order with the first letter.
const subnormRanked = (() => {
  const { src } = document.currentScript;
  const load = (name) => new Promise((done) => {
    document.head.append(Object.assign(document.createElement("script"), { src: src.replace(/search-box\.js.*/, name), onload: done }));
  });
  let loaded;
  /** What search-rank.js returns. */
  return () => (loaded ??= (async () => {
    await Promise.all([load("sections.js"), typeof subnormTerms === "undefined" && load("search-terms.js")]);
    await load("search-rank.js");
    return subnormRank;
  })());
})();

{
  const SHOWN = 8;
  const root = document.currentScript.src.replace(/_static\/.*/, "");

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

  function row({ page, at, of, title, text }, places) {
    const link = Object.assign(document.createElement("a"), { href: root + page });
    link.append(marked("b", title, places));
    if (at !== title) link.append(Object.assign(document.createElement("span"), { textContent: of ? `${at} › ${of}` : at }));
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
      const { spelt, found } = await subnormRanked();
      if (field.value !== typed) return; // the reader has typed on
      const asked = typed.trim().length > 1 && /[\p{L}\p{N}]/u.test(typed), query = spelt(typed);
      const hits = asked ? found(query) : [];
      const places = hits.length && subnormTerms.places(subnormTerms.wanted(query));
      const other = query === typed ? "" : ` for “${query}”`;
      const shown = hits.slice(0, SHOWN), full = hits.filter(({ all }) => all).length;
      list.replaceChildren(...shown.map((hit) => row(hit, places)));
      const these = !shown.every(({ all }) => all) ? `The nearest sections${other}`
        : `${full > SHOWN ? `The first ${SHOWN} of ` : ""}${full === 1 ? "1 section" : `${full} sections`}${other}`;
      status.textContent = hits.length ? `${these}. Enter searches the whole text.`
        : `No title or first sentence has this${other}. Enter searches the whole text and the code.`;
      box.hidden = !asked;
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
