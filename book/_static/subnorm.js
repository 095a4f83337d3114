// A formula, a listing or a table wider than its column scrolls; only then must the keyboard be able to reach it.
{
  const BOXES = ".eqn, pre, .cell_output > .output, .pst-scrollable-table-container";
  // Widths are read when the browser has laid out that part of the page anyway, all of them before the first is marked.
  // What a box holds is observed too: the fonts come late, and are wider.
  const observer = new ResizeObserver((entries) => {
    const sized = entries.flatMap(({ target }) => [target, target.parentElement]);
    const boxes = [...new Set(sized)].filter((box) => box.matches(BOXES));
    const wide = boxes.map((box) => box.scrollWidth > box.clientWidth + 1);
    boxes.forEach((box, k) => {
      for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "scrolls sideways"]])
        if (wide[k]) box.setAttribute(name, value);
        else box.removeAttribute(name);
    });
  });
  const watch = (part) => part.querySelectorAll(BOXES).forEach((box) => {
    observer.observe(box);
    if (box.firstElementChild) observer.observe(box.firstElementChild);
  });
  watch(document);
  document.addEventListener("contentvisibilityautostatechange", ({ target, skipped }) => { if (!skipped) watch(target) });
}

// The reader begins: now the whole page is laid out, so that nothing shifts while it is read, and a jump lands.
// The theme scrolls its sidebar: only what scrolls the page itself reaches the window, if nobody captures it.
for (const [sign, capture] of [["scroll", false], ["pointerdown", true], ["keydown", true], ["click", true]])
  addEventListener(sign, () => document.documentElement.classList.remove("fresh"), { once: true, capture });

// The list of contents follows the reader where it stands beside the text. On a phone it is out of sight, and to
// follow there would lay out the whole page before it can be used.
if (matchMedia("(min-width: 1200px)").matches) document.body.dataset.bsSpy = "scroll";

// Paper is light, whatever the screen shows.
{
  const root = document.documentElement.dataset;
  let shown;
  matchMedia("print").addEventListener("change", ({ matches: printing }) => {
    if (printing) shown = root.theme;
    root.theme = printing ? "light" : shown;
  });
}

// A drawer of a phone gives the focus back to the button that opened it, or leads to what was chosen on this page.
for (const side of ["primary", "secondary"]) {
  const drawer = document.getElementById(`pst-${side}-sidebar-modal`);
  let chosen = null;
  drawer?.addEventListener("click", ({ target }) => {
    chosen = target.closest("a[href^='#']");
    if (chosen) drawer.close(); // the link is followed after that
  });
  drawer?.addEventListener("close", () => {
    if (!chosen) document.querySelector(`button.${side}-toggle`).focus();
    chosen = null;
  });
}
