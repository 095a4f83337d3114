// The filter of a list or a table: show the rows that contain all words, in this or another form and spelling
// (search-terms.js, which comes first), and are of the chosen kinds; after a comma come other words, of which a row may
// have all instead. With data-nearest a pasted message is compared with those of the rows instead (symptoms.js). Of
// one or two rows the best opens. Of the words of a reader who describes a trouble, some are enough if no row has all. In a table the words are
// marked, and a note that is folded and has one opens; the names of its files are no words of the row. Where nothing is
// found, a misspelt word is corrected, or a line says so and leads on. The contents of the page list what shows; a link to
// another row empties the filter, and the status says so.
{
  const filter = document.querySelector(".row-filter");
  const [words, status] = [filter.querySelector("[type=search]"), filter.querySelector("[role=status]")];
  const chosen = () => [...filter.querySelectorAll("[type=radio]:checked, select")].map(({ value }) => value).filter(Boolean);
  /** The text of a row or a part of it without the names of files in its folded sources. */
  const said = (part) => {
    const copy = part.cloneNode(true);
    if (part.closest("table")) for (const file of copy.querySelectorAll("details a.external")) file.remove();
    return copy.textContent;
  };
  const names = [...filter.querySelectorAll("[data-names]")]; // which a row has with its kind, whatever its cells say
  const rows = [...document.querySelectorAll(filter.dataset.rows)].map((row) => ({
    row, text: [said(row), ...names.filter(({ value }) => row.classList.contains(value)).map((one) => one.dataset.names)].join(" "),
  }));
  const START = "(?:(?<![\\p{L}\\p{N}])|(?<=\\p{Ll})(?=\\p{Lu})|(?<=\\p{Lu})(?=\\p{Lu}\\p{Ll}))";
  const code = (letter) => `\\u{${letter.codePointAt().toString(16)}}`;
  /** Where a text has a typed word, in small letters or capitals: from the beginning of a word, or of a part of a name. A
      number is whole: no 3 is in 32, 3.5 or 1e-3. */
  const sign = (word) => new RegExp((/^\p{L}/u.test(word) ? START : /^\p{N}/u.test(word) ? "(?<!\\p{N}|\\p{N}[.]|\\p{N}e-)" : "")
    + [...word].map((one) => `[${code(one.toLowerCase())}${code(one.toUpperCase())}]`).join("") + (/\p{N}$/u.test(word) ? "(?!\\p{N}|[.]\\p{N})" : ""), "gu");

  const nearest = "nearest" in filter.dataset && subnormNearest(rows.map(({ row }) => row));
  const PASTED = /(Error|Exception|Warning)\b|: ["']|(\S+\s+){5}\S/; // the name of an error, a quotation, or more words than anyone types
  const MESSAGE = /(Error|Exception|Warning)\b|[_()[\]{}"=:]/; // which nobody writes who describes a trouble
  const { COMMON, stems, places } = subnormTerms;
  const TOLD = /^[\p{L}\p{N}\s?.,’'-]+$/u; // words, and no formula or code
  const folds = new Map(rows.map(({ row }) => [row, [...row.querySelectorAll("td details")]]));
  const opened = new Set(); // not by the reader
  const titles = [...document.querySelectorAll(".rubric")]; // of the lists of the ledger
  const contents = [...document.querySelectorAll(".page-toc a[href^='#']")]
    .map((link) => ({ entry: link.closest("li"), target: document.getElementById(decodeURIComponent(link.hash.slice(1))) }));

  const nothing = document.createElement("p");
  nothing.className = "nothing";
  nothing.hidden = true;
  const again = Object.assign(document.createElement("button"), { type: "button" });
  again.textContent = `Show all ${rows.length} ${filter.dataset.things}`;
  again.addEventListener("click", () => {
    clear();
    words.focus();
  });
  const elsewhere = document.createElement("a"); // the search of the book
  elsewhere.textContent = "Search the book";
  const none = nearest
    ? "No entry matches this. Its cause may lie outside norms and residual connections."
    : `None of the ${filter.dataset.things} matches this.`;
  nothing.append(none, " ", again, " ", elsewhere);
  filter.append(nothing);

  /** Forget the words and the kinds. */
  function clear() {
    words.value = "";
    for (const all of filter.querySelectorAll("[type=radio][value='']")) all.checked = true;
    for (const menu of filter.querySelectorAll("select")) menu.value = "";
    show();
  }

  /** Whether a row has all of these stems; a long one may be the beginning of a word. */
  const alike = (one, asked) => {
    one.stems ??= new Set(stems(one.text));
    return asked.every((word) => one.stems.has(word) || (word.length > 4 && [...one.stems].some((other) => other.startsWith(word))));
  };

  function show() {
    const meant = showWith(words.value) ? words.value : subnormTerms.spelt(words.value, rows.map(({ text }) => text));
    if (meant !== words.value && !PASTED.test(words.value) && showWith(meant))
      status.textContent = `None of the ${filter.dataset.things} has “${words.value}”. For “${meant}”: ${status.textContent}`;
  }

  /** Show the rows that have the words, and whether there are any. */
  function showWith(asked) {
    const pasted = nearest && PASTED.test(asked) && nearest(asked);
    const either = (nearest ? [asked] : asked.split(",")).filter((part) => part.trim())
      .map((part) => ({ raw: part.toLowerCase().split(/\s+/).filter(Boolean), own: TOLD.test(part) ? subnormTerms.wanted(part) : [] }));
    const typed = new Map(either.flatMap(({ raw }) => raw).map((word) => [word, sign(word)])), wanted = [...typed.values()];
    const has = (one) => !either.length || either.some(({ raw, own }) =>
      raw.every((word) => one.text.search(typed.get(word)) >= 0) || (own.length > 0 && alike(one, own)));
    const kinds = chosen();
    const offered = ({ row }) => kinds.every((kind) => row.classList.contains(kind));
    let found = rows.filter((one, k) => offered(one) && (pasted ? pasted[k] : has(one)));
    const some = nearest && !found.length && !MESSAGE.test(asked) && subnormSome(asked, rows.filter(offered));
    if (some) found = some.rows;
    for (const one of rows) one.row.hidden = !found.includes(one);
    const signs = [...[...typed].filter(([word]) => !COMMON.has(word) || typed.size === 1).map(([, place]) => place),
      ...either.flatMap(({ own }) => own).map((one) => places([one]))];
    unfold(found, signs);
    mark(found, signs);
    filter.dispatchEvent(new CustomEvent("found", { detail: { found: found.map(({ row }) => row), wanted } }));
    filter.classList.toggle("filtering", Boolean(wanted.length || kinds.length)); // the contents of the page wait (subnorm.css)
    const count = found.length;
    nothing.hidden = count > 0;
    elsewhere.href = `${document.querySelector("form.bd-search").getAttribute("action")}?q=${encodeURIComponent(words.value.trim())}`;
    elsewhere.hidden = !wanted.length;
    if (count > 0 && count < 3 && !some) {
      const score = (one) => (pasted ? pasted[rows.indexOf(one)] : 0);
      const best = found.reduce((a, b) => (score(b) > score(a) ? b : a));
      best.row.querySelector(":scope > details")?.setAttribute("open", "");
    }
    for (const title of titles) {
      const list = title.nextElementSibling;
      title.hidden = list.hidden = [...list.children].every((row) => row.hidden);
    }
    // A link of the contents to what the filter hides could only empty it. Where nothing is found, they lead on.
    const gone = contents.map(({ target }) => count > 0 && target !== null && !target.checkVisibility());
    contents.forEach(({ entry }, k) => { entry.hidden = gone[k]; });
    const all = wanted.length || kinds.length ? `${count} of ${rows.length} ${filter.dataset.things}` : "";
    const one = count === 1;
    status.textContent = !count || !some ? all
      : `No entry has all of this; ${one ? "this one has" : `these ${count} have`} ${some.words}.`;
    return count > 0;
  }

  /** Open each folded note that alone has one of the words in a row, and close those of the words before. */
  function unfold(found, signs) {
    for (const fold of opened) fold.open = false;
    opened.clear();
    for (const { row } of found) {
      if (!folds.get(row).length) continue;
      const shown = [...row.cells].map((cell) => (cell.querySelector("details:not([open]) > summary") ?? cell).textContent);
      for (const fold of folds.get(row)) {
        const text = said(fold);
        if (fold.open || !signs.some((sign) => text.search(sign) >= 0 && !shown.some((seen) => seen.search(sign) >= 0))) continue;
        fold.open = true;
        opened.add(fold);
      }
    }
  }

  /** Mark the words in the rows of a table. */
  function mark(found, signs) {
    if (!globalThis.Highlight || !rows[0]?.row.cells) return;
    const ranges = [];
    for (const { row } of signs.length ? found : []) {
      const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) for (const sign of signs) {
        const text = texts.currentNode;
        for (const { 0: { length }, index } of text.data.matchAll(sign)) {
          ranges.push(new StaticRange({ startContainer: text, startOffset: index, endContainer: text, endOffset: index + length }));
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  }

  filter.addEventListener("input", show);
  addEventListener("hashchange", () => { // a link to a row that the filter hides
    const row = document.getElementById(location.hash.slice(1));
    if (!row || getComputedStyle(row).display !== "none") return; // a group without a row is not shown either
    clear();
    status.textContent = "The filter is empty again, to show where the link leads.";
    row.scrollIntoView();
  });
  if (words.value || chosen().length) show(); // a reload may restore old choices
}
