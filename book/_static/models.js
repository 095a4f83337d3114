// The table of models: sort it by a column. On a phone each row is a card, which names the columns (subnorm.css).
{
  const table = document.querySelector("table.models");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, at) => ({ row, at }));
  const heads = [...table.tHead.rows[0].cells];
  for (const { row } of rows) heads.forEach((head, column) => { row.cells[column].dataset.label = head.textContent; }); // of a card

  const value = (row, column) => row.cells[column].textContent.trim();

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
    button.addEventListener("click", () => sort(column));
    head.querySelector("p").append(button);
  });
}
