// The filter of a list or a table: show the rows that contain all words and are of the chosen kind.
{
  const filter = document.querySelector(".row-filter");
  const [words, status] = [filter.querySelector("[type=search]"), filter.querySelector("[role=status]")];
  const chosen = () => filter.querySelector("[type=radio]:checked").value;
  const rows = [...document.querySelectorAll(filter.dataset.rows)].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const titles = [...document.querySelectorAll(".rubric")]; // of the lists of the ledger

  function show() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = chosen();
    let count = 0;
    for (const { row, text } of rows) {
      row.hidden = !((!kind || row.classList.contains(kind)) && wanted.every((word) => text.includes(word)));
      count += !row.hidden;
    }
    for (const title of titles) {
      const list = title.nextElementSibling;
      title.hidden = list.hidden = [...list.children].every((row) => row.hidden);
    }
    status.textContent = wanted.length || kind ? `${count} ${filter.dataset.things}` : "";
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
