// The table of models: sort it by a column. On a phone a row is a card, which shows the name, the placement and the norm,
// and a tap opens the rest: its other cells, each with the name of its column (subnorm.css).
{
  const table = document.querySelector("table.models"), filter = document.querySelector(".row-filter");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, at) => ({ row, at }));
  const heads = [...table.tHead.rows[0].cells];
  for (const { row } of rows) heads.forEach((head, column) => { row.cells[column].dataset.label = head.textContent; }); // of a card
  const names = heads.map((head) => head.textContent);

  const value = (row, column) => (row.cells[column].querySelector("button > span") ?? row.cells[column]).textContent.trim(); // of a card's button the name

  /** By number where both cells begin with one, else by text; equal cells stay in the order of the file. */
  function compare(one, other, column) {
    const [a, b] = [value(one.row, column), value(other.row, column)];
    const difference = parseFloat(a) - parseFloat(b);
    return (Number.isNaN(difference) ? a.localeCompare(b) : difference) || one.at - other.at;
  }

  function sort(column) {
    const down = heads[column].getAttribute("aria-sort") === "ascending";
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((one, other) => compare(one, other, column) * (down ? -1 : 1));
    body.append(...rows.map(({ row }) => row));
  }

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.querySelector("p").childNodes);
    head.addEventListener("click", () => sort(column));
    head.querySelector("p").append(button);
  });

  const phone = matchMedia("(max-width: 40rem)");
  const brief = ["placement", "norm"].map((name) => names.indexOf(name));
  const first = (cell) => (cell.querySelector("summary") ?? cell).textContent.trim();
  const byFilter = new Set(); // cards that the reader did not open

  function open(row, opened) {
    row.classList.toggle("open", opened);
    row.cells[0].querySelector("button")?.setAttribute("aria-expanded", opened);
  }

  /** The name of a model is a button as long as its row is a card. */
  function cards() {
    for (const { row } of rows) {
      const place = row.cells[0].querySelector("p"), button = place.querySelector("button");
      if (!phone.matches) {
        if (button) place.replaceChildren(...button.firstChild.childNodes);
        continue;
      }
      if (button) continue;
      const made = Object.assign(document.createElement("button"), { type: "button" });
      const name = document.createElement("span");
      name.append(...place.childNodes);
      made.append(name);
      for (const column of brief) {
        const part = Object.assign(document.createElement("span"), { className: "brief" });
        part.textContent = first(row.cells[column]);
        made.append(" ", part);
      }
      made.addEventListener("click", () => {
        byFilter.delete(row);
        open(row, !row.classList.contains("open"));
      });
      place.append(made);
      open(row, row.classList.contains("open"));
    }
  }
  phone.addEventListener("change", cards);
  cards();

  /** Open the cards if one or two are left, to read or to compare; of the others show the cell that has a word. */
  filter.addEventListener("found", ({ detail: { found, wanted } }) => {
    for (const row of byFilter) open(row, false);
    byFilter.clear();
    for (const cell of body.querySelectorAll("td.found")) cell.classList.remove("found");
    if (!wanted.length) return;
    if (found.length < 3) {
      for (const row of found.filter((row) => !row.classList.contains("open"))) {
        open(row, true);
        byFilter.add(row);
      }
      return;
    }
    for (const row of found) {
      const seen = [0, ...brief].map((column) => first(row.cells[column])).join(" ");
      for (const word of wanted) if (seen.search(word) < 0) {
        [...row.cells].find((cell) => cell.textContent.search(word) >= 0)?.classList.add("found");
      }
    }
  });
  // the list may become so short that the screen is below it
  filter.addEventListener("input", () => {
    if (table.getBoundingClientRect().top < 0) table.scrollIntoView();
  });
}
