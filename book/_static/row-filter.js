// The filter of a list or a table: show the rows that contain all words and are of the chosen kind; after a comma come
// other words, of which a row may have all instead. With data-nearest
// a pasted message is compared with those of the rows instead (symptoms.js), and a single row opens. Of the words of a
// reader who describes a trouble, some are enough if no row has all. In a table the words are marked, and a note that is
// folded and has one opens. Where nothing is found, a line says so and leads on.
{
  const filter = document.querySelector(".row-filter");
  const [words, status] = [filter.querySelector("[type=search]"), filter.querySelector("[role=status]")];
  const chosen = () => filter.querySelector("[type=radio]:checked")?.value ?? ""; // a list of one kind has no choice
  const rows = [...document.querySelectorAll(filter.dataset.rows)].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const nearest = "nearest" in filter.dataset && subnormNearest(rows.map(({ row }) => row));
  const PASTED = /(Error|Exception|Warning)\b|(\S+\s+){5}\S/; // the name of an error, or more words than anyone types
  const MESSAGE = /(Error|Exception|Warning)\b|[_()[\]{}"=:]/; // which nobody writes who describes a trouble
  const folds = new Map(rows.map(({ row }) => [row, [...row.querySelectorAll("td details")]]));
  const opened = new Set(); // not by the reader
  const titles = [...document.querySelectorAll(".rubric")]; // of the lists of the ledger

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

  /** Forget the words and the kind. */
  function clear() {
    words.value = "";
    for (const all of filter.querySelectorAll("[type=radio][value='']")) all.checked = true;
    show();
  }

  function show() {
    const pasted = nearest && PASTED.test(words.value) && nearest(words.value);
    const either = (nearest ? [words.value] : words.value.split(","))
      .map((part) => part.toLowerCase().split(/\s+/).filter(Boolean)).filter((part) => part.length);
    const wanted = either.flat();
    const has = (text) => !either.length || either.some((part) => part.every((word) => text.includes(word)));
    const kind = chosen();
    const offered = ({ row }) => !kind || row.classList.contains(kind);
    let found = rows.filter((one, k) => offered(one) && (pasted ? pasted[k] : has(one.text)));
    const some = nearest && !found.length && !MESSAGE.test(words.value) && subnormSome(words.value, rows.filter(offered));
    if (some) found = some.rows;
    for (const one of rows) one.row.hidden = !found.includes(one);
    unfold(found, wanted);
    mark(found, wanted);
    filter.dispatchEvent(new CustomEvent("found", { detail: { found: found.map(({ row }) => row), wanted } }));
    filter.classList.toggle("filtering", Boolean(wanted.length || kind)); // the contents of the page wait (subnorm.css)
    const count = found.length;
    nothing.hidden = count > 0;
    elsewhere.href = `${document.querySelector("form.bd-search").getAttribute("action")}?q=${encodeURIComponent(words.value.trim())}`;
    elsewhere.hidden = !wanted.length;
    if (nearest && count === 1 && !some) rows.find(({ row }) => !row.hidden).row.querySelector(":scope > details").open = true;
    for (const title of titles) {
      const list = title.nextElementSibling;
      title.hidden = list.hidden = [...list.children].every((row) => row.hidden);
    }
    const all = wanted.length || kind ? `${count} of ${rows.length} ${filter.dataset.things}` : "";
    const one = count === 1;
    status.textContent = !count || !some ? all
      : `No entry has all of this; ${one ? "this one has" : `these ${count} have`} ${some.words}.`;
  }

  /** Open each folded note that alone has one of the words in a row, and close those of the words before. */
  function unfold(found, wanted) {
    for (const fold of opened) fold.open = false;
    opened.clear();
    for (const { row } of found) {
      if (!folds.get(row).length) continue;
      const shown = [...row.cells].map((cell) => (cell.querySelector("details:not([open]) > summary") ?? cell).textContent.toLowerCase());
      for (const fold of folds.get(row)) {
        const said = fold.textContent.toLowerCase();
        if (fold.open || !wanted.some((word) => said.includes(word) && !shown.some((text) => text.includes(word)))) continue;
        fold.open = true;
        opened.add(fold);
      }
    }
  }

  /** Mark the words in the rows of a table. */
  function mark(found, wanted) {
    if (!globalThis.Highlight || !rows[0]?.row.cells) return;
    const ranges = [];
    for (const { row } of wanted.length ? found : []) {
      const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) for (const word of wanted) {
        const text = texts.currentNode, all = text.data.toLowerCase();
        for (let at = all.indexOf(word); at >= 0; at = all.indexOf(word, at + 1)) {
          ranges.push(new StaticRange({ startContainer: text, startOffset: at, endContainer: text, endOffset: at + word.length }));
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
    row.scrollIntoView();
  });
  if (words.value || chosen()) show(); // a reload may restore old choices
}
