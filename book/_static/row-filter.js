// The filter of a list or a table: show the rows that contain all words and are of the chosen kind. With data-nearest
// the rows that contain the most words do, if they contain half of them, and a single one opens.
{
  const filter = document.querySelector(".row-filter");
  const [words, status] = [filter.querySelector("[type=search]"), filter.querySelector("[role=status]")];
  const chosen = () => filter.querySelector("[type=radio]:checked").value;
  const rows = [...document.querySelectorAll(filter.dataset.rows)].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const titles = [...document.querySelectorAll(".rubric")]; // of the lists of the ledger

  function show() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = chosen();
    const hits = rows.map(({ text }) => wanted.filter((word) => text.includes(word)).length);
    const most = Math.max(...hits);
    const needed = "nearest" in filter.dataset && most >= wanted.length / 2 ? most : wanted.length;
    let count = 0;
    for (const [k, { row }] of rows.entries()) {
      row.hidden = !((!kind || row.classList.contains(kind)) && hits[k] >= needed);
      count += !row.hidden;
    }
    if ("nearest" in filter.dataset && count === 1) rows.find(({ row }) => !row.hidden).row.querySelector(":scope > details").open = true;
    for (const title of titles) {
      const list = title.nextElementSibling;
      title.hidden = list.hidden = [...list.children].every((row) => row.hidden);
    }
    status.textContent = wanted.length || kind ? `${count} of ${rows.length} ${filter.dataset.things}` : "";
  }

  filter.addEventListener("input", show);
  addEventListener("hashchange", () => { // a link to a row that the filter hides
    const row = document.getElementById(location.hash.slice(1));
    if (!row?.hidden) return;
    words.value = "";
    filter.querySelector("[type=radio]").checked = true;
    show();
    row.scrollIntoView();
  });
  if (words.value || chosen()) show(); // a reload may restore old choices
}
