// "Try it" at a cell of a chapter: the cell becomes an editor, runs in the page's Python, and its output is compared
// with the stored one (subnorm_book/in_page/try_it.py). All it needs loads at the first click.
{
  const here = new URL(".", document.currentScript.src);
  const template = document.querySelector("template[data-try-page]");
  const page = template.dataset.tryPage;

  // A table was printed as lines of cells; show them in columns.
  const aligned = (text) => text.replace(/^.* \| .*(?:\n.* \| .*)*/gm, (table) => {
    const rows = table.split("\n").map((line) => line.split(" | "));
    if (new Set(rows.map((row) => row.length)).size > 1) return table;
    const widths = rows[0].map((_, k) => Math.max(...rows.map((row) => row[k].length)));
    return rows.map((row) => row.map((cell, k) => cell.padEnd(widths[k])).join("   ").trimEnd()).join("\n");
  });

  const fetched = async (name) => {
    const answer = await fetch(new URL(`try/${name}.json`, here), { cache: "no-cache" });
    if (!answer.ok) throw new Error();
    return answer.json();
  };
  const script = (name) => new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement("script"), { src: new URL(name, here).href, onload: resolve, onerror: reject });
    document.head.append(element);
  });

  // The desk of the page, and how to open a cell.
  const prepare = async () => {
    if (typeof SubnormDesk === "undefined") await script(template.dataset.script);
    const obstacle = SubnormPython.obstacle();
    if (obstacle) throw obstacle;
    const [settings, { packs, cells, tries }] = await Promise.all([fetched("settings"), fetched(page)]);
    const others = settings.packs.slice(1).filter((pack) => !packs.includes(pack)); // the first is NumPy
    for (const pack of others) delete settings.parts[pack];
    settings.packs = settings.packs.filter((pack) => !others.includes(pack));
    const desk = new SubnormDesk({ ...settings, cells: JSON.stringify(cells) });
    const codes = new Map(cells);

    class Try extends SubnormBench {
      constructor(box, name) {
        super(desk, box, `subnorm.try.${page}.${name}`);
        Object.assign(this, { name, ...tries[name] });
        this.stored = box.querySelector("[data-stored]");
      }

      clear() {
        super.clear();
        this.stored.textContent = "";
      }

      start() {
        if (desk.busy && desk.busy !== this) this.state.textContent = "Another cell is running: run this one when it has ended.";
        const changed = desk.benches.filter((bench) => bench === this || bench.code !== bench.stub).map(({ name, code }) => [name, code]);
        return super.start({ cell: this.name, changed: JSON.stringify(Object.fromEntries(changed)), then: JSON.stringify(this.then) });
      }

      get results() { return [this.output, this.stored]; }

      ended({ error, changed }) {
        const text = this.output.textContent.trimEnd();
        const above = changed.length ? " It ran with your change above." : "";
        if (this.call && !error) {
          this.output.textContent = aligned(text);
          return (text ? "The call at the end is not in the book: it shows what the code does." : "It ran, and printed nothing.") + above;
        }
        const message = (line) => line.slice(line.indexOf(": ") + 1); // the name of an error may come with its module
        const same = error
          ? text === error && message(error.split("\n").at(-1)) === message(this.said)
          : text === this.said;
        const below = same && !error && !this.then.length; // the book shows it right below, unless a later cell prints it
        this.output.textContent = below ? "" : aligned(text);
        this.stored.textContent = same ? "" : aligned(this.said) || "Nothing.";
        const edited = this.code !== this.stub;
        const more = above + (this.drawn && edited ? " Figures stay as in the book." : "");
        const warning = this.warns && !edited ? ", but for the warning: Python in a page gives none" : "";
        if (same && edited) return `Your change leaves the output the same as in the book.${more}`;
        if (same && text) return `Same as in the book${warning}.${more}`;
        if (error) return `An error, in the output below.${more}`;
        return (edited ? "Compare your output with the book’s." : "Not the same as in the book.") + more;
      }
    }

    return (button) => {
      const name = button.dataset.try;
      const box = template.content.firstElementChild.cloneNode(true);
      box.querySelector("textarea").defaultValue = [codes.get(name), tries[name].call].filter(Boolean).join("\n\n");
      const cell = button.closest(".cell");
      button.closest(".cell_input").after(box);
      cell.classList.add("tried");
      const bench = new Try(box, name);
      box.querySelector("[data-close]").addEventListener("click", () => {
        if (desk.busy === bench) desk.python.stop();
        desk.benches.splice(desk.benches.indexOf(bench), 1);
        box.remove();
        cell.classList.remove("tried");
        button.focus();
      });
      bench.run.focus({ preventScroll: true });
      bench.start();
    };
  };

  let prepared;
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest?.("button[data-try]");
    if (!button) return;
    const note = button.nextElementSibling;
    note.textContent = "Loading…";
    try {
      prepared ??= prepare();
      const open = await prepared;
      note.textContent = "";
      if (!button.closest(".tried")) open(button);
    } catch (trouble) {
      prepared = null;
      const known = typeof SubnormTrouble !== "undefined" && trouble instanceof SubnormTrouble;
      note.textContent = known ? trouble.message : "It did not load. Are you online? Try again.";
    }
  });
}
